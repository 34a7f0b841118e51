// tools/launcher_signals.hpp: signals as something to wait for.
#pragma once

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::tools {

/// Signals that a launcher passes on to its ranks: from the constructor on they interrupt nothing, and are read from a
/// descriptor. Those that are ignored then (by `nohup`, or by a shell for its background jobs) stay ignored, here and
/// by the ranks.
class SignalQueue {
 public:
  SignalQueue();
  int descriptor() const noexcept { return queue_.get(); }
  /// The next signal, or 0.
  int next();

 private:
  base::FileDescriptor queue_;
};

}  // namespace tandem::tools
