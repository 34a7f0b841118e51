// tandem/comm/transport/tcp/frame_reader.hpp: packets out of one stream socket, payloads straight to their landings.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

struct FrameHeader;

/// The bytes of one read. All connections of a transport share one, since a connection keeps the small rest of a read
/// itself. It has no memory before its first use, and touches no more than the largest read so far.
class ReadArea {
 public:
  static constexpr std::size_t bytes = std::size_t{32} << 10;  // a control block fits

  std::span<std::byte> get();

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> memory_;
};

/// The receiving half of a connection. One read takes several small packets; when a payload is awaited, one `readv`
/// fills the landing and takes the beginning of what follows. Not thread-safe; never blocks.
/// Invariants: while a payload is unfinished, `carry_` is empty; `landed` follows each `arrived` with payload exactly
/// once.
class FrameReader {
 public:
  struct Limits {
    std::size_t control_bytes = 0;
    std::size_t payload_bytes = 0;
  };
  enum class Outcome {
    drained,    ///< nothing more is there now
    more,       ///< stopped at `enough_bytes`
    ended,      ///< the peer has closed
    broken,     ///< the connection has failed: `error()`
    malformed,  ///< the bytes are no packets: `reason()`
  };

  explicit FrameReader(Limits limits) noexcept : limits_(limits) {}

  /// Reads what is there, up to `enough_bytes`, and reports it to the sink. Adds the number of reports to `events`.
  Outcome read(int fd, ReadArea& area, Link& link, PacketSink& sink, unsigned& events);

  int error() const noexcept { return error_; }
  const char* reason() const noexcept { return reason_; }
  /// Whether the stream is inside a packet.
  bool inside_packet() const noexcept { return payload_left_ > 0 || !carry_.empty(); }
  /// Whether `read` has more to report even if no bytes come: it stops before a packet whose header acknowledges a
  /// splice, so that the program can post the receive for that packet first.
  bool paused() const noexcept { return paused_; }

  std::size_t payload_left() const noexcept { return payload_left_; }
  /// Spliced payloads that were read here, and those that the peer says it has read, in all; both modulo 2^32.
  std::uint32_t splices_read() const noexcept { return splices_read_; }
  std::uint32_t peer_splices_read() const noexcept { return peer_splices_read_; }
  /// Whether a packet has come.
  bool begun() const noexcept { return begun_; }
  /// Makes any further packet malformed: this rail's packets come on another connection.
  void bar() noexcept { barred_ = true; }

  /// Bytes that one call reads before other connections have their turn.
  static constexpr std::size_t enough_bytes = std::size_t{64} << 10;

 private:
  // Between payloads reads are short, because the part of a large payload that comes with its header must be copied.
  // Streams of small packets make them longer, because each read is a system call.
  static constexpr std::uint32_t shortest_read_bytes = 4096;

  struct Report {
    int fd;
    Link& link;
    PacketSink& sink;
    unsigned& events;
  };
  std::size_t awaited(std::span<std::byte> area, std::span<iovec> pieces, std::size_t& count) const;
  bool take(std::span<std::byte> area, std::size_t bytes, Report& report);
  bool parse(std::byte* begin, std::byte* end, Report& report);
  bool begin_packet(const std::byte* control, const FrameHeader& header, Report& report);
  void skip_into_landing(std::size_t bytes);
  const std::byte* copy_into_landing(const std::byte* begin, const std::byte* end);
  bool finish_payload_if_whole(Report& report);
  bool refuse(const char* reason) noexcept;
  Outcome refusal() const noexcept { return error_ != 0 ? Outcome::broken : Outcome::malformed; }

  Limits limits_;
  std::vector<std::byte> carry_;     ///< the beginning of a packet whose control block is not whole yet
  std::span<const iovec> landing_;   ///< the pieces not filled yet; the engine's
  std::size_t landing_offset_ = 0;   ///< bytes done of the first
  std::size_t payload_left_ = 0;     ///< bytes to come of the payload, those to be dropped included
  std::uint64_t token_ = 0;
  std::uint32_t read_bytes_ = shortest_read_bytes;
  std::uint32_t splices_read_ = 0;
  std::uint32_t peer_splices_read_ = 0;
  int error_ = 0;
  bool begun_ = false;
  bool barred_ = false;
  bool spliced_ = false;             ///< of the unfinished payload
  bool paused_ = false;              ///< `carry_` is to be parsed before anything is read
  const char* reason_ = "";
};

}  // namespace tandem::comm::internal
