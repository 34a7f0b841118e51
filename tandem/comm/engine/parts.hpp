// tandem/comm/engine/parts.hpp: the parts of an engine, one protocol each, and how they are put together.
#pragma once

#include <cstddef>
#include <memory>

#include "tandem/comm/engine/arrivals.hpp"
#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/broadcast_children.hpp"
#include "tandem/comm/engine/broadcast_planner.hpp"
#include "tandem/comm/engine/broadcast_recipient.hpp"
#include "tandem/comm/engine/broadcast_root.hpp"
#include "tandem/comm/engine/completions.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/credit.hpp"
#include "tandem/comm/engine/deferral.hpp"
#include "tandem/comm/engine/departures.hpp"
#include "tandem/comm/engine/incoming_transfers.hpp"
#include "tandem/comm/engine/outgoing_transfers.hpp"
#include "tandem/comm/engine/packets.hpp"
#include "tandem/comm/engine/peer_queues.hpp"
#include "tandem/comm/engine/peers.hpp"
#include "tandem/comm/engine/port_pacing.hpp"
#include "tandem/comm/engine/sends.hpp"
#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm::internal {

/// All parts of one engine. Each part takes references to the parts that it calls, which context.hpp names before it,
/// when it is made; it calls none before all are made. They lie side by side, so that the short path of a small message
/// needs no pointer between them.
struct EngineParts {
  EngineParts(EngineContext given, std::unique_ptr<Strategy> strategy)
      : context(std::move(given)), peers(*this, strategy->order()), packets(*this, std::move(strategy)) {}
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;

  const EngineContext context;
  std::size_t work_left = 0;  ///< entries of all counted lists of the parts
  Completions completions{work_left};
  Peers peers;
  PortPacing pacing{*this};
  PeerQueues queues{*this};
  BroadcastRecipient recipient{*this};  ///< made before those whose listener it is
  IncomingTransfers incoming{*this};
  Arrivals arrivals{*this};
  Deferral deferral{*this};
  Broadcasts broadcasts{work_left};
  BroadcastPlanner planner{*this};
  BroadcastChildren children{*this};
  BroadcastRoot root{*this};
  OutgoingTransfers outgoing{*this};
  Departures departures{*this};
  PacketSender packets;
  Sends sends{*this};
};

}  // namespace tandem::comm::internal

#include "tandem/comm/engine/arrivals_inline.hpp"
#include "tandem/comm/engine/sends_inline.hpp"
