// tandem/runtime/sched/placing/loads.cpp: charges, and the state of links and memories that follows from them.
#include "tandem/runtime/sched/placing/loads.hpp"

#include <array>
#include <climits>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::runtime {

Loads::Loads(const Machine& machine, bool by_priority)
    : machine_(machine),
      by_priority_(by_priority),
      loads_(machine.workers.size()),
      views_(machine.workers.size()) {
  for (NodeIndex from = 0; from < machine.nodes.size(); ++from)
    for (NodeIndex to = 0; to < machine.nodes.size(); ++to) {
      links_.push_back({.link = machine.link(from, to)});
      knows_loaded_links_ |= links_.back().link.loaded_bytes_per_ns.has_value();
      messages_.matter_ |= links_.back().link.beside_messages_bytes_per_ns.has_value();
    }
}

void Loads::weigh_copies(double weight) noexcept {
  for (LinkLoad& link : links_) {
    link.link.latency_ns = static_cast<std::int64_t>(weight * static_cast<double>(link.link.latency_ns));
    link.link.bytes_per_ns /= weight;  // 0: no time for any number of bytes
    if (link.link.loaded_bytes_per_ns) *link.link.loaded_bytes_per_ns /= weight;
    if (link.link.beside_messages_bytes_per_ns) *link.link.beside_messages_bytes_per_ns /= weight;
  }
}

void Loads::use_memory(const MemoryShares& shares, const MemoryGate& gate) {
  if (!shares.is_known()) return;
  gate_ = &gate;
  memory_ = std::make_unique<MemoryLoad>(shares, machine_, gate.rule());
  for (const LinkLoad& link : links_)
    rates_.push_back({link.link.bytes_per_ns, link.link.loaded_bytes_per_ns.value_or(0),
                      link.link.beside_messages_bytes_per_ns.value_or(0)});
}

void Loads::note_messages(std::int64_t now_ns) {
  memory_->set_messages(gate_->has_messages(), now_ns);
  ++changes_;
}

void Loads::add(Load& load, const PlacedTask& placed) {
  load.all.ns += placed.charged_ns;
  ++load.all.tasks;
  if (by_priority_) load.by_priority.add(placed.priority, placed.charged_ns);
}

void Loads::remove(Load& load, const PlacedTask& placed) {
  TANDEM_ASSERT(load.all.tasks > 0);
  load.all.ns -= placed.charged_ns;
  --load.all.tasks;
  if (by_priority_) load.by_priority.remove(placed.priority, placed.charged_ns);
}

std::int64_t Loads::free_ns(const Load& load, std::int32_t priority, std::int64_t now_ns) const noexcept {
  if (load.all.tasks == 0) return now_ns;
  if (!by_priority_) return std::max(now_ns, load.since_ns + load.all.ns);
  const Sum ahead = load.by_priority.from(priority);
  if (ahead.tasks != 0) return std::max(now_ns, load.since_ns + ahead.ns);
  return now_ns + load.all.ns / load.all.tasks / 2;
}

/// How loaded each link is. A copy is busy at both ends: so the links that two memories have with any other one are
/// their sum, less those between the two, which are in it twice.
void Loads::look_at_links(std::int64_t now_ns) {
  struct Count {
    unsigned all = 0, busy = 0;
  };
  const std::size_t nodes = machine_.nodes.size();
  const auto counts_of = [&](const LinkLoad& link) {
    return Count{link.link.loaded_bytes_per_ns ? 1U : 0U,
                 link.link.loaded_bytes_per_ns && link.free_ns > now_ns ? 1U : 0U};
  };
  std::array<Count, kMaxNodes> at{};
  for (const LinkLoad& link : links_)
    for (const NodeIndex node : {link.link.from, link.link.to}) {
      const Count one = counts_of(link);
      at[node].all += one.all;
      at[node].busy += one.busy;
    }
  for (LinkLoad& link : links_) {
    if (!link.link.loaded_bytes_per_ns) continue;
    const auto [from, to] = std::pair(link.link.from, link.link.to);
    const Count own = counts_of(link), back = counts_of(links_[to * nodes + from]);
    const unsigned others = at[from].all + at[to].all - 2 * own.all - back.all;
    const unsigned busy = at[from].busy + at[to].busy - 2 * own.busy - back.busy;
    link.load = others != 0 ? static_cast<double>(busy) / others : 0;
  }
}

/// Links whose copies compete with kernels for memory.
void Loads::look_at_memory() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    MachineLink& link = links_[i].link;
    link.bytes_per_ns = memory_->copy_bytes_per_ns(rates_[i].alone, link.from, link.to);
    if (link.loaded_bytes_per_ns) link.loaded_bytes_per_ns = std::min(rates_[i].loaded, link.bytes_per_ns);
    if (link.beside_messages_bytes_per_ns)
      link.beside_messages_bytes_per_ns = std::min(rates_[i].beside_messages, link.bytes_per_ns);
  }
}

void Loads::look(std::int32_t priority, std::int64_t now_ns) {
  for (std::size_t worker = 0; worker < loads_.size(); ++worker)
    views_[worker] = {free_ns(loads_[worker], priority, now_ns), loads_[worker].all.tasks};
  for (LinkLoad& link : links_) link.free_ns = std::max(link.free_ns, now_ns);
  if (knows_loaded_links_) look_at_links(now_ns);
  if (messages_.matter_) {
    const bool has_messages = messages_.under_way() != 0;
    for (LinkLoad& link : links_) link.has_messages = has_messages;
  }
  if (memory_ != nullptr) [[unlikely]]
    look_at_memory();
}

BusRoom Loads::bus_room(const MemoryUse& use, std::int32_t priority, NodeIndex node) const noexcept {
  if (memory_ == nullptr || !use.is_bound) return {};
  const unsigned limit = gate_->limit(priority);
  if (limit == UINT_MAX) return {};
  const double running = memory_->bound_cores(node);
  const auto tasks = [&](double cores) { return cores > 0 ? static_cast<unsigned>(cores / use.demand + 0.01) : 0U; };
  return {.now = std::max(tasks(limit - running), running < 0.01 ? 1U : 0U), .most = std::max(tasks(limit), 1U)};
}

void Loads::charge(Task& task, unsigned worker, const TaskView& view, const LoadView& load) {
  const NodeIndex node = machine_.workers[worker].node;
  // It waits for copies only as long as the worker has nothing else to do.
  const std::int64_t waits_ns =
      std::max<std::int64_t>(0, transfers_to(view, load, node).ready_ns - load.workers[worker].free_ns);
  for (const AccessView& access : view.accesses)
    if (access.is_missing(node) && !access.is_coming(node)) {
      LinkLoad& link = links_[access.source() * machine_.nodes.size() + node];
      link.free_ns += static_cast<std::int64_t>(link.copy_ns(access.bytes));
    }
  ++changes_;
  Load& charged = loads_[worker];
  if (charged.all.tasks == 0) charged.since_ns = load.now_ns;
  PlacedTask& placed = task.extra->placed;
  placed.worker = worker;
  const Estimate kernel = load.kernel(view, worker);
  placed.kernel_ns = kernel.known ? static_cast<std::int64_t>(kernel.mean_ns) : 0;
  placed.charged_ns = waits_ns + static_cast<std::int64_t>(kernel.mean_ns);
  placed.priority = task.priority;
  add(charged, placed);
  if (memory_ != nullptr) [[unlikely]]
    placed.demand = memory_->charge(placed.kind, worker, placed.kernel_ns, load.now_ns);
}

bool Loads::discharge(const PlacedTask& placed, unsigned worker, std::int64_t now_ns) {
  ++changes_;
  remove(loads_[worker], placed);
  loads_[worker].since_ns = now_ns;
  if (memory_ == nullptr) [[likely]]
    return false;
  memory_->forget(placed.demand, worker, placed.kernel_ns, now_ns);
  return memory_->is_bound(placed.demand);
}

void Loads::move(const PlacedTask& placed, unsigned from, std::int64_t now_ns) {
  Load& to = loads_[placed.worker];
  ++changes_;
  remove(loads_[from], placed);
  if (to.all.tasks == 0) to.since_ns = now_ns;
  add(to, placed);
  if (memory_ != nullptr) memory_->move(placed.demand, from, placed.worker, placed.kernel_ns, now_ns);
}

bool Loads::check_invariants(std::span<const std::uint32_t> tasks) const {
  bool is_idle = true;
  for (std::size_t worker = 0; worker < loads_.size(); ++worker) {
    const Load& load = loads_[worker];
    if (!load.by_priority.check_invariants(by_priority_ ? load.all : Sum())) return false;
    if (load.all.tasks != tasks[worker] || load.all.ns < 0 || (load.all.tasks == 0 && load.all.ns != 0)) return false;
    is_idle &= load.all.tasks == 0;
  }
  return memory_ == nullptr || !is_idle || memory_->is_idle();
}

}  // namespace tandem::runtime
