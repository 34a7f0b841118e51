// tandem/comm/transport/mpi/link.cpp: sending and receiving packets as envelopes and payloads.
#include "tandem/comm/transport/mpi/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/narrow.hpp"

namespace tandem::comm::internal::mpi {
namespace {

constexpr auto withdraw_within = std::chrono::seconds(1);

/// Copies bytes over the pieces in turn; those beyond the pieces are dropped.
void scatter(std::span<const std::byte> bytes, std::span<const iovec> pieces) {
  for (const iovec& piece : pieces) {
    const std::size_t part = std::min(bytes.size(), piece.iov_len);
    if (part != 0) std::memcpy(piece.iov_base, bytes.data(), part);
    bytes = bytes.subspan(part);
  }
}

bool fits_envelope(const Packet& packet) {
  return sizeof(EnvelopeHeader) + packet.control.size() + packet.payload_bytes <= envelope_bytes;
}

}  // namespace

Layout::Layout(std::span<const iovec> pieces) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> addresses;
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    lengths.push_back(base::narrow<int>(piece.iov_len));
    MPI_Get_address(piece.iov_base, &addresses.emplace_back());
    base = piece.iov_base;
  }
  if (lengths.size() <= 1) {
    count = lengths.empty() ? 0 : lengths.front();
    return;
  }
  base = MPI_BOTTOM;
  count = 1;
  MPI_Type_create_hindexed(base::narrow<int>(lengths.size()), lengths.data(), addresses.data(), MPI_BYTE, &type);
  MPI_Type_commit(&type);
}

Layout& Layout::operator=(Layout&& other) noexcept {
  if (this == &other) return *this;
  free();
  base = other.base;
  count = other.count;
  type = std::exchange(other.type, MPI_BYTE);
  return *this;
}

void Layout::free() {
  if (type != MPI_BYTE) MPI_Type_free(&type);
  type = MPI_BYTE;
}

void MpiLink::break_off(std::string why) {
  if (breaking_ || closed_) return;
  breaking_ = true;
  shared_->broken.emplace_back(this, std::move(why));
}

int MpiLink::tag_of(std::uint64_t payload) const {
  const auto tags = static_cast<std::uint64_t>(shared_->communicator->largest_tag());  // 1 to the largest
  return static_cast<int>(1 + payload % tags);
}

bool MpiLink::may_send(std::size_t payload_bytes) const {
  if (closed_ || breaking_ || shared_->envelopes.size() >= most_envelopes) return false;
  if (!unfinished_.empty() && packets_sent_ - unfinished_.front() >= sender_window) return false;
  if (payload_bytes == 0) return true;
  return shared_->payloads.size() < shared_->payload_limit && (flight_ == 0 || flight_ + payload_bytes <= flight_bytes);
}

SendStatus MpiLink::try_send(const Packet& packet) {
  TANDEM_DEBUG_ASSERT(packet.control.size() <= max_control_bytes && packet.payload_bytes <= max_payload_bytes);
  const bool inside = fits_envelope(packet);
  if (!may_send(inside ? 0 : packet.payload_bytes)) {
    if (!starved_ && !closed_) shared_->starved.push_back(this);
    starved_ = true;
    return SendStatus::retry;
  }
  const std::uint64_t number = packets_sent_++;
  post_envelope(packet, inside ? payload_inside : 0);
  if (inside || !post_payload(packet)) return SendStatus::done;  // a payload that MPI refuses is lost with the link
  shared_->payloads.back().packet = number;
  unfinished_.push_back(number);
  flight_ += packet.payload_bytes;
  return SendStatus::posted;
}

void MpiLink::post_envelope(const Packet& packet, std::uint32_t flags) {
  auto& free = shared_->free_envelopes;
  auto send = free.empty() ? std::make_unique<EnvelopeSend>() : std::move(free.back());
  if (!free.empty()) free.pop_back();
  auto* const begin = reinterpret_cast<std::byte*>(send->buffer.data());
  const EnvelopeHeader header{base::narrow<std::uint32_t>(packet.control.size()), flags, packet.payload_bytes};
  std::memcpy(begin, &header, sizeof header);
  std::byte* end = begin + sizeof header;
  if (!packet.control.empty()) std::memcpy(end, packet.control.data(), packet.control.size());
  end += packet.control.size();
  for (const iovec& piece : packet.payload) {
    if ((flags & payload_inside) == 0 || piece.iov_len == 0) continue;
    std::memcpy(end, piece.iov_base, piece.iov_len);
    end += piece.iov_len;
  }
  int done = 0;
  int code = MPI_Isend(begin, base::narrow<int>(end - begin), MPI_BYTE, number_, envelope_tag,
                       shared_->communicator->handle(), &send->request);
  if (code == MPI_SUCCESS) code = MPI_Test(&send->request, &done, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return break_off(mpi_failure("MPI_Isend", code));
  send->link = this;
  (done != 0 ? free : shared_->envelopes).push_back(std::move(send));
}

/// Posts a payload in synchronous mode: the send ends only after its receive began, so that a sender cannot run ahead
/// of its receiver.
bool MpiLink::post_payload(const Packet& packet) {
  PayloadSend send{
      .link = this, .cookie = packet.cookie, .bytes = packet.payload_bytes, .layout = Layout(packet.payload)};
  const int code = MPI_Issend(send.layout.base, send.layout.count, send.layout.type, number_, tag_of(payloads_sent_++),
                              shared_->communicator->handle(), &send.request);
  if (code != MPI_SUCCESS) {
    break_off(mpi_failure("MPI_Issend", code));
    return false;
  }
  shared_->payloads.push_back(std::move(send));
  return true;
}

void MpiLink::payload_sent(const PayloadSend& send, int code) {
  unfinished_.erase(std::find(unfinished_.begin(), unfinished_.end(), send.packet));
  flight_ -= send.bytes;
  if (closed_) return;
  if (code != MPI_SUCCESS) return break_off(mpi_failure("MPI_Issend", code));
  ++shared_->events;
  shared_->sink->sent(*this, send.cookie);
}

void MpiLink::came(std::span<const std::byte> envelope) {
  if (closed_ || breaking_) return;
  if (receiving_) {
    waiting_.emplace_back(envelope.begin(), envelope.end());
  } else {
    hand_over(envelope);
  }
}

void MpiLink::hand_over(std::span<const std::byte> envelope) {
  EnvelopeHeader header;
  const bool headed = envelope.size() >= sizeof header;
  if (headed) std::memcpy(&header, envelope.data(), sizeof header);
  if (headed && header.flags == link_ends) return break_off("it closed the connection");
  const bool inside = header.flags == payload_inside;
  const std::size_t rest = headed ? envelope.size() - sizeof header : 0;
  const bool good = headed && (inside || header.flags == 0) && header.control_bytes != 0 &&
                    header.control_bytes <= max_control_bytes && header.payload_bytes <= max_payload_bytes &&
                    rest == header.control_bytes + (inside ? header.payload_bytes : 0);
  if (!good) return break_off(fmt::format("an envelope of {} bytes does not follow the format", envelope.size()));
  ++shared_->events;
  const auto control = envelope.subspan(sizeof header, header.control_bytes);
  const Landing landing = shared_->sink->arrived(*this, control, header.payload_bytes);
  if (landing.malformed != nullptr) return break_off(fmt::format("malformed packet: {}", landing.malformed));
  if (header.payload_bytes == 0) return;
  if (!inside) return receive(header.payload_bytes, landing);
  scatter(envelope.subspan(sizeof header + header.control_bytes), landing.pieces);
  land(landing.token);
}

void MpiLink::land(std::uint64_t token) {
  ++shared_->events;
  shared_->sink->landed(*this, token);
}

/// Posts the receive of a payload. MPI needs room for all of it: what the landing does not take goes to memory of ours.
void MpiLink::receive(std::size_t payload_bytes, const Landing& landing) {
  std::vector<iovec> pieces;
  std::size_t rest = payload_bytes;
  for (const iovec& piece : landing.pieces) {
    const std::size_t part = std::min(rest, piece.iov_len);
    if (part != 0) pieces.push_back({piece.iov_base, part});
    rest -= part;
  }
  receive_.excess.resize(rest);
  if (rest != 0) pieces.push_back({receive_.excess.data(), rest});
  receive_.token = landing.token;
  receive_.layout = Layout(pieces);
  const int code = MPI_Irecv(receive_.layout.base, receive_.layout.count, receive_.layout.type, number_,
                             tag_of(payloads_received_++), shared_->communicator->handle(), &receive_.request);
  if (code != MPI_SUCCESS) return break_off(mpi_failure("MPI_Irecv", code));
  receiving_ = true;
  shared_->receiving.push_back(this);
}

bool MpiLink::receive_done() {
  int done = 0;
  receive_.code = MPI_Test(&receive_.request, &done, MPI_STATUS_IGNORE);
  return done != 0 || receive_.code != MPI_SUCCESS;
}

void MpiLink::finish_receive() {
  receiving_ = false;
  receive_.excess = {};
  if (receive_.code != MPI_SUCCESS) return break_off(mpi_failure("MPI_Irecv", receive_.code));
  land(receive_.token);
  while (!receiving_ && !breaking_ && !waiting_.empty()) {
    const std::vector<std::byte> envelope = std::move(waiting_.front());
    waiting_.pop_front();
    hand_over(envelope);
  }
}

void MpiLink::mute() {
  closed_ = true;
  waiting_.clear();
  withdraw_receive();
}

void MpiLink::close() {
  if (closed_) return;
  if (shared_->envelopes.size() < most_envelopes) post_envelope({}, link_ends);
  mute();
  std::erase(shared_->starved, this);
  if (!unfinished_.empty()) {
    shared_->log->warn("mpi: {} payloads to rank {} are still being sent, and MPI cannot cancel them",
                       unfinished_.size(), peer().value());
  }
}

void MpiLink::withdraw_receive() {
  if (!receiving_) return;
  receiving_ = false;
  std::erase(shared_->receiving, this);
  MPI_Cancel(&receive_.request);
  const auto deadline = std::chrono::steady_clock::now() + withdraw_within;
  int done = 0;
  while (MPI_Test(&receive_.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      shared_->log->error("mpi: a payload from rank {} has begun and does not end; its memory may still be written",
                          peer().value());
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace tandem::comm::internal::mpi
