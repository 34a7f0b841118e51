// tandem/runtime/exec/recorded_order.hpp: the schedule of an earlier run, which tasks follow once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// What one rank's schedulers have chosen in a run: where each kernel ran, in the order in which they began.
struct RecordedSchedule {
  struct Choice {
    TaskId task = 0;  ///< as in traces: `TaskNumber::unmarked`
    std::uint32_t worker = 0;
  };
  std::vector<Choice> choices;
  std::uint32_t workers = 1;

  /// Reads the part of `rank` of a file that `tandem trace export --format schedule` has written, in its words: a line
  /// "tandem schedule 1", then for each of the `ranks` "rank R workers N" and lines "TASK WORKER". `name` is for
  /// errors: malformed; not_found: it has other ranks.
  static base::Result<RecordedSchedule> parse(std::string_view text, std::uint32_t rank, std::uint32_t ranks,
                                              const std::string& name);
};

/// Lets kernels become ready one by one in the order of a recorded run, each for the worker that ran it there. A task
/// that is ready early is held until those that began before it there were handed to their workers; so commuting tasks
/// take their turns in the order of the recorded run. A task that did not run there passes. Thread-safe; the mutex is
/// taken twice for each task.
///
/// Which share of a sum a `reduce` task adds to is not recorded: that depends on which tasks overlap.
///
/// Where the program submits other tasks than it did, the next one may never come: everything then waits (`why_waits`).
class RecordedOrder {
 public:
  struct Turn {
    std::size_t index = 0;  ///< in the schedule
    std::uint32_t worker = 0;
  };

  explicit RecordedOrder(std::shared_ptr<const RecordedSchedule> schedule);

  /// Whether the ready `task` goes on now. If not it is held, and `pushed` returns it.
  bool admit(Task& task);
  /// Null: the task did not run there.
  const Turn* turn_of(const Task& task) const;
  /// The task whose turn it was is with its worker. Returns the held task that goes on now; null: none.
  Task* pushed(const Turn& turn);
  /// For the error of a run that hangs; empty: no task is held.
  std::string why_waits() const;

 private:
  const std::shared_ptr<const RecordedSchedule> schedule_;
  std::unordered_map<TaskId, Turn> turns_;
  mutable std::mutex mutex_;  ///< guards the members below
  std::size_t next_ = 0;      ///< index of the first turn that has not been
  std::unordered_map<std::size_t, Task*> held_;
};

}  // namespace tandem::runtime
