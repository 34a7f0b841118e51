// tools/launcher/traces.hpp: what ranks that did not end their traces left of them in shared memory.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace tandem::tools {

/// Recovers the traces of a process that has died and been reaped: moves the events of its live files to the trace's
/// folder and removes the files. Returns lines for the user; empty: nothing was left, as when a rank ends well. Costs a
/// look into /dev/shm, and the time to write what is left. `begun`: a time before the process began; older files belong
/// to an earlier process with its number. Files of other users are left alone, since any user can create any name in
/// /dev/shm.
std::string recover_traces_of(pid_t process, std::filesystem::file_time_type begun);

}  // namespace tandem::tools
