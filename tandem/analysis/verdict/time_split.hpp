// tandem/analysis/verdict/time_split.hpp: what the time of each worker was spent on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// What a worker does, and for an idle one why. The reasons are tested in this order: a task that a worker of its rank
/// has taken waits for room or for copies (`awaiting_memory`; workers take few such tasks, and leave others in their
/// queues meanwhile); a task of its rank is ready (`ready_elsewhere`); a receive of its rank is posted and has not
/// arrived (`awaiting_message`); a submitted task waits for others (`no_ready_task`); the rank will submit more
/// (`awaiting_submission`); a task has not ended (`no_ready_task`); else `outside`.
enum class Spent : std::uint8_t {
  executing,            ///< kernels
  fetching,             ///< copies between memories
  scheduling,           ///< looks for a task, or prepares one
  holding,              ///< keeps its core free for an urgent task, although another one is ready
  ready_elsewhere,      ///< idle, though a task was ready: it wakes up, or the task is reserved for another worker
  awaiting_memory,      ///< idle: a task waits for room within the budget of a memory, or for its data from there
  awaiting_message,     ///< idle: the rank waits for data of another rank
  no_ready_task,        ///< idle: the submitted tasks wait for those that run, or are the last ones and run
  awaiting_submission,  ///< idle: all submitted tasks run or have ended, and the program has yet to submit more
  program,              ///< the submitting thread's worker is in the program: it submits tasks, or does other work
  outside,              ///< idle before the first task of its rank was submitted, or after the last one has ended
  unknown,              ///< not recorded, or lost
};
inline constexpr std::size_t spent_kinds = 12;
/// The name, such as "executing", as a word of a table and a key of JSON.
std::string_view name_of(Spent spent) noexcept;

/// Whether this category means that a worker is idle.
constexpr bool is_idle(Spent spent) noexcept {
  return (spent >= Spent::ready_elsewhere && spent <= Spent::awaiting_submission) || spent == Spent::outside;
}

using SpentTimes = std::array<std::int64_t, spent_kinds>;  ///< ns, by `Spent`

struct WorkerTimes {
  std::uint32_t rank = 0;
  std::uint32_t actor = 0;
  std::uint16_t worker = 0;
  SpentTimes ns = {};
};

/// Why workers of a rank are idle, from `since_ns` to the next reason's.
struct IdleReason {
  std::int64_t since_ns = 0;
  Spent spent = Spent::outside;
};

/// The time of all workers. The times of each worker add up to the makespan exactly.
struct TimeSplit {
  std::int64_t makespan_ns = 0;      ///< from the first submission of all ranks to the end of the last task
  std::int64_t begin_ns = 0;         ///< of the makespan, since the first event of the run
  std::vector<WorkerTimes> workers;  ///< by rank and worker
  std::map<std::uint32_t, SpillVector<IdleReason>> reasons = {};  ///< of each rank, by time; neighbours differ

  std::int64_t end_ns() const noexcept { return begin_ns + makespan_ns; }
  /// The sums over all workers.
  SpentTimes total() const noexcept;
};

/// Splits the time. O(n) in the number of tasks, messages and states, and O(log n) for an idle state. Without the
/// events `task.ready` nothing is `ready_elsewhere`.
TimeSplit split_time(const History& history);

/// A part of a worker's time, within the makespan, of one category.
struct Stretch {
  std::uint32_t rank = 0;
  std::uint32_t actor = 0;
  Spent spent = Spent::unknown;
  std::int64_t start_ns = 0, end_ns = 0;
};
/// Calls `call` for each stretch, by rank, actor and time; those of a worker do not overlap. Time that was not recorded
/// has no stretch. `split` is the result of `split_time` for this history; its times are the sums of these. O(n) for n
/// states, and O(log n) for an idle one.
void for_each_stretch(const History& history, const TimeSplit& split, const std::function<void(const Stretch&)>& call);
/// Like `for_each_stretch`, for the workers of one rank.
void for_each_stretch_of(const History& history, const TimeSplit& split, std::uint32_t rank,
                         const std::function<void(const Stretch&)>& call);

}  // namespace tandem::analysis
