// tandem/runtime/sched/implementations.cpp: trials of implementations, and the choice of the fastest one.
#include "tandem/runtime/sched/implementations.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime {

Implementations::Candidates& Implementations::candidates_of(const CodeletCore& codelet, model::Footprint footprint,
                                                            DeviceKind kind) {
  std::uint64_t key = std::hash<std::string_view>{}(codelet.name) + static_cast<std::uint64_t>(kind);
  // Another codelet may have this name.
  for (const DeviceKind device : codelet.devices) key = base::mix64(key + static_cast<std::uint64_t>(device));
  Candidates& found = known_.use(base::mix64(key ^ footprint.shape));
  if (!found.empty()) return found;
  for (unsigned i = 0; i < codelet.devices.size(); ++i) {
    if (codelet.devices[i] != kind) continue;
    Candidate& candidate = found.emplace_back();
    candidate.implementation = i;
    if (given_) candidate.given_ns = given_(codelet.name, footprint, kind, i);
  }
  return found;
}

Implementations::Choice Implementations::choose_among(Candidates& all) {
  const auto begin = [](Candidate& candidate, bool is_usual) {
    ++candidate.begun;
    candidate.spent_ns = 0;
    return Choice{candidate.implementation, is_usual};
  };
  const auto rank = [](const Candidate& candidate) { return std::pair(candidate.is_known(), candidate.begun); };
  Candidate& least_known = *std::ranges::min_element(all, {}, rank);
  if (!least_known.is_known()) return begin(least_known, true);
  Candidate& best = *std::ranges::min_element(all, {}, &Candidate::mean_ns);
  for (Candidate& other : all) {
    if (&other == &best || std::isinf(best.mean_ns())) continue;
    other.spent_ns += best.mean_ns();
    if (other.spent_ns > kShare * other.mean_ns()) return begin(other, false);
  }
  return {best.implementation, true};
}

void Implementations::note_begun(Candidates& all, unsigned implementation) {
  const auto begins = std::ranges::find(all, implementation, &Candidate::implementation);
  if (begins != all.end() && !begins->is_known()) ++begins->begun;
}

void Implementations::note_ended(Candidates& all, unsigned implementation, double duration_ns) {
  const auto ran = std::ranges::find(all, implementation, &Candidate::implementation);
  if (ran == all.end() || !std::exchange(ran->is_warm, true)) return;
  ran->history.add(duration_ns);
  const double least_ns = std::ranges::min_element(all, {}, &Candidate::mean_ns)->mean_ns();
  if (duration_ns < least_ns) ran->spent_ns = std::numeric_limits<double>::infinity();
}

Implementations::Choice Implementations::choose(const CodeletCore& codelet, model::Footprint footprint,
                                                DeviceKind kind) {
  const std::lock_guard guard(lock_);
  Candidates& own = candidates_of(codelet, footprint, kind);
  const bool has_run = std::ranges::any_of(own,
                                           [](const Candidate& one) { return one.begun != 0 || one.given_ns > 0; });
  if (has_run) return choose_among(own);
  const Choice choice = choose_among(candidates_of(codelet, model::size_class_of(footprint), kind));
  note_begun(own, choice.implementation);
  return choice;
}

std::vector<Implementations::Known> Implementations::known(const CodeletCore& codelet, model::Footprint footprint,
                                                           DeviceKind kind) {
  const std::lock_guard guard(lock_);
  std::vector<Known> result;
  for (const Candidate& one : candidates_of(codelet, footprint, kind))
    result.push_back({one.implementation, one.mean_ns(), one.is_known()});
  return result;
}

void Implementations::add(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind,
                          unsigned implementation, double duration_ns) {
  const std::lock_guard guard(lock_);
  Candidates& own = candidates_of(codelet, footprint, kind);
  const bool is_tried = std::ranges::all_of(own, &Candidate::is_known);
  note_ended(own, implementation, duration_ns);
  if (!is_tried) note_ended(candidates_of(codelet, model::size_class_of(footprint), kind), implementation, duration_ns);
}

}  // namespace tandem::runtime
