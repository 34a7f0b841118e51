// tandem/analysis/bounds/area_bound.cpp: counts tasks and times by codelet and kind of worker.
#include "tandem/analysis/bounds/area_bound.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "tandem/analysis/bounds/area_program.hpp"

namespace tandem::analysis {
namespace {

/// Fills `kernels`, and returns the sum of all times.
std::int64_t measure(const History& history, AreaBound& bound) {
  const auto kind_of = [&](const ActorFacts& worker) {
    std::uint32_t kind = 0;
    while (bound.kinds[kind].name != worker.kind_of_worker()) ++kind;
    return kind;
  };
  std::map<std::pair<Texts::Id, std::uint32_t>, KernelPlace> places;
  std::vector<bool> seen(history.tasks.size());
  const ActorFacts* actor = nullptr;
  std::uint32_t kind = 0;
  KernelPlace* place = nullptr;
  std::int64_t sum_ns = 0;
  for (const StateRow& state : history.states) {
    if (state.state != ActorState::executing || state.task == no_number) continue;
    if (actor == nullptr || actor->rank != state.rank || actor->actor != state.actor) {
      actor = history.find_actor(state.rank, state.actor);
      place = nullptr;
      if (actor != nullptr && actor->kind == trace::ActorKind::worker) kind = kind_of(*actor);
    }
    if (actor == nullptr || actor->kind != trace::ActorKind::worker) continue;
    const Texts::Id codelet = history.tasks.codelet(state.task);
    if (place == nullptr || place->codelet != codelet) {
      place = &places[{codelet, kind}];
      place->codelet = codelet;
      place->kind = kind;
    }
    if (!seen[state.task]) ++place->tasks;
    seen[state.task] = true;
    place->ns += state.end_ns - state.start_ns;
    sum_ns += state.end_ns - state.start_ns;
  }
  for (const auto& [key, of] : places)
    if (of.tasks > 0) bound.kernels.push_back(of);
  return sum_ns;
}

AreaProgram program_of(const AreaBound& bound) {
  AreaProgram program;
  for (const AreaBound::Kind& kind : bound.kinds) program.workers.push_back(kind.workers);
  const KernelPlace* before = nullptr;
  for (const KernelPlace& place : bound.kernels) {
    if (before == nullptr || before->codelet != place.codelet) {
      program.tasks.push_back(0);
      program.times.emplace_back(bound.kinds.size());
    }
    before = &place;
    program.tasks.back() += static_cast<double>(place.tasks);
    program.times.back()[place.kind] = static_cast<double>(place.ns) / static_cast<double>(place.tasks);
  }
  return program;
}

}  // namespace

AreaBound area_bound(const History& history) {
  AreaBound bound;
  std::map<std::string_view, std::uint32_t> kinds;
  for (const ActorFacts& actor : history.actors)
    if (actor.kind == trace::ActorKind::worker) ++kinds[actor.kind_of_worker()];
  if (kinds.empty()) return bound;
  for (const auto& [name, workers] : kinds) bound.kinds.push_back({std::string(name), workers});
  const std::int64_t sum_ns = measure(history, bound);
  const AreaSolution solution = solve(program_of(bound));
  bound.ns = bound.kinds.size() == 1 ? sum_ns / bound.kinds.front().workers : static_cast<std::int64_t>(solution.bound);
  bound.is_exact = solution.is_exact;
  if (solution.placed.empty()) return bound;
  std::size_t kernel = 0;
  for (std::size_t i = 0; i < bound.kernels.size(); ++i) {
    kernel += i > 0 && bound.kernels[i].codelet != bound.kernels[i - 1].codelet ? 1 : 0;
    bound.kernels[i].placed = solution.placed[kernel][bound.kernels[i].kind];
  }
  return bound;
}

}  // namespace tandem::analysis
