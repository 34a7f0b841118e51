// tandem/analysis/verdict/worker_kinds.cpp: kinds, from the names of the workers.
#include "tandem/analysis/verdict/worker_kinds.hpp"

#include <algorithm>

namespace tandem::analysis {

WorkerKinds::WorkerKinds(const History& history) {
  for (const ActorFacts& actor : history.actors)
    if (actor.kind == trace::ActorKind::worker) names_.push_back(actor.kind_of_worker());
  std::ranges::sort(names_);
  const auto rest = std::ranges::unique(names_);
  names_.erase(rest.begin(), rest.end());
  for (const ActorFacts& actor : history.actors)
    if (actor.kind == trace::ActorKind::worker)
      numbers_[{actor.rank, actor.index}] =
          static_cast<std::uint32_t>(std::ranges::lower_bound(names_, actor.kind_of_worker()) - names_.begin());
}

}  // namespace tandem::analysis
