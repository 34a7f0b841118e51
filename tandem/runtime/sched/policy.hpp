// tandem/runtime/sched/policy.hpp: policies, which decide where ready tasks go and in which order they run. Pure: no
// threads, no clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::runtime {

/// Description of a ready task for a policy.
struct ReadyTask {
  std::int32_t priority = 0;             ///< higher first
  const std::string* codelet = nullptr;  ///< name of the codelet
};

/// Description of the moment for a policy.
struct Situation {
  static constexpr unsigned kNoWorker = ~0U;  ///< no worker made the task ready
  unsigned from = kNoWorker;  ///< the worker that made the task ready, or kNoWorker: it was ready when it was submitted
  unsigned worker_count = 1;   ///< number of workers of the runtime
  std::uint64_t sequence = 0;  ///< number of tasks placed from there
  std::uint64_t random = 0;    ///< drawn anew for each call
};

class PlacingPolicy;
class PullingPolicy;

/// A scheduling policy. Its functions are pure and may be called from several threads at a time. `ReadyQueues` executes
/// it concurrently.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const noexcept = 0;  ///< value of option `sched`
  virtual std::string_view help() const noexcept = 0;  ///< description in one line

  /// True: one queue per worker; false: one for all.
  virtual bool queue_per_worker() const noexcept = 0;
  /// True: higher priority first within a queue; false: first come, first served.
  virtual bool by_priority() const noexcept = 0;
  /// True: among the tasks of the highest priority that a placing policy has given to a worker, the one with the fewest
  /// missing bytes in the worker's memory goes first; false: first come, first served. A worker looks at its first few
  /// dozens.
  virtual bool by_data() const noexcept { return false; }
  /// True: a task that a worker has made ready stays with it, before older ones of the same priority, because its data
  /// is in the cache; the worker may run it at once if nothing in its queue is more urgent. `place` is then called for
  /// other tasks only.
  virtual bool keeps_released() const noexcept = 0;
  /// The worker into whose queue the task goes. Not called with one queue.
  virtual unsigned place(const ReadyTask& task, const Situation& now) const noexcept = 0;
  /// Whether a worker waits for a task of priority `expected`, ready in `in_ns`, instead of running `task`, which takes
  /// `task_ns`, while no other worker is idle. It runs `task` if the expected one does not come. The default, for
  /// policies by priority: true if otherwise the more urgent task loses more time than the worker does by waiting.
  virtual bool waits(const ReadyTask& task, std::int64_t task_ns, std::int32_t expected,
                     std::int64_t in_ns) const noexcept;
  /// Order in which `thief` looks into the queues of others. `distance[w]`: distance of worker w's core from the
  /// thief's.
  virtual std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const = 0;
  /// Whether it uses `LoadView::energy`, so that option `objective` has an effect.
  virtual bool weighs_energy() const noexcept { return false; }
  /// This policy, if it gives each ready task to a worker by expected durations; else null. See `PlacingPolicy`.
  virtual const PlacingPolicy* placing() const noexcept { return nullptr; }
  /// This policy, if it keeps ready tasks together until a worker needs one; else null. See `PullingPolicy`.
  virtual const PullingPolicy* pulling() const noexcept { return nullptr; }
};

/// The policies that can be chosen by name. Users add their own before the runtime is made.
class PolicyRegistry {
 public:
  using Make = std::function<std::unique_ptr<Policy>()>;  ///< makes a policy

  /// Has the built-in policies: lws, prio, eager, random, dm, dmda, dmdas, dmdar, heteroprio, darts, plan.
  PolicyRegistry();
  /// Adds a policy, which replaces one of the same name.
  void add(std::string name, Make make);
  /// Makes a policy; null: there is none of that name.
  std::unique_ptr<Policy> make(std::string_view name) const;
  std::vector<std::string> names() const;  ///< names of all policies

 private:
  std::vector<std::pair<std::string, Make>> makers_;
};

/// Makes a policy with one queue, first come, first served.
std::unique_ptr<Policy> make_eager();
/// Makes a policy with one queue, highest priority first.
std::unique_ptr<Policy> make_prio();
/// Makes a policy with a queue per worker; idle workers steal from the nearest. The default.
std::unique_ptr<Policy> make_lws();
/// Makes a policy with a queue per worker, each task to a random one; idle workers steal.
std::unique_ptr<Policy> make_random();

/// Makes a policy that gives each task to the worker that ends it first.
std::unique_ptr<Policy> make_dm();
/// Makes a policy as dm that also counts the copies of the task's data.
std::unique_ptr<Policy> make_dmda();
/// Makes a policy as dmda in which each worker runs its most urgent task first.
std::unique_ptr<Policy> make_dmdas();
/// Makes a policy as dmda in which each worker first runs its task with the fewest missing bytes in its memory.
std::unique_ptr<Policy> make_dmdar();
/// Makes a policy in which each worker takes the kind of tasks at which it is best, compared with the others.
std::unique_ptr<Policy> make_heteroprio();
/// Makes a policy in which each worker takes tasks whose data is in its memory, or loads the data that frees most
/// tasks.
std::unique_ptr<Policy> make_darts();
/// Makes a policy that plans the most urgent tasks over all workers whenever a worker needs a task. The default where
/// workers or memories differ.
std::unique_ptr<Policy> make_plan();

/// Workers other than `thief`, the nearest first; among equals from the thief's own index upwards.
std::vector<unsigned> nearest_first(unsigned thief, std::span<const unsigned> distance);

}  // namespace tandem::runtime
