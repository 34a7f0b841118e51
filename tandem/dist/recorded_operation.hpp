// tandem/dist/recorded_operation.hpp: a step of a recorded flow.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tandem/dist/use.hpp"

namespace tandem::comm {
class BroadcastPlan;
}

namespace tandem::dist {

/// One operation. All kinds but `task` and `skip` are of one piece of data.
struct RecordedOperation {
  enum class Kind : std::uint8_t { task, fetch, migrate, flush, send, receive, skip };

  Kind kind = Kind::task;
  std::uint32_t executor = 0;      ///< kEverywhere: all ranks. Or: gets what is fetched, is the next owner, sends a message
  int priority = 0;
  std::uint32_t message = 0;       ///< of `send` and `receive`: among the messages of the recording
  std::uint32_t event = 0;         ///< a task that is an event of the program: one more than its number among those of the recording
  SourceLine where = {};
  /// Is copied for each replay; of an event it is a name alone. Null on ranks that do not run the task.
  runtime::Task* model = nullptr;
  std::span<const Use> uses = {};
  std::span<const std::uint32_t> after = {};  ///< operations that the program wants to come first; all run here
  std::uint32_t first_sending = 0;
  std::uint32_t sendings = 0;
  std::uint64_t tasks = 0;         ///< of `skip`: so many
  bool is_task = true;             ///< of the program; false: it starts or gathers shares of a sum (`Reductions`)
  bool skipped = false;            ///< with `check_pruning`: this rank would not have submitted it

  /// Of a task that runs here; else null.
  const runtime::CodeletCore* codelet() const noexcept { return model != nullptr ? model->codelet : nullptr; }
};

/// A version goes to a rank when the first task that sees it is submitted. The sendings of one version stand together.
struct RecordedSending {
  runtime::Handle* handle;
  std::uint32_t recipient;
  int priority;
  const runtime::CodeletCore* reader = nullptr;  ///< codelet of that task; null: it runs on another rank, or is none
  std::shared_ptr<comm::BroadcastPlan> plan = {};  ///< of the first sending of a version, on its sender: shared by all replays
};

}  // namespace tandem::dist
