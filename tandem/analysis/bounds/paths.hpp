// tandem/analysis/bounds/paths.hpp: lower bounds of the makespan, and what the last task really waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/analysis/bounds/task_graph.hpp"
#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// A longest chain of tasks, each of which needs the one before, with the measured durations.
struct CriticalPath {
  std::int64_t length_ns = 0;
  std::vector<std::uint32_t> tasks;  ///< rows, in the order of execution; only tasks that have run
};

/// Length of a path between two ranks: nothing, or the time of the message, from its posting to its arrival.
enum class Messages : std::uint8_t { free, measured };

/// The critical path over the dependencies and the messages of all ranks. With these durations no shorter makespan is
/// possible, whatever the number of workers. Linear in tasks, dependencies and messages. Where dependencies were not
/// recorded, the longest task.
CriticalPath critical_path(const History& history, const TaskGraph& graph, Messages messages);

/// Why a step of the realised path took its time.
enum class StepKind : std::uint8_t {
  execution,   ///< the kernel of `task`, on which the next step depends
  busy,        ///< the kernel of `task`, on which the next step does not depend, but which occupied its worker
  overhead,    ///< from the time at which `task` could begin until it did: queues, wake-ups, tasks of other workers
  message,     ///< `task` was not submitted yet: the program had waited for a task, or began
  submission,  ///< `task` was not submitted yet: the program ran on from the end of a awaited task, or from its start
};
inline constexpr std::size_t step_kinds = 5;
std::string_view name_of(StepKind kind) noexcept;

struct PathStep {
  StepKind kind = StepKind::execution;
  std::uint32_t task = no_number;  ///< row
  std::uint32_t from = no_number;  ///< of a message: its source
  std::int64_t start_ns = 0, end_ns = 0;
};

/// What the last task to end waited for, what that waited for, and so on, back to the beginning. For each task it is
/// the last event that had to happen before: a predecessor's end, a message's arrival, its submission, the end of the
/// task before on its worker. Steps follow each other without gaps, from `begin_ns` to the end of the last task.
struct RealisedPath {
  std::int64_t begin_ns = 0;
  SpillVector<PathStep> steps = {};  ///< in the order of time

  std::int64_t total_ns(StepKind kind) const noexcept;
};
/// Finds the path; `begin_ns` is the beginning of the makespan (`TimeSplit`).
RealisedPath realised_path(const History& history, const TaskGraph& graph, std::int64_t begin_ns);

}  // namespace tandem::analysis
