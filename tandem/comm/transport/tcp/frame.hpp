// tandem/comm/transport/tcp/frame.hpp: the 16 bytes that go before each packet on a stream.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tandem::comm::internal {

/// Most pieces of memory in one system call. The kernel's limit is 1024; it copies lists of more than 8 to its heap.
inline constexpr std::size_t most_pieces_per_call = 256;

/// Header of a packet on the wire; `control_bytes` of control and `payload_bytes` of payload follow without gaps.
/// Little-endian. `check` is the exclusive or of all other 16-bit words: one wrong bit anywhere in a header is always
/// noticed, and a reader that has lost the boundary between packets notices soon. A header with neither control nor
/// payload is no packet: it carries `splices_read` alone.
struct FrameHeader {
  std::uint16_t mark = expected_mark;
  std::uint16_t check = 0;
  std::uint16_t control_bytes = 0;
  std::uint16_t spliced = 0;  ///< 1: the payload lies in the sender's memory until it is read (`SplicePipe`); else 0
  std::uint32_t payload_bytes = 0;
  std::uint32_t splices_read = 0;      ///< spliced payloads of this header's reader that have been read so far

  static constexpr std::uint16_t expected_mark = 0x7a4d;

  /// Makes a header. Sizes that do not fit become the largest that do.
  static FrameHeader of(std::size_t control_bytes, std::size_t payload_bytes, std::uint32_t splices_read = 0,
                        bool spliced = false) noexcept {
    FrameHeader header;
    header.control_bytes = static_cast<std::uint16_t>(std::min<std::size_t>(control_bytes, UINT16_MAX));
    header.payload_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(payload_bytes, UINT32_MAX));
    header.spliced = spliced ? 1 : 0;
    header.splices_read = splices_read;
    header.check = header.computed_check();
    return header;
  }
  static FrameHeader read(const std::byte* from) noexcept {
    FrameHeader header;
    std::memcpy(&header, from, sizeof header);
    return header;
  }
  bool intact() const noexcept { return mark == expected_mark && check == computed_check(); }

 private:
  std::uint16_t computed_check() const noexcept {
    const std::uint32_t words = payload_bytes ^ splices_read;
    return static_cast<std::uint16_t>(mark ^ control_bytes ^ spliced ^ words ^ (words >> 16));
  }
};
static_assert(sizeof(FrameHeader) == 16 && std::has_unique_object_representations_v<FrameHeader>);
static_assert(std::endian::native == std::endian::little, "headers are sent as they lie");

}  // namespace tandem::comm::internal
