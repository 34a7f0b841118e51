// tandem/comm/transport/loop/message.cpp: payloads as bytes, and messages between processes.
#include "tandem/comm/transport/loop/message.hpp"

#include <algorithm>
#include <cstring>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"

namespace tandem::comm {

namespace {

using Bytes = std::vector<std::byte>;

/// Copies `from` into the pieces of `to`, as far as both go.
void copy(std::span<const iovec> from, std::span<const iovec> to) {
  std::size_t i = 0;
  std::size_t at = 0;
  for (const iovec& place : to) {
    for (std::size_t done = 0; done < place.iov_len && i < from.size();) {
      const std::size_t part = std::min(place.iov_len - done, from[i].iov_len - at);
      std::memcpy(static_cast<std::byte*>(place.iov_base) + done, static_cast<std::byte*>(from[i].iov_base) + at, part);
      done += part;
      at += part;
      if (at == from[i].iov_len) ++i, at = 0;
    }
  }
}

/// Puts all bytes of the pieces into `bytes`, which is empty.
void join(std::span<const iovec> pieces, Bytes& bytes) {
  for (const iovec& piece : pieces) {
    const auto* begin = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), begin, begin + piece.iov_len);
  }
}

}  // namespace

void LoopNetwork::Payload::read(std::span<const iovec> to) {
  const std::lock_guard lock(mutex_);
  copy(pieces_, to);
}

void LoopNetwork::Payload::leave_sender() {
  const std::lock_guard lock(mutex_);
  if (!copy_.empty()) return;
  join(pieces_, copy_);
  pieces_.assign(1, {copy_.data(), copy_.size()});
}

void LoopNetwork::Message::copy_content(std::span<const iovec> pieces) { join(pieces, content); }

void LoopNetwork::Message::read_payload(std::span<const iovec> places) {
  if (payload != nullptr) return payload->read(places);
  const iovec whole{content.data(), content.size()};
  if (!content.empty()) copy({&whole, 1}, places);
}

void LoopNetwork::TakeBack::operator()(Message* message) const noexcept { message->all.take_back(*message); }

/// The message for another process, which has no `payload`.
std::string LoopNetwork::Message::to_bytes() const {
  internal::ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(kind)).u32(from.value()).u32(rail);
  writer.text({reinterpret_cast<const char*>(control.data()), control_bytes});
  writer.u64(payload_bytes).text({reinterpret_cast<const char*>(content.data()), content.size()});
  return writer.take();
}

/// Becomes what another process has sent, but for its receiver.
base::Result<void> LoopNetwork::Message::read(std::string_view bytes, const LoopOptions& options) {
  internal::ByteReader reader(bytes);
  kind = static_cast<Kind>(reader.u8());
  from = Rank(reader.u32());
  rail = reader.u32();
  const std::string_view all_control = reader.text(bytes.size());
  control.resize((all_control.size() + 7) / 8);
  if (!all_control.empty()) std::memcpy(control.data(), all_control.data(), all_control.size());
  control_bytes = all_control.size();
  payload_bytes = reader.u64();
  const std::string_view all_content = reader.text(bytes.size());
  const bool is_short = payload_bytes <= std::max(options.segment_bytes, options.payload_bytes);
  const bool is_whole = all_content.empty() || all_content.size() == payload_bytes;
  const bool is_possible = kind <= Kind::refused && from.value() < options.ranks && rail < options.rails;
  if (!reader.finished() || !is_short || !is_whole || !is_possible)
    return base::Error{base::ErrorCode::malformed, "a message of another process does not follow its format"};
  const auto come = std::as_bytes(std::span(all_content));
  content.assign(come.begin(), come.end());
  return {};
}

}  // namespace tandem::comm
