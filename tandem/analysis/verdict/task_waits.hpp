// tandem/analysis/verdict/task_waits.hpp: what each task waited for, from its submission to its start, and what brought
// its data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/analysis/bounds/task_graph.hpp"
#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// The parts of a task's time from its submission to its start, in order.
enum class WaitCause : std::uint8_t {
  predecessors,  ///< other tasks of its rank had to end
  message,       ///< like `predecessors`, but data of another rank came last
  turn,          ///< another task that commutes on the same data ran
  memory,        ///< there was no room for its data within a budget
  copies,        ///< its data was copied to the memory where it ran, or was on the way out
  worker,        ///< it could have begun, and no worker had begun it
};
inline constexpr std::size_t wait_causes = 6;
std::string_view name_of(WaitCause cause) noexcept;

struct TaskWait {
  std::uint32_t last = no_number;     ///< row: the task that ended last, or made the message's data; no_number: none
  std::uint32_t message = no_number;  ///< row of communications: this message came last
  // The parts add up to the time from the submission to the start. 0 for a task that has not run, or whose submission
  // was not recorded.
  std::int64_t graph_ns = 0;   ///< until it was ready: for predecessors, or for `message`
  std::int64_t turn_ns = 0, memory_ns = 0, copies_ns = 0, worker_ns = 0;

  std::int64_t total_ns() const noexcept { return graph_ns + turn_ns + memory_ns + copies_ns + worker_ns; }
  /// The cause of the longest part, the first one of equals; `worker` for a task that waited for nothing.
  WaitCause cause() const noexcept;
};

/// The waits by row of `History::tasks`. Without the events `task.ready` a task counts as ready when the last of its
/// predecessors has ended. `turn` is known where accesses were recorded, `memory` and `copies` where a memory has a
/// budget. O(n log n).
std::vector<TaskWait> task_waits(const History& history, const TaskGraph& graph);

/// What brought the value that an access has seen; both no_number: a task of this rank, or the program, wrote it in
/// place.
struct Delivery {
  std::uint32_t message = no_number;   ///< row of communications; no later write on the rank before the task
  std::uint32_t transfer = no_number;  ///< row of transfers: it ended while the task waited
};
/// The deliveries by row of `History::accesses`. O(n log n).
std::vector<Delivery> deliveries(const History& history);

}  // namespace tandem::analysis
