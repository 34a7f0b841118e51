// tools/simulate/own_costs.hpp: what the runtime's own work takes on this machine.
#pragma once

#include <optional>

#include "tandem/runtime/device/modelled_host.hpp"

namespace tandem::tools {

/// Measures tasks of one or two accesses that do nothing, in runtimes of its own, for some tenths of a second. Throws
/// StartError.
runtime::RuntimeCosts measure_task_costs();

/// Of a core, at each end of a message.
struct MessageCosts {
  double packet_ns = 0;         ///< of a packet
  double copy_bytes_per_ns = 0;  ///< at which a core copies; 0: messages take too little to be measured
};
/// Measures how much longer kernels take beside messages, where one core does both, on both ranks of a job with one
/// core each. Rank 0 has the result. Throws StartError.
std::optional<MessageCosts> measure_message_costs();

}  // namespace tandem::tools
