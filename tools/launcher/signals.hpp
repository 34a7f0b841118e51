// tools/launcher/signals.hpp: signals as a descriptor to wait for.
#pragma once

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::tools {

/// Signals that a launcher passes on to its ranks. From the constructor on they interrupt nothing and are read from a
/// descriptor. Those already ignored (by `nohup`, or by a shell for background jobs) stay ignored, here and in the
/// ranks.
class SignalQueue {
 public:
  SignalQueue();
  int descriptor() const noexcept { return queue_.get(); }
  /// Returns the next signal, or 0.
  int next();

 private:
  base::FileDescriptor queue_;
};

}  // namespace tandem::tools
