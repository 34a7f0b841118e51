// tandem/runtime/submit/window.hpp: bounds the tasks that are submitted and have not ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tandem/runtime/submit/toll.hpp"

namespace tandem::runtime {

/// The bound on tasks that are submitted and have not ended, and on the data that passes through main memory
/// (`Room::passing_bytes`) if that has a budget. Used by the submitting thread.
///
/// The counts are those of `Submission` (submitted) and `Executor` (finished). `finished` is an old value, so a window
/// that looks full is compared again with a fresh one. Accesses that the application holds do not count: it may release
/// them only after further submissions.
class Window {
 public:
  explicit Window(std::uint64_t tasks) noexcept : tasks_(tasks), open_limit_(tasks), limit_(tasks) {}

  /// Whether the window needs a closer look: too many tasks have not ended, or submission must wait for data.
  bool looks_full(std::uint64_t submitted) const noexcept { return submitted - finished_ >= limit_; }
  bool is_full(std::uint64_t submitted) const noexcept { return submitted - finished_ >= open_limit_; }
  void note_finished(std::uint64_t finished) noexcept { finished_ = finished; }

  /// Number of ended tasks at which submission goes on when the window is full: three quarters of the window are left
  /// then, so that submission runs on for a while.
  std::uint64_t resume_at(std::uint64_t submitted) const noexcept { return submitted - open_limit_ + (tasks_ + 3) / 4; }

  /// Counts an access that the application begins to hold; `end_hold` ends that.
  void begin_hold() noexcept { set_limit(open_limit_ + 1); }
  void end_hold() noexcept { set_limit(open_limit_ - 1); }

  /// From now on each task of the program takes time: every submission takes a closer look, and pays the toll then.
  void charge(Toll toll) {
    toll_ = std::move(toll);
    has_toll_ = true;
    set_limit(open_limit_);
  }
  void pay_toll() { toll_.pay(); }

  /// While postponed, submission does not wait for room, since a later submission will make room.
  void postpone(bool on) noexcept { postponed_ = on; }
  bool postponed() const noexcept { return postponed_; }

  /// @name Data
  /// A submission that waits in vain, since the submitted tasks wait for the program, raises the bound, so that the
  /// next ones do not wait, too.
  /// @{
  /// Sets the budget of main memory; 0: it has none. At most three quarters of it may be passing data, so that this and
  /// the data being submitted fit together. Before the first task.
  void set_budget(std::size_t bytes) noexcept { usual_bound_ = bound_ = bytes - bytes / 4; }
  /// Notes that the program has dropped data, and `bytes` pass now.
  void note_passing(std::size_t bytes) noexcept {
    if (usual_bound_ == 0) return;
    if (bytes <= usual_bound_) bound_ = usual_bound_;
    is_crowded_ = bytes > bound_;
    set_limit(open_limit_);
  }
  /// Whether more data passes than the bound.
  bool is_crowded() const noexcept { return is_crowded_; }
  /// The most passing bytes with which a waiting submission goes on, so that it then runs on for a while.
  std::size_t resume_below() const noexcept { return bound_ / 3 * 2; }
  /// Ends the wait. `in_vain`: `bytes` pass as before.
  void end_crowded(bool in_vain, std::size_t bytes) noexcept {
    if (in_vain) bound_ = 2 * std::max(bytes, bound_);
    is_crowded_ = false;
    set_limit(open_limit_);
  }
  /// @}

 private:
  void set_limit(std::uint64_t open) noexcept {
    open_limit_ = open;
    limit_ = is_crowded_ || has_toll_ ? 0 : open;
  }

  const std::uint64_t tasks_;
  std::uint64_t open_limit_;    ///< tasks_, plus the held accesses
  std::uint64_t limit_;         ///< `open_limit_`; 0 while crowded, so that most tasks need one comparison
  std::uint64_t finished_ = 0;  ///< last value seen
  std::size_t usual_bound_ = 0;
  std::size_t bound_ = 0;
  bool is_crowded_ = false;
  bool has_toll_ = false;
  Toll toll_;
  bool postponed_ = false;
};

}  // namespace tandem::runtime
