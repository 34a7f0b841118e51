// tests/random_flow/arithmetic.hpp: what tasks of a random flow compute, for the runtime and for the interpreter alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/runtime/data/access.hpp"

namespace tandem::random_flow {

/// A column-major matrix of integers that wrap around, so that sums do not depend on their order.
struct Cells {
  std::uint64_t* data = nullptr;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t ld = 0;

  std::size_t size() const noexcept { return rows * cols; }
  std::uint64_t& operator[](std::size_t i) const noexcept { return data[i % rows + i / rows * ld]; }
};

/// Whether and where a task throws.
enum class Fault : std::uint8_t { none, before, halfway, callback };

/// Which workers may run a task.
enum class Where : std::uint8_t { cpu, some_worker, cpu_or_device, device };

/// Whether and how devices fail at a task.
enum class DeviceFault : std::uint8_t { none, refused, refused_later, broken };

struct Use {
  AccessMode mode = AccessMode::read;
  unsigned datum = 0;
};

/// What is submitted once, or recorded once and replayed. Counts are of the runtime (`runs`) and of the interpreter
/// (`expected_runs`).
struct TaskSpec {
  std::string label;
  std::vector<Use> uses;
  std::uint64_t factor = 0;
  Fault fault = Fault::none;
  Where where = Where::cpu;
  DeviceFault device_fault = DeviceFault::none;
  int priority = 0;
  bool with_callback = false;
  unsigned number = 0;

  std::atomic<unsigned> runs{0};
  std::atomic<unsigned> runs_behind_broken{
      0};  ///< of `runs`, behind a task that the device had broken: they count only if they see nothing of that
  std::atomic<unsigned> callbacks{0};
  unsigned expected_runs = 0;
  unsigned expected_callbacks = 0;

  /// It fails without running, since nobody else can run it.
  bool fails_on_devices() const noexcept { return where == Where::device && device_fault != DeviceFault::none; }
};

/// What a kernel of a random flow throws; `what()` is the label of its task.
struct Thrown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Does the work of a task on `cells`, one for each use. Private memory of `scratch` is checked to be the task's own;
/// that of `reduce` is added to. Throws `Thrown(label)` as `fault` says.
void compute(const std::vector<Use>& uses, std::uint64_t factor, Fault fault, const std::string& label,
             std::span<const Cells> cells);

}  // namespace tandem::random_flow
