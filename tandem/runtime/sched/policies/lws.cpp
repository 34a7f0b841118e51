// tandem/runtime/sched/policies/lws.cpp: local work stealing: a queue per worker, and thieves that look at their
// neighbours first.
#include "tandem/runtime/sched/policy.hpp"

namespace tandem::runtime {
namespace {

/// StarPU's default policy (thesis 1.3.2): a worker runs what it has made ready, whose data it has in its cache. When
/// it has nothing it takes from the nearest worker in the machine's hierarchy, then from further ones. Priorities hold
/// within each queue.
class LocalWorkStealing final : public Policy {
 public:
  std::string_view name() const noexcept override { return "lws"; }
  std::string_view help() const noexcept override {
    return "a queue per worker, stealing from the nearest first (default)";
  }
  bool queue_per_worker() const noexcept override { return true; }
  bool by_priority() const noexcept override { return true; }
  bool keeps_released() const noexcept override { return true; }

  unsigned place(const ReadyTask&, const Situation& now) const noexcept override {
    if (now.from != Situation::kNoWorker) return now.from;
    // For tasks ready at submission: worker 0 is busy submitting, so the others get runs of neighbouring tasks in turn.
    if (now.worker_count <= 2) return now.worker_count - 1;
    return 1 + static_cast<unsigned>(now.sequence / kRun) % (now.worker_count - 1);
  }

  std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const override {
    return nearest_first(thief, distance);
  }

 private:
  static constexpr std::uint64_t kRun = 8;
};

}  // namespace

std::unique_ptr<Policy> make_lws() { return std::make_unique<LocalWorkStealing>(); }

}  // namespace tandem::runtime
