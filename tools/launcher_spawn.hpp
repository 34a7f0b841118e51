// tools/launcher_spawn.hpp: starts one process for the launcher.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::tools {

struct SpawnRequest {
  std::vector<std::string> words;  ///< the program, searched in PATH when it has no slash, and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to this process's, or instead of values there
  std::string folder;              ///< where it starts; empty: here
  int input = -1, output = -1, errors = -1;  ///< its standard streams
  std::vector<unsigned> cores = {};  ///< hardware threads that it may run on; empty: those of this process
  int inherited = -1;              ///< one more descriptor that it keeps, under the same number
};

/// Starts it as the leader of a process group of its own, with the signals and limits that this process was started with; it dies
/// when this process dies. Returns when the program runs. Errors: not_found (no such program or folder), io (it cannot be
/// executed). For a process with one thread.
base::Result<pid_t> spawn(const SpawnRequest& request);

/// The exit code that a shell gives when it cannot start a program, for an error of `spawn`.
int exit_code_of(const base::Error& error);

struct Pipe {
  base::FileDescriptor read_end, write_end;
};
/// The launcher's end, named by `ours_reads`, does not block; both are closed by exec(). Errors: io.
base::Result<Pipe> make_pipe(bool ours_reads);

/// Makes this process fit to be a launcher: ignores SIGPIPE, SIGTTIN and SIGTTOU, and raises the limit of open files, all of which
/// `spawn` undoes for the programs. Standard streams that are closed have been held before (`base::hold_standard_streams`).
void prepare_launcher();

}  // namespace tandem::tools
