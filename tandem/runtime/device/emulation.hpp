// tandem/runtime/device/emulation.hpp: tasks that take a modelled time instead of computing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// Description of a task for a model of its duration.
struct EmulatedTask {
  std::string_view codelet;     ///< name of the codelet
  std::span<const Shape> data;  ///< shapes of the data, in the order of the accesses
  DeviceKind device = DeviceKind::cpu;  ///< kind of the worker that runs the task
  unsigned implementation = 0;          ///< index of the codelet's implementation that runs
};

/// Work of a modelled task.
struct EmulatedWork {
  std::int64_t ns = 0;  ///< duration when it runs alone
  /// Bytes that it moves meanwhile, if kernels and messages share memory (`ModelledMemory`); 0: none.
  double bytes = 0;

  /// Converts from a time alone, which most emulations return.
  // NOLINTNEXTLINE(google-explicit-constructor)
  EmulatedWork(std::int64_t takes_ns, double moves_bytes = 0) : ns(takes_ns), bytes(moves_bytes) {}
};

/// Model of the duration of tasks. The kernel is not called: for the modelled time its worker is busy and its core is
/// free, so that few cores stand for many. Data that the task writes counts as written and keeps its bytes. Without a
/// value the kernel runs, as do tasks with `reduce` accesses, for which the model is not called. Called by several
/// threads at once.
using Emulation = std::function<std::optional<EmulatedWork>(const EmulatedTask&)>;

}  // namespace tandem::runtime
