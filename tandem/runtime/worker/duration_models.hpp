// tandem/runtime/worker/duration_models.hpp: performance models that workers learn while they run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/model/tasks/codelet_models.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/task/footprint.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Name of a kind of workers in models: "cpu", or the name of the device without its number, so that equal devices
/// learn together.
std::string kind_name(const WorkerSpec& worker);

/// The performance models of a runtime: learnt by its workers, used by schedulers.
///
/// Threads. Any thread may ask. Each worker has a `Collector`, used by its thread alone, which hands durations over in
/// batches. A spin lock for each codelet and kind of worker protects its model, for some tens of ns at a time, or 10 us
/// when a law is fitted; another one protects the index of codelets. No thread holds two.
///
///   models.expected_ns("gemm", footprint_of(task), DeviceKind::cpu)   // {mean_ns, deviation_ns, samples, known}
class DurationModels {
  struct Entry {
    base::SpinLock lock;
    model::SizeModel sizes;
  };

 public:
  class Collector;

  /// Makes models for these workers. Kinds differ by the names of their devices, without numbers.
  explicit DurationModels(const std::vector<WorkerSpec>& workers);

  /// Sets the models from a file. Before the workers start.
  void set(const model::CodeletModels& models);
  /// Everything learnt since the start, with what `set` gave. Once the collectors are flushed.
  std::vector<model::CodeletModels> news() const;

  /// Estimate for a task of `codelet` on workers of this kind, by its fastest implementation there. About 50 ns.
  model::Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const;
  /// Estimate for a task of `codelet` on this worker.
  model::Estimate expected_ns(std::string_view codelet, model::Footprint footprint, unsigned worker) const;
  /// Estimate for a task of `codelet` by one of its implementations.
  model::Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind,
                              unsigned implementation) const;
  /// What tasks of `codelet` take by one of its implementations in other runs: see `model::History::overall`.
  model::Estimate overall_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind,
                             unsigned implementation) const;

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>()(name); }
  };
  using Kinds = std::map<model::WorkKind, std::unique_ptr<Entry>>;

  Entry& entry(std::string_view codelet, const model::WorkKind& kind);
  static constexpr std::size_t kMostEntries = 8;
  std::size_t find(std::string_view codelet, const std::string& worker, std::optional<std::uint32_t> implementation,
                   std::array<Entry*, kMostEntries>& found) const;
  using By = model::Estimate (model::SizeModel::*)(model::Footprint);
  model::Estimate least(std::string_view codelet, model::Footprint footprint, unsigned worker,
                        std::optional<std::uint32_t> implementation, By by) const;
  std::optional<unsigned> worker_of(DeviceKind kind) const;

  std::vector<std::string> kinds_;      ///< by worker
  std::vector<DeviceKind> devices_;     ///< by worker
  mutable base::SpinLock lock_;         ///< guards the index; entries keep their addresses
  std::unordered_map<std::string, Kinds, NameHash, std::equal_to<>> codelets_;
};

/// The durations that one worker has measured and not handed over yet. Used by its thread alone.
///
/// They are handed over when there are `kBuffered`, when the last time is `kKeepNs` ago, and before the worker rests.
/// So a worker of short tasks seldom takes a lock that others want, and one of long tasks hands over each duration.
class DurationModels::Collector {
 public:
  static constexpr std::size_t kBuffered = 32;
  static constexpr std::int64_t kKeepNs = 1'000'000;

  /// `models` outlives this.
  Collector(DurationModels& models, unsigned worker) : models_(models), kind_(models.kinds_[worker]) {}

  /// Adds the duration of a successful kernel, at `now_ns`. The task has not ended yet. About 25 ns, the handing over
  /// included.
  void add(const Task& task, unsigned implementation, std::int64_t duration_ns, std::int64_t now_ns) {
    if (task.ops->serves) return;
    buffer_[count_++] = {task.codelet, implementation, footprint_of(task), duration_ns};
    if (count_ == kBuffered || now_ns - flushed_ns_ > kKeepNs) {
      flush();
      flushed_ns_ = now_ns;
    }
  }
  void flush();

 private:
  struct Sample {
    const CodeletCore* codelet = nullptr;
    std::uint32_t implementation = 0;
    model::Footprint footprint;
    std::int64_t duration_ns = 0;
  };
  Entry& entry_of(const CodeletCore& codelet, std::uint32_t implementation);

  DurationModels& models_;
  const std::string kind_;
  std::unordered_map<std::uintptr_t, Entry*> known_;  ///< by the codelet's address plus the implementation's number
  std::array<Sample, kBuffered> buffer_;
  std::size_t count_ = 0;
  std::int64_t flushed_ns_ = 0;
};

}  // namespace tandem::runtime
