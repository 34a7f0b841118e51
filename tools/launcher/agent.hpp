// tools/launcher/agent.hpp: the launcher's other half, on a host where ranks run.
#pragma once

namespace tandem::tools {

/// `tandem run --agent`: reads a plan from standard input, runs its ranks, and reports on them on standard output
/// (launcher_wire.hpp). When its input ends, it kills them. Returns an exit code.
int run_agent();

}  // namespace tandem::tools
