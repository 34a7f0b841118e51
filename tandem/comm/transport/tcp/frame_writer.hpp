// tandem/comm/transport/tcp/frame_writer.hpp: packets into one stream socket, whole or with the rest kept for later.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/comm/transport/tcp/lending_pipe.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

struct FrameHeader;

/// The sending half of a connection. A packet goes to the kernel with one system call when it takes all; what it does not take is
/// kept here (the header and control by copy, the payload by reference) and goes with `resume`. Not thread-safe; never blocks.
/// Invariants: at most one packet is unfinished, and no other is written before its last byte; of a lent payload, the unfinished
/// bytes are in the pipe or in `pieces_`, in this order.
class FrameWriter {
 public:
  enum class Progress {
    whole,    ///< all bytes of the packet are in the kernel
    partial,  ///< some are: the packet is unfinished
    blocked,  ///< none went; after `write`, the packet is not taken
    broken,   ///< the connection has failed: `error()`
  };

  /// Not called while a packet is unfinished. The header says that `loans_read` lent payloads were read from the peer.
  Progress write(int fd, const Packet& packet, std::uint32_t loans_read = 0);
  /// As `write`, and the payload is lent by way of `pipe`, which is open to this writer, as far as its memory can be: it must not
  /// change before the peer says that it has read it, and nothing is owed here. `pipe` outlives the packet.
  Progress lend(int fd, const Packet& packet, std::uint32_t loans_read, LendingPipe& pipe);
  /// A header without a packet, for `loans_read` alone.
  Progress write_header(int fd, std::uint32_t loans_read);
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
  /// Whether a lent payload is not written whole yet. Nothing is owed for it here.
  bool lends() const noexcept { return loan_ && unfinished(); }
  int error() const noexcept { return error_; }
  /// Frees what is kept. The packet is lost.
  void abandon() noexcept;

  /// Packets up to this size are copied together, since one piece costs the kernel less than several.
  static constexpr std::size_t together_bytes = 2048;

 private:
  Progress write_together(int fd, const Packet& packet, const FrameHeader& header);
  Progress write_pieces(int fd, const Packet& packet, const FrameHeader& header);
  Progress resume_lending(int fd);
  Progress resume_copying(int fd);
  void keep_rest(const Packet& packet, const FrameHeader& header, std::size_t written);
  void skip_pieces(std::size_t bytes) noexcept;
  void account(std::size_t bytes) noexcept;
  Progress failure() noexcept;

  std::vector<std::byte> head_;  ///< what is left of header and control (and small payload) comes first
  std::vector<iovec> pieces_;    ///< what is left of the payload; the first `next_piece_` are done
  std::size_t head_begin_ = 0;
  std::size_t next_piece_ = 0;
  std::size_t unfinished_bytes_ = 0;
  std::size_t burst_bytes_ = SIZE_MAX;
  LendingPipe* pipe_ = nullptr;  ///< while the rest of a payload is to be lent
  std::uint64_t written_bytes_ = 0;
  std::uint64_t cookie_ = 0;
  int error_ = 0;
  bool owes_ = false;
  bool loan_ = false;  ///< the last packet's payload is lent, also where its memory could not be
};

}  // namespace tandem::comm::internal
