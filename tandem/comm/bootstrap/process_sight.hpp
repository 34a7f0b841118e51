// tandem/comm/bootstrap/process_sight.hpp: whether the process of a rank still runs on this host, by what /proc shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::comm::internal {

enum class Sight {
  present,  ///< a process that was started with these variables runs
  absent,   ///< none does, and the launcher's processes can be seen
  unknown,  ///< what can be seen does not decide it
};

/// Looks for a process that a launcher started with all of these variables ("NAME=value"), or for a child that
/// inherited them. `ours` are the variables with which the same launcher started this process. The answer is `absent`
/// only when this process, its launcher, and all children of the launcher can be seen: not in a container that holds
/// one rank alone, not when the system hides processes. A launcher starts its ranks one after the other, and a process
/// that executes a program is hard to see for a moment: ask several times. `proc` is /proc, or a test's folder. Cost:
/// reads two small files for each process of the host.
Sight look_for_process(const std::filesystem::path& proc, int self, const std::vector<std::string>& ours,
                       const std::vector<std::string>& wanted);

}  // namespace tandem::comm::internal
