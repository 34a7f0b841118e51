// tandem/runtime/sched/contention/memory_load.cpp: computes demands per memory, and slowdowns from them.
#include "tandem/runtime/sched/contention/memory_load.hpp"

#include <algorithm>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

namespace {

// A kernel that memory limits moves at least this part of its share, and at most the inverse.
constexpr double kNear = 0.8;
constexpr double kNewest = 0.25;        // weight of the last kernel in a demand
constexpr unsigned kTrials = 2;         // kernels after which a time is known
constexpr double kLeastDemand = 0.05;   // below this, memory does not matter to a kernel

}  // namespace

MemoryLoad::MemoryLoad(MemoryShares shares, const Machine& machine, const MemoryGateRule& rule)
    : shares_(std::move(shares)), rule_(rule), bound_(std::max(0.5, shares_.of_cores.back() / 2)), buses_(machine.nodes.size()), workers_(machine.workers.size()) {
  TANDEM_ASSERT(shares_.is_known() && shares_.of_cores.size() > 1);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].is_core = machine.workers[i].kind == DeviceKind::cpu;
    workers_[i].node = machine.workers[i].node;
    if (workers_[i].is_core) ++buses_[workers_[i].node].workers;
  }
}

/// If a memory has more workers than the model's socket has cores, the sockets share the load equally.
double MemoryLoad::of_socket(const Bus& bus, double cores) const noexcept {
  const double most = static_cast<double>(shares_.of_cores.size() - 1);
  return bus.workers > most ? cores * most / bus.workers : cores;
}

/// Share of a core beside the running ones.
double MemoryLoad::share_now(const Bus& bus) const noexcept {
  const double limit = messages_ ? rule_.most_beside_messages : rule_.most,
               waiting = std::max(0.0, bus.bound_rate - limit);
  return shares_.share_of(of_socket(bus, bus.cores - waiting), messages_);
}

void MemoryLoad::settle(Bus& bus, std::int64_t now_ns) noexcept {
  if (now_ns <= bus.settled_ns) return;
  const auto passed_ns = static_cast<double>(now_ns - bus.settled_ns);
  bus.progress_ns += share_now(bus) * passed_ns;
  bus.mean_cores += (bus.cores - bus.mean_cores) * passed_ns / (passed_ns + bus.window_ns);
  bus.settled_ns = now_ns;
}

void MemoryLoad::set_messages(bool are_under_way, std::int64_t now_ns) {
  if (are_under_way == messages_) return;
  for (Bus& bus : buses_) settle(bus, now_ns);
  messages_ = are_under_way;
}

void MemoryLoad::begin_kind(unsigned kind, std::size_t bytes, std::optional<bool> memory_bound) {
  if (kind >= kinds_.size()) kinds_.resize(kind + 1);
  Kind& begun = kinds_[kind] = Kind();
  begun.use.demand = memory_bound.value_or(false) ? 1.0 : 0.0;
  begun.use.is_bound = is_bound(begun.use.demand);
  begun.bytes = static_cast<double>(bytes);
  begun.is_given = memory_bound.has_value();
}

void MemoryLoad::change(Worker& worker, double demand, double kernel_ns, int tasks, std::int64_t now_ns) noexcept {
  Bus& bus = buses_[worker.node];
  settle(bus, now_ns);
  bus.cores -= worker.demand();
  bus.bound_rate -= worker.bound_demand();
  worker.tasks += static_cast<std::uint32_t>(tasks);
  const double sign = tasks;
  worker.kernel_ns = worker.tasks != 0 ? worker.kernel_ns + sign * kernel_ns : 0;
  worker.demand_ns = worker.tasks != 0 ? std::max(0.0, worker.demand_ns + sign * demand * kernel_ns) : 0;
  worker.bound_ns =
      worker.tasks != 0 ? std::max(0.0, worker.bound_ns + (is_bound(demand) ? sign * demand * kernel_ns : 0)) : 0;
  bus.cores = std::max(0.0, bus.cores + worker.demand());
  bus.bound_rate = std::max(0.0, bus.bound_rate + worker.bound_demand());
  if (is_bound(demand)) bus.bound_cores = std::max(0.0, bus.bound_cores + sign * demand);
}

/// Adds a task.
void MemoryLoad::add(Worker& worker, double demand, std::int64_t kernel_ns, std::int64_t now_ns) noexcept {
  const bool begins = worker.tasks == 0;
  change(worker, demand, static_cast<double>(std::max<std::int64_t>(kernel_ns, 1)), 1, now_ns);
  if (!begins) return;
  worker.since_ns = now_ns;
  worker.since_progress_ns = buses_[worker.node].progress_ns;
}

void MemoryLoad::move(float demand, unsigned from, unsigned to, std::int64_t kernel_ns, std::int64_t now_ns) {
  change(workers_[from], demand, static_cast<double>(std::max<std::int64_t>(kernel_ns, 1)), -1, now_ns);
  add(workers_[to], demand, kernel_ns, now_ns);
}

float MemoryLoad::charge(unsigned kind, unsigned worker, std::int64_t kernel_ns, std::int64_t now_ns) {
  Worker& on = workers_[worker];
  if (!on.is_core) return 0;
  const auto demand = static_cast<float>(kinds_[kind].use.demand);
  buses_[on.node].window_ns = static_cast<double>(std::max<std::int64_t>(kernel_ns, 2)) / 2;
  add(on, demand, kernel_ns, now_ns);
  return demand;
}

void MemoryLoad::forget(float demand, unsigned worker, std::int64_t kernel_ns, std::int64_t now_ns) {
  Worker& on = workers_[worker];
  if (!on.is_core) return;
  change(on, demand, static_cast<double>(std::max<std::int64_t>(kernel_ns, 1)), -1, now_ns);
  on.since_ns = now_ns;
  on.since_progress_ns = buses_[on.node].progress_ns;
}

/// Judges a kernel that moved `moved` with a share of `had`, both as parts of a core's rate.
void MemoryLoad::judge(Kind& kind, double moved, double had) noexcept {
  if (kind.is_given) return;
  double& demand = kind.use.demand;
  const bool is_limited = moved >= kNear * had && moved <= had / kNear;
  if (is_limited) {
    demand = kind.is_seen ? std::max(demand, std::min(moved, 1.0)) : 1.0;
    return;
  }
  const double seen = moved < had ? moved : 0;
  demand = std::exchange(kind.is_seen, true) ? demand + kNewest * (seen - demand) : seen;
}

void MemoryLoad::learn(unsigned kind, unsigned worker, double duration_ns, std::int64_t now_ns) {
  const Worker& on = workers_[worker];
  if (!on.is_core || !(duration_ns > 0)) return;
  Bus& bus = buses_[on.node];
  settle(bus, now_ns);
  const auto passed_ns = static_cast<double>(now_ns - on.since_ns);
  const double had = passed_ns > 0 ? (bus.progress_ns - on.since_progress_ns) / passed_ns : share_now(bus);
  Kind& of = kinds_[kind];
  if (!std::exchange(of.is_warm, true)) return;  // the first kernel loads code or warms caches
  judge(of, of.bytes / (duration_ns * shares_.core_bytes_per_ns), had);
  of.alone.add(duration_ns / std::max(1.0, of.use.demand / had));
  of.use.is_bound = is_bound(static_cast<float>(of.use.demand));
  const model::Estimate alone = of.alone.estimate();
  of.use.alone_ns = alone.samples >= kTrials ? alone.mean_ns : 0;
}

void MemoryLoad::adjust(Estimate& kernel, const MemoryUse& use, unsigned worker) const noexcept {
  const Worker& on = workers_[worker];
  if (!on.is_core || use.demand < kLeastDemand || use.alone_ns == 0) return;
  const Bus& bus = buses_[on.node];
  const double cores = bus.cores - on.demand() + use.demand;
  kernel.mean_ns = use.alone_ns * shares_.slowdown(use.demand, of_socket(bus, cores), messages_);
}

double MemoryLoad::copy_bytes_per_ns(double bytes_per_ns, NodeIndex from, NodeIndex to) const noexcept {
  const auto mean = [&](const Bus& bus) { return of_socket(bus, bus.mean_cores); };
  return shares_.copy_bytes_per_ns(bytes_per_ns, std::max(mean(buses_[from]), mean(buses_[to])));
}

bool MemoryLoad::is_idle() const noexcept {
  return std::ranges::all_of(workers_, [](const Worker& worker) { return worker.tasks == 0; }) &&
         std::ranges::all_of(buses_, [](const Bus& bus) { return bus.cores < 1e-6 && bus.bound_cores < 1e-6; });
}

}  // namespace tandem::runtime
