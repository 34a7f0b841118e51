// tandem/runtime/sched/policy.cpp: the registry of policies.
#include "tandem/runtime/sched/policy.hpp"

#include <algorithm>

namespace tandem::runtime {

bool Policy::waits(const ReadyTask& task, std::int64_t task_ns, std::int32_t expected,
                   std::int64_t in_ns) const noexcept {
  return by_priority() && expected > task.priority && task_ns - in_ns > in_ns;
}

PolicyRegistry::PolicyRegistry() {
  add("lws", make_lws);
  add("prio", make_prio);
  add("eager", make_eager);
  add("random", make_random);
  add("dm", make_dm);
  add("dmda", make_dmda);
  add("dmdas", make_dmdas);
  add("dmdar", make_dmdar);
  add("heteroprio", make_heteroprio);
  add("darts", make_darts);
  add("plan", make_plan);
}

void PolicyRegistry::add(std::string name, Make make) {
  for (auto& [known, maker] : makers_) {
    if (known == name) {
      maker = std::move(make);
      return;
    }
  }
  makers_.emplace_back(std::move(name), std::move(make));
}

std::unique_ptr<Policy> PolicyRegistry::make(std::string_view name) const {
  for (const auto& [known, maker] : makers_)
    if (known == name) return maker();
  return nullptr;
}

std::vector<std::string> PolicyRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [known, maker] : makers_) names.push_back(known);
  return names;
}

std::vector<unsigned> nearest_first(unsigned thief, std::span<const unsigned> distance) {
  const auto count = static_cast<unsigned>(distance.size());
  std::vector<unsigned> order;
  for (unsigned step = 1; step < count; ++step) order.push_back((thief + step) % count);
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return distance[a] < distance[b]; });
  return order;
}

}  // namespace tandem::runtime
