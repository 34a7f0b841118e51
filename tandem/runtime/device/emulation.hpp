// tandem/runtime/device/emulation.hpp: tasks that take a modelled time instead of computing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

/// A task, as a model of its duration sees it.
struct EmulatedTask {
  std::string_view codelet;     ///< its name
  std::span<const Shape> data;  ///< of its accesses, in their order
  DeviceKind device = DeviceKind::cpu;  ///< the kind of worker that it takes the time on
  unsigned implementation = 0;          ///< of its codelet's, which it runs
};

/// What a task takes.
struct EmulatedWork {
  std::int64_t ns = 0;  ///< alone
  double bytes = 0;     ///< that it moves meanwhile, if kernels and messages share memory (`ModelledMemory`); 0: it uses none

  /// From a time alone, which is what most emulations say.
  // NOLINTNEXTLINE(google-explicit-constructor)
  EmulatedWork(std::int64_t takes_ns, double moves_bytes = 0) : ns(takes_ns), bytes(moves_bytes) {}
};

/// How long a task takes, in ns. Its kernel is not called: for that time its worker is busy and its core is free, so that few
/// cores stand for many. Data that it writes counts as written, and keeps the bytes that it had. Nothing: the kernel runs.
/// So do tasks with `reduce` accesses, which are not asked about. Called by several threads at once.
using Emulation = std::function<std::optional<EmulatedWork>(const EmulatedTask&)>;

}  // namespace tandem::runtime
