// tools/launcher/launcher.hpp: implements `tandem run`: starts ranks, serves their rendezvous, passes their output on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/core_plan.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tools/launcher/plan.hpp"

namespace tandem::tools {

struct LaunchOptions {
  std::vector<HostRanks> places;   ///< consecutive ranks, from 0
  std::vector<std::string> words;  ///< the program and its arguments
  std::string folder;              ///< where ranks start; empty: the current folder's path, on all hosts
  std::vector<std::pair<std::string, std::string>> environment;         ///< for all ranks
  std::vector<std::pair<std::string, std::string>> remote_environment;  ///< for ranks on other hosts, before the other
  bool reads_input = true;         ///< rank 0 has the launcher's standard input; otherwise no rank has any
  bool labels = true;
  bool objects = false;            ///< JSON objects that one rank prints to standard output pass without labels
  base::BindTo bind = base::BindTo::none;  ///< what each rank is bound to
  base::MapBy map = base::MapBy::core;     ///< in which order the ranks of a host take their cores
  std::string server_address;      ///< where ranks reach the launcher, perhaps with its port; empty: found out
  std::int64_t limit_ns = 0;       ///< of the whole run; 0: none
  bool secret_in_environment = false;
  std::vector<std::string> ssh;    ///< the program that reaches other hosts, and its arguments before the host
  bool ssh_has_shell = true;       ///< as with ssh, a shell there gets the command as one line
  std::string remote_tandem;       ///< this command on other hosts
};

/// Runs the job to its end in one loop that sleeps when nothing happens. Returns the exit code: 0 when all ranks ended
/// with 0; that of the rank that failed first, or 128 and the signal that ended it; 124 at the time limit; 126 and 127
/// when the program cannot be started; 255 when a host cannot be reached. Ranks are gone when it returns. For a process
/// with one thread, once.
int launch(const LaunchOptions& options, base::Log& log);

}  // namespace tandem::tools
