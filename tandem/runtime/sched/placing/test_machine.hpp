// tandem/runtime/sched/placing/test_machine.hpp: a machine for tests of policies.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "tandem/runtime/sched/policies/placing_policy.hpp"

namespace tandem::runtime {

/// A machine in which workers 0 and 1 are cores, 2 and 3 devices with memories 1 and 2.
inline Machine two_cores_and_two_cards() {
  Machine machine;
  machine.workers = {{DeviceKind::cpu, 0}, {DeviceKind::cpu, 0}, {DeviceKind::user, 1}, {DeviceKind::user, 2}};
  machine.distance.assign(2, {1, 1});
  machine.add_node({.kind = NodeKind::device, .name = "card 1"});
  machine.add_node({.kind = NodeKind::device, .name = "card 2"});
  machine.check();
  return machine;
}

/// Estimates that depend on the kind of worker alone.
class GivenDurations final : public Estimates {
 public:
  std::map<DeviceKind, double> of;
  unsigned missing = 0;  ///< kernels missing until the other kinds are known
  Estimate expected_ns(std::string_view, model::Footprint, DeviceKind kind) const override {
    const auto known = of.find(kind);
    return known == of.end() ? Estimate{.missing = missing} : Estimate{known->second, 0, true};
  }
};

/// Links between the memories: a copy of 1000 bytes takes 100 ns, and all are free from `now_ns` on.
inline std::vector<LinkLoad> links_between_three(std::int64_t now_ns) {
  std::vector<LinkLoad> links;
  for (NodeIndex from = 0; from < 3; ++from)
    for (NodeIndex to = 0; to < 3; ++to) links.push_back({{from, to, 10, 0, LinkSource::given}, now_ns});
  return links;
}

}  // namespace tandem::runtime
