// tests/dist_flow/deterministic_job.hpp: all ranks of a job on one event loop, in an order drawn from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "job_setup.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/sim/fiber.hpp"
#include "tandem/tandem.hpp"

namespace tandem::dist_test {

/// Runs the programs of several ranks as if on one thread.
///
/// A program is ordinary code that blocks in `wait()`, so each rank has a fiber. It returns the turn to the main program
/// when it waits, and at random in `maybe_yield`. The main program draws what runs next: a rank's program, or steps of
/// the event loop, which holds the workers, the progress engines and the network. The same seed gives the same order.
class DeterministicJob {
 public:
  explicit DeterministicJob(std::uint64_t seed);
  ~DeterministicJob();

  /// How each rank's program ended. `stuck`: some programs wait and nothing can run; `why` describes what they wait
  /// for.
  struct Outcome {
    std::vector<Ending> endings;
    bool stuck = false;
    std::string why;
  };
  Outcome run(const JobSetup& setup, const std::function<void(Runtime&, DeterministicJob&)>& program);

  /// Lets other ranks run, one time in three. Called by a rank's program, between two calls of the runtime.
  void maybe_yield() {
    if (loop_.random() % 3 == 0) sim::Fiber::yield();
  }
  base::EventLoop& loop() noexcept { return loop_; }
  comm::LoopNetwork& network() noexcept { return *network_; }

 private:
  struct Rank;
  class RankDriver;
  class RankClock;

  void start(std::uint32_t rank, const JobSetup& setup, const std::function<void(Runtime&, DeterministicJob&)>& program,
             Ending& ending);

  base::EventLoop loop_;
  std::unique_ptr<comm::LoopNetwork> network_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

/// A codelet that workers of all kinds can run.
template <class Body>
auto on_all(const char* name, Body body) {
  return Codelet(name, body).also(DeviceKind::user, body);
}

/// Kills the rank of this program after `after_ns`, unless it has ended before. No other rank hears from it again; its
/// program still ends, with a JobError.
class Killer {
 public:
  Killer(Runtime& rt, DeterministicJob& job, std::int64_t after_ns);
  ~Killer();
  Killer(const Killer&) = delete;
  Killer& operator=(const Killer&) = delete;

 private:
  std::shared_ptr<Runtime*> target_;
};

}  // namespace tandem::dist_test
