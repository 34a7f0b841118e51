// tandem/model/contention/limit.cpp: tries all numbers of cores.
#include "tandem/model/contention/limit.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace tandem::model::contention {
namespace {

constexpr double kFull = 0.99;

}  // namespace

MessageCost cost_of_message(const Bandwidths& shared, double all_mb_s) noexcept {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (!(shared.communication_mb_s > 0)) return {never, never};
  const double waited = 1 / shared.communication_mb_s;
  return {waited, all_mb_s > 0 ? waited * (1 - shared.computation_mb_s / all_mb_s) : 0};
}

unsigned cores_that_fill_bus(const Model& model, Load load) {
  std::vector<double> alone_mb_s;
  const unsigned all = load.cores;
  for (load.cores = 1; load.cores <= all; ++load.cores)
    alone_mb_s.push_back(model.predict(load).computation_alone_mb_s);
  if (alone_mb_s.empty()) return all;
  const double enough = kFull * *std::ranges::max_element(alone_mb_s);
  return 1 + static_cast<unsigned>(std::ranges::find_if(alone_mb_s, [&](double mb_s) { return mb_s >= enough; }) -
                                   alone_mb_s.begin());
}

unsigned cores_beside_message(const Model& model, Load load) {
  const unsigned all = load.cores;
  const double alone_mb_s = model.predict(load).computation_alone_mb_s;
  if (all <= 1 || alone_mb_s <= 0) return all;
  const auto beside = [&](unsigned cores) {
    load.cores = cores;
    return cost_of_message(model.predict(load), alone_mb_s);
  };
  const MessageCost of_all = beside(all);
  unsigned best = all;
  double least = of_all.sum() * (1 - least_gain);
  for (unsigned cores = all - 1; cores > 0; --cores) {
    const MessageCost cost = beside(cores);
    if (cost.lost > of_all.lost || cost.sum() >= least) continue;
    least = cost.sum();
    best = cores;
  }
  return best;
}

}  // namespace tandem::model::contention
