// tests/dist_flow/baton.hpp: all ranks of a job on one event loop, replayable from a seed: their programs take turns.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"
#include "tandem/base/event_loop.hpp"

namespace tandem::dist_test {

/// Runs the programs of several ranks as if on one thread.
///
/// A program is ordinary code that blocks in `wait()`, so each has a thread; but one thread runs at a time, the one with the
/// baton, and gives it back when it waits or `breathe`s. The main thread draws who is next: a rank's program, or steps of the
/// event loop, where workers, progress engines and the network live. The same seed gives the same order.
class BatonJob {
 public:
  explicit BatonJob(std::uint64_t seed);
  ~BatonJob();

  /// How each rank's program ended; nothing goes on and somebody waits: that is in `stuck`.
  struct Outcome {
    std::vector<Ending> endings;
    bool stuck = false;
    std::string why;
  };
  Outcome run(const JobSetup& setup, const std::function<void(Runtime&, BatonJob&)>& program);

  /// Others may go on. By the program of `rank`, between two calls.
  void breathe(std::uint32_t rank) {
    if (loop_.random() % 3 == 0) let_others(rank);
  }
  base::EventLoop& loop() noexcept { return loop_; }
  comm::LoopNetwork& network() noexcept { return *network_; }

 private:
  struct Seat;
  class RankDriver;
  class RankClock;

  void let_others(std::uint32_t rank);
  void yield(Seat& seat);
  void resume(Seat& seat);

  base::EventLoop loop_;
  std::unique_ptr<comm::LoopNetwork> network_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::mutex mutex_;
  std::condition_variable given_back_;  ///< the main thread has the baton
  Seat* running_ = nullptr;  ///< null: the main thread; guarded by `mutex_`
};

/// Kills the rank of this program after a while, unless it has ended before. Nobody hears from it any more, but its thread has to
/// end too.
class Killer {
 public:
  Killer(Runtime& rt, BatonJob& job, std::int64_t after_ns) : target_(std::make_shared<Runtime*>(&rt)) {
    job.loop().at(job.loop().now_ns() + after_ns, [&job, target = target_] {
      if (*target == nullptr) return;
      job.network().kill(comm::Rank((*target)->rank()));
      (*target)->flow()->abort("killed");
      (*target)->flow()->endpoint().abandon();  // nobody takes what tells of it, and its sends would wait for that
    });
  }
  ~Killer() { *target_ = nullptr; }
  Killer(const Killer&) = delete;
  Killer& operator=(const Killer&) = delete;

 private:
  std::shared_ptr<Runtime*> target_;
};

}  // namespace tandem::dist_test
