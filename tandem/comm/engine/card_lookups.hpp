// tandem/comm/engine/card_lookups.hpp: asks the job's directory for cards, away from the thread that makes progress.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// Looks ranks up on threads of its own, since an answer comes when that rank has started. There are as many threads as look-ups
/// under way, up to `kMostThreads`; an idle object has none.
///
/// Threads: `ask` one at a time, also with the lock held that `found` takes; `stop` without that lock. `mutex_` guards all fields
/// below it, and is not held while the directory is asked.
class CardLookups {
 public:
  using Found = std::function<void(Rank, base::Result<PeerCard>)>;
  static constexpr std::size_t kMostThreads = 32;

  /// `found` gets each answer, on a thread of this object.
  CardLookups(std::shared_ptr<Directory> directory, Found found) : directory_(std::move(directory)), found_(std::move(found)) {}
  ~CardLookups() { stop(); }
  CardLookups(const CardLookups&) = delete;
  CardLookups& operator=(const CardLookups&) = delete;

  /// Each rank at most once.
  void ask(Rank rank);
  /// Ends the look-ups under way: the directory gives up, and `found` is not called any more when this returns.
  void stop();

 private:
  struct Worker {
    std::thread thread;
    bool ended = false;
  };
  void work(Worker& self);

  const std::shared_ptr<Directory> directory_;
  const Found found_;
  std::mutex mutex_;
  std::deque<Rank> wanted_;
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopped_ = false;
};

}  // namespace tandem::comm::internal
