// tandem/comm/transport/tcp/frame_reader.hpp: packets out of one stream socket, payloads straight to where they belong.
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

/// The bytes of one read. One serves all connections of a transport, since what a read leaves undone is small and is kept by its
/// connection; it holds no memory before its first use, and touches no more than the largest read so far.
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

/// The receiving half of a connection. One read takes several small packets; when a payload is awaited, one `readv` fills the
/// landing and takes the beginning of what follows. Not thread-safe; never blocks.
/// Invariants: while a payload is unfinished, `carry_` is empty; `landed` follows each `arrived` with payload exactly once.
class FrameReader {
 public:
  struct Limits {
    std::size_t control_bytes = 0;
    std::size_t payload_bytes = 0;
  };
  enum class Outcome {
    drained,    ///< nothing more is there now
    more,       ///< stopped because this was enough for once
    ended,      ///< the peer has closed
    broken,     ///< the connection has failed: `error()`
    malformed,  ///< the bytes are no packets: `reason()`
  };

  explicit FrameReader(Limits limits) noexcept : limits_(limits) {}

  /// Reads what is there, up to `enough_bytes`, and tells the sink. Adds the events told to `events`.
  Outcome read(int fd, ReadArea& area, Link& link, PacketSink& sink, unsigned& events);

  int error() const noexcept { return error_; }
  const char* reason() const noexcept { return reason_; }
  /// Whether the stream stands inside a packet.
  bool inside_packet() const noexcept { return payload_left_ > 0 || !carry_.empty(); }
  /// Whether `read` has more to tell, whatever comes: it stops before a packet whose header gives a loan back, since who waited
  /// for that may then want to say where the packet belongs.
  bool paused() const noexcept { return paused_; }

  std::size_t payload_left() const noexcept { return payload_left_; }
  /// Lent payloads that were read here, and those that the peer says it has read, in all; both go round.
  std::uint32_t loans_read() const noexcept { return loans_read_; }
  std::uint32_t peer_loans_read() const noexcept { return peer_loans_read_; }
  /// Whether a packet has come.
  bool begun() const noexcept { return begun_; }

  /// What one call reads before others have their turn: those who wait for a small packet among the bytes, too.
  static constexpr std::size_t enough_bytes = std::size_t{64} << 10;

 private:
  // Between payloads, reads are short, because what of a large payload comes with its header must be copied; streams of small
  // packets make them longer, because each read has its price.
  static constexpr std::uint32_t shortest_read_bytes = 4096;

  struct Told {
    int fd;
    Link& link;
    PacketSink& sink;
    unsigned& events;
  };
  std::size_t awaited(std::span<std::byte> area, std::span<iovec> pieces, std::size_t& count) const;
  bool take(std::span<std::byte> area, std::size_t bytes, Told& told);
  bool parse(std::byte* begin, std::byte* end, Told& told);
  bool begin_packet(const std::byte* control, const FrameHeader& header, Told& told);
  void skip_into_landing(std::size_t bytes);
  const std::byte* copy_into_landing(const std::byte* begin, const std::byte* end);
  bool finish_payload_if_whole(Told& told);
  bool refuse(const char* reason) noexcept;
  Outcome refusal() const noexcept { return error_ != 0 ? Outcome::broken : Outcome::malformed; }

  Limits limits_;
  std::vector<std::byte> carry_;     ///< the beginning of a packet whose control block is not whole yet
  std::span<const iovec> landing_;   ///< the pieces not filled yet; the engine's
  std::size_t landing_offset_ = 0;   ///< bytes done of the first
  std::size_t payload_left_ = 0;     ///< bytes to come of the payload, those to be dropped included
  std::uint64_t token_ = 0;
  std::uint32_t read_bytes_ = shortest_read_bytes;
  std::uint32_t loans_read_ = 0;
  std::uint32_t peer_loans_read_ = 0;
  int error_ = 0;
  bool begun_ = false;
  bool lent_ = false;                ///< the unfinished payload is
  bool paused_ = false;              ///< `carry_` is to be parsed before anything is read
  const char* reason_ = "";
};

}  // namespace tandem::comm::internal
