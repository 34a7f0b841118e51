// tandem/runtime/sched/policies/plan.cpp: plans the most urgent tasks over all workers whenever a worker needs a task.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "tandem/runtime/sched/policies/best_reuse.hpp"
#include "tandem/runtime/sched/policies/prices.hpp"

namespace tandem::runtime {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kAsCheap = 1.1;  // prices are not more precise
constexpr double kAsCheapInEnergy = 1.02;
// A worker takes none of its own tasks if others end all ready tasks in a third of its time.
constexpr double kTooLate = 3;
constexpr unsigned kAhead = 3;   // steps of the flow by which a task without priority may overtake others for its data
constexpr unsigned kLead = 4;    // steps of the flow by which it may overtake others to bring work to other workers
constexpr double kMuch = 0.1;    // part of the tasks seen
// Part of a kernel: a shorter wait for copies changes neither the order of depths nor that of priorities.
constexpr double kWaits = 0.25;

/// Data that planned tasks bring to memories.
class Brought {
 public:
  /// Those of `nodes` (bit n: memory n) to which the data comes.
  std::uint32_t comes(const void* datum, std::uint32_t nodes) const noexcept {
    if (some_ == 0 || (some_ & mark_of(datum)) == 0) return 0;
    std::uint32_t there = 0;
    for (std::size_t i = 0; i < count_; ++i)
      if (data_[i].datum == datum) there |= 1U << data_[i].node;
    return nodes & there;
  }
  /// Adds data; without a place it is forgotten, and its copies count twice.
  void add(const void* datum, NodeIndex node) noexcept {
    if (count_ == data_.size()) return;
    data_[count_++] = {datum, node};
    some_ |= mark_of(datum);
  }

 private:
  struct Datum {
    const void* datum;
    NodeIndex node;
  };
  /// A mark of one of 64 bits. Most data is not here, and `some_` mostly shows that at once.
  static std::uint64_t mark_of(const void* datum) noexcept {
    // 2^64 divided by the golden ratio.
    return std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(datum) * 0x9e37'79b9'7f4a'7c15U >> 58U);
  }

  std::uint64_t some_ = 0;
  std::array<Datum, 64> data_;
  std::size_t count_ = 0;
};

/// Times at which workers and links are free, while tasks are planned one after the other. `kByEnergy`:
/// `LoadView::energy` is set.
///
/// Workers of one kind and memory are equal, so a lane represents them by the one that is free first (`Lane::first`):
/// among those that are free at the same time, the one with the smallest `Free::came`. Only `take` changes that.
template <bool kByEnergy>
class Lanes {
 public:
  /// `first` precedes others that are free at the same time.
  Lanes(unsigned first, const ReadyView& ready, const LoadView& load) : load_(load) {
    const bool all_work = ready.all_work();
    Lane* lane = add(first, nullptr);
    for (unsigned worker = 0; worker < load.workers.size(); ++worker)
      if (worker != first && (all_work || ready.works(worker))) lane = add(worker, lane);
  }

  /// A place for a task; times in ns from now.
  struct Place {
    unsigned lane;
    unsigned worker;
    double end_ns;     ///< end of the task
    double free_ns;    ///< when the worker is free again: copies run beside its other kernels
    double copies_ns;  ///< duration of the copies
    double waits_ns;   ///< how long the worker is idle before they have ended
    double cost_ns;    ///< price of its time there
    bool fills_bus;    ///< memory serves only few tasks like this one at once
    bool waits;        ///< until such a task has ended
  };
  /// Chooses among the workers that end the task, after what is planned, at most `slack_ns` later than the first one.
  /// Of those with nearly the least cost the one that ends it first is best. With energy no worker ends it too late:
  /// the additional time has a cost instead. Null: no worker can run it. Valid until the next call.
  const Place* place(const ReadyKind& kind, std::span<const AccessView> accesses, const OpenTask& task,
                     const ReadyView& ready, double slack_ns) {
    std::size_t count = 0;
    const Copies copies(*this, accesses);
    ask(kind);
    const bool for_all = kind.workers.size() == load_.workers.size();
    double first_ns = kNever;
    for (std::size_t i = 0; i < count_; ++i) {
      const Lane& lane = lanes_[i];
      const OnLane& on = on_[i];
      if (!on.is_known || !ready.fits(task, lane.node)) continue;
      const unsigned worker = for_all ? lane.first : first_among(lane, kind.workers);
      if (worker == kNobody) continue;
      Place& place = places_[count++];
      place.lane = static_cast<unsigned>(i);
      place.worker = worker;
      place.fills_bus = place.waits = false;
      double at_ns = free_[worker].at_ns, kernel_ns = on.kernel_ns;
      place.cost_ns = on.cost_ns;
      if (load_.memory != nullptr) [[unlikely]] {
        look_at_memory(place, kind, task, ready, kernel_ns, at_ns);
        place.cost_ns = on.price * kernel_ns;
      }
      place.end_ns = place.free_ns = at_ns + kernel_ns;
      place.copies_ns = place.waits_ns = 0;
      if (copies.are_to(lane.node)) {
        const auto [copies_ns, ready_ns] = copies.to(lane.node);
        place.end_ns = std::max(at_ns + copies_ns, ready_ns) + kernel_ns;
        place.free_ns = std::max(at_ns, ready_ns) + kernel_ns;
        place.copies_ns = copies_ns;
        place.waits_ns = std::max(0.0, ready_ns - at_ns);
        if (copies_ns > kernel_ns) place.cost_ns = on.price * copies_ns;
      }
      if constexpr (kByEnergy)
        place.cost_ns += load_.memory != nullptr ? kind.draw_on(lane.kind) * kernel_ns : on.draw_ns;
      first_ns = std::min(first_ns, place.end_ns);
    }
    if constexpr (kByEnergy) {
      for (std::size_t i = 0; i < count; ++i)
        places_[i].cost_ns += std::max(0.0, places_[i].end_ns - first_ns - slack_ns);
      slack_ns = kNever;
    }
    const double late_ns = first_ns + slack_ns;
    double least_ns = kNever;  // least cost
    for (std::size_t i = 0; i < count; ++i)
      if (places_[i].end_ns <= late_ns) least_ns = std::min(least_ns, places_[i].cost_ns);
    const double dear_ns = (kByEnergy ? kAsCheapInEnergy : kAsCheap) * least_ns;
    const Place* best = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      if (places_[i].end_ns > late_ns || places_[i].cost_ns > dear_ns) continue;
      if (best == nullptr || places_[i].end_ns < best->end_ns) best = &places_[i];
    }
    return best;
  }
  /// Plans a task with this data there.
  void take(const Place& place, std::span<const AccessView> accesses) {
    Lane& lane = lanes_[place.lane];
    if (place.fills_bus) ++filling_[lane.node];
    if (place.waits) return;  // workers do something else meanwhile
    Free& taken = free_[place.worker];
    taken.at_ns = place.free_ns;
    taken.came = came_++;
    lane.first = first_of(lane, [](unsigned) { return true; });
    if (place.copies_ns == 0) return;
    links_[lane.node] += place.copies_ns;
    for (const AccessView& access : accesses)
      if (access.is_missing(lane.node) && brought_.comes(access.datum, 1U << lane.node) == 0)
        brought_.add(access.datum, lane.node);
  }

 private:
  static constexpr std::size_t kMostLanes = kMaxNodes;
  static constexpr unsigned kNobody = ~0U;
  struct Free {  ///< of a worker
    double at_ns;
    unsigned came;  ///< it precedes others that are free at the same time and came later
    unsigned next;  ///< next worker of its lane

    bool operator<(const Free& other) const noexcept {
      return at_ns < other.at_ns || (at_ns == other.at_ns && came < other.came);
    }
  };
  struct Lane {  ///< the workers of one kind and memory
    DeviceKind kind;
    NodeIndex node;
    unsigned first;  ///< the worker that is free first
    unsigned any;    ///< a worker from which `Free::next` leads to all

    bool is_of(const MachineWorker& worker) const noexcept { return kind == worker.kind && node == worker.node; }
  };
  /// Costs of a kind of tasks on a lane.
  struct OnLane {
    bool is_known;      ///< whether the duration is known
    double kernel_ns;   ///< duration of a kernel
    double price;       ///< price of a worker's time
    double cost_ns;     ///< cost of a kernel by that price
    double draw_ns;     ///< cost of the power that a kernel draws
  };

  /// Computes the costs of `kind`, mostly that of the task before.
  void ask(const ReadyKind& kind) {
    if (asked_ == &kind) return;
    asked_ = &kind;
    for (std::size_t i = 0; i < count_; ++i) {
      const KindWorkers* const alike = kind.workers_of(lanes_[i].kind);
      on_[i].is_known = alike != nullptr && alike->kernel.known;
      if (!on_[i].is_known) continue;
      on_[i].kernel_ns = alike->kernel.mean_ns;
      on_[i].price = load_.prices[lanes_[i].first];
      on_[i].cost_ns = on_[i].price * on_[i].kernel_ns;
      if constexpr (kByEnergy) on_[i].draw_ns = alike->draw * alike->kernel.mean_ns;
    }
  }

  /// Adds a worker. Returns its lane; null: there is no room for one. Mostly it is like `before`, the lane of the
  /// worker before it.
  Lane* add(unsigned worker, Lane* before) {
    const MachineWorker& here = load_.machine.workers[worker];
    Lane* const lane = before != nullptr && before->is_of(here) ? before : lane_of(here);
    if (lane == nullptr) return nullptr;
    Free& free = free_[worker];
    free = {static_cast<double>(load_.workers[worker].free_ns - load_.now_ns), came_++, lane->any};
    lane->any = worker;
    if (lane->first == kNobody || free < free_[lane->first]) lane->first = worker;
    return lane;
  }
  Lane* lane_of(const MachineWorker& worker) {
    for (std::size_t i = 0; i < count_; ++i)
      if (lanes_[i].is_of(worker)) return &lanes_[i];
    if (count_ == kMostLanes) return nullptr;
    nodes_ |= 1U << worker.node;
    lanes_[count_] = {worker.kind, worker.node, kNobody, kNobody};
    return &lanes_[count_++];
  }
  /// The first worker for which `may` is true.
  template <class May>
  unsigned first_of(const Lane& lane, const May& may) const {
    unsigned first = kNobody;
    for (unsigned worker = lane.any; worker != kNobody; worker = free_[worker].next)
      if (may(worker) && (first == kNobody || free_[worker] < free_[first])) first = worker;
    return first;
  }
  unsigned first_among(const Lane& lane, std::span<const unsigned> workers) const {
    if (std::ranges::binary_search(workers, lane.first)) return lane.first;
    return first_of(lane, [&](unsigned worker) { return std::ranges::binary_search(workers, worker); });
  }

  static constexpr unsigned kSeeValue = [] {  // bit m: `sees_value` of mode m, as one constant
    unsigned modes = 0;
    for (unsigned mode = 0; mode <= static_cast<unsigned>(AccessMode::scratch); ++mode)
      modes |= sees_value(static_cast<AccessMode>(mode)) ? 1U << mode : 0U;
    return modes;
  }();
  /// The copies of a task's data to each memory, after those of the planned tasks.
  class Copies {
   public:
    Copies(const Lanes& lanes, std::span<const AccessView> accesses) : lanes_(lanes) {
      for (const AccessView& access : accesses) {
        if ((kSeeValue >> static_cast<unsigned>(access.mode) & 1U) == 0 || access.valid == 0) continue;
        std::uint32_t missing = lanes.nodes_ & ~access.valid;
        if (missing != 0) missing &= ~lanes.brought_.comes(access.datum, missing);
        for (; missing != 0; missing &= missing - 1) {
          const auto node = static_cast<NodeIndex>(std::countr_zero(missing));
          if ((some_ >> node & 1U) == 0) queues_[node].of = {};
          some_ |= 1U << node;
          queues_[node].of.add(access, lanes.load_.link(access.source(), node), lanes.load_);
        }
      }
    }
    bool are_to(NodeIndex node) const noexcept { return (some_ >> node & 1U) != 0; }
    CopyTimes to(NodeIndex node) const noexcept { return queues_[node].of.behind(lanes_.links_[node]); }

   private:
    union Unset {  // so that memories without copies cost nothing
      Unset() noexcept {}
      CopyQueue of;
    };

    const Lanes& lanes_;
    std::uint32_t some_ = 0;  // bit n: there are copies to memory n
    std::array<Unset, kMaxNodes> queues_;
  };

  /// Accounts for memory that kernels share.
  void look_at_memory(Place& place, const ReadyKind& kind, const OpenTask& task, const ReadyView& ready,
                      double& kernel_ns, double& at_ns) const {
    const Lane& lane = lanes_[place.lane];
    Estimate kernel = kind.kernel_on(lane.kind);
    load_.memory->adjust(kernel, kind.memory, place.worker);
    kernel_ns = kernel.mean_ns;
    if (lane.kind != DeviceKind::cpu) return;
    const BusRoom room = ready.bus_room(task, lane.node);
    place.fills_bus = room.most != UINT_MAX;
    place.waits = place.fills_bus && filling_[lane.node] >= room.now;
    if (place.waits) at_ns = std::max(at_ns, kernel_ns * (filling_[lane.node] - room.now + 1) / room.most);
  }

  const LoadView& load_;
  std::array<Lane, kMostLanes> lanes_;  // the first `count_`
  const ReadyKind* asked_ = nullptr;
  std::array<OnLane, kMostLanes> on_;  // by lane, costs of `asked_`
  std::array<Place, kMostLanes> places_;  // places of the last task
  std::size_t count_ = 0;
  std::uint32_t nodes_ = 0;  // bit n: some lane is in memory n
  unsigned came_ = 0;  // number of workers added, and of tasks planned since
  std::array<Free, 128> few_;  // enough for most machines
  std::vector<Free> many_{load_.workers.size() > few_.size() ? load_.workers.size() : 0};
  Free* const free_ = many_.empty() ? few_.data() : many_.data();  // by worker
  std::array<unsigned, kMaxNodes> filling_{};  ///< by memory: planned tasks that fill its bus
  std::array<double, kMaxNodes> links_{};  ///< by memory: time of planned copies to it, in ns
  Brought brought_;
};

/// Tandem's own policy. Each decision plans the most urgent ready tasks one after the other until one falls to the
/// worker that asks, so that it uses the latest knowledge. A task is planned where its time costs least, by prices that
/// follow from the mix of tasks (the duals of the area bound), among the workers that end it early enough: at most so
/// much later than the first as the ready tasks keep all workers busy. With much ready work each worker does what it is
/// best at. With little, each task ends as early as it can (HEFT), and a slow worker takes one only when the fast ones
/// would come to it later.
///
/// Among tasks of the same priority that fall to the worker it takes the kind that gains most there, and of that kind
/// the task with the fewest bytes to copy. Among tasks without a priority it takes the one that followed the fewest
/// tasks (`OpenTask::depth`). It takes another one, at most `kAhead` steps deeper, if the worker then waits less for
/// copies by a good part of a kernel. Without this order it would run a few chains of tasks to their ends, and leave
/// too few tasks for all workers. For such a wait it also prefers a less urgent task with as much gain.
///
/// While workers of another kind have no ready task that costs least there, it takes, among tasks without priorities,
/// one that is up to `kLead` steps further in the flow, so that its successors are ready sooner (`go_ahead`).
///
/// It uses the means of durations, however much they vary (decision 115).
///
/// With an aim at energy (`LoadView::energy`) the power of a kernel is a part of its cost, and prices follow from the
/// linear program with energy (`prices_of`). A task may end later than that, at the price of the time.
///
/// In a memory too small for the ready tasks, loaded data leaves again. So if the worker would wait for copies by a
/// good part of a kernel, it takes the choice of `BestReuse` among the tasks of the same kind and priority; when it
/// helps others, it always does.
///
/// If more than `kFew` tasks are ready, only those that cost least on workers of this kind are planned. If none falls
/// to the worker, it helps others: it takes the least urgent task of the kind that loses least here, if the workers for
/// which it costs least would come to it later than this one ends it, or, if it costs as little here, not much sooner.
/// Costs are nearly equal wherever a kind of task runs at all, also on slow workers; so a task that takes `kTooLate`
/// times as long as all ready tasks is left to the others.
class Plan final : public PullingPolicy {
 public:
  static constexpr std::size_t kFew = 12;
  static constexpr std::size_t kWindow = 16;  ///< number of the worker's own tasks that are planned
  static constexpr unsigned kAlike = 24;
  /// Number of tasks among which it looks for the best reuse of data in a small memory.
  static constexpr unsigned kReuse = 256;

  std::string_view name() const noexcept override { return "plan"; }
  std::string_view help() const noexcept override {
    return "where workers or memories differ: plans the most urgent tasks over all workers, anew for each";
  }

  bool weighs_energy() const noexcept override { return true; }
  bool treats_alike() const noexcept override { return true; }
  bool by_depth() const noexcept override { return true; }

  const OpenTask* pick(unsigned worker, const ReadyView& ready, const LoadView& load) const override {
    if (load.energy != nullptr) [[unlikely]] return pick_by<true>(worker, ready, load);
    return pick_by<false>(worker, ready, load);
  }

 private:
  template <bool kByEnergy>
  static const OpenTask* pick_by(unsigned worker, const ReadyView& ready, const LoadView& load) {
    const DeviceKind here = load.machine.workers[worker].kind;
    Shares<kByEnergy> shares(here, ready, load);
    const Question question{worker, here, shares.total_ns, ready, load};
    if (ready.count() <= kFew) {
      MostUrgentFirst all(ready.kinds());
      return plan<kByEnergy>(question, all);
    }
    if (const OpenTask* const ahead = go_ahead<kByEnergy>(question, shares)) return ahead;
    if (const OpenTask* const own = plan<kByEnergy>(question, shares.own)) return own;
    return help(question, shares);
  }

  struct Question {
    unsigned worker;
    DeviceKind here;
    double slack_ns;
    const ReadyView& ready;
    const LoadView& load;
  };

  /// The ready tasks, by the kind of worker on which they cost least.
  template <bool kByEnergy>
  struct Shares {
    struct Share {
      DeviceKind kind = DeviceKind::cpu;
      double each_ns = 0;  ///< work of each worker
    };
    MostUrgentFirst own;  ///< kinds of tasks that cost least on workers of the asking kind
    std::array<Share, kMaxNodes> of;
    std::size_t count = 0;
    double total_ns = 0;  ///< how long all tasks keep all workers busy

    Shares(DeviceKind here, const ReadyView& ready, const LoadView& load) {
      for (const ReadyKind& kind : ready.kinds()) {
        if (kind.tasks.empty()) continue;
        const KindWorkers* const best = cheapest_of(kind, load.prices);
        if (best == nullptr) continue;
        if (best->kind == here) own.add(kind);
        const double tasks_ns = static_cast<double>(kind.tasks.size()) * best->kernel.mean_ns;
        total_ns += tasks_ns * load.prices[best->first];
        auto share = std::find_if(of.begin(), of.begin() + count,
                                  [&](const Share& known) { return known.kind == best->kind; });
        if (share == of.begin() + count && count < of.size()) of[count++] = {best->kind, 0};
        if (share != of.end()) share->each_ns += tasks_ns / best->count;
      }
    }
    double of_kind(DeviceKind kind) const {
      const auto share = std::find_if(of.begin(), of.begin() + count,
                                      [&](const Share& known) { return known.kind == kind; });
      return share != of.begin() + count ? share->each_ns : 0;
    }
  };

  /// If workers of another kind have no ready task that costs least there, though many tasks seen do: a task without
  /// priority that costs least here, is further in the flow and falls to the worker, so that its successors are ready
  /// sooner. Null: the others have tasks, or all are equally far.
  template <bool kByEnergy>
  static const OpenTask* go_ahead(const Question& asked, const Shares<kByEnergy>& shares) {
    const auto lacks = [&](const KindPart& other) {
      return other.kind != asked.here && other.part > kMuch && shares.of_kind(other.kind) == 0;
    };
    if (std::ranges::none_of(asked.load.parts, lacks)) return nullptr;
    const auto for_each_own = [&](const auto& look) {
      for (const ReadyKind& kind : asked.ready.kinds()) {
        const KindWorkers* const best = kind.tasks.empty() ? nullptr : cheapest_of(kind, asked.load.prices);
        if (best != nullptr && best->kind == asked.here) look(kind);
      }
    };
    const OpenTask* first = nullptr;
    for_each_own([&](const ReadyKind& kind) {
      if (first == nullptr || *kind.tasks.begin() < *first) first = &*kind.tasks.begin();
    });
    if (first == nullptr || first->priority != 0) return nullptr;  // the program knows what is urgent
    const OpenTask* furthest = first;
    for_each_own([&](const ReadyKind& kind) {
      const auto behind = kind.tasks.lower_bound({.depth = first->depth + kLead + 1});
      if (behind == kind.tasks.begin()) return;
      const std::uint32_t depth = std::prev(behind)->depth;
      if (depth > furthest->depth) furthest = &*kind.tasks.lower_bound({.depth = depth});
    });
    if (furthest == first) return nullptr;
    Lanes<kByEnergy> lanes(asked.worker, asked.ready, asked.load);
    const auto* const place = lanes.place(asked.ready.kind_of(*furthest), asked.ready.accesses(*furthest), *furthest,
                                          asked.ready, asked.slack_ns);
    return place != nullptr && place->worker == asked.worker && !place->waits ? furthest : nullptr;
  }

  /// The first of `tasks` that falls to the worker, or one like it that is better there.
  template <bool kByEnergy>
  static const OpenTask* plan(const Question& asked, MostUrgentFirst& tasks) {
    if (tasks.is_empty()) return nullptr;
    Lanes<kByEnergy> lanes(asked.worker, asked.ready, asked.load);
    for (std::size_t looked = 0; looked < kWindow; ++looked) {
      const OpenTask* const task = tasks.next();
      if (task == nullptr) return nullptr;
      const std::span<const AccessView> accesses = asked.ready.accesses(*task);
      const auto* const place = lanes.place(asked.ready.kind_of(*task), accesses, *task, asked.ready, asked.slack_ns);
      if (place == nullptr) continue;
      if (place->worker == asked.worker && !place->waits) return best_alike(asked, *task, *place, tasks, lanes);
      lanes.take(*place, accesses);
    }
    return nullptr;
  }

  template <bool kByEnergy>
  static const OpenTask* best_alike(const Question& asked, const OpenTask& first,
                                    typename Lanes<kByEnergy>::Place of_best, MostUrgentFirst& tasks,
                                    Lanes<kByEnergy>& lanes) {
    if (const OpenTask* const reuse = best_reuse(asked, first, of_best, lanes)) return reuse;
    const OpenTask* best = &first;
    double gain = times_of(asked.ready.kind_of(*best), asked.here).gain();
    const bool has_priority = first.priority != 0;
    const auto is_better = [&](const auto& place, double kernel_ns) {
      return has_priority ? place.copies_ns < of_best.copies_ns : of_best.free_ns - place.free_ns > kWaits * kernel_ns;
    };
    const double first_kernel_ns = asked.ready.kind_of(first).kernel_on(asked.here).mean_ns;
    for (unsigned looked = 0; looked < kAlike; ++looked) {
      const OpenTask* const task = tasks.next();
      if (task == nullptr) break;
      const bool is_less_urgent = task->priority != first.priority;
      if (!has_priority && task->depth > first.depth + kAhead) break;
      if (is_less_urgent && of_best.waits_ns <= kWaits * first_kernel_ns) break;
      if (task->kind == best->kind && of_best.copies_ns == 0) continue;
      const ReadyKind& kind = asked.ready.kind_of(*task);
      const double gains = task->kind == best->kind ? gain : times_of(kind, asked.here).gain();
      if (gains < gain || (is_less_urgent && gains != gain)) continue;
      const auto* const place = lanes.place(kind, asked.ready.accesses(*task), *task, asked.ready, asked.slack_ns);
      if (place == nullptr || place->worker != asked.worker || place->waits) continue;
      if (is_less_urgent ? of_best.waits_ns - place->waits_ns <= kWaits * first_kernel_ns
                         : gains == gain && !is_better(*place, kind.kernel_on(asked.here).mean_ns))
        continue;
      best = task;
      gain = gains;
      of_best = *place;
    }
    return best;
  }

  /// The best task for a small memory among those from `task` on with its urgency. Null: none has room.
  template <class At>
  static const OpenTask* best_reuse_of(const Question& asked, At task, At end) {
    BestReuse best(asked.load.machine.workers[asked.worker].node, asked.ready);
    const std::int32_t priority = task->priority;
    for (unsigned looked = 0; looked < kReuse && task != end && task->priority == priority && !best.needs_nothing();
         ++looked, ++task)
      if (has_room(asked.worker, *task, asked.ready, asked.load)) best.add(*task);
    return best.task();
  }

  /// Replaces the first task that falls to the worker, if it would wait for copies. Null: none is better.
  template <bool kByEnergy>
  static const OpenTask* best_reuse(const Question& asked, const OpenTask& first,
                                    const typename Lanes<kByEnergy>::Place& of_first, Lanes<kByEnergy>& lanes) {
    const ReadyKind& kind = asked.ready.kind_of(first);
    if (of_first.waits_ns <= kWaits * kind.kernel_on(asked.here).mean_ns ||
        !has_small_memory(asked.worker, asked.ready, asked.load))
      return nullptr;
    const OpenTask* const found = best_reuse_of(asked, kind.tasks.find(first), kind.tasks.end());
    if (found == nullptr || found == &first) return nullptr;
    const auto* const place = lanes.place(kind, asked.ready.accesses(*found), *found, asked.ready, asked.slack_ns);
    return place != nullptr && place->worker == asked.worker && !place->waits ? found : nullptr;
  }

  template <bool kByEnergy>
  static const OpenTask* help(const Question& asked, const Shares<kByEnergy>& shares) {
    const OpenTask* best = nullptr;
    double most = 0;
    for (const ReadyKind& kind : asked.ready.kinds()) {
      if (kind.tasks.empty()) continue;
      const OpenTask& last = *kind.tasks.rbegin();
      const KindWorkers* const cheapest = cheapest_of(kind, asked.load.prices);
      const Estimate kernel = kind.kernel_on(asked.here);
      if (cheapest == nullptr || !kernel.known || !may_get(asked.worker, last, asked.ready, asked.load)) continue;
      const double cost_ns = kernel.mean_ns * asked.load.prices[asked.worker];
      const bool is_dear = cost_ns > kAsCheap * cheapest->kernel.mean_ns * asked.load.prices[cheapest->first];
      const double others_ns = shares.of_kind(cheapest->kind);
      if (cheapest->kind != asked.here && others_ns <= kernel.mean_ns + (is_dear ? asked.slack_ns : -asked.slack_ns))
        continue;
      if constexpr (kByEnergy)
        if (cheapest->kind != asked.here &&
            worth_ns({kernel, kind.draw_on(asked.here), cheapest->kernel.mean_ns, cheapest->draw, cheapest->count},
                     others_ns) <= 0)
          continue;
      const KindTimes times = times_of(kind, asked.here);
      if (cheapest->kind == asked.here && kernel.mean_ns > kTooLate * (times.elsewhere_ns + asked.slack_ns)) continue;
      const double gain = times.gain();
      if (best != nullptr && gain <= most) continue;
      best = &last;
      most = gain;
    }
    if (best == nullptr || !has_small_memory(asked.worker, asked.ready, asked.load)) return best;
    const ReadyKind& kind = asked.ready.kind_of(*best);
    return best_reuse_of(asked, kind.tasks.rbegin(), kind.tasks.rend());
  }
};

}  // namespace

std::unique_ptr<Policy> make_plan() { return std::make_unique<Plan>(); }

}  // namespace tandem::runtime
