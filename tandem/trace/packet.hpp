// tandem/trace/packet.hpp: the layout of packets and records in memory and in files, as FORMAT.md describes it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/trace/event.hpp"

namespace tandem::trace {

/// A record begins with 32 bits: the type in the low 7, the low 25 bits of the stamp above. When the stamp is 2^25
/// ticks or more after the previous record's (for the first record: after the packet's beginning), the low 7 bits are
/// `Type::extended`, the type is in the 25 bits above, and the full stamp follows in 64 bits. The fields follow. The
/// next record begins at the next multiple of 4 bytes.
struct RecordHeader {
  static constexpr unsigned type_bits = 7;
  static constexpr unsigned stamp_bits = 25;
  static constexpr std::uint64_t stamp_span = std::uint64_t{1} << stamp_bits;  ///< ticks
  static constexpr std::size_t compact_bytes = 4;
  static constexpr std::size_t extended_bytes = 12;

  static constexpr std::uint32_t compact(Type type, std::uint64_t ticks) noexcept {
    return static_cast<std::uint32_t>(type) | static_cast<std::uint32_t>(ticks) << type_bits;
  }
  static constexpr std::uint32_t extended(Type type) noexcept {
    return static_cast<std::uint32_t>(Type::extended) | static_cast<std::uint32_t>(type) << type_bits;
  }
  /// The full stamp of a compact header; `before` is the stamp of the previous record.
  static constexpr std::uint64_t stamp(std::uint32_t word, std::uint64_t before) noexcept {
    return before + (((word >> type_bits) - before) & (stamp_span - 1));
  }
};

/// The beginning of a packet: CTF's packet header and context. Little-endian, like the whole file.
struct PacketHeader {
  static constexpr std::uint32_t ctf_magic = 0xC1FC1FC1;

  std::uint32_t magic = ctf_magic;    ///< 0: an empty live buffer
  std::uint32_t actor = 0;            ///< the stream
  std::uint64_t begin_ticks = 0;      ///< the first record's stamp is relative to it
  std::uint64_t end_ticks = 0;        ///< of the last record
  std::uint64_t content_bits = 0;     ///< header included; 0 in a live buffer that is being written
  std::uint64_t packet_bits = 0;      ///< of the packet in the file
  std::uint64_t lost_events = 0;      ///< of the actor, from its beginning to the end of this packet
  std::uint64_t sequence = 0;         ///< packets of the actor before this one, overwritten ones included
  std::uint32_t event_count = 0;      ///< in this packet
  std::uint32_t reserved = 0;
};
static_assert(sizeof(PacketHeader) == 64 && std::is_trivially_copyable_v<PacketHeader>);

}  // namespace tandem::trace
