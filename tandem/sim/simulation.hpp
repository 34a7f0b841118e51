// tandem/sim/simulation.hpp: a program on many simulated ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/sim_rank/kernel_times.hpp"
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

/// Runs the program of each rank of a job in virtual time, in one process, with the production code of the runtime, the
/// schedulers and the communication library. A program that constructs a `Runtime` needs no change: the runtime finds
/// its place (`runtime::VirtualPlace`). Ranks share global variables.
///
/// Kernels take the time that `kernels` says. Unless it says so, they do not run, and nobody computes their data; where
/// none runs, messages of more than 16 KiB carry nothing, so memory is used for what the program itself touches.
///
/// Threads: one, and one simulation at a time.
class Simulation {
 public:
  struct Options {
    Platform platform = {};
    KernelTimes kernels = {};               ///< durations; a kernel without one ends the simulation with an error
    std::uint64_t seed = 1;                 ///< durations, and the order of what happens at the same time
    Execution execution = Execution::none;  ///< as `kernels` says
    std::function<void(std::int64_t now_ns)> progress = {};  ///< called now and then, with the virtual time
  };
  explicit Simulation(Options options);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  struct Outcome {
    std::int64_t end_ns = 0;          ///< virtual time at which the last program ended
    std::vector<int> statuses;        ///< by rank, what its program returned
    std::string error;                ///< empty, or why the simulation ended: programs that wait for ever, an exception
    std::vector<std::string> kernels;        ///< that have run
    std::vector<std::string> without_model;  ///< kernels without a duration, which took no time
  };
  /// Calls `program(rank)` for each rank. Once.
  Outcome run(const std::function<int(std::uint32_t rank)>& program);
  std::int64_t now_ns() const;
  /// Lets virtual time pass for the program of `rank`, which calls it.
  void sleep(std::uint32_t rank, std::int64_t ns);

 private:
  class Place;
  struct Parts;
  std::unique_ptr<Parts> parts_;
  bool is_stuck_ = false;
};

}  // namespace tandem::sim
