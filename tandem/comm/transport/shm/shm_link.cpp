// tandem/comm/transport/shm/shm_link.cpp: the link to one peer of the host.
#include "tandem/comm/transport/shm/shm_link.hpp"

#include <sys/uio.h>

#include <utility>

namespace tandem::comm::internal {
namespace {

/// Copies by `process_vm_readv` or `process_vm_writev`.
template <class Copy>
bool copy_process(Copy copy, pid_t pid, std::uint64_t address, std::byte* ours, std::size_t bytes) {
  while (bytes > 0) {
    const iovec here{ours, bytes};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
    const ssize_t copied = copy(pid, &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    ours += copied;
    bytes -= static_cast<std::size_t>(copied);
    address += static_cast<std::uint64_t>(copied);
  }
  return true;
}

}  // namespace

bool ShmLink::read_remote(std::uint64_t address, std::span<std::byte> to) {
  if (state_ != State::attached || attachment_->pid == 0) return false;
  if (!copy_process(process_vm_readv, attachment_->pid, address, to.data(), to.size())) return false;
  return lives();  // so what was read was the peer's
}

bool ShmLink::write_remote(std::uint64_t address, std::span<const std::byte> from) {
  if (state_ != State::attached || attachment_->pid == 0) return false;
  return lives() &&
         copy_process(process_vm_writev, attachment_->pid, address, const_cast<std::byte*>(from.data()), from.size());
}

/// The kernel reuses a process id only after the process has died, and then its socket is closed. A check of the socket
/// costs a quarter of a microsecond. A recent check suffices, since the kernel uses all other ids before it reuses one.
bool ShmLink::lives() {
  constexpr auto moment = std::chrono::microseconds(500);
  const auto now = std::chrono::steady_clock::now();
  if (now - seen_alive_ < moment) return true;
  if (is_closed(attachment_->socket)) return false;
  seen_alive_ = now;
  return true;
}

std::atomic<std::uint64_t>* ShmLink::shared_word(Direction direction) noexcept {
  if (state_ != State::attached) return nullptr;
  const unsigned outgoing = attachment_->outgoing;
  return &attachment_->segment.control[direction == Direction::outgoing ? outgoing : 1 - outgoing]->word;
}

void ShmLink::attach(Attachment attachment) {
  TANDEM_ASSERT(state_ == State::connecting);
  attachment_ = std::make_unique<Attachment>(std::move(attachment));
  const bool pending = sender.waits();
  attachment_->peer.room_request = &attachment_->segment.control[1 - attachment_->outgoing]->room_request;
  sender = Sender(*attachment_, limits_, round_);
  if (pending) sender.expect_caller();
  receiver = Receiver(*attachment_, round_);
  state_ = State::attached;
}

void ShmLink::close() {
  sender = Sender();
  line = nullptr;
  receiver = Receiver();
  if (attachment_ != nullptr) round_.forget(attachment_->peer);
  attachment_.reset();
  state_ = State::closed;
}

unsigned ShmLink::advance(PacketSink& sink) {
  const Sender::Progress progress = sender.advance();
  line = sender.line();
  switch (progress) {
    case Sender::Progress::sent: sink.sent(*this, sender.cookie()); return 1;
    case Sender::Progress::writable: sink.writable(*this); return 1;
    case Sender::Progress::some:
    case Sender::Progress::none: break;
  }
  return 0;
}

}  // namespace tandem::comm::internal
