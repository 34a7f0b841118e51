// tests/dist_flow/deterministic_job.hpp: all ranks of a job on one event loop, in an order drawn from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "job_setup.hpp"
#include "tandem/sim/job.hpp"
#include "tandem/tandem.hpp"

namespace tandem::dist_test {

/// Runs the programs of several ranks in a `sim::Job`, with test worlds, in an order drawn from a seed.
class DeterministicJob {
 public:
  explicit DeterministicJob(std::uint64_t seed) : job_(seed) {}

  /// How each rank's program ended. `stuck`: some programs wait and nothing can run; `why` describes what they wait
  /// for.
  struct Outcome {
    std::vector<Ending> endings;
    bool stuck = false;
    std::string why;
  };
  Outcome run(const JobSetup& setup, const std::function<void(Runtime&, DeterministicJob&)>& program);

  /// Lets other ranks run, one time in three. Called by a rank's program, between two calls of the runtime.
  void maybe_yield() { job_.maybe_yield(); }
  base::EventLoop& loop() noexcept { return job_.loop(); }
  comm::LoopNetwork& network() noexcept { return *network_; }

 private:
  using Program = std::function<void(Runtime&, DeterministicJob&)>;
  void run_rank(std::uint32_t rank, const JobSetup& setup, const Program& program);

  sim::Job job_;
  std::unique_ptr<comm::LoopNetwork> network_;
  std::vector<Runtime*> runtimes_;  ///< by rank; null while its program has none
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
