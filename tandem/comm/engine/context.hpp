// tandem/comm/engine/context.hpp: what an engine is given when it is made, and the names of its parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm::internal {

// The parts of an engine (parts.hpp): each calls only those before it, which tests/layers/check_layers.py checks, and
// what comes after it through a listener.
struct EngineParts;
class Completions;
class Peers;
class PortPacing;
class PeerQueues;
class IncomingTransfers;
class Arrivals;
class Deferral;
class BroadcastPlanner;
class BroadcastChildren;
class BroadcastRecipient;
class BroadcastRoot;
class OutgoingTransfers;
class Departures;
class PacketSender;
class Sends;
class BroadcastListener;

struct EngineContext {
  Rank rank{0};
  std::uint32_t size = 1;  ///< ranks of the job
  EndpointOptions options;
  base::Log* log = nullptr;
  std::shared_ptr<Directory> directory;  ///< null: every transport reaches every peer with an empty address or its own
  std::function<std::int64_t()> now_ns;  ///< the endpoint's clock
  std::function<void(const std::function<void()>&)> with_lock;  ///< calls a function under the endpoint's lock
  std::function<void()> wake = [] {};  ///< wakes the thread that sleeps until something arrives; without the lock
  double cores = 1;                                             ///< that this host's ranks share

  std::int64_t now() const { return now_ns(); }
};

}  // namespace tandem::comm::internal
