// tandem/comm/transport/tcp/lending_pipe.hpp: memory of the caller's into a stream socket without a copy.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <csignal>
#include <cstddef>
#include <span>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/tcp/socket.hpp"

namespace tandem::comm::internal {

/// A pipe through which pages of memory go into a stream socket by reference (`vmsplice`, then `splice`), so that on one host the
/// receiver's copy is the only one, and elsewhere the network's device reads them. They must not change before the receiver has
/// read them: neither the socket's taking them nor its peer's acknowledgement says so.
///
/// One serves all connections of a transport. Whoever's bytes are in it holds it; others copy meanwhile. Nothing of it exists
/// before the first use. Not thread-safe; never blocks.
class LendingPipe {
 public:
  /// What goes in at once. Less would cost more system calls; with more, the receiver would begin later.
  static constexpr std::size_t most_bytes = 192 * 1024;
  static constexpr std::size_t most_pieces = 4;  ///< that go in at once; each may begin and end within a page

  /// Whether `who` may put bytes in: false while somebody else holds it, or when the system has refused such a pipe.
  bool open_to(const void* who);
  /// Puts in the beginning of `pieces`, at most `most_bytes`; returns how much. 0: such memory cannot be lent. Only while empty.
  std::size_t fill(const void* who, std::span<const iovec> pieces);
  /// Bytes that are in the pipe and not in a socket yet.
  std::size_t held_by(const void* who) const noexcept { return who == holder_ ? bytes_ : 0; }
  /// Moves what is there into a socket, `more` of the same packet will follow; how much went, or -1 with `errno`. May raise
  /// SIGPIPE, see below.
  ssize_t drain(int socket, bool more);
  /// `who` has ended: what it has in the pipe is dropped.
  void leave(const void* who) noexcept;

 private:
  void close() noexcept;

  base::FileDescriptor in_, out_;
  const void* holder_ = nullptr;  ///< whose bytes are in it, while there are any
  std::size_t bytes_ = 0;
  bool refused_ = false;
};

/// While it lives, this thread gets no SIGPIPE: `splice` cannot be told, as `send` can, that its answer is enough.
class PipeSignalHeld {
 public:
  PipeSignalHeld() noexcept;
  ~PipeSignalHeld();
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;
  /// The answer was EPIPE, so that there is a signal to be taken away.
  void raised() noexcept { raised_ = true; }

 private:
  sigset_t before_;
  bool raised_ = false;
};

}  // namespace tandem::comm::internal
