// tandem/comm/transport/ucx/link_receive.cpp: what a link receives: ordering, reporting, placing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/ucx/link.hpp"

namespace tandem::comm::internal::ucx {
namespace {

/// Copies bytes over the pieces in turn; those beyond the pieces are dropped.
void scatter(const void* from, std::size_t bytes, std::span<const iovec> pieces) {
  const auto* rest = static_cast<const std::byte*>(from);
  for (const iovec& piece : pieces) {
    const std::size_t part = std::min(bytes, piece.iov_len);
    if (part != 0) std::memcpy(piece.iov_base, rest, part);
    rest += part;
    bytes -= part;
  }
}

}  // namespace

ucs_status_t UcxLink::came(const PacketHeader& header, std::span<const std::byte> control, void* data,
                           std::size_t data_bytes, std::uint64_t attributes) {
  if (state_ == State::closed || breaking_) return UCS_OK;
  if ((header.flags & link_ends) != 0) {
    break_off("it closed the connection");
    return UCS_OK;
  }
  const bool rendezvous = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool kept = (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 && data_bytes != 0;
  const bool block = (header.flags & control_is_data) != 0;
  if (!order_.acceptable(header.sequence) || data_bytes > max_payload_bytes || (block && rendezvous)) {
    break_off(fmt::format("packet {} with {} bytes, where {} was next, does not follow the format", header.sequence,
                          data_bytes, order_.next()));
    return UCS_OK;
  }
  proved();
  Arrival arrival{.flags = header.flags, .control = control, .data = data, .data_bytes = data_bytes};
  if (data_bytes != 0) {
    arrival.kind = rendezvous ? Arrival::Data::rendezvous : kept ? Arrival::Data::kept : Arrival::Data::borrowed;
  }
  // A small packet in order is reported from here, without a copy. Data that UCX keeps for us must not be released in
  // its own callback.
  const bool now =
      shared_->reporting && !receiving_ && header.sequence == order_.next() && arrival.kind <= Arrival::Data::borrowed;
  if (now) {
    order_.skip();
    handle(arrival);
    note_ready();
    return UCS_OK;
  }
  const bool keeps = arrival.kind == Arrival::Data::kept || rendezvous;
  hold(header.sequence, std::move(arrival));
  return keeps ? UCS_INPROGRESS : UCS_OK;
}

void UcxLink::note_ready() {
  const bool something = (order_.ready() && !receiving_) || (starved_ && may_send(0));
  if (noted_ready_ || !something) return;
  noted_ready_ = true;
  shared_->ready.push_back(this);
}

void UcxLink::hold(std::uint64_t sequence, Arrival arrival) {
  arrival.own_control.assign(arrival.control.begin(), arrival.control.end());
  arrival.control = arrival.own_control;
  if (arrival.kind == Arrival::Data::borrowed) {
    const auto* first = static_cast<const std::byte*>(arrival.data);
    arrival.own_data.assign(first, first + arrival.data_bytes);
    arrival.data = arrival.own_data.data();
    arrival.kind = Arrival::Data::copied;
  }
  order_.add(sequence, std::move(arrival));
  note_ready();
}

void UcxLink::deliver() {
  noted_ready_ = false;
  while (state_ != State::closed && !breaking_ && !receiving_ && order_.ready()) {
    Arrival arrival = order_.take();
    handle(arrival);
  }
  if (starved_ && may_send(0)) {
    starved_ = false;
    ++shared_->events;
    shared_->sink->writable(*this);
  }
}

void UcxLink::handle(Arrival& arrival) {
  if ((arrival.flags & control_is_data) == 0) {
    const bool second_half = (arrival.flags & payload_only) != 0;
    const std::vector<std::byte> held = second_half ? std::exchange(held_, {}) : std::vector<std::byte>();
    return hand_over(second_half ? std::span<const std::byte>(held) : arrival.control, arrival);
  }
  const std::span<const std::byte> block(static_cast<const std::byte*>(arrival.data), arrival.data_bytes);
  if ((arrival.flags & payload_follows) != 0) {
    held_.assign(block.begin(), block.end());
  } else {
    Arrival nothing;
    hand_over(block, nothing);
  }
  release(arrival);
}

void UcxLink::hand_over(std::span<const std::byte> control, Arrival& payload) {
  if (control.empty() || control.size() > max_control_bytes) {
    release(payload);
    return break_off(fmt::format("a control block of {} bytes does not follow the format", control.size()));
  }
  ++shared_->events;
  const Landing landing = shared_->sink->arrived(*this, aligned(control), payload.data_bytes);
  if (landing.malformed != nullptr) {
    release(payload);
    return break_off(fmt::format("malformed packet: {}", landing.malformed));
  }
  if (payload.data_bytes != 0) place(payload, landing);
}

void UcxLink::place(Arrival& payload, const Landing& landing) {
  const bool at_sender = payload.kind == Arrival::Data::rendezvous;
  if (at_sender && !landing.pieces.empty()) return receive(payload, landing);
  if (!at_sender) scatter(payload.data, payload.data_bytes, landing.pieces);
  release(payload);
  ++shared_->events;
  shared_->sink->landed(*this, landing.token);
}

/// Lets UCX bring the bytes. It needs room for all of them: what the landing does not take goes to memory of ours.
void UcxLink::receive(Arrival& payload, const Landing& landing) {
  ReceiveOperation& operation = *shared_->receives.take();
  operation.link = this;
  operation.token = landing.token;
  operation.status = UCS_OK;
  operation.pieces.clear();
  std::size_t rest = payload.data_bytes;
  for (const iovec& piece : landing.pieces) {
    const std::size_t part = std::min(rest, piece.iov_len);
    if (part != 0) operation.pieces.push_back({.buffer = piece.iov_base, .length = part});
    rest -= part;
  }
  if (rest != 0) {
    operation.excess.resize(rest);
    operation.pieces.push_back({.buffer = operation.excess.data(), .length = rest});
  }
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.recv_am = &UcxLink::receive_ended;
  parameters.user_data = &operation;
  void* buffer = operation.pieces.front().buffer;
  std::size_t count = operation.pieces.front().length;
  if (operation.pieces.size() > 1) {
    parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.datatype = UCP_DATATYPE_IOV;
    buffer = operation.pieces.data();
    count = operation.pieces.size();
  }
  receiving_ = true;
  payload.kind = Arrival::Data::none;  // UCX owns the description from here on
  const auto request = ucp_am_recv_data_nbx(shared_->worker, payload.data, buffer, count, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ++outstanding_;
    return;
  }
  operation.status = UCS_PTR_STATUS(request);
  finish(operation);
}

void UcxLink::receive_ended(void* request, ucs_status_t status, std::size_t, void* user) {
  auto& operation = *static_cast<ReceiveOperation*>(user);
  operation.status = status;
  --operation.link->outstanding_;
  operation.link->shared_->finished_receives.push_back(&operation);
  ucp_request_free(request);
}

void UcxLink::finish(ReceiveOperation& operation) {
  receiving_ = false;
  const std::uint64_t token = operation.token;
  const ucs_status_t status = operation.status;
  operation.excess = {};
  shared_->receives.give(&operation);
  if (state_ == State::closed) return;
  if (status != UCS_OK) return lose(status);
  ++shared_->events;
  shared_->sink->landed(*this, token);
  note_ready();
}

void UcxLink::release(Arrival& arrival) {
  const bool from_ucx = arrival.kind == Arrival::Data::kept || arrival.kind == Arrival::Data::rendezvous;
  if (from_ucx) ucp_am_data_release(shared_->worker, arrival.data);
  arrival.kind = Arrival::Data::none;
}

/// The block, copied to an address that is a multiple of 8 if needed; UCX puts headers wherever its frame ends.
std::span<const std::byte> UcxLink::aligned(std::span<const std::byte> control) {
  if (reinterpret_cast<std::uintptr_t>(control.data()) % 8 == 0) return control;
  aligned_.assign(control.begin(), control.end());
  return aligned_;
}

}  // namespace tandem::comm::internal::ucx
