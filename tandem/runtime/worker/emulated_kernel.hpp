// tandem/runtime/worker/emulated_kernel.hpp: the task that takes a modelled time on a worker.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/runtime/task/task.hpp"
#include "tandem/runtime/worker/emulation.hpp"

namespace tandem::runtime {

/// The emulated task of one worker: it has begun, and ends at `until_ns`, without a kernel. Used by the worker's thread.
class EmulatedKernel {
 public:
  /// `model` null: all kernels run. It outlives this.
  explicit EmulatedKernel(const Emulation* model) : model_(model) {}

  /// How long `task` takes by the model; nothing: its kernel runs.
  std::optional<std::int64_t> duration_ns(const Task& task) const {
    if (model_ == nullptr) return {};
    return ask_model(task);
  }
  /// False: the kernel is to run.
  bool begin(Task& task, std::int64_t start_ns) {
    const auto duration = duration_ns(task);
    if (!duration) return false;
    task_ = &task;
    start_ns_ = start_ns;
    until_ns_ = start_ns + *duration;
    return true;
  }
  bool is_running() const noexcept { return task_ != nullptr; }
  std::int64_t start_ns() const noexcept { return start_ns_; }
  std::int64_t until_ns() const noexcept { return until_ns_; }
  /// The task ends, at `until_ns` or earlier.
  Task& end() noexcept { return *std::exchange(task_, nullptr); }

 private:
  std::optional<std::int64_t> ask_model(const Task& task) const;

  const Emulation* const model_;
  Task* task_ = nullptr;
  std::int64_t start_ns_ = 0;
  std::int64_t until_ns_ = 0;
};

}  // namespace tandem::runtime
