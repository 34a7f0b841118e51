// tandem/runtime/sched/policies/prio.cpp: one queue for all workers, highest priority first, then first come, first
// served.
#include "tandem/runtime/sched/policy.hpp"

namespace tandem::runtime {
namespace {

class Prio final : public Policy {
 public:
  std::string_view name() const noexcept override { return "prio"; }
  std::string_view help() const noexcept override { return "one queue, highest priority first"; }
  bool queue_per_worker() const noexcept override { return false; }
  bool by_priority() const noexcept override { return true; }
  bool keeps_released() const noexcept override { return false; }
  unsigned place(const ReadyTask&, const Situation&) const noexcept override { return 0; }
  std::vector<unsigned> victims(unsigned, std::span<const unsigned>) const override { return {}; }
};

}  // namespace

std::unique_ptr<Policy> make_prio() { return std::make_unique<Prio>(); }

}  // namespace tandem::runtime
