// tandem/comm/transport/tcp/frame_writer.hpp: packets into one stream socket, whole or with the rest kept for later.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/comm/transport/tcp/splice_pipe.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

struct FrameHeader;

/// The sending half of a connection. A packet goes to the kernel with one system call when it takes all; what it does
/// not take is kept here (header and control by copy, the payload by reference) until `resume`. Not thread-safe; never
/// blocks. Invariants: at most one packet is unfinished, and no other is written before its last byte; the unfinished
/// bytes of a spliced payload are in the pipe or in `pieces_`, in this order.
class FrameWriter {
 public:
  enum class Progress {
    whole,    ///< all bytes of the packet are in the kernel
    partial,  ///< some are: the packet is unfinished
    blocked,  ///< none: after `write`, the packet is not taken
    broken,   ///< the connection has failed: `error()`
  };

  /// Writes a packet, if none is unfinished. The header says that `splices_read` spliced payloads of the peer were
  /// read.
  Progress write(int fd, const Packet& packet, std::uint32_t splices_read = 0);
  /// Like `write`, but splices the payload through `pipe`, which is open to this writer, as far as the kernel can
  /// reference its memory. The payload must not change before the peer acknowledges it. `pipe` outlives the packet.
  Progress write_spliced(int fd, const Packet& packet, std::uint32_t splices_read, SplicePipe& pipe);
  /// Writes a header without a packet, for `splices_read` alone.
  Progress write_header(int fd, std::uint32_t splices_read);
  /// Continues the unfinished packet.
  Progress resume(int fd);

  bool unfinished() const noexcept { return unfinished_bytes_ > 0; }
  std::size_t unfinished_bytes() const noexcept { return unfinished_bytes_; }
  std::uint64_t written_bytes() const noexcept { return written_bytes_; }  ///< taken by the kernel since the beginning
  /// Whether the unfinished packet, or the one that `resume` has just finished, refers to payload of the caller, so
  /// that `sent` with `cookie` must follow.
  bool refers_to_payload() const noexcept { return refers_to_payload_; }
  std::uint64_t cookie() const noexcept { return cookie_; }
  /// Notes that `sent` with `cookie` was reported.
  void release_payload() noexcept { refers_to_payload_ = false; }
  /// Makes larger packets take several system calls, and leave in units of transmission of at most `bytes` bytes
  /// (`TcpOptions`).
  void set_burst(std::size_t bytes) noexcept { burst_bytes_ = bytes; }
  /// Whether a spliced payload is not completely written yet.
  bool splices() const noexcept { return spliced_ && unfinished(); }
  int error() const noexcept { return error_; }
  /// Frees what is kept, and loses the packet.
  void abandon() noexcept;

  /// Packets up to this size are copied together, since one piece costs the kernel less than several.
  static constexpr std::size_t together_bytes = 2048;

 private:
  Progress write_together(int fd, const Packet& packet, const FrameHeader& header);
  Progress write_pieces(int fd, const Packet& packet, const FrameHeader& header);
  Progress resume_splicing(int fd);
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
  SplicePipe* pipe_ = nullptr;  ///< while the rest of a payload is to be spliced
  std::uint64_t written_bytes_ = 0;
  std::uint64_t cookie_ = 0;
  int error_ = 0;
  bool refers_to_payload_ = false;
  bool spliced_ = false;  ///< the last packet is sent as spliced, also where its memory had to be copied
};

}  // namespace tandem::comm::internal
