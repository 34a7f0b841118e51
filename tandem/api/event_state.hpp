// tandem/api/event_state.hpp: the state of an event of the program, so that it is completed once and not too early.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/api/event.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::internal {

/// One event, shared by the `Event` objects that name it and by its task.
///
/// Two things must happen, in any order: the tasks before the event end (`begin`), and the program completes it
/// (`readable`). The second one ends the event's node. With a `start`, the program may complete it only after the
/// start. The released half has no predecessors, so `released` ends it at once.
///
/// While main memory has a budget, `begin` keeps the data that the event writes in its place for the released half
/// (`kept_`), since `readable` may release the event's own memory before that. The second one of `begin` and `released`
/// sees that under `lock_`, and lets the data go.
///
/// Threads: any. `lock_` guards the state, and is held for a few instructions; nodes are ended without it.
class EventState : public std::enable_shared_from_this<EventState> {
 public:
  using Start = std::function<void(Event)>;

  EventState(runtime::RuntimeCore& core, std::string name, Start start)
      : core_(core), name_(std::move(name)), has_start_(start != nullptr), start_(std::move(start)) {}

  /// Marks a recorded event: the program completes the events that its replays start, and never this one.
  void mark_recorded(const TaskRef& task) noexcept {
    is_recorded_ = true;
    tasks_.readable = task;
  }
  /// The event's nodes, which `ExternalEvents::submit` fills.
  runtime::EventTasks& tasks() noexcept { return tasks_; }
  bool has_start() const noexcept { return has_start_; }
  Event event();

  /// Called when the tasks before the event have ended. `node` is its task.
  void begin(runtime::Task& node);
  /// Called by the program. Throw UsageError.
  void readable(std::exception_ptr failure);
  void released();

 private:
  [[noreturn]] void refuse(const char* why) const;
  /// Ends the event without the program; returns whether the released half must still be ended.
  bool end_by_itself();
  void end_released();
  void start();

  runtime::RuntimeCore& core_;
  const std::string name_;
  const bool has_start_;
  Start start_;  ///< empty once it was called, with its captured values
  runtime::EventTasks tasks_;
  base::SpinLock lock_;
  bool is_recorded_ = false;
  bool begun_ = false;
  bool readable_ = false;   ///< the program has completed it
  bool released_ = false;
  bool by_itself_ = false;  ///< it has ended without the program, which may not know that
  std::vector<runtime::Handle*> kept_;  ///< data kept for the released half, from `begin` to `released`
  std::exception_ptr failure_;  ///< failure of a `readable` that came before `begin`
};

/// State that all copies of a recorded event share: each replay makes an `EventState` from it. Lives as long as the
/// recording.
struct RecordedEvent {
  runtime::RuntimeCore& core;
  std::string name;
  EventState::Start start;
  bool with_release = false;

  /// A `TaskExtra::on_ready`; `context` is a RecordedEvent.
  static void begin(runtime::Task& ready, void* context);
};

}  // namespace tandem::internal
