// tools/launcher/cleanup.hpp: a small process that survives a killed launcher until it has killed the ranks.
#pragma once

#include <sys/types.h>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::tools {

/// A child in a session of its own that knows the process groups of all ranks, and kills them when the launcher's end
/// of a pipe closes, for any reason. (The kernel's own PR_SET_PDEATHSIG reaches the first process of a rank only, not
/// what a wrapper script started.) Made before any other descriptor that it must not inherit. Not thread-safe.
class CleanupProcess {
 public:
  /// Starts it. Errors: io.
  static base::Result<CleanupProcess> start();
  CleanupProcess(CleanupProcess&& other) noexcept
      : pipe_(std::move(other.pipe_)), child_(std::exchange(other.child_, -1)) {}
  CleanupProcess& operator=(CleanupProcess&&) = delete;
  /// Ends it, which kills the groups that are still watched, and reaps it.
  ~CleanupProcess();

  void watch(pid_t group) { send(group); }
  void forget(pid_t group) { send(-group); }

 private:
  CleanupProcess(base::FileDescriptor pipe, pid_t child) : pipe_(std::move(pipe)), child_(child) {}
  void send(pid_t message);

  base::FileDescriptor pipe_;
  pid_t child_;
};

}  // namespace tandem::tools
