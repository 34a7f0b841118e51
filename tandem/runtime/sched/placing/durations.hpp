// tandem/runtime/sched/placing/durations.hpp: durations of the kernels of this run, for estimates and for the choice
// among implementations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string_view>
#include <vector>

#include "tandem/base/lru_table.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/sched/estimates.hpp"

namespace tandem::runtime {

/// The durations of the kernels of this run, by codelet, footprint of the data, kind of worker and implementation: a
/// `model::History` each, so outliers change nothing, and a change of speed is followed.
///
/// **When a duration is known.** The first kernel does not count, since it often loads code or warms caches. `kTrials`
/// further ones make a duration known. What `given` estimates already know is taken from them.
///
/// **Among several implementations** for a kind of worker each is tried until it is known. Then the one with the least
/// mean runs, and the estimate is its own. Another one is tried again when that costs no more than 1/`kShare` of the
/// time spent on the best one since. So trials cost about 1 % for each other implementation in the long run, however
/// slow it is, and a change of the machine or the data is noticed. A trial that took less than the best one's mean is
/// repeated at once.
///
/// A new shape goes by the *class* of its size (`model::size_class_of`), in which the first tasks of all such shapes
/// are tried and compared: so tasks of ever new shapes run the implementation that is best for their size. From its
/// second task on a shape is tried by itself.
///
/// The `kMost` shapes and classes that ran last are kept (28 MiB with one implementation each), so that a program with
/// ever new shapes learns what it runs now.
///
/// Threads: any. One spin lock, held for some 50 ns.
class Durations final : public Estimates {
 public:
  static constexpr unsigned kTrials = 2;
  static constexpr double kShare = 100;
  static constexpr std::size_t kMost = 1U << 16;

  /// `given` outlives this; null: none.
  explicit Durations(const Estimates* given = nullptr) : given_(given) {}

  /// Estimate by the fastest implementation that is known.
  Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const override;

  /// Adds the duration of a kernel.
  void add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, unsigned implementation,
           double duration_ns);

  /// The implementation that a task runs.
  struct Choice {
    unsigned implementation = 0;  ///< index among the codelet's implementations
    bool is_usual = true;         ///< most such tasks run it; false: a trial, which is not typical
  };
  /// Chooses for a worker of `kind`, for which the codelet has an implementation.
  Choice choose(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);

  /// What is known of one implementation.
  struct Known {
    unsigned implementation = 0;  ///< index among the codelet's implementations
    double mean_ns = 0;           ///< infinite: none has ended
    bool is_tried = false;        ///< tried often enough
  };
  /// What is known of the implementations among which `choose` chooses.
  std::vector<Known> known(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);
  /// Number of shapes and classes that are kept. For tests.
  std::size_t size() const {
    const std::lock_guard guard(lock_);
    return kernels_.size();
  }

 private:
  struct Kernel {
    unsigned implementation = 0;
    unsigned begun = 0;       ///< tasks that were to try it
    bool is_warm = false;     ///< the first one has run
    bool is_offered = false;  ///< of the codelet that chooses; another codelet may have this name
    double given_ns = 0;      ///< 0: not given
    double spent_ns = 0;      ///< time spent on the best one since this one was tried
    model::History history;

    /// Mean duration in ns; infinite: none has ended.
    double mean_ns() const noexcept {
      if (history.samples() != 0) return history.estimate().mean_ns;
      return given_ns > 0 ? given_ns : std::numeric_limits<double>::infinity();
    }
    bool is_tried() const noexcept { return given_ns > 0 || begun > kTrials; }
    Estimate estimate() const noexcept;
    Choice begin(bool is_usual) noexcept;
  };
  /// Of one codelet, footprint and kind of worker.
  struct Kernels {
    std::vector<Kernel> all;

    Kernel& of(unsigned implementation);
    bool are_tried() const noexcept { return std::ranges::all_of(all, &Kernel::is_tried); }
    Choice choose();
    void add(unsigned implementation, double duration_ns);
  };

  Kernels& offered_by(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);

  const Estimates* const given_;
  mutable base::SpinLock lock_;
  base::LruTable<Kernels> kernels_{kMost};  ///< by a hash of codelet, footprint and kind
};

}  // namespace tandem::runtime
