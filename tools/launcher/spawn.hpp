// tools/launcher/spawn.hpp: starts one process for the launcher.
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
  std::vector<std::pair<std::string, std::string>>
      environment;                 ///< added to this process's, or instead of values there
  std::string folder;              ///< where the program starts; empty: the current folder
  int input = -1, output = -1, errors = -1;  ///< the program's standard streams
  std::vector<unsigned> cores = {};  ///< hardware threads that the program may use; empty: those of this process
  int inherited = -1;              ///< one more descriptor that the program keeps, under its number
};

/// Starts a program as leader of its own process group, with the signals and limits that this process was started with;
/// it dies with this process. Returns when the program runs. Errors: not_found (no such program or folder), io (it
/// cannot be executed). For a process with one thread.
base::Result<pid_t> spawn(const SpawnRequest& request);

/// The exit code that a shell gives when it cannot start a program, for an error of `spawn`.
int exit_code_of(const base::Error& error);

struct Pipe {
  base::FileDescriptor read_end, write_end;
};
/// Makes a pipe whose ends are closed by exec(). The launcher's end, which `ours_reads` names, does not block. Errors:
/// io.
base::Result<Pipe> make_pipe(bool ours_reads);
/// Writes what the pipe takes now of `unsent` and removes it there; closes the pipe when nobody reads it any more. A
/// closed pipe takes all.
void write_some(base::FileDescriptor& pipe, std::string& unsent);

/// Prepares this process as a launcher: ignores SIGPIPE, SIGTTIN and SIGTTOU, and raises the limit of open files, all
/// of which `spawn` undoes for the programs. `base::hold_standard_streams` has opened closed standard streams before.
void prepare_launcher();

}  // namespace tandem::tools
