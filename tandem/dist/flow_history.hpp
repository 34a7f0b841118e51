// tandem/dist/flow_history.hpp: history of the operations that a rank has submitted, so that ranks can compare them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tandem/dist/place.hpp"
#include "tandem/dist/use.hpp"

namespace tandem::dist {

struct FlowSketch;

/// Kind of an operation of the flow.
enum class OperationKind : std::uint8_t { other, task, fetch, migrate, flush, home, wait };

/// A digest of all operations since the last wait of all ranks, and the last operations themselves.
///
/// The digest covers of each operation its position, its kind, the rank that runs it, and each access: datum and mode.
/// So two ranks have equal digests after an operation if and only if they have submitted the same operations up to it,
/// except for collisions of 64 bits. For data without an owner only writes count: what a rank does with its own value
/// may depend on the rank. The last `kKept` operations are kept with their digests, and of older ones some digests
/// (`checkpoints`): the sketches of two ranks show the first operation on which they differ, or a range that contains
/// it.
///
/// A rank that skips tasks has no digest that others could compare with theirs (`Pruning::since_wait`).
///
/// Threads: the submitting thread. Cost: a multiplication and a store for each access; some thirty instructions for an
/// operation, whose entry lies in one or two lines. Only one multiplication waits for the operation before.
class FlowHistory {
 public:
  static constexpr std::size_t kKept = 1024;      ///< a power of two
  static constexpr std::size_t kUsesKept = 4;
  static constexpr std::size_t kCheckpoints = 256;  ///< the most checkpoints

  /// One kept operation. The hot path writes it, so it is small.
  struct Entry {
    std::uint64_t digest;  ///< digest of the operations up to this one
    const char* file;
    std::uint32_t line;
    std::uint32_t executor;
    OperationKind kind;
    std::uint8_t uses;                          ///< number of uses; the first `kUsesKept` are kept
    std::array<std::uint32_t, kUsesKept> kept;  ///< for each use: 8 times the id of the datum, plus the mode
  };

  FlowHistory() : entries_(std::make_unique_for_overwrite<Entry[]>(kKept)) {}

  /// Digest of all operations so far.
  std::uint64_t digest() const noexcept { return digest_; }

  /// An operation while its accesses are processed. One that is not entered leaves no trace.
  class Draft {
   public:
    [[gnu::always_inline]] Draft(FlowHistory& history, std::uint64_t position) noexcept
        : entry_(history.entries_[position % kKept]) {}
    [[gnu::always_inline]] void use(const Place& place, AccessMode mode) noexcept {
      const std::uint32_t word = place.id * 8 + static_cast<std::uint32_t>(mode);
      if (uses_ < kUsesKept) entry_.kept[uses_] = word;
      ++uses_;
      if (__builtin_expect(place.owner != kEverywhere, 1)) digest_ = (digest_ ^ word) * kFactor;
      else if (makes_value(mode)) digest_ = (digest_ ^ (place.id * 8 + 7)) * kFactor;
    }

   private:
    friend class FlowHistory;
    Entry& entry_;
    std::uint64_t digest_ = kFactor;  ///< not 0, or a read of datum 0 would not count
    std::uint32_t uses_ = 0;
  };
  /// Enters the operation at `position`, for which `draft` was made. Positions increase.
  [[gnu::always_inline]] void enter(const Draft& draft, std::uint64_t position, OperationKind kind,
                                    std::uint32_t executor, const SourceLine& where) noexcept {
    Entry& entry = draft.entry_;
    entry.file = where.file;
    entry.line = where.line;
    entry.executor = executor;
    entry.kind = kind;
    entry.uses = static_cast<std::uint8_t>(std::min(draft.uses_, std::uint32_t{UINT8_MAX}));
    entry.digest = digest_ =
        mix(digest_, draft.digest_ ^ (std::uint64_t{executor} << 8 | static_cast<std::uint64_t>(kind)));
    if (__builtin_expect(position >= next_checkpoint_, 0)) add_checkpoint(position);
  }
  void note(std::uint64_t position, OperationKind kind, std::uint32_t executor, const SourceLine& where,
            std::span<const Use> uses) noexcept {
    Draft draft(*this, position);
    for (const Use& use : uses) draft.use(place_of(*use.handle), use.mode);
    enter(draft, position, kind, executor, where);
  }
  /// Notes that no rank compares the operation at `position`.
  void note_unknown(std::uint64_t position) noexcept { note(position, OperationKind::other, 0, {}, {}); }
  /// Notes something about the datum `id` between two operations, which all ranks do there.
  void note_between(std::uint32_t id) noexcept { digest_ = mix(digest_, id); }

  /// Restarts at `position`, after all ranks have agreed on what they have submitted.
  void restart(std::uint64_t position);

  /// Sketch for a comparison on other ranks. `position`: the last operation; all since the restart have been noted.
  FlowSketch sketch(std::uint64_t position) const;

 private:
  static constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ULL;

  static std::uint64_t mix(std::uint64_t digest, std::uint64_t operation) noexcept {
    return (std::rotl(digest, 5) ^ operation) * kFactor;
  }
  void add_checkpoint(std::uint64_t position);

  std::uint64_t digest_ = 0;
  std::uint64_t next_checkpoint_ = kKept;  ///< position of the next checkpoint
  std::unique_ptr<Entry[]> entries_;       ///< by position, modulo `kKept`; unwritten before the position
  std::uint64_t start_ = 0;                ///< position of the last restart
  std::uint64_t stride_ = kKept;           ///< positions between two checkpoints
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints_;  ///< positions and digests
};

}  // namespace tandem::dist
