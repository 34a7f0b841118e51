// tandem/trace/read/copy_records.hpp: copies the records of a packet that its actor may be writing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "tandem/trace/declared.hpp"
#include "tandem/trace/packet.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace::internal {

constexpr bool is_same_packet(const PacketHeader& a, const PacketHeader& b) noexcept {
  return a.magic == b.magic && a.actor == b.actor && a.sequence == b.sequence && a.begin_ticks == b.begin_ticks;
}

/// The header of a buffer that its actor may be renewing: `magic` becomes 0, then the other words change in any order,
/// then `magic` is set (release). Empty: the buffer is empty, or is being renewed. `read(at, to, bytes)` as for
/// `copy_records`.
///
/// When the first read has any word of a later packet, the second one finds `magic` 0, or set by that packet, after
/// which the third one has all of its words. So the header names one packet, and a later packet's other words are its
/// own; those of the first packet may be newer, which a user of its bytes finds by another call afterwards.
template <class Read>
std::optional<PacketHeader> read_header(Read read) {
  PacketHeader first, last;
  read(0, reinterpret_cast<std::byte*>(&first), sizeof first);
  if (first.magic != PacketHeader::ctf_magic) return std::nullopt;
  std::uint32_t magic = 0;
  read(offsetof(PacketHeader, magic), reinterpret_cast<std::byte*>(&magic), sizeof magic);
  if (magic != PacketHeader::ctf_magic) return std::nullopt;
  read(0, reinterpret_cast<std::byte*>(&last), sizeof last);
  if (!is_same_packet(first, last)) return std::nullopt;
  return last;
}

/// Bytes read at a time of a packet that is being written: first few, so that few cache lines are read which the actor
/// is about to write; then twice as many each time, since each piece is two system calls. So at most as many bytes are
/// read behind the last record as before it, and at most `kMostPieceBytes`.
inline constexpr std::size_t kPieceBytes = 256, kMostPieceBytes = 4096;

/// The copy of a packet's records.
struct RecordsCopy {
  std::vector<std::byte> bytes;  ///< whole records
  std::size_t open_bytes = 0;    ///< of the last of them, if it can still be completed (`Stream::leave_open`); else 0
  std::uint64_t ticks = 0;       ///< stamp of the last record that cannot
  bool is_strange = false;       ///< an unknown record follows
};

/// Copies the records in bytes `from` to `end` of a packet; `before` is the stamp before them. `is_whole`: the packet's
/// header showed, before this call, that they end at `end`; else they end at the first header word that is 0. `read(at,
/// to, bytes)` copies bytes of the packet, in no order; each call sees all that the one before has seen. `from` is a
/// multiple of 4.
///
/// Each piece of a packet that is being written is read twice. A record exists when the first read has its header word;
/// its fields are those of the second read, since the actor stored them before that word (release). A record may be
/// completed while it is copied: so when a header word is found behind an open record, the open record's bytes are
/// those of a read after that; its actor stored its open word before that header word, and stores it no more. Only the
/// last record of a copy can be open.
template <class Read>
RecordsCopy copy_records(Read read, std::size_t from, std::size_t end, bool is_whole, std::uint64_t before,
                         const DeclaredTypes& declared) {
  RecordsCopy copy;
  std::vector<std::byte> seen;  // by the first reads
  const std::size_t most = end - std::min(from, end);
  std::size_t at = 0;         // behind the existing records; both count from `from`
  std::size_t settled = 0;    // bytes before do not change any more
  std::size_t piece = kPieceBytes;
  copy.ticks = before;
  for (bool more = true; more;) {
    const std::size_t copied = copy.bytes.size();
    const std::size_t wanted = std::min(most, is_whole ? most : copied + piece);
    const std::size_t bytes = (wanted + 3) & ~std::size_t{3};
    copy.bytes.resize(bytes);
    if (!is_whole) {
      seen.resize(bytes);
      read(from + copied, seen.data() + copied, bytes - copied);
    }
    read(from + settled, copy.bytes.data() + settled, bytes - settled);
    more = false;
    while (at + RecordHeader::compact_bytes <= wanted) {
      if (!is_whole && load<std::uint32_t>(seen.data() + at) == 0) break;
      const auto word = load<std::uint32_t>(copy.bytes.data() + at);
      copy.open_bytes = 0;
      copy.ticks = before;
      settled = at;
      Record record;
      const RecordFault fault = decode(copy.bytes.data(), at, wanted, word, before, declared, &record);
      if (fault != RecordFault::none) {
        const bool is_cut = fault != RecordFault::unknown_type && fault != RecordFault::stamp_back;
        more = is_cut && wanted < most;
        copy.is_strange = !more;
        break;
      }
      const int offset = is_whole ? -1 : open_word_offset(record.type);
      if (offset >= 0 && is_open_word(record.type, load<std::uint32_t>(copy.bytes.data() + record.fields +
                                                                       static_cast<std::size_t>(offset)))) {
        copy.open_bytes = record.next() - at;
      } else {
        copy.ticks = record.ticks;
        settled = record.next();
      }
      before = record.ticks;
      at = record.next();
    }
    if (at + RecordHeader::compact_bytes > wanted) more = wanted < most;
    piece = std::min(2 * piece, kMostPieceBytes);
    settled = std::min(settled, bytes);
  }
  copy.bytes.resize(std::min(at, copy.bytes.size()));
  return copy;
}

}  // namespace tandem::trace::internal
