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
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to this process's, or replacing its values
  bool explains = false;  ///< its last line on standard error replaces the report of its exit code
};

/// Output of a program, each stream up to 16 MiB; bytes beyond are read and dropped.
struct ProgramOutput {
  std::string output;
  std::string errors;
};

/// Runs a program with an empty standard input, in a process group of its own, and sleeps until it ends. Then the rest
/// of the group is killed, so that it disturbs no later work; if the calling thread dies, so does the program. Errors:
/// it cannot be started; it ends with another exit code than 0; a signal ends it; it outlasts `limit`. They quote the
/// last line that it wrote to standard error.
/// Not thread-safe while another thread changes the environment.
base::Result<ProgramOutput> run_program(const Command& command, std::chrono::milliseconds limit);

}  // namespace tandem::tools
