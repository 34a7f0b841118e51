// tandem/sim_rank/process_place.hpp: a program whose process is one rank of a simulation.
#pragma once

#include <array>

#include "tandem/base/result.hpp"
#include "tandem/sim_rank/virtual_clock.hpp"

namespace tandem::sim {

/// Name of the variable by which `tandem simulate` hands a connection to a program: the number of its descriptor.
inline constexpr const char* turns_variable = "TANDEM_SIMULATION_TURNS";

/// All variables that `tandem simulate` sets for its ranks.
inline constexpr std::array simulation_variables = {turns_variable, epoch_variable};

/// Makes the simulation that has started this process the place of its program (`runtime::VirtualPlace`). Does nothing
/// where there is none, or after the first call. The process then steps when the simulation gives it the turn: while it
/// waits in `Runtime`, its workers, messages and timers do what is due in virtual time; its own code between calls
/// takes none. Errors: io, malformed, unsupported.
///
/// Threads: the program's main thread alone uses the runtime. Others may not wait for it.
base::Result<void> settle_in_simulation();

}  // namespace tandem::sim
