// tandem/runtime/submit/window.hpp: how many tasks may be submitted and not ended.
#pragma once

#include <cstdint>

namespace tandem::runtime {

/// The bound on tasks that are submitted and have not ended. Used by the submitting thread.
///
/// The counts are those of `Submission` (submitted) and `Executor` (finished). `finished` is an old value, so a window that looks
/// full is compared again with a fresh one. Accesses that the application holds do not count: it may release them only after
/// further submissions.
class Window {
 public:
  explicit Window(std::uint64_t tasks) noexcept : tasks_(tasks), limit_(tasks) {}

  bool looks_full(std::uint64_t submitted) const noexcept { return submitted - finished_ >= limit_; }
  void note_finished(std::uint64_t finished) noexcept { finished_ = finished; }

  /// When the window is full, submission waits until so many tasks have ended: three quarters of the window are left, so that
  /// submission then runs on for a while.
  std::uint64_t resume_at(std::uint64_t submitted) const noexcept { return submitted - limit_ + (tasks_ + 3) / 4; }

  /// An access of the application begins to be held, and ends.
  void begin_hold() noexcept { ++limit_; }
  void end_hold() noexcept { --limit_; }

  /// While postponed, submission does not wait for room: what makes room must be submitted first.
  void postpone(bool on) noexcept { postponed_ = on; }
  bool postponed() const noexcept { return postponed_; }

 private:
  const std::uint64_t tasks_;
  std::uint64_t limit_;         ///< tasks_, plus the held accesses
  std::uint64_t finished_ = 0;  ///< as last seen
  bool postponed_ = false;
};

}  // namespace tandem::runtime
