// tandem/comm/transport/ucx/link_send.cpp: a link's beginning, its end, and what it sends.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/ucx/link.hpp"

namespace tandem::comm::internal::ucx {
namespace {

constexpr std::uint64_t not_numbered = ~std::uint64_t{0};  // of a hello
constexpr int most_closing_rounds = 10'000;

}  // namespace

UcxLink::UcxLink(Shared& shared, Rank peer, std::span<const std::byte> address, std::span<const std::byte> hello,
                 std::uint64_t our_session, std::uint64_t peer_session)
    : Link(peer, 0), shared_(&shared), our_session_(our_session), peer_session_(peer_session) {
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {.cb = &UcxLink::endpoint_failed, .arg = this};
  const ucs_status_t status = ucp_ep_create(shared.worker, &parameters, &endpoint_);
  if (status == UCS_OK) {
    send_hello(hello);
    return;
  }
  endpoint_ = nullptr;
  break_off(
      fmt::format("UCX has no way to rank {} that reports its death: {}; choose other UCX_TLS, or the transport tcp",
                  peer.value(), ucs_status_string(status)));
}

void UcxLink::break_off(std::string why) {
  if (breaking_ || state_ == State::closed) return;
  breaking_ = true;
  shared_->broken.emplace_back(this, std::move(why));
  shared_->wake_sleeper();
}

void UcxLink::lose(ucs_status_t status) {
  lost_ = true;
  break_off(ucs_status_string(status));
}

void UcxLink::endpoint_failed(void* link, ucp_ep_h, ucs_status_t status) { static_cast<UcxLink*>(link)->lose(status); }

void UcxLink::send_hello(std::span<const std::byte> hello) {
  SendOperation& operation = *shared_->sends.take();
  operation.link = this;
  operation.sequence = not_numbered;
  operation.payload_bytes = 0;
  operation.posted = false;
  operation.header.assign(hello.begin(), hello.end());
  operation.pieces.clear();
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &UcxLink::send_ended;
  parameters.user_data = &operation;
  const auto request =
      ucp_am_send_nbx(endpoint_, hello_id, operation.header.data(), operation.header.size(), nullptr, 0, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ++outstanding_;
    return;
  }
  shared_->sends.give(&operation);
  if (request != nullptr) lose(UCS_PTR_STATUS(request));
}

void UcxLink::proved() {
  if (state_ != State::connecting) return;
  state_ = State::live;
  note_ready();
}

bool UcxLink::may_send(std::size_t payload_bytes) const {
  if (state_ != State::live || breaking_) return false;
  if (unfinished_.empty()) return true;
  if (unfinished_.size() >= flight_packets || next_sequence_ - unfinished_.front() >= sender_window) return false;
  return payload_bytes == 0 || flight_ == 0 || flight_ + payload_bytes <= flight_bytes;
}

SendStatus UcxLink::try_send(const Packet& packet) {
  TANDEM_DEBUG_ASSERT(packet.control.size() <= max_control_bytes && packet.payload_bytes <= max_payload_bytes);
  if (!may_send(packet.payload_bytes)) {
    starved_ = true;
    return SendStatus::retry;
  }
  const bool fits = sizeof(PacketHeader) + packet.control.size() <= shared_->max_header_bytes;
  if (!fits) {
    const SendStatus status = post_control(packet);
    if (packet.payload_bytes == 0) return status;
  }
  SendOperation& operation = fits ? new_send(0, packet.control) : new_send(payload_only, {});
  operation.cookie = packet.cookie;
  operation.payload_bytes = packet.payload_bytes;
  operation.posted = packet.payload_bytes != 0;
  for (const iovec& piece : packet.payload) {
    if (piece.iov_len != 0) operation.pieces.push_back({.buffer = piece.iov_base, .length = piece.iov_len});
  }
  constexpr unsigned by_rendezvous = UCP_AM_SEND_FLAG_RNDV, as_ucx_likes = 0;
  return post(operation, shared_->rendezvous_only && packet.payload_bytes != 0 ? by_rendezvous : as_ucx_likes);
}

/// Sends a control block that is too large for a header as the data of a message of its own.
SendStatus UcxLink::post_control(const Packet& packet) {
  SendOperation& operation = new_send(control_is_data | (packet.payload_bytes != 0 ? payload_follows : 0), {});
  operation.control.assign(packet.control.begin(), packet.control.end());
  operation.pieces.push_back({.buffer = operation.control.data(), .length = operation.control.size()});
  post(operation, UCP_AM_SEND_FLAG_EAGER);
  return SendStatus::done;
}

SendOperation& UcxLink::new_send(std::uint32_t flags, std::span<const std::byte> control) {
  SendOperation& operation = *shared_->sends.take();
  operation.link = this;
  operation.sequence = next_sequence_++;
  operation.payload_bytes = 0;
  operation.posted = false;
  operation.pieces.clear();
  const PacketHeader header{
      .session = our_session_, .sequence = operation.sequence, .from = shared_->self.value(), .flags = flags};
  operation.header.resize(sizeof header + control.size());
  std::memcpy(operation.header.data(), &header, sizeof header);
  if (!control.empty()) std::memcpy(operation.header.data() + sizeof header, control.data(), control.size());
  return operation;
}

SendStatus UcxLink::post(SendOperation& operation, unsigned flags) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = flags;
  parameters.cb.send = &UcxLink::send_ended;
  parameters.user_data = &operation;
  const void* buffer = nullptr;
  std::size_t count = 0;
  if (operation.pieces.size() == 1) {
    buffer = operation.pieces.front().buffer;
    count = operation.pieces.front().length;
  } else if (operation.pieces.size() > 1) {
    parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.datatype = UCP_DATATYPE_IOV;
    buffer = operation.pieces.data();
    count = operation.pieces.size();
  }
  const auto request = ucp_am_send_nbx(endpoint_, packet_id, operation.header.data(), operation.header.size(), buffer,
                                       count, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ++outstanding_;
    unfinished_.push_back(operation.sequence);
    flight_ += operation.payload_bytes;
    return operation.posted ? SendStatus::posted : SendStatus::done;
  }
  shared_->sends.give(&operation);
  // A packet that UCX refuses is lost with the link, so it counts as done.
  if (request != nullptr) lose(UCS_PTR_STATUS(request));
  return SendStatus::done;
}

void UcxLink::send_ended(void* request, ucs_status_t status, void* user) {
  auto& operation = *static_cast<SendOperation*>(user);
  operation.status = status;
  --operation.link->outstanding_;
  operation.link->shared_->finished_sends.push_back(&operation);
  ucp_request_free(request);
}

void UcxLink::finish(SendOperation& operation) {
  const bool good = operation.status == UCS_OK;
  if (const auto at = std::find(unfinished_.begin(), unfinished_.end(), operation.sequence); at != unfinished_.end()) {
    unfinished_.erase(at);
    flight_ -= operation.payload_bytes;
  }
  const std::uint64_t cookie = operation.cookie;
  const bool posted = operation.posted;
  if (!good) lose(operation.status);
  shared_->sends.give(&operation);
  if (state_ == State::closed || !good) return;
  if (posted) {
    ++shared_->events;
    shared_->sink->sent(*this, cookie);
  }
  note_ready();
}

void UcxLink::close() {
  if (state_ == State::closed) return;
  // Best effort: a peer that does not get it learns of the end from UCX.
  if (state_ == State::live && !lost_) post(new_send(link_ends, {}), UCP_AM_SEND_FLAG_EAGER);
  state_ = State::closed;
  order_.clear([this](Arrival& arrival) { release(arrival); });
  if (endpoint_ == nullptr) return;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const auto request = ucp_ep_close_nbx(endpoint_, &parameters);
  endpoint_ = nullptr;
  const bool pending = UCS_PTR_IS_PTR(request);
  // UCX completes what it cancels while the worker progresses; nothing here depends on the peer.
  for (int round = 0; round < most_closing_rounds; ++round) {
    if (outstanding_ == 0 && (!pending || ucp_request_check_status(request) != UCS_INPROGRESS)) break;
    ucp_worker_progress(shared_->worker);
  }
  if (outstanding_ != 0) {
    shared_->log->error("ucx: {} transfers with rank {} could not be cancelled; their memory may still be written",
                        outstanding_, peer().value());
  }
  if (pending) ucp_request_free(request);
}

ucs_status_ptr_t UcxLink::close_gently() {
  if (state_ == State::closed || endpoint_ == nullptr) return nullptr;
  state_ = State::closed;
  order_.clear([this](Arrival& arrival) { release(arrival); });
  const ucp_request_param_t parameters{};
  const auto request = ucp_ep_close_nbx(endpoint_, &parameters);
  endpoint_ = nullptr;
  return UCS_PTR_IS_PTR(request) ? request : nullptr;
}

}  // namespace tandem::comm::internal::ucx
