// tools/simulate/processes.hpp: a simulation of any program, whose ranks are processes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/sim/turn_keeper.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {

/// How the job and the simulation ended.
struct ProcessesOutcome {
  int exit_code = 0;  ///< as that of `tandem run`
  sim::TurnKeeper::Outcome simulation = {};
};

/// Starts the program as the ranks of a simulation, as `tandem run` starts those of a job, and returns when all have
/// ended. For a process with one thread.
ProcessesOutcome simulate_processes(sim::TurnKeeper::Options options, const ProgramCall& call, base::Log& log);

/// What the launcher tells each rank, beside its own variables.
struct RankRole {
  std::string simulation;    ///< where it listens; empty: this process is no rank
  std::size_t epoch_ns = 0;  ///< the date at virtual time 0, in ns since 1970
};

/// Becomes the program `words`, as a rank of a simulation. Returns an exit code where that fails.
int become_rank(const RankRole& role, std::vector<std::string> words, base::Log& log);

}  // namespace tandem::tools
