// tandem/analysis/verdict/polling_neighbours.cpp: when threads of a host polled.
#include "tandem/analysis/verdict/polling_neighbours.hpp"

namespace tandem::analysis {
namespace {

bool polls(ActorState state) noexcept {
  return state == ActorState::polling || state == ActorState::progressing || state == ActorState::engine_polling;
}

}  // namespace

PollingNeighbours polling_neighbours(const History& history) {
  const Hosts hosts(history);
  TimesOfHosts polling(history, hosts);
  for (const StateRow& state : history.states)
    if (polls(state.state)) polling.add(state.rank, {state.start_ns, state.end_ns});
  polling.merge();
  PollingNeighbours result{compare_beside(history, polling)};
  if (!result.do_harm()) result.slowed.free();
  return result;
}

}  // namespace tandem::analysis
