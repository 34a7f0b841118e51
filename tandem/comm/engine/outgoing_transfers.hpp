// tandem/comm/engine/outgoing_transfers.hpp: large messages on their way out: streams, grants, and the sender's part of
// shared copies.
#pragma once

#include <cstdint>

#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// The sender's side of announced messages and of broadcasts' segments: a stream per message, which grants of the
/// receiver open, and the copies in which this sender takes part (copy_meeting.hpp).
///
/// State: the shared copies under way. Streams belong to `Peer::outgoing`. Under the endpoint's lock.
class OutgoingTransfers {
 public:
  explicit OutgoingTransfers(EngineParts& parts);

  void stop_pushing_to(const Peer& peer);
  bool copies() const noexcept { return !pushing_.empty(); }
  /// Copies one part of each message that both sides copy.
  void copy_some();

  /// Ends a send, which may carry a broadcast to one recipient.
  void finish_send(SendCore& core, Ending ending, Rank culprit = Rank{0});
  /// Ends the message if the last of its stream was sent, and rails have read it.
  void stream_advanced(OutgoingStream& stream);
  /// Ends a stream; a deferred message may take its place.
  void end_stream(OutgoingStream& stream);
  /// Gives the bytes of a granted `late` message. False: it has ended, or its rails do not read such memory.
  bool supply(SendCore& core, Pieces&& pieces, BufferMemory memory);
  const char* take_grant(Peer& peer, const wire::Grant& grant);
  const char* take_finish(Peer& peer, const wire::Finish& finish);
  const char* take_share(Rail& rail, const wire::Share& share);
  void copy_outgoing(Push& push);

 private:
  void stop_pushing(const OutgoingStream& stream);

  const EngineContext& context_;
  Completions& completions_;
  EngineTrace& trace_;
  Peers& peers_;
  PortPacing& pacing_;
  PeerQueues& queues_;
  Deferral& deferral_;
  BroadcastChildren& children_;
  BroadcastRecipient& recipient_;
  CountedList<Push> pushing_;
};

}  // namespace tandem::comm::internal
