// tandem/comm/transport/tcp/splice_pipe.hpp: from the caller's memory into a stream socket without a copy.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <csignal>
#include <cstddef>
#include <span>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/tcp/socket.hpp"

namespace tandem::comm::internal {

/// A pipe through which pages go into a stream socket by reference (`vmsplice`, then `splice`). On one host the
/// receiver's copy is then the only one; on a network the device reads the pages. The pages must not change before the
/// receiver has read them, which neither the socket nor a TCP acknowledgement shows.
///
/// All connections of a transport share one pipe. A writer holds it while its bytes are in it; other writers copy
/// meanwhile. The pipe is made on first use. Not thread-safe; never blocks.
class SplicePipe {
 public:
  /// Most bytes of one `fill`. Less would cost more system calls; with more, the receiver would begin later.
  static constexpr std::size_t most_bytes = 192 * 1024;
  static constexpr std::size_t most_pieces = 4;  ///< of one `fill`; each may begin and end within a page

  /// Whether `who` may put bytes in: false while another writer holds the pipe, or when the system refuses such pipes.
  bool open_to(const void* who);
  /// Puts in the beginning of `pieces`, at most `most_bytes`; returns how much. 0: the kernel cannot reference this
  /// memory. Only while the pipe is empty.
  std::size_t fill(const void* who, std::span<const iovec> pieces);
  /// Bytes that are in the pipe and not in a socket yet.
  std::size_t held_by(const void* who) const noexcept { return who == holder_ ? bytes_ : 0; }
  /// Moves the bytes into a socket; returns how many, or -1 with `errno`. `more`: bytes of the same packet will follow.
  /// May raise SIGPIPE, see below.
  ssize_t drain(int socket, bool more);
  /// Drops what `who`, which has ended, has in the pipe.
  void leave(const void* who) noexcept;

 private:
  void close() noexcept;

  base::FileDescriptor in_, out_;
  const void* holder_ = nullptr;  ///< whose bytes are in it, while there are any
  std::size_t bytes_ = 0;
  bool refused_ = false;
};

/// Blocks SIGPIPE in this thread during its life: `splice` has no flag like MSG_NOSIGNAL of `send`.
class PipeSignalHeld {
 public:
  PipeSignalHeld() noexcept;
  ~PipeSignalHeld();
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;
  /// Notes that `splice` failed with EPIPE, so that a signal is pending: the destructor removes it.
  void raised() noexcept { raised_ = true; }

 private:
  sigset_t before_;
  bool raised_ = false;
};

}  // namespace tandem::comm::internal
