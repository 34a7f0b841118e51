// tools/simulate/one_run.hpp: one simulation of a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/simulate/scene.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {

/// How a simulation ended, whichever way its ranks ran.
struct Ended {
  int exit_code = 0;
  std::int64_t end_ns = 0;
  std::string error = {};
  std::vector<std::string> kernels = {}, without_model = {};
};

/// Whether these words call Tandem's own linear algebra, all of whose ranks are in this process.
bool is_linalg(const std::vector<std::string>& words);

/// Simulates a program, each of whose ranks is a process, or Tandem's own linear algebra.
Ended simulate_once(const Scene& scene, std::uint64_t seed, const ProgramCall& call, const ToolContext& context);

/// What is wrong with a simulation that has ended; empty: nothing.
std::string complaint_of(const Ended& ended, const Scene& scene);

}  // namespace tandem::tools
