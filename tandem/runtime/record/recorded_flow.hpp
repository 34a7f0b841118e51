// tandem/runtime/record/recorded_flow.hpp: a flow that was recorded, and is replayed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/runtime/record/kept_data.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class RuntimeCore;

/// A recorded flow, as `Graph` sees it: a `RecordedGraph` on one rank, a `dist::Recording` on several. Data that Tandem
/// allocated lives as long as a recording uses it. Submitting thread.
class RecordedFlow {
 public:
  explicit RecordedFlow(RuntimeCore& runtime);
  virtual ~RecordedFlow() = default;
  RecordedFlow(const RecordedFlow&) = delete;
  RecordedFlow& operator=(const RecordedFlow&) = delete;

  const KeptData& data() const noexcept { return kept_; }
  /// Number of tasks of the program, on all ranks.
  virtual std::size_t task_count() const noexcept = 0;
  /// Enters one replay into the flow. Empty: the flow is over. Throws UsageError.
  virtual Replay replay() = 0;

  /// The next functions change the replays to come. They throw UsageError when `task` is not of this recording or types
  /// differ. `change` returns the task whose values or priority are about to change; null: another rank runs it.
  virtual Task* change(const TaskRef& task) = 0;
  virtual void rebind(Handle& from, Handle& to) = 0;

 protected:
  void check_change(const TaskRef& task) const;
  void check_rebind(const Handle& from, const Handle& to, bool uses_from, bool uses_to) const;

  RuntimeCore& runtime_;
  const std::uint32_t number_;  ///< in references to its tasks, below 2^31; unique in the process until that many exist
  KeptData kept_;               ///< all data of the tasks
};

}  // namespace tandem::runtime
