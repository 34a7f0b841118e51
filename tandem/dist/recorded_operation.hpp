// tandem/dist/recorded_operation.hpp: a step of a recorded flow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "tandem/dist/use.hpp"

namespace tandem::comm {
class BroadcastPlan;
}
namespace tandem::runtime {
struct EventTasks;
}

namespace tandem::dist {

/// One recorded operation. All kinds except `task` and `skip` are of one piece of data.
struct RecordedOperation {
  enum class Kind : std::uint8_t { task, fetch, migrate, flush, send, receive, skip };

  Kind kind = Kind::task;
  /// KEverywhere: all ranks. For other operations: receiver of a fetch, next owner, or sender of a message.
  std::uint32_t executor = 0;
  int priority = 0;
  std::uint32_t message = 0;       ///< of `send` and `receive`: index among the messages of the recording
  std::uint32_t event = 0;         ///< an event of the program: its index among those of the recording, plus one
  SourceLine where = {};
  /// Model that is copied for each replay; for an event only a name. Null on ranks that do not run the task.
  runtime::Task* model = nullptr;
  std::span<const Use> uses = {};
  std::span<const std::uint32_t> after = {};  ///< operations that the program orders before this one; all run here
  std::uint32_t first_sending = 0;
  std::uint32_t sendings = 0;
  std::uint64_t tasks = 0;         ///< number of tasks of `skip`
  bool is_task = true;  ///< a task of the program; false: it starts or gathers shares of a sum (`Reductions`)
  bool skipped = false;            ///< with `check_pruning`: this rank would not have submitted it

  /// Codelet of a task that runs here; else null.
  const runtime::CodeletCore* codelet() const noexcept { return model != nullptr ? model->codelet : nullptr; }
};

/// An event of the program, which counts as a task.
struct RecordedEvent {
  /// Submits an event with these accesses, as the program would, and returns its nodes.
  std::function<runtime::EventTasks(std::span<const Use> uses)> submit;
  bool with_release = false;  ///< its released half counts as another task
};

/// A version goes to a rank when the first task that sees it is submitted. The sendings of one version are consecutive.
struct RecordedSending {
  runtime::Handle* handle;
  std::uint32_t recipient;
  int priority;
  /// Codelet of that task; null: it runs on another rank, or is not a task.
  const runtime::CodeletCore* reader = nullptr;
  /// Plan of a version's first sending, on its sender: shared by all replays.
  std::shared_ptr<comm::BroadcastPlan> plan = {};
};

}  // namespace tandem::dist
