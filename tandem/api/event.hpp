// tandem/api/event.hpp: a node of the task graph that the program completes.
#pragma once

#include <exception>
#include <memory>

#include "tandem/runtime/task/task.hpp"

namespace tandem {

using runtime::TaskRef;

namespace internal {
class EventState;
}

/// A node of the graph that the program completes, for instance when a message, a device or a thread has finished.
/// `Runtime::event` makes it. A value: copies name the same event. Not to be completed once the runtime is gone.
class Event {
 public:
  /// Lets tasks that read the event's data start. Any thread; once. With `failure`, they are cancelled instead, as if a
  /// kernel had thrown it. An event without a `start` may be completed at any time; it ends when the tasks before it
  /// have ended, too. Throws UsageError when it was called before, or when `start` has not been called yet. Does
  /// nothing on an empty event, and after the event has ended by itself because the values that it reads do not exist.
  void readable(std::exception_ptr failure = nullptr);
  /// Lets tasks that overwrite the event's data start, too. Any thread; once, for events made with `Release::separate`.
  /// Throws as `readable`, and UsageError for an event of `Release::with_readable`.
  void released();

  /// Reference for waits and for `TaskOptions::after`; of a recorded event, a reference to a recorded task.
  TaskRef task() const noexcept { return readable_; }
  /// Whether it takes place on this rank. False also for an event made after the end of a cancelled flow.
  bool is_here() const noexcept { return state_ != nullptr; }

 private:
  friend class internal::EventState;
  std::shared_ptr<internal::EventState> state_;
  TaskRef readable_;
};

/// Whether `readable` ends the event for writers too, or a later `released` does.
enum class Release { with_readable, separate };

}  // namespace tandem
