// tandem/runtime/sched/policies/eager.cpp: one queue for all workers, first come, first served.
#include "tandem/runtime/sched/policy.hpp"

namespace tandem::runtime {
namespace {

class Eager final : public Policy {
 public:
  std::string_view name() const noexcept override { return "eager"; }
  std::string_view help() const noexcept override { return "one queue, first come, first served"; }
  bool queue_per_worker() const noexcept override { return false; }
  bool by_priority() const noexcept override { return false; }
  bool keeps_released() const noexcept override { return false; }
  unsigned place(const ReadyTask&, const Situation&) const noexcept override { return 0; }
  std::vector<unsigned> victims(unsigned, std::span<const unsigned>) const override { return {}; }
};

}  // namespace

std::unique_ptr<Policy> make_eager() { return std::make_unique<Eager>(); }

}  // namespace tandem::runtime
