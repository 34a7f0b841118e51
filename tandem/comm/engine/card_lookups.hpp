// tandem/comm/engine/card_lookups.hpp: asks the directory for addresses, off the progress thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tandem/base/thread.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// Looks ranks up on threads of its own, since an answer comes when that rank has started. There are as many threads as
/// look-ups under way, up to `kMostThreads`; an idle object has none.
///
/// Absent ranks do not delay present ones: a rank is asked for in slices of time, a short one first; while its address
/// is not there, it goes to the end of a second queue, whose slices are longer. Threads take from the first queue
/// before the second, and with `kMostThreads` threads one of them takes from the first alone.
///
/// Threads: `ask` one at a time, also while holding the lock that `found` takes; `stop` without that lock. `mutex_`
/// guards all fields below it, and is not held while the directory is asked.
class CardLookups {
 public:
  using Found = std::function<void(Rank, base::Result<PeerCard>)>;
  static constexpr std::size_t kMostThreads = 32;
  static constexpr std::int64_t kFirstSliceNs = 10'000'000;  ///< for a rank that was not asked for before
  /// For a rank that was absent; threads that sleep so long cost nothing.
  static constexpr std::int64_t kSliceNs = 250'000'000;

  /// `found` gets each answer, on a thread of this object.
  CardLookups(std::shared_ptr<Directory> directory, Found found)
      : directory_(std::move(directory)), found_(std::move(found)) {}
  ~CardLookups() { stop(); }
  CardLookups(const CardLookups&) = delete;
  CardLookups& operator=(const CardLookups&) = delete;

  /// Asks for a rank, at most once for each.
  void ask(Rank rank);
  /// Ends the look-ups under way: the directory gives up, and `found` is not called any more when this returns.
  void stop();

 private:
  struct Worker {
    base::Thread thread;
    bool ended = false;
  };
  struct Turn {
    Rank rank;
    bool was_absent;
  };
  std::optional<Turn> next_turn();
  void work(Worker& self);

  const std::shared_ptr<Directory> directory_;
  const Found found_;
  std::mutex mutex_;
  std::deque<Rank> wanted_;      ///< not asked for yet
  std::deque<Rank> absent_;      ///< without an address when they were asked for last
  std::size_t patient_ = 0;      ///< threads that wait for an absent rank
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopped_ = false;
};

}  // namespace tandem::comm::internal
