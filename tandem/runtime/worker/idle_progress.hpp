// tandem/runtime/worker/idle_progress.hpp: network progress by workers: idle ones poll, and others send what their
// tasks leave.
#pragma once

#include "tandem/base/attendance.hpp"

namespace tandem::runtime {

/// A worker's share in `Attendance`. One idle worker at a time polls the network. Network work that follows from the
/// end of a task is left to the task's worker, so that no other thread need be woken: the worker does it before its
/// next kernel (`do_rest`), or while it polls.
///
/// Used by the worker's thread.
class IdleProgress {
 public:
  /// `attendance` null: there is no network. The attendance outlives this.
  explicit IdleProgress(base::Attendance* attendance) : attendance_(attendance) {}

  /// Called when the worker is idle. True: it polls until `stop`; false: another worker does, or there is no network.
  bool start();
  bool is_polling() const noexcept { return polls_; }
  base::IdleWork::Found poll() { return attendance_->look(); }
  void stop() {
    if (!polls_) return;
    attendance_->leave();
    polls_ = false;
  }
  /// Place where the driver lets the worker sleep; null: not at the network.
  base::Attendance* place_to_sleep() noexcept { return polls_ ? attendance_ : nullptr; }

  /// Calls `end()`, which ends a task, and leaves the resulting network work to this worker.
  template <class End>
  void leave_work_of(End end) {
    const base::IdleWork* const network = attendance_ != nullptr ? attendance_->work() : nullptr;
    if (network == nullptr) return end();
    const base::IdleWork::Promise promise(network);
    end();
    has_work_left_ |= promise.pending();
  }
  /// Does the network work that was left to this worker.
  void do_rest() {
    if (has_work_left_) [[unlikely]] tend();
  }

 private:
  void tend() {
    has_work_left_ = false;
    attendance_->tend();
  }

  base::Attendance* const attendance_;
  bool polls_ = false;
  bool has_work_left_ = false;
};

inline bool IdleProgress::start() {
  if (attendance_ == nullptr) return false;
  if (polls_ && attendance_->over()) stop();
  if (!polls_) polls_ = attendance_->enter();
  if (polls_) has_work_left_ = false;  // polling does it
  else do_rest();
  return polls_;
}

}  // namespace tandem::runtime
