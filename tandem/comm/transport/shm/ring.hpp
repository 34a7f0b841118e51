// tandem/comm/transport/shm/ring.hpp: a ring of records that one process writes and another reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::comm::internal {

inline constexpr std::size_t kMostPayloadBytes = std::size_t{1} << 30;  ///< of one packet
inline constexpr std::size_t kCellBytes = 64;  ///< a cache line; records begin on one
/// `bytes`, rounded up to whole cells.
constexpr std::uint64_t in_cells(std::uint64_t bytes) noexcept {
  return (bytes + kCellBytes - 1) / kCellBytes * kCellBytes;
}

/// The kind of a record, in the first word of its first cell; 0 in that word: there is no record yet.
enum class RecordKind : std::uint8_t {
  none = 0,
  whole = 1,      ///< a packet: control block, and behind it the whole payload
  announced = 2,  ///< a packet: total payload bytes (a word), control block; the payload follows in pieces
  piece = 3,      ///< the next piece of the announced packet's payload lies in the data ring
};

struct RecordHead {
  RecordKind kind = RecordKind::none;
  std::uint32_t control_bytes = 0;  ///< below 2^24
  std::uint32_t payload_bytes = 0;  ///< in this record (whole) or in the data ring (piece)
  /// Unused `kApartCells` follow the record. A core that reads lines in a row prefetches some twenty following ones,
  /// which would take away those that the writer has prefetched for its next record.
  bool apart = false;

  static constexpr std::uint64_t kApart = 0x80;  ///< in the first word
  static constexpr std::uint64_t kApartCells = 32;  ///< with them the longest record, 3/8 of the ring, stays below half

  static constexpr RecordHead from(std::uint64_t word) noexcept {
    return {static_cast<RecordKind>(word & 0x7f), static_cast<std::uint32_t>(word >> 8 & 0xffffff),
            static_cast<std::uint32_t>(word >> 32), (word & kApart) != 0};
  }
  /// Whether it is a packet without payload, as most are. Its control block has `word >> 8` bytes and begins behind the
  /// word.
  static constexpr bool is_plain(std::uint64_t word) noexcept {
    return word >> 8 != 0 &&
           (word & ~std::uint64_t{0xffffff00 | kApart}) == static_cast<std::uint64_t>(RecordKind::whole);
  }
  /// Whether it is a plain record of one cell, by far the most frequent kind.
  static constexpr bool is_short(std::uint64_t word) noexcept {
    return (word & 0xff) == static_cast<std::uint64_t>(RecordKind::whole) && (word >> 8) - 1 < kCellBytes - sizeof word;
  }
  constexpr std::uint64_t word() const noexcept {
    return static_cast<std::uint64_t>(kind) | (apart ? kApart : 0) | std::uint64_t{control_bytes} << 8 |
           std::uint64_t{payload_bytes} << 32;
  }
  /// Bytes of the record before its control block.
  constexpr std::size_t control_offset() const noexcept { return kind == RecordKind::announced ? 16 : 8; }
  /// Bytes of the record before its payload.
  constexpr std::size_t payload_offset() const noexcept { return control_offset() + (control_bytes + 7) / 8 * 8; }
  /// Cells that are read.
  constexpr std::uint64_t lines() const noexcept {
    if (kind == RecordKind::piece) return 1;
    const std::size_t bytes = payload_offset() + (kind == RecordKind::whole ? payload_bytes : 0);
    return (bytes + kCellBytes - 1) / kCellBytes;
  }
  /// Cells that the record takes.
  constexpr std::uint64_t cells() const noexcept { return lines() + (apart ? kApartCells : 0); }
};

/// The producer's end. One thread at a time. `Memory` knows where the words are: `head(cell)` and `consumed()` give
/// atomics of 64 bits, `cells()` their number, a power of two; the count of cells from the ring's beginning never
/// wraps.
///
/// Protocol of the ring. Memory starts as zeros. A record takes consecutive cells. The producer writes 0 into the first
/// word of the cell behind it, then its body, and last the record's own first word (release): the only store that the
/// consumer waits for. The consumer reads the first word at its position (acquire) until it is not 0, reads the body,
/// and moves behind the record; whatever lies in cells that it has not reached is never taken for a record, since the
/// word behind the newest record is always 0. The consumer publishes its position in `consumed` (release), lazily. The
/// producer takes a record of n cells only when n + 1 cells beyond its position are known to be consumed (acquire), so
/// the word that it clears is its own.
///
/// Invariants. consumed <= consumer's position <= producer's position <= consumed + cells - 1.
template <class Memory>
class RingProducer {
 public:
  RingProducer() = default;
  explicit RingProducer(Memory memory) noexcept : memory_(memory), end_(memory.cells()) {}

  /// Whether a record of `cells` may be written now. Reads the consumer's line only if the known room does not suffice.
  bool room(std::uint64_t cells) noexcept {
    if (position_ + cells < end_) [[likely]] return true;
    // Pairs with the release of RingConsumer::return_credit.
    end_ = memory_.consumed().load(std::memory_order_acquire) + memory_.cells();
    return position_ + cells < end_;
  }

  /// The cell where the next record begins.
  std::uint64_t position() const noexcept { return position_; }

  /// Whether the consumer's count is one that a consumer could have written. Called after `room`.
  bool sane() const noexcept { return end_ - position_ - 1 < memory_.cells(); }

  /// Begins a record of `cells`, for which there is room, and returns its first cell. The caller must not write that
  /// cell's first word.
  std::uint64_t begin(std::uint64_t cells) noexcept {
    TANDEM_DEBUG_ASSERT(position_ + cells < end_);
    clear(position_ + cells);
    return position_;
  }

  /// Whether `begin` has nothing to do for a record of one cell: there is room for it, and the word behind it is 0.
  bool has_begun_cell() const noexcept { return cleared_ == position_ + 1 && position_ + 1 < end_; }

  /// Makes the record that was begun, whose body is written, visible.
  void publish(std::uint64_t word, std::uint64_t cells) noexcept {
    memory_.head(position_).store(word, std::memory_order_release);  // pairs with the acquire of RingConsumer::peek
    position_ += cells;
    // This clears the word behind a next record of the same size, so that the store has ended when that record comes.
    if (position_ + cells < end_) clear(position_ + cells);
  }

  const Memory& memory() const noexcept { return memory_; }

 private:
  void clear(std::uint64_t cell) noexcept {
    if (std::exchange(cleared_, cell) == cell) [[likely]] return;
    memory_.head(cell).store(0, std::memory_order_relaxed);  // the release in publish orders it
  }

  Memory memory_{};
  std::uint64_t position_ = 0;
  std::uint64_t cleared_ = 0;   ///< a cell beyond `position_` whose first word is 0
  std::uint64_t end_ = 0;       ///< of the cells that are known to be consumed
};

/// The consumer's end; see RingProducer. One thread at a time.
template <class Memory>
class RingConsumer {
 public:
  RingConsumer() = default;
  explicit RingConsumer(Memory memory) noexcept : memory_(memory), due_(memory.cells() / 8) {}

  /// The first word of the next record; 0: none yet.
  std::uint64_t peek() const noexcept {
    return memory_.head(position_).load(std::memory_order_acquire);  // pairs with the release of RingProducer::publish
  }
  std::uint64_t position() const noexcept { return position_; }

  /// Notes that the record was read; its cells may be overwritten after `return_credit`.
  void consume(std::uint64_t cells) noexcept { position_ += cells; }

  /// Whether enough was consumed since the last `return_credit` for another one.
  bool credit_due() const noexcept { return position_ >= due_; }
  bool credit_pending() const noexcept { return position_ != returned_; }
  void return_credit() noexcept {
    returned_ = position_;
    due_ = position_ + memory_.cells() / 8;
    memory_.consumed().store(position_, std::memory_order_release);  // pairs with the acquire of RingProducer::room
  }

  const Memory& memory() const noexcept { return memory_; }

 private:
  Memory memory_{};
  std::uint64_t position_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t due_ = 0;  ///< the position of the next `return_credit`
};

/// The cells of a ring in shared memory that is mapped twice in a row, so that a record that runs over the end is
/// contiguous. First words are always reached through the first mapping.
template <template <class> class Atomic>
class BasicCellMemory {
 public:
  using Word = Atomic<std::uint64_t>;
  static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);

  BasicCellMemory() = default;
  BasicCellMemory(std::byte* base, std::uint64_t cells, Word* consumed) noexcept
      : base_(base), consumed_(consumed), mask_(cells - 1) {
    TANDEM_ASSERT(cells > 0 && (cells & mask_) == 0);
  }
  Word& head(std::uint64_t cell) const noexcept { return *reinterpret_cast<Word*>(at(cell)); }
  Word& consumed() const noexcept { return *consumed_; }
  std::uint64_t cells() const noexcept { return mask_ + 1; }
  /// The first byte of a cell; the record that begins there is contiguous from here.
  std::byte* at(std::uint64_t cell) const noexcept { return base_ + (cell & mask_) * kCellBytes; }

 private:
  std::byte* base_ = nullptr;
  Word* consumed_ = nullptr;
  std::uint64_t mask_ = 0;
};

using CellMemory = BasicCellMemory<std::atomic>;

}  // namespace tandem::comm::internal
