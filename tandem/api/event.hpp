// tandem/api/event.hpp: a node of the task graph that the program completes.
#pragma once

#include <exception>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {
class RuntimeCore;
}

namespace tandem {

using runtime::TaskRef;

/// A node of the graph that the program completes, for instance when a message, a device or a thread has finished.
/// `Runtime::event` makes it.
class Event {
 public:
  /// Tasks that read what the event writes may start. Any thread; once. With `failure`, they are cancelled instead, as if a kernel
  /// had thrown it.
  void readable(std::exception_ptr failure = nullptr);
  /// Tasks that overwrite the data of the event may start too. Any thread; once, for events made with `Release::separate`.
  void released();

  /// To wait for it, or to name it in `TaskOptions::after`.
  TaskRef task() const noexcept { return readable_; }
  /// False: it takes place on another rank, or was made after the end of a cancelled flow.
  bool is_here() const noexcept { return core_ != nullptr; }

 private:
  friend class Runtime;
  runtime::RuntimeCore* core_ = nullptr;
  TaskRef readable_;
  TaskRef released_;
};

/// Whether `readable` ends the event for writers too, or `released` does that later.
enum class Release { with_readable, separate };

}  // namespace tandem
