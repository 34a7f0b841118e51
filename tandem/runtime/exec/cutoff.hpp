// tandem/runtime/exec/cutoff.hpp: the position up to which threads may go through a flow, before and after it is
// cancelled.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tandem::runtime {

/// The last position of a flow that threads may pass. It starts at 0, and a thread that comes to a later position moves
/// it. Once the flow is cancelled it stays: first until the ranks have compared theirs, then for good.
///
/// So a thread within the limit reads it only once, and may use an old value; and a thread that cancels knows from the
/// limit alone how far all others may have come.
///
/// Threads: any may call `within` and `passed`; the owner calls all else under its lock.
class Cutoff {
 public:
  enum class Answer : std::uint8_t { go, hold, over };

  bool within(std::uint64_t position) const noexcept { return position <= limit_.load(std::memory_order_relaxed); }
  /// True if the flow is cancelled and this position is behind its end.
  bool passed(std::uint64_t position) const noexcept { return position > end_.load(std::memory_order_relaxed); }

  /// A thread has come to `position`; if it may pass, it may go on to `until` without asking. `hold`: it must ask again
  /// later.
  Answer ask(std::uint64_t position, std::uint64_t until) noexcept {
    if (within(position)) return Answer::go;
    if (frozen_) return decided() ? Answer::over : Answer::hold;
    limit_.store(std::max(position, until), std::memory_order_relaxed);
    return Answer::go;
  }
  /// Freezes and returns the limit.
  std::uint64_t freeze() noexcept {
    frozen_ = true;
    return limit_.load(std::memory_order_relaxed);
  }
  /// The last position that may be passed at present.
  std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  /// Sets the end of the cancelled flow; `end` is not below the result of `freeze`.
  void decide(std::uint64_t end) noexcept {
    frozen_ = true;
    limit_.store(end, std::memory_order_relaxed);
    end_.store(end, std::memory_order_relaxed);
  }
  bool frozen() const noexcept { return frozen_; }
  bool decided() const noexcept { return end_.load(std::memory_order_relaxed) != kNoEnd; }
  /// Begins another flow behind all positions that were passed.
  void reopen() noexcept {
    frozen_ = false;
    end_.store(kNoEnd, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kNoEnd = UINT64_MAX;
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> end_{kNoEnd};
  bool frozen_ = false;
};

}  // namespace tandem::runtime
