// tools/subprocess.hpp: runs another program to its end, or to a time limit, and keeps what it wrote.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

struct Command {
  std::filesystem::path file;                                    ///< of the executable; not searched in PATH
  std::vector<std::string> arguments;                            ///< without the program's own name
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to this process's, or instead of values there
  bool explains = false;  ///< what it writes last to standard error says why it ends with another exit code than 0, which needs no telling then
};

/// What a program wrote, each stream up to 16 MiB; what comes after is read and dropped.
struct ProgramOutput {
  std::string output;
  std::string errors;
};

/// Runs it with an empty standard input, in a process group of its own, and sleeps until it ends. Whatever of the group is left
/// then is killed, so that nothing disturbs what comes next; if the calling thread dies, so does the program. Errors: it cannot
/// be started; it ends with another exit code than 0; a signal ends it; it outlasts `limit`. They quote the last line that it
/// wrote to standard error.
/// Not thread-safe while another thread changes the environment.
base::Result<ProgramOutput> run_program(const Command& command, std::chrono::milliseconds limit);

}  // namespace tandem::tools
