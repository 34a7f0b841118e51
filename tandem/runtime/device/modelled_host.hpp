// tandem/runtime/device/modelled_host.hpp: the cores that modelled kernels and the runtime's own work share.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <functional>
#include <utility>

namespace tandem::runtime {

/// What the runtime's own work takes in virtual time, in which its code takes none.
struct RuntimeCosts {
  std::int64_t submit_ns = 0;  ///< of the submission of one task
  std::int64_t task_ns = 0;    ///< of one task, for its worker: all but the kernel
  std::int64_t wake_ns = 0;    ///< from a task that becomes ready to its begin on a worker that sleeps
  /// Lets time pass for the submitting thread; empty: submission takes none.
  std::function<void(std::int64_t ns)> pass = {};
};

/// The cores of a program whose kernels are emulated. Thread-safe.
class ModelledHost {
 public:
  struct Options {
    RuntimeCosts costs = {};
    unsigned cores = UINT_MAX;  ///< of this program
    unsigned programs = 1;      ///< that share the host, each as busy as this one
  };
  ModelledHost() = default;
  explicit ModelledHost(Options options) : options_(std::move(options)) {}

  const RuntimeCosts& costs() const noexcept { return options_.costs; }

  /// A kernel begins on a CPU worker. Returns the number of busy cores of the host, this one included.
  unsigned begin_kernel() noexcept { return ++running_ * options_.programs; }
  void end_kernel() noexcept { --running_; }

  /// Another thread of the program, such as one that copies messages, uses a core for so long. Where all run kernels,
  /// these take longer.
  void use_core(std::int64_t ns) noexcept {
    if (running_ >= options_.cores) taken_ns_ += ns;
  }
  /// How much later the next kernel begins, since others have used cores.
  std::int64_t take_delay() noexcept { return taken_ns_.exchange(0); }

 private:
  const Options options_;
  std::atomic<unsigned> running_ = 0;  ///< kernels of CPU workers
  std::atomic<std::int64_t> taken_ns_ = 0;
};

}  // namespace tandem::runtime
