// tandem/runtime/sched/policies/darts.cpp: a worker takes tasks whose data is in its memory, or loads the data that
// frees most tasks.
#include "tandem/runtime/sched/policies/best_reuse.hpp"

namespace tandem::runtime {
namespace {

/// A worker takes the choice of `BestReuse` among the most urgent tasks. It leaves tasks that others run faster to
/// them, as in `heteroprio`.
class Darts final : public PullingPolicy {
 public:
  static constexpr unsigned kWindow = 256;  ///< number of tasks that it looks at
  /// `kWindow` in a memory from which nothing leaves, so that the order matters little.
  static constexpr unsigned kWindowOfLargeMemory = 16;

  std::string_view name() const noexcept override { return "darts"; }
  std::string_view help() const noexcept override {
    return "where memories differ: each worker takes tasks whose data is there, or loads what frees most";
  }
  bool uses_prices() const noexcept override { return false; }
  bool weighs_energy() const noexcept override { return true; }
  bool treats_alike() const noexcept override { return true; }

  const OpenTask* pick(unsigned worker, const ReadyView& ready, const LoadView& load) const override {
    const DeviceKind here = load.machine.workers[worker].kind;
    const NodeIndex node = load.machine.workers[worker].node;
    const unsigned window = has_small_memory(worker, ready, load) ? kWindow : kWindowOfLargeMemory;
    MostUrgentFirst tasks;
    for (const ReadyKind& kind : ready.kinds())
      if (!kind.tasks.empty() && can_run(worker, kind, load) && !is_left_to_others(kind, times_of(kind, here)))
        tasks.add(kind);
    BestReuse best(node, ready);
    for (unsigned looked = 0; looked < window && !best.needs_nothing(); ++looked) {
      const OpenTask* const task = tasks.next();
      if (task == nullptr) break;
      if (has_room(worker, *task, ready, load)) best.add(*task);
    }
    return best.task();
  }
};

}  // namespace

std::unique_ptr<Policy> make_darts() { return std::make_unique<Darts>(); }

}  // namespace tandem::runtime
