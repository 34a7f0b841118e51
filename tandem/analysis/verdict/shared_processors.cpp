// tandem/analysis/verdict/shared_processors.cpp: counts workers and hardware threads of hosts.
#include "tandem/analysis/verdict/shared_processors.hpp"

#include <cstdint>
#include <set>
#include <vector>

#include "tandem/analysis/verdict/beside.hpp"

namespace tandem::analysis {

std::optional<SharedProcessors> shared_processors(const History& history) {
  struct Host {
    std::set<unsigned> pus;
    unsigned workers = 0;
    bool is_known = true;
  };
  const Hosts hosts(history);
  std::vector<Host> found(hosts.count());
  for (const RankClock& rank : history.clocks) {
    Host& host = found[hosts.of(rank.rank)];
    host.pus.insert(rank.pus.begin(), rank.pus.end());
    host.is_known = host.is_known && !rank.pus.empty();
  }
  for (const ActorFacts& actor : history.actors) {
    const std::size_t host = hosts.of(actor.rank);
    // Threads of other kinds of worker wait for their devices.
    if (host != hosts.count() && actor.kind == trace::ActorKind::worker && actor.kind_of_worker() == "cpu")
      ++found[host].workers;
  }
  std::optional<SharedProcessors> worst;
  for (const Host& host : found) {
    const SharedProcessors shared{host.workers, static_cast<unsigned>(host.pus.size())};
    if (!host.is_known || shared.workers <= shared.pus) continue;
    if (!worst || std::uint64_t{shared.workers} * worst->pus > std::uint64_t{worst->workers} * shared.pus)
      worst = shared;
  }
  return worst;
}

}  // namespace tandem::analysis
