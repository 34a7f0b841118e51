// tandem/runtime/sched/implementations.hpp: chooses among several implementations for one kind of worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/lru_table.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/model/tasks/footprint.hpp"
#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// Chooses among a codelet's implementations for one kind of worker, for each footprint of the data, by their
/// durations.
///
/// Each implementation first runs `kTrials` times, unless `given` knows it; the first run does not count, since it
/// often loads code or warms caches. Then the one with the least mean runs. Another one is tried again when that costs
/// no more than 1/`kShare` of the time spent on the best one since. So trials cost about 1 % for each other
/// implementation in the long run, however slow it is, and a change of the machine or the data is noticed. A trial that
/// took less than the best one's mean is repeated at once.
///
/// A new shape goes by the *class* of its size (`model::size_class_of`), in which the first tasks of all such shapes
/// are tried and compared: so tasks of ever new shapes run the implementation that is best for their size. From its
/// second task on a shape is tried by itself.
///
/// The `kMostKnown` shapes and classes that ran last are known, with 0.4 KiB for each implementation.
///
/// Threads: any. One spin lock, held for some 50 ns.
class Implementations {
 public:
  static constexpr unsigned kTrials = 3;
  static constexpr double kShare = 100;
  static constexpr std::size_t kMostKnown = 4'096;

  /// Known durations in ns of a codelet, a footprint, a kind of worker and an implementation's number; 0: not known.
  using Given = std::function<double(std::string_view, model::Footprint, DeviceKind, unsigned)>;
  explicit Implementations(Given given = {}) : given_(std::move(given)) {}

  /// The implementation that a task runs.
  struct Choice {
    unsigned implementation = 0;  ///< index among the codelet's implementations
    bool is_usual = true;         ///< most such tasks run it; false: a trial, which is not typical
  };
  /// Chooses for a worker of `kind`, for which the codelet has an implementation.
  Choice choose(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);
  /// Adds a duration of `duration_ns` of an implementation.
  void add(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind, unsigned implementation,
           double duration_ns);

  /// What is known of one implementation.
  struct Known {
    unsigned implementation = 0;  ///< index among the codelet's implementations
    double mean_ns = 0;           ///< infinite: none has ended
    bool is_tried = false;        ///< tried often enough
  };
  /// What is known of the implementations among which `choose` chooses.
  std::vector<Known> known(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);
  /// Number of known shapes and classes. For tests.
  std::size_t size() const {
    const std::lock_guard guard(lock_);
    return known_.size();
  }

 private:
  struct Candidate {
    unsigned implementation = 0;
    unsigned begun = 0;
    bool is_warm = false;
    double given_ns = 0;
    double spent_ns = 0;  ///< time spent on the best one since this trial began
    model::History history;

    /// Mean duration in ns; infinite: none has ended.
    double mean_ns() const noexcept {
      if (history.samples() != 0) return history.estimate().mean_ns;
      return given_ns > 0 ? given_ns : std::numeric_limits<double>::infinity();
    }
    bool is_known() const noexcept { return given_ns > 0 || begun >= kTrials; }
  };
  using Candidates = std::vector<Candidate>;

  Candidates& candidates_of(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);
  static Choice choose_among(Candidates& all);
  static void note_begun(Candidates& all, unsigned implementation);
  static void note_ended(Candidates& all, unsigned implementation, double duration_ns);

  const Given given_;
  mutable base::SpinLock lock_;
  base::LruTable<Candidates> known_{kMostKnown};  ///< candidates by a hash of name, implementations, footprint and kind
};

}  // namespace tandem::runtime
