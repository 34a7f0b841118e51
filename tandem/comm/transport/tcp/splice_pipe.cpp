// tandem/comm/transport/tcp/splice_pipe.cpp: from the caller's memory into a stream socket without a copy.
#include "tandem/comm/transport/tcp/splice_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "tandem/base/assert.hpp"
#include "tandem/base/fork.hpp"

namespace tandem::comm::internal {

namespace {

constexpr int pipe_bytes = 256 * 1024;  // a slot for each page that bytes lie in, where pages have 4 KiB

sigset_t pipe_signal() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

bool SplicePipe::open_to(const void* who) {
  if (refused_ || (bytes_ > 0 && holder_ != who)) return false;
  if (in_) return true;
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return false;  // out of descriptors, perhaps not for long
  out_ = base::kept_from_children(ends[0]);
  in_ = base::kept_from_children(ends[1]);
  refused_ = fcntl(in_.get(), F_SETPIPE_SZ, pipe_bytes) < pipe_bytes;
  if (refused_) close();
  return !refused_;
}

std::size_t SplicePipe::fill(const void* who, std::span<const iovec> pieces) {
  TANDEM_DEBUG_ASSERT(bytes_ == 0 && in_);
  std::array<iovec, most_pieces> offered;
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.size() && count < most_pieces && bytes < most_bytes; ++i) {
    const std::size_t part = std::min(pieces[i].iov_len, most_bytes - bytes);
    if (part > 0) offered[count++] = {pieces[i].iov_base, part};
    bytes += part;
  }
  ssize_t taken = 0;
  do {
    taken = vmsplice(in_.get(), offered.data(), count, SPLICE_F_NONBLOCK);
  } while (taken < 0 && errno == EINTR);
  if (taken <= 0) {
    refused_ = taken < 0 && (errno == ENOSYS || errno == EPERM);  // by a sandbox
    if (refused_) close();
    return 0;
  }
  holder_ = who;
  bytes_ = static_cast<std::size_t>(taken);
  return bytes_;
}

ssize_t SplicePipe::drain(int socket, bool more) {
  ssize_t moved = 0;
  do {
    moved = splice(out_.get(), nullptr, socket, nullptr, bytes_, SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0U));
  } while (moved < 0 && errno == EINTR);
  if (moved > 0) bytes_ -= static_cast<std::size_t>(moved);
  return moved;
}

void SplicePipe::leave(const void* who) noexcept {
  if (held_by(who) > 0) close();
}

void SplicePipe::close() noexcept {
  in_.close();
  out_.close();
  bytes_ = 0;
}

PipeSignalHeld::PipeSignalHeld() noexcept {
  const sigset_t set = pipe_signal();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

PipeSignalHeld::~PipeSignalHeld() {
  if (raised_) {
    const sigset_t set = pipe_signal();
    const timespec at_once{};
    sigtimedwait(&set, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace tandem::comm::internal
