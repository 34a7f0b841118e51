// tandem/runtime/sched/placing/pull_placer.hpp: ready tasks that wait together until a policy gives them to workers
// that look for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "tandem/runtime/sched/placing/placer.hpp"
#include "tandem/runtime/sched/policies/pulling_policy.hpp"

namespace tandem::runtime {

/// For a `PullingPolicy`. It is asked for a worker that has fewer tasks than `set_most` allows, when the worker looks
/// for one (`feed`), and, for a worker that has found none, after each change: a task that becomes ready, and another
/// worker that looks for one, as each does when a task has ended. While tasks wait here, some worker has one, or is
/// given one without asking, or looks again at a time: so there is always a change to come.
///
/// Threads: as `Placer`.
class PullPlacer final : public Placer, private ReadyView {
 public:
  PullPlacer(const PullingPolicy& policy, const Machine& machine, Durations& durations, ReadyQueues& queues,
             const clock::Clock& clock, bool caller);

  Task* offer(Task& task) override;
  Task* serve() override;
  Task* feed(unsigned worker) override;
  bool feeds() const noexcept override { return true; }
  void set_most(unsigned worker, unsigned count) noexcept override { asks_[worker].most = count; }
  bool goes_by_depth() const noexcept override { return policy_.by_depth(); }
  void expect(std::uint64_t number, const Task& task, std::int64_t due_ns, std::int64_t now_ns) override;
  void expect_no_more(std::uint64_t number) override;
  std::int64_t holds_until_ns(unsigned worker) const override;
  std::uint64_t holds(unsigned worker) const override;

 private:
  static constexpr std::size_t kMostSpare = 256;
  /// What a worker was answered when it looked for tasks.
  struct Ask {
    unsigned most = 1;             ///< see `set_most`
    std::int64_t again_at_ns = 0;  ///< when it is worth asking for it again, if nothing new has become ready
    std::int64_t last_ns = 0;      ///< how long the last task was expected to take that it was given
    /// The worker waits for a task that arrives, and looks again then; 0: it does not.
    std::int64_t holds_until_ns = 0;
    std::uint64_t holds = 0;  ///< how often
    std::uint64_t refused_at = UINT64_MAX;  ///< of `changes`, when it had no task and got none
  };

  // As the policy sees it.
  std::size_t count() const noexcept override { return waiting_; }
  std::size_t bytes() const noexcept override { return waiting_bytes_; }
  const std::vector<ReadyKind>& kinds() const noexcept override { return kinds_.all(); }
  std::span<const AccessView> accesses(const OpenTask& task) const override { return look_at(*task.task); }
  bool works(unsigned worker) const noexcept override { return Placer::works(worker); }
  bool all_work() const noexcept override { return Placer::all_work(); }
  BusRoom bus_room(const OpenTask& task, NodeIndex node) const noexcept override {
    return loads_.bus_room(kinds_[task.kind].memory, task.priority, node);
  }

  unsigned choose_worker(const TaskView& task, const LoadView& load) const override { return earliest_end(task, load); }
  void messages_changed(Chain& chosen) override;
  void discharged(bool may_begin) override { has_first_ |= may_begin; }
  std::size_t kept(unsigned kind) const override;
  bool check_kept() const override;
  void learn_placed(const PlacedTask& placed, DeviceKind kind, unsigned implementation,
                    std::int64_t duration_ns) override;

  std::uint64_t changes() const noexcept { return changes_ + loads_.changes() + kinds_.changes(); }
  bool has_place(unsigned worker) const noexcept { return loads_.tasks(worker) < asks_[worker].most; }
  void give_trials(Chain& chosen);
  void take_out(const OpenTask& task);
  bool pull(unsigned worker, Chain& chosen, bool may_hold);
  bool begin_hold(unsigned worker, const OpenTask& picked, const LoadView& load);
  void forget_late(Ask& ask, std::int64_t now_ns);
  void end_arrival(std::vector<ArrivingTask>::iterator place);
  void note_refused(unsigned worker);
  void note_hungry(unsigned worker) noexcept;
  void note_given(const Task& task) noexcept;
  void pull_for_hungry(Chain& chosen);
  bool somebody_goes_on(std::int64_t now_ns) const noexcept;
  void give(const OpenTask& open, unsigned worker, const LoadView& load, Chain& chosen);

  const PullingPolicy& policy_;
  std::vector<Ask> asks_;  ///< by worker
  std::vector<std::uint64_t>
      hungry_;  ///< bit w % 64 of entry w / 64: when worker w looked for tasks last it got fewer than it may have
  std::size_t waiting_ = 0;        ///< tasks without a worker, in `kinds_`
  std::size_t waiting_bytes_ = 0;  ///< of the data of each
  /// How often tasks became ready, workers have left, or arrivals have ended for which a worker waited.
  std::uint64_t changes_ = 0;
  std::size_t unasked_ = 0;  ///< tasks that became ready since hungry workers were asked
  bool has_first_ = false;   ///< one of these was the only one of its kind, or others may run now that waited
  std::vector<std::set<OpenTask>::node_type> spare_;  ///< for further tasks in `kinds_`
  std::vector<ArrivingTask> arriving_;
};

}  // namespace tandem::runtime
