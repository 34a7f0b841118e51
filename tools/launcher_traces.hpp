// tools/launcher_traces.hpp: what ranks that did not end their traces left of them in shared memory.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace tandem::tools {

/// Gathers what a process that is gone, and reaped, left of its traces: its live files go, and their events are in the trace's
/// folder. What a person should know, a line each; empty: there was nothing, as with all that end well. Takes a look into
/// /dev/shm, and where something is left, the time to write it. `begun`: a time before the process began; older files are of another one
/// that had its number. Files of other users are left alone: anybody can put one of any name into /dev/shm.
std::string recover_traces_of(pid_t process, std::filesystem::file_time_type begun);

}  // namespace tandem::tools
