// tandem/runtime/sched/policies/random.cpp: each task goes to a worker drawn at random; for comparison, and to find
// order-dependent bugs.
#include "tandem/runtime/sched/policy.hpp"

namespace tandem::runtime {
namespace {

class Random final : public Policy {
 public:
  std::string_view name() const noexcept override { return "random"; }
  std::string_view help() const noexcept override {
    return "a queue per worker, each task to a random one; idle workers steal";
  }
  bool queue_per_worker() const noexcept override { return true; }
  bool by_priority() const noexcept override { return true; }
  bool keeps_released() const noexcept override { return false; }
  unsigned place(const ReadyTask&, const Situation& now) const noexcept override {
    return static_cast<unsigned>(now.random % now.worker_count);
  }
  std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const override {
    return nearest_first(thief, distance);
  }
};

}  // namespace

std::unique_ptr<Policy> make_random() { return std::make_unique<Random>(); }

}  // namespace tandem::runtime
