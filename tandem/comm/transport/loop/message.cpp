// tandem/comm/transport/loop/message.cpp: payloads as bytes, and messages between processes.
#include "tandem/comm/transport/loop/message.hpp"

#include <algorithm>
#include <cstring>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/bootstrap/bytes.hpp"

namespace tandem::comm {

namespace {

using Bytes = std::vector<std::byte>;

/// Copies `from` into the pieces of `to`, as far as both go; what pieces without an address would fill stays as it is.
void copy(std::span<const iovec> from, std::span<const iovec> to) {
  std::size_t i = 0;
  std::size_t at = 0;
  for (const iovec& place : to) {
    for (std::size_t done = 0; done < place.iov_len && i < from.size();) {
      const std::size_t part = std::min(place.iov_len - done, from[i].iov_len - at);
      if (from[i].iov_base != nullptr)
        std::memcpy(static_cast<std::byte*>(place.iov_base) + done, static_cast<std::byte*>(from[i].iov_base) + at,
                    part);
      done += part;
      at += part;
      if (at == from[i].iov_len) ++i, at = 0;
    }
  }
}

Bytes joined(std::span<const iovec> pieces) {
  std::size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  Bytes bytes(total);
  const iovec whole{bytes.data(), bytes.size()};
  copy(pieces, {&whole, 1});
  return bytes;
}

}  // namespace

LoopNetwork::Payload::Payload(std::span<const iovec> pieces, bool stays_with_sender) {
  if (stays_with_sender)
    pieces_.assign(pieces.begin(), pieces.end());
  else
    copy_ = joined(pieces);
}

void LoopNetwork::Payload::read(std::span<const iovec> to) {
  const std::lock_guard lock(mutex_);
  const iovec whole{copy_.data(), copy_.size()};
  copy(pieces_.empty() ? std::span<const iovec>(&whole, 1) : pieces_, to);
}

void LoopNetwork::Payload::leave_sender() {
  const std::lock_guard lock(mutex_);
  copy_ = joined(pieces_);
  pieces_.clear();
}

void LoopNetwork::TakeBack::operator()(Message* message) const noexcept { message->all.take_back(*message); }

/// The message for another process, without pieces of more than `most_piece_bytes`.
std::string LoopNetwork::Message::to_bytes(std::size_t most_piece_bytes) const {
  internal::ByteWriter writer;
  writer.u8(static_cast<std::uint8_t>(kind)).u32(from.value()).u32(rail);
  writer.text({reinterpret_cast<const char*>(control.data()), control_bytes});
  const std::span<const iovec> pieces = payload == nullptr ? std::span<const iovec>() : payload->pieces();
  writer.u32(base::narrow<std::uint32_t>(pieces.size()));
  for (const iovec& piece : pieces) {
    const bool travels = piece.iov_len <= most_piece_bytes;
    writer.u64(piece.iov_len).u8(travels ? 1 : 0);
    if (travels) writer.raw({static_cast<const char*>(piece.iov_base), piece.iov_len});
  }
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
  const std::size_t most_bytes = std::max(options.segment_bytes, options.payload_bytes);
  std::vector<std::pair<std::size_t, std::string_view>> pieces;  // a length, and what has come
  std::size_t come = 0;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    const std::size_t length = reader.u64();
    if (length > most_bytes - payload_bytes) break;
    payload_bytes += length;
    pieces.emplace_back(length, reader.u8() != 0 ? reader.raw(length) : std::string_view());
    come += pieces.back().second.size();
  }
  if (!reader.finished() || kind > Kind::refused || from.value() >= options.ranks || rail >= options.rails)
    return base::Error{base::ErrorCode::malformed, "a message of another process does not follow its format"};
  Bytes content(come);
  std::vector<iovec> places;
  std::byte* at = content.data();
  for (const auto& [length, piece] : pieces) {
    places.push_back({piece.empty() ? nullptr : at, length});
    at = std::copy_n(reinterpret_cast<const std::byte*>(piece.data()), piece.size(), at);
  }
  payload = std::make_shared<Payload>(std::move(content), std::move(places));
  return {};
}

}  // namespace tandem::comm
