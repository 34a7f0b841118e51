// tandem/comm/transport/shm/shm_link.cpp: the link to one peer of the host.
#include "tandem/comm/transport/shm/shm_link.hpp"

#include <sys/uio.h>

#include <utility>

namespace tandem::comm::internal {
namespace {

bool read_process(pid_t pid, std::uint64_t address, std::span<std::byte> to) {
  while (!to.empty()) {
    const iovec here{to.data(), to.size()};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), to.size()};
    const ssize_t copied = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(copied));
    address += static_cast<std::uint64_t>(copied);
  }
  return true;
}

}  // namespace

bool ShmLink::read_remote(std::uint64_t address, std::span<std::byte> to) {
  if (state_ != State::attached || attachment_->pid == 0) return false;
  if (!read_process(attachment_->pid, address, to)) return false;
  // A number of a process is given again only after it died, and then its socket is closed: what was read was the peer's.
  return !is_closed(attachment_->socket);
}

void ShmLink::attach(Attachment attachment) {
  TANDEM_ASSERT(state_ == State::connecting);
  attachment_ = std::make_unique<Attachment>(std::move(attachment));
  const bool owed = sender.waits();
  attachment_->peer.starved = &attachment_->segment.control[1 - attachment_->outgoing]->starved;
  sender = Sender(*attachment_, limits_, round_);
  if (owed) sender.expect_caller();
  receiver = Receiver(*attachment_, round_);
  state_ = State::attached;
}

void ShmLink::close() {
  sender = Sender();
  receiver = Receiver();
  if (attachment_ != nullptr) round_.forget(attachment_->peer);
  attachment_.reset();
  state_ = State::closed;
}

unsigned ShmLink::advance(PacketSink& sink) {
  switch (sender.advance()) {
    case Sender::Progress::sent: sink.sent(*this, sender.cookie()); return 1;
    case Sender::Progress::writable: sink.writable(*this); return 1;
    case Sender::Progress::some:
    case Sender::Progress::none: break;
  }
  return 0;
}

}  // namespace tandem::comm::internal
