// tandem/runtime/sched/placing/ready_kinds.cpp: what is known of each kind of tasks.
#include "tandem/runtime/sched/placing/ready_kinds.hpp"

#include <algorithm>

#include "tandem/runtime/sched/policies/prices.hpp"
#include "tandem/runtime/sched/queues/ready_queues.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/footprint.hpp"

namespace tandem::runtime {

void ReadyKinds::aim_at(Objective objective, const Powers& powers) {
  objective_ = objective;
  powers_ = &powers;
  aim_ = EnergyAim::of(objective, powers);
}

unsigned ReadyKinds::join(const Task& task, model::Footprint footprint, MemoryLoad* memory) {
  const KindNumbers::Kind kind = numbers_.join({.codelet = task.codelet->name,
                                                .footprint = footprint,
                                                .workers = task.extra->group,
                                                .prefers_devices = task.codelet->prefers_devices});
  if (kind.is_new) begin(task, kind, memory);
  ++kinds_[kind.number].come;
  return kind.number;
}

/// `task` is the first one of kind `of`.
void ReadyKinds::begin(const Task& task, const KindNumbers::Kind& of, MemoryLoad* memory) {
  if (of.number == kinds_.size()) {
    kinds_.emplace_back().given.resize(machine_.workers.size());
    is_known_.push_back(false);
  }
  ReadyKind& kind = kinds_[of.number];
  kind.codelet = of.codelet;
  kind.footprint = of.footprint;
  kind.workers = task.extra->group->members;
  kind.seen = 0;
  kind.prefers_devices = task.codelet->prefers_devices;
  kind.come = 0;
  kind.by_kind.clear();
  for (const unsigned worker : kind.workers) {
    const DeviceKind here = machine_.workers[worker].kind;
    const auto some = std::ranges::find(kind.by_kind, here, &KindWorkers::kind);
    if (some != kind.by_kind.end())
      ++some->count;
    else
      kind.by_kind.push_back({here, worker, 1, {}});
  }
  if (memory != nullptr) {
    memory->begin_kind(of.number, moved_bytes(task), task.codelet->memory_bound);
    kind.memory = memory->use_of(of.number);
  }
  ask_durations(of.number);
}

void ReadyKinds::ask_durations(unsigned number) {
  ++changes_;
  ReadyKind& kind = kinds_[number];
  bool is_known = true;
  for (KindWorkers& some : kind.by_kind) {
    some.kernel = estimates_.expected_ns(kind.codelet, kind.footprint, some.kind);
    is_known = is_known && some.kernel.known;
  }
  is_known_[number] = is_known;
  if (aim_) [[unlikely]]
    ask_powers(kind);
}

/// Where the power of some workers is not known yet, tasks of `kind` go by their time.
void ReadyKinds::ask_powers(ReadyKind& kind) {
  bool is_known = true;
  for (KindWorkers& some : kind.by_kind) {
    const auto watts = powers_->kernel_watts(kind.codelet, some.kind);
    is_known = is_known && watts;
    some.draw = watts.value_or(0) / aim_->late_watts;
  }
  for (KindWorkers& some : kind.by_kind)
    if (!is_known) some.draw = 0;
}

void ReadyKinds::see(unsigned number, bool priced) {
  kinds_[number].seen += 1;
  if (++unpriced_ * 8 < seen_) return;
  seen_ += unpriced_;
  unpriced_ = 0;
  if (aim_) [[unlikely]]
    aim_ = EnergyAim::of(objective_, *powers_);
  for (unsigned known = 0; known < kinds_.size(); ++known) ask_durations(known);
  if (priced) {
    prices_ = prices_of(kinds_, machine_);
    parts_ = parts_of(kinds_, prices_);
  }
  if (seen_ <= kMemory) return;
  for (ReadyKind& known : kinds_) known.seen *= kMemory / seen_;
  seen_ = kMemory;
}

}  // namespace tandem::runtime
