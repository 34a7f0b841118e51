// tandem/runtime/sched/policy.hpp: what decides where ready tasks go and in which order they run. Pure: no threads, no clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::runtime {

/// What a policy may know of a task that has become ready.
struct ReadyTask {
  std::int32_t priority = 0;             ///< higher first
  const std::string* codelet = nullptr;  ///< its name
};

/// What a policy may know of the moment.
struct Situation {
  static constexpr unsigned kNoWorker = ~0U;  ///< no worker made the task ready
  unsigned from = kNoWorker;   ///< the worker that made the task ready, or kNoWorker: it was ready when it was submitted
  unsigned worker_count = 1;   ///< of the runtime
  std::uint64_t sequence = 0;  ///< counts the tasks placed from there
  std::uint64_t random = 0;    ///< drawn anew for each call
};

class PlacingPolicy;
class PullingPolicy;

/// A scheduling policy. Its functions are pure and may be called from several threads at a time. The queues around it
/// (`ReadyQueues`) do what it says, and bring the concurrency.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const noexcept = 0;  ///< as option `sched` names it
  virtual std::string_view help() const noexcept = 0;  ///< in one line

  /// One queue per worker, or one for all.
  virtual bool queue_per_worker() const noexcept = 0;
  /// Higher priority first within a queue; otherwise first come, first served.
  virtual bool by_priority() const noexcept = 0;
  /// Of the tasks that a placing policy has given to a worker, and that no higher priority precedes, that one goes first of which the fewest
  /// bytes are missing in the worker's memory; otherwise first come, first served. A worker looks at its first few dozens.
  virtual bool by_data() const noexcept { return false; }
  /// A task that a worker has made ready stays with it, before older ones of the same priority, because its data is in the cache;
  /// and the worker may run it at once if nothing in its queue is more urgent. `place` is then asked for other tasks only.
  virtual bool keeps_released() const noexcept = 0;
  /// The worker into whose queue the task goes. Not asked when there is one queue.
  virtual unsigned place(const ReadyTask& task, const Situation& now) const noexcept = 0;
  /// A worker could run `task`, which takes `task_ns`, and no other is idle; but one of `expected` priority will be ready in
  /// `in_ns`. True: it waits for that one, and runs `task` only if it does not come. The default, for policies by priority: when
  /// the more urgent one would otherwise lose more time than the worker does by waiting.
  virtual bool waits(const ReadyTask& task, std::int64_t task_ns, std::int32_t expected, std::int64_t in_ns) const noexcept;
  /// In which order `thief` looks into the queues of others. `distance[w]`: how far worker w's core is from the thief's.
  virtual std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const = 0;
  /// It looks at `LoadView::energy`, so that option `objective` has an effect.
  virtual bool weighs_energy() const noexcept { return false; }
  /// Itself, if it gives each ready task to a worker by what it expects; else null. See `PlacingPolicy`.
  virtual const PlacingPolicy* placing() const noexcept { return nullptr; }
  /// Itself, if it keeps ready tasks together until a worker needs one; else null. See `PullingPolicy`.
  virtual const PullingPolicy* pulling() const noexcept { return nullptr; }
};

/// The policies that can be chosen by name. A user adds their own before the runtime is made.
class PolicyRegistry {
 public:
  using Make = std::function<std::unique_ptr<Policy>()>;  ///< makes one

  /// With the built-in ones: lws, prio, eager, random, dm, dmda, dmdas, dmdar, heteroprio, darts, plan.
  PolicyRegistry();
  /// One more policy; a later one of the same name counts.
  void add(std::string name, Make make);
  /// Null when there is none of that name.
  std::unique_ptr<Policy> make(std::string_view name) const;
  std::vector<std::string> names() const;  ///< of all policies

 private:
  std::vector<std::pair<std::string, Make>> makers_;
};

/// One queue, first come, first served.
std::unique_ptr<Policy> make_eager();
/// One queue, highest priority first.
std::unique_ptr<Policy> make_prio();
/// A queue per worker; idle workers steal from the nearest. The default.
std::unique_ptr<Policy> make_lws();
/// A queue per worker, each task to a random one; idle workers steal.
std::unique_ptr<Policy> make_random();

/// Each task to the worker that will have ended it first.
std::unique_ptr<Policy> make_dm();
/// As dm, with the copies that the task's data needs.
std::unique_ptr<Policy> make_dmda();
/// As dmda, and each worker runs the most urgent of its tasks first.
std::unique_ptr<Policy> make_dmdas();
/// As dmda, and each worker first runs that of its tasks of which the fewest bytes are missing in its memory.
std::unique_ptr<Policy> make_dmdar();
/// Each worker takes the kind of tasks at which it is best, compared with the others.
std::unique_ptr<Policy> make_heteroprio();
/// Each worker takes tasks whose data is in its memory, or loads the data that frees most tasks.
std::unique_ptr<Policy> make_darts();
/// Whenever a worker needs a task, the most urgent ones are planned over all workers. The default where workers or memories differ.
std::unique_ptr<Policy> make_plan();

/// Workers other than `thief`, the nearest first, and from the thief's own index upwards among equals.
std::vector<unsigned> nearest_first(unsigned thief, std::span<const unsigned> distance);

}  // namespace tandem::runtime
