// tandem/comm/transport/tcp/frame_writer.hpp: packets into one stream socket, whole or with the rest kept for later.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// The sending half of a connection. A packet goes to the kernel with one system call when it takes all; what it does not take is
/// kept here (the header and control by copy, the payload by reference) and goes with `resume`. Not thread-safe; never blocks.
/// Invariant: at most one packet is unfinished, and no other is written before its last byte.
class FrameWriter {
 public:
  enum class Progress {
    whole,    ///< all bytes of the packet are in the kernel
    partial,  ///< some are: the packet is unfinished
    blocked,  ///< none went; after `write`, the packet is not taken
    broken,   ///< the connection has failed: `error()`
  };

  /// Not called while a packet is unfinished.
  Progress write(int fd, const Packet& packet);
  /// Goes on with the unfinished packet.
  Progress resume(int fd);

  bool unfinished() const noexcept { return unfinished_bytes_ > 0; }
  std::size_t unfinished_bytes() const noexcept { return unfinished_bytes_; }
  std::uint64_t written_bytes() const noexcept { return written_bytes_; }  ///< taken by the kernel since the beginning
  /// Whether the unfinished packet, or the one that `resume` has just ended, refers to payload of the caller: `cookie` is owed.
  bool owes() const noexcept { return owes_; }
  std::uint64_t cookie() const noexcept { return cookie_; }
  /// `cookie` was given back.
  void settle() noexcept { owes_ = false; }
  /// Larger packets go in several system calls, and leave as units of transmission of at most that many bytes (`TcpOptions`).
  void set_burst(std::size_t bytes) noexcept { burst_bytes_ = bytes; }
  int error() const noexcept { return error_; }
  /// Frees what is kept. The packet is lost.
  void abandon() noexcept;

  /// Packets up to this size are copied together, since one piece costs the kernel less than several.
  static constexpr std::size_t together_bytes = 2048;

 private:
  Progress write_together(int fd, const Packet& packet);
  Progress write_pieces(int fd, const Packet& packet);
  void keep_rest(const Packet& packet, std::size_t written);
  Progress failure() noexcept;

  std::vector<std::byte> head_;  ///< what is left of header and control (and small payload) comes first
  std::vector<iovec> pieces_;    ///< what is left of the payload; the first `next_piece_` are done
  std::size_t head_begin_ = 0;
  std::size_t next_piece_ = 0;
  std::size_t unfinished_bytes_ = 0;
  std::size_t burst_bytes_ = SIZE_MAX;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t cookie_ = 0;
  int error_ = 0;
  bool owes_ = false;
};

}  // namespace tandem::comm::internal
