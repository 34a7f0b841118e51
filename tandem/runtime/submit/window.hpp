// tandem/runtime/submit/window.hpp: how many tasks may be submitted and not ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tandem::runtime {

/// The bound on tasks that are submitted and have not ended, and on the data that passes through main memory (`Room::passing_bytes`) where that has a
/// budget. Used by the submitting thread.
///
/// The counts are those of `Submission` (submitted) and `Executor` (finished). `finished` is an old value, so a window that looks
/// full is compared again with a fresh one. Accesses that the application holds do not count: it may release them only after
/// further submissions.
class Window {
 public:
  explicit Window(std::uint64_t tasks) noexcept : tasks_(tasks), open_limit_(tasks), limit_(tasks) {}

  /// Whether to look closer: so many tasks have not ended, or data is to be waited for.
  bool looks_full(std::uint64_t submitted) const noexcept { return submitted - finished_ >= limit_; }
  bool is_full(std::uint64_t submitted) const noexcept { return submitted - finished_ >= open_limit_; }
  void note_finished(std::uint64_t finished) noexcept { finished_ = finished; }

  /// When the window is full, submission waits until so many tasks have ended: three quarters of the window are left, so that
  /// submission then runs on for a while.
  std::uint64_t resume_at(std::uint64_t submitted) const noexcept { return submitted - open_limit_ + (tasks_ + 3) / 4; }

  /// An access of the application begins to be held, and ends.
  void begin_hold() noexcept { set_limit(open_limit_ + 1); }
  void end_hold() noexcept { set_limit(open_limit_ - 1); }

  /// While postponed, submission does not wait for room: what makes room must be submitted first.
  void postpone(bool on) noexcept { postponed_ = on; }
  bool postponed() const noexcept { return postponed_; }

  /// @name Data
  /// A submission that waits in vain, since what is submitted waits for the program, raises the bound, so that the next ones do not wait as well.
  /// @{
  /// Of main memory; 0: it has none. Three quarters of it may be data that passes: what passes, and what is being submitted, then has room together.
  /// Before the first task.
  void set_budget(std::size_t bytes) noexcept { usual_bound_ = bound_ = bytes - bytes / 4; }
  /// The program has dropped data, and `bytes` pass now.
  void note_passing(std::size_t bytes) noexcept {
    if (usual_bound_ == 0) return;
    if (bytes <= usual_bound_) bound_ = usual_bound_;
    is_crowded_ = bytes > bound_;
    set_limit(open_limit_);
  }
  /// More data passes than may.
  bool is_crowded() const noexcept { return is_crowded_; }
  /// Submission waits until no more bytes pass, so that it then runs on for a while.
  std::size_t resume_below() const noexcept { return bound_ / 3 * 2; }
  /// The wait has ended. `in_vain`: `bytes` pass as before.
  void end_crowded(bool in_vain, std::size_t bytes) noexcept {
    if (in_vain) bound_ = 2 * std::max(bytes, bound_);
    is_crowded_ = false;
    set_limit(open_limit_);
  }
  /// @}

 private:
  void set_limit(std::uint64_t open) noexcept {
    open_limit_ = open;
    limit_ = is_crowded_ ? 0 : open;
  }

  const std::uint64_t tasks_;
  std::uint64_t open_limit_;    ///< tasks_, plus the held accesses
  std::uint64_t limit_;         ///< the same; 0 while it is crowded, so that the way of most tasks has one comparison
  std::uint64_t finished_ = 0;  ///< as last seen
  std::size_t usual_bound_ = 0;
  std::size_t bound_ = 0;
  bool is_crowded_ = false;
  bool postponed_ = false;
};

}  // namespace tandem::runtime
