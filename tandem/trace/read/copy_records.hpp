// tandem/trace/read/copy_records.hpp: copies the records of a packet that its actor may be writing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tandem/trace/declared.hpp"
#include "tandem/trace/packet.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace::internal {

/// At a time, so that few cache lines are read which the actor is about to write.
inline constexpr std::size_t kPieceBytes = 256;

/// What was copied of a packet.
struct RecordsCopy {
  std::vector<std::byte> bytes;  ///< whole records
  std::size_t open_bytes = 0;    ///< of the last of them, if it can still be completed (`Stream::leave_open`); else 0
  std::uint64_t ticks = 0;       ///< stamp of the last one that cannot
  bool is_strange = false;       ///< what follows is no record that this reader knows
};

/// Copies the records that lie in bytes `from` to `end` of a packet; `before` is the stamp before them. `is_whole`: the packet's header
/// has told, before this call, that they end at `end`; else they end at the first header word that is 0. `load(at)` is the 32 bits at
/// byte `at` of the packet, loaded with acquire.
///
/// A record may be completed while it is copied. So when a header word is found behind an open record, the open word is loaded again:
/// its actor stored it before that header word (release), and stores it no more. Only the last record of a copy can be open.
template <class Load>
RecordsCopy copy_records(Load load_word, std::size_t from, std::size_t end, bool is_whole, std::uint64_t before,
                         const DeclaredTypes& declared) {
  RecordsCopy copy;
  const std::size_t most = end - std::min(from, end);
  std::size_t at = 0;         // behind the records that are there; both count from `from`
  std::size_t open_word = 0;  // of the last record, if it can still be completed; 0: it cannot
  copy.ticks = before;
  for (bool more = true; more;) {
    const std::size_t copied = copy.bytes.size();
    const std::size_t wanted = std::min(most, is_whole ? most : copied + kPieceBytes);
    copy.bytes.resize((wanted + 3) & ~std::size_t{3});
    for (std::size_t i = copied; i < copy.bytes.size(); i += 4) {
      const std::uint32_t word = load_word(from + i);
      std::memcpy(copy.bytes.data() + i, &word, sizeof word);
    }
    more = false;
    while (at + RecordHeader::compact_bytes <= wanted) {
      const auto word = load<std::uint32_t>(copy.bytes.data() + at);
      if (word == 0 && !is_whole) break;
      if (open_word != 0) {
        const std::uint32_t final_word = load_word(from + open_word);
        std::memcpy(copy.bytes.data() + open_word, &final_word, sizeof final_word);
        open_word = copy.open_bytes = 0;
        copy.ticks = before;
      }
      Record record;
      const RecordFault fault = decode(copy.bytes.data(), at, wanted, word, before, declared, &record);
      if (fault != RecordFault::none) {
        const bool is_cut = fault != RecordFault::unknown_type && fault != RecordFault::stamp_back;
        more = is_cut && wanted < most;
        copy.is_strange = !more;
        break;
      }
      const int offset = is_whole ? -1 : open_word_offset(record.type);
      if (offset >= 0 &&
          is_open_word(record.type, load<std::uint32_t>(copy.bytes.data() + record.fields + static_cast<std::size_t>(offset)))) {
        open_word = record.fields + static_cast<std::size_t>(offset);
        copy.open_bytes = record.next() - at;
      } else {
        copy.ticks = record.ticks;
      }
      before = record.ticks;
      at = record.next();
    }
    if (at + RecordHeader::compact_bytes > wanted) more = wanted < most;
  }
  copy.bytes.resize(std::min(at, copy.bytes.size()));
  return copy;
}

}  // namespace tandem::trace::internal
