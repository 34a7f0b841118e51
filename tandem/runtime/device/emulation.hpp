// tandem/runtime/device/emulation.hpp: tasks that take a modelled time instead of computing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

struct Task;

/// Description of a task for a model of its duration.
struct EmulatedTask {
  std::string_view codelet;     ///< name of the codelet
  std::span<const Shape> data;  ///< shapes of the data, in the order of the accesses
  DeviceKind device = DeviceKind::cpu;  ///< kind of the worker that runs the task
  unsigned implementation = 0;          ///< index of the codelet's implementation that runs
  std::uint64_t tag = 0;                ///< of the task's options; 0: none
  std::uint64_t number = 0;             ///< its position in the flow, as traces name it
  bool is_own = false;                  ///< it is the runtime's: it orders others, or moves or adds up their data
  unsigned worker = 0;                  ///< number of the worker
};

/// How much longer a kernel takes beside others on its host. A value; reading is thread-safe.
class SlowDown {
 public:
  /// What was measured with one number of busy cores.
  struct Point {
    unsigned busy = 1;  ///< cores that run kernels, this one included
    double factor = 1;  ///< how many times as long as alone
  };
  SlowDown() = default;
  /// `points` have increasing numbers of busy cores. None: company changes nothing.
  explicit SlowDown(std::vector<Point> points) : points_(std::move(points)) {}

  /// Linear between points, constant outside.
  double factor(double busy) const noexcept {
    if (points_.empty()) return 1;
    const Point* below = &points_.front();
    for (const Point& point : points_) {
      if (point.busy >= busy) {
        const double width = static_cast<double>(point.busy) - below->busy;
        const double part = width > 0 ? (busy - below->busy) / width : 1;
        return below->factor + part * (point.factor - below->factor);
      }
      below = &point;
    }
    return below->factor;
  }
  /// As given.
  const std::vector<Point>& points() const noexcept { return points_; }

 private:
  std::vector<Point> points_;
};

/// Work of a modelled task.
struct EmulatedWork {
  std::int64_t ns = 0;  ///< duration when it runs alone
  /// Bytes that it moves meanwhile, if kernels and messages share memory (`ModelledMemory`); 0: none.
  double bytes = 0;
  const SlowDown* slow_down = nullptr;  ///< outlives the task; null: company changes nothing
  bool computes = false;                ///< the kernel runs, too, in no time of the model
  void (*before)(const Task& task) = nullptr;  ///< called when the kernel begins; null: nothing

  /// Converts from a time alone, which most emulations return.
  // NOLINTNEXTLINE(google-explicit-constructor)
  EmulatedWork(std::int64_t takes_ns, double moves_bytes = 0) : ns(takes_ns), bytes(moves_bytes) {}
};

/// Model of the duration of tasks. The kernel is not called: for the modelled time its worker is busy and its core is
/// free, so that few cores stand for many. Data that the task writes counts as written and keeps its bytes. Without a
/// value the kernel runs. Kernels with `reduce` accesses run, too, so that sums have values, and so do those of work
/// that `computes`: before the modelled time. Called by several threads at once.
using Emulation = std::function<std::optional<EmulatedWork>(const EmulatedTask&)>;

}  // namespace tandem::runtime
