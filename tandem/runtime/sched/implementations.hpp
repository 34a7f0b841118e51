// tandem/runtime/sched/implementations.hpp: which of several implementations for one kind of worker runs.
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

/// Chooses among the implementations that a codelet has for one kind of worker, for each footprint of the data, by what they took.
///
/// Each runs `kTrials` times first, the first of which does not count (it often loads code or warms caches), unless `given` knows it. Then the one
/// of the least mean runs. Another one is tried again when it would cost no more than 1/`kShare` of the time that was spent since on the best one:
/// so trials cost about 1 % for each of the others in the long run, however slow they are, and a machine or data that change are noticed. A trial
/// that took less than the best one's mean is repeated at once.
///
/// A shape that has not run yet goes by the *class* of its size (`model::size_class_of`), in which the first tasks of all such shapes are tried and
/// compared: so tasks of ever new shapes run the implementation that is best for their size. From its second task on a shape is tried by itself.
///
/// Of shapes and classes the `kMostKnown` that ran last are known, 0.4 KiB for each implementation.
///
/// Threads: any. One spin lock, held for some 50 ns.
class Implementations {
 public:
  static constexpr unsigned kTrials = 3;
  static constexpr double kShare = 100;
  static constexpr std::size_t kMostKnown = 4'096;

  /// What is known before, in ns: of a codelet, a footprint, a kind of worker and the number of an implementation; 0: nothing.
  using Given = std::function<double(std::string_view, model::Footprint, DeviceKind, unsigned)>;
  explicit Implementations(Given given = {}) : given_(std::move(given)) {}

  /// What a task runs.
  struct Choice {
    unsigned implementation = 0;  ///< index among the codelet's
    bool is_usual = true;         ///< what such tasks run mostly; false: a trial, which says nothing of those
  };
  /// For a worker of `kind`, for which the codelet has an implementation.
  Choice choose(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);
  /// It took `duration_ns`.
  void add(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind, unsigned implementation, double duration_ns);

  /// Of one implementation.
  struct Known {
    unsigned implementation = 0;  ///< index among the codelet's
    double mean_ns = 0;           ///< infinite: none has ended
    bool is_tried = false;        ///< often enough
  };
  /// What is known of those among which `choose` chooses.
  std::vector<Known> known(const CodeletCore& codelet, model::Footprint footprint, DeviceKind kind);
  /// Shapes and classes of which something is known. For tests.
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
    double spent_ns = 0;  ///< on the best one since this one was begun
    model::History history;

    /// Infinite: none has ended.
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
  base::LruTable<Candidates> known_{kMostKnown};  ///< by a hash of name, implementations, footprint and kind
};

}  // namespace tandem::runtime
