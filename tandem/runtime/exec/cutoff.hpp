// tandem/runtime/exec/cutoff.hpp: how far a flow may be gone through, before and after it is cancelled.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tandem::runtime {

/// The last position of a flow that may be passed. At first it is 0, and a thread that comes to a later position moves it; once the
/// flow is cancelled it stays, first until it was compared with those of other ranks, then for good.
///
/// So a thread within the limit needs to read it only once, and may use an old value; and a thread that cancels knows from the
/// limit alone how far all others may have come.
///
/// Threads: `within` and `passed` any; all else under a lock of the owner's.
class Cutoff {
 public:
  enum class Answer : std::uint8_t { go, hold, over };

  bool within(std::uint64_t position) const noexcept { return position <= limit_.load(std::memory_order_relaxed); }
  /// The flow is cancelled, and this position is behind its end.
  bool passed(std::uint64_t position) const noexcept { return position > end_.load(std::memory_order_relaxed); }

  /// Somebody has come to `position`, and may go on to `until` unasked if it may pass. `hold`: it is to be asked again later.
  Answer ask(std::uint64_t position, std::uint64_t until) noexcept {
    if (within(position)) return Answer::go;
    if (frozen_) return decided() ? Answer::over : Answer::hold;
    limit_.store(std::max(position, until), std::memory_order_relaxed);
    return Answer::go;
  }
  /// The limit, which nobody moves from here on.
  std::uint64_t freeze() noexcept {
    frozen_ = true;
    return limit_.load(std::memory_order_relaxed);
  }
  /// The last position that may be passed as things are.
  std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  /// `end` is not below what `freeze` has returned.
  void decide(std::uint64_t end) noexcept {
    frozen_ = true;
    limit_.store(end, std::memory_order_relaxed);
    end_.store(end, std::memory_order_relaxed);
  }
  bool frozen() const noexcept { return frozen_; }
  bool decided() const noexcept { return end_.load(std::memory_order_relaxed) != kNoEnd; }
  /// What comes now is another flow's, behind all that was passed.
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
