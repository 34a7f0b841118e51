// tandem/api/recorded_parts.cpp: splits and gathers around the replays of a recording.
#include "tandem/api/recorded_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tandem/base/exceptions.hpp"

namespace tandem::internal {

PartPlan* RecordedParts::alive(const Known& known) {
  const auto plan = known.plan.lock();
  return plan != nullptr ? *plan : nullptr;
}

void RecordedParts::note(PartPlan& plan) {
  if (!known_.insert(plan.itself_.get()).second) return;
  Known one{.plan = plan.itself_, .name = plan.whole_.described(), .first = plan.state_, .last = plan.state_, .number = plan.number_};
  for (const PartPlan* outer = PartPlan::links_of(plan.whole_).part_of; outer != nullptr; outer = PartPlan::links_of(outer->whole_).part_of) ++one.depth;
  plans_.push_back(std::move(one));
}

void RecordedParts::check() const {
  for (const Known& one : plans_)
    if (const PartPlan* const plan = alive(one);
        plan != nullptr && plan->state_ != one.first && plan->state_ == PartPlan::State::writing && plan->lacks_value())
      throw UsageError(
          fmt::format("a recording leaves {} divided into parts of which some have no value: write them, or the whole "
                      "before it is divided",
                      one.name));
}

void RecordedParts::finish(const ForEachDatum& all, std::uint64_t plan_count) {
  for (Known& one : plans_) {
    PartPlan* const plan = alive(one);
    one.last = plan != nullptr ? plan->state_ : PartPlan::State::idle;
    if (plan != nullptr && one.last != one.first) plan->set(one.first);
  }
  if (all == nullptr) return;
  const auto note_those_of = [this](runtime::Handle& handle) {
    if (handle.division == nullptr) return;
    const PartPlan::Links& links = PartPlan::links_of(handle);
    if (links.part_of != nullptr) note(*links.part_of);
    for (PartPlan* const plan : links.plans) note(*plan);
  };
  all(note_those_of);
  // A use of parts concerns the other partitions of the whole, and those of the data that the whole is a part of,
  // though no task of the recording names these.
  for (std::size_t i = 0; i < plans_.size(); ++i)
    if (const PartPlan* const plan = alive(plans_[i])) note_those_of(plan->whole_);
  std::sort(plans_.begin(), plans_.end(),
            [](const Known& a, const Known& b) { return std::tie(a.depth, a.number) < std::tie(b.depth, b.number); });
  plan_count_ = plan_count;
}

/// Gathers partitions that were made after the recording.
void RecordedParts::gather_others(const ForEachDatum& all) const {
  std::vector<PartPlan*> others;
  const auto add_those_of = [&](runtime::Handle& handle) {
    if (handle.division == nullptr) return;
    for (PartPlan* const plan : PartPlan::links_of(handle).plans)
      if (!known_.contains(plan->itself_.get())) others.push_back(plan);
  };
  all(add_those_of);
  for (const Known& one : plans_)
    if (const PartPlan* const plan = alive(one)) add_those_of(plan->whole_);
  std::sort(others.begin(), others.end(), [](const PartPlan* a, const PartPlan* b) { return a->number_ < b->number_; });
  for (PartPlan* const plan : others) plan->gather();
}

void RecordedParts::prepare(const ForEachDatum& all, std::uint64_t plan_count) const {
  using State = PartPlan::State;
  for (const Known& one : plans_)
    if (alive(one) == nullptr && (one.first != State::idle || one.last != State::idle))
      throw UsageError(fmt::format("cannot replay a graph: {} was divided into parts when it was recorded, or is after a replay, and this partition has "
                                   "ended; let it live as long as the graph", one.name));
  if (plan_count != plan_count_) gather_others(all);
  for (const Known& one : plans_)
    if (PartPlan* const plan = alive(one);
        plan != nullptr && plan->state_ != one.first && (one.first == State::idle || plan->state_ == State::writing))
      plan->gather();
  for (const Known& one : plans_)
    if (PartPlan* const plan = alive(one); plan != nullptr && one.first != State::idle)
      plan->split(one.first == State::writing);
  // The tasks of the replay are in order, whatever `asks` says.
  for (const Known& one : plans_)
    if (const PartPlan* const plan = alive(one)) {
      plan->whole_.flow.asks = 0;
      for (runtime::Handle* const part : plan->parts_) part->flow.asks = 0;
    }
}

void RecordedParts::leave(bool is_replayed) const {
  for (const Known& one : plans_)
    if (PartPlan* const plan = alive(one)) plan->set(is_replayed ? one.last : plan->state_);
}

}  // namespace tandem::internal
