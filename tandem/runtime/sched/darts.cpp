// tandem/runtime/sched/darts.cpp: each worker takes tasks whose data is in its memory, or loads the data that frees most tasks.
#include <array>
#include <cstddef>
#include <memory_resource>
#include <unordered_map>

#include "tandem/runtime/sched/pulling_policy.hpp"

namespace tandem::runtime {
namespace {

/// In the manner of DARTS (Gonthier, Marchal, Thibault 2023: memory-aware scheduling of tasks sharing data on multiple GPUs): a worker
/// first takes a task that needs no copy. If there is none, it loads the datum with which most tasks need no other, and takes the most
/// urgent of them; if no single datum frees a task, the task that needs the fewest bytes. It looks at the `kWindow` most urgent tasks.
///
/// Tasks that others run faster are left to them as by `heteroprio`.
class Darts final : public PullingPolicy {
 public:
  static constexpr unsigned kWindow = 256;

  std::string_view name() const noexcept override { return "darts"; }
  std::string_view help() const noexcept override { return "where memories differ: each worker takes tasks whose data is there, or loads what frees most"; }
  bool uses_prices() const noexcept override { return false; }
  bool treats_alike() const noexcept override { return true; }

  const OpenTask* pick(unsigned worker, const ReadyView& ready, const LoadView& load) const override {
    const DeviceKind here = load.machine.workers[worker].kind;
    const NodeIndex node = load.machine.workers[worker].node;
    struct Freed {
      unsigned tasks = 0;
      const OpenTask* first = nullptr;
    };
    std::array<std::byte, 4096> some_memory;
    std::pmr::monotonic_buffer_resource memory(some_memory.data(), some_memory.size());
    std::pmr::unordered_map<const void*, Freed> freed_by(&memory);  // data that is the only one missing
    const OpenTask* nearest = nullptr;
    std::size_t fewest = 0;
    unsigned looked = 0;
    MostUrgentFirst tasks;
    for (const ReadyKind& kind : ready.kinds())
      if (!kind.tasks.empty() && !is_left_to_others(kind, times_of(kind, here))) tasks.add(kind);
    while (const OpenTask* const next = looked++ < kWindow ? tasks.next() : nullptr) {
      const OpenTask& task = *next;
      if (!may_get(worker, task, ready, load)) continue;
      std::size_t missing = 0;
      unsigned data = 0;
      const void* last = nullptr;
      for (const AccessView& access : ready.accesses(task)) {
        if (!access.is_missing(node) || access.is_coming(node)) continue;
        missing += access.bytes;
        if (access.datum != last) ++data;
        last = access.datum;
      }
      if (data == 0) return &task;
      if (data == 1) {
        Freed& freed = freed_by[last];
        if (freed.tasks++ == 0) freed.first = &task;
      }
      if (nearest == nullptr || missing < fewest) {
        nearest = &task;
        fewest = missing;
      }
    }
    const Freed* most = nullptr;
    for (const auto& [datum, freed] : freed_by)
      if (most == nullptr || freed.tasks > most->tasks || (freed.tasks == most->tasks && *freed.first < *most->first)) most = &freed;
    return most != nullptr ? most->first : nearest;
  }
};

}  // namespace

std::unique_ptr<Policy> make_darts() { return std::make_unique<Darts>(); }

}  // namespace tandem::runtime
