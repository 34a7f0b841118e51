// tandem/comm/engine/outgoing_transfers.cpp: large messages on their way out: streams, grants, and the sender's part of
// shared copies.
#include <algorithm>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/parts.hpp"
#include "tandem/comm/wrong_argument.hpp"

namespace tandem::comm::internal {

OutgoingTransfers::OutgoingTransfers(EngineParts& parts)
    : context_(parts.context),
      completions_(parts.completions),
      trace_(parts.completions.trace),
      peers_(parts.peers),
      pacing_(parts.pacing),
      queues_(parts.queues),
      deferral_(parts.deferral),
      children_(parts.children),
      recipient_(parts.recipient),
      pushing_(parts.work_left) {}

void OutgoingTransfers::finish_send(SendCore& core, Ending ending, Rank culprit) {
  if (Broadcast* const broadcast = std::exchange(core.broadcast, nullptr)) [[unlikely]] {
    core.request = 0;  // the number is the broadcast's, which may go on
    --broadcast->plain_pending;
    recipient_.maybe_released(*broadcast);
  }
  completions_.end_send(core, ending, culprit);
}

/// Ends a stream if the last of it was sent and is not read any more.
void OutgoingTransfers::stream_advanced(OutgoingStream& stream) {
  if (stream.child != nullptr) return children_.child_progress(*stream.child);
  if (stream.cursor < stream.limit || stream.posted > 0 || stream.granted < stream.limit) return;
  SendCore& core = *stream.send;
  pacing_.reserve_while_draining(stream);
  if (stream.started_ns != 0) peers_.measure(*stream.peer, stream.limit, stream.started_ns);
  end_stream(stream);
  core.stream = nullptr;
  finish_send(core, Ending::done);
}

void OutgoingTransfers::end_stream(OutgoingStream& stream) {
  Peer& peer = *stream.peer;
  const bool message = stream.send != nullptr;
  stop_pushing(stream);
  queues_.drop_stream(stream);
  if (message && peer.deferred != nullptr && !peer.dead) deferral_.announce_more(peer);
}

const char* OutgoingTransfers::take_grant(Peer& peer, const wire::Grant& grant) {
  OutgoingStream* const found = peer.outgoing.find(grant.stream);
  if (found == nullptr) return nullptr;  // a broadcast's last grants for a stream that has ended here
  OutgoingStream& stream = *found;
  if (grant.up_to > stream.length) return "a grant beyond the end of its stream";
  if ((grant.prefix.flags & wire::flag_restart) != 0) {
    if (stream.granted > 0 && stream.send != nullptr) return "a restart of an accepted message";
    if (stream.child != nullptr) {
      if (!stream.child->declined || stream.epoch != 0) return "a restart of a message that was not declined";
      stream.granted = 0;
      stream.epoch = 1;
    }
    stream.cursor = 0;
  }
  if ((grant.prefix.flags & wire::flag_last) != 0) {
    if (stream.child != nullptr) return "a request to end a broadcast early";
    if (grant.up_to < stream.cursor) return "a grant that ends before bytes that were sent";
    stream.limit = grant.up_to;
  }
  if (stream.send != nullptr && stream.granted == 0) {
    peer.receives_wait = (grant.prefix.flags & wire::flag_met) != 0;
    if (!peer.receives_wait || stream.cursor == 0) stream.started_ns = context_.now();
    trace_.request_event<trace::Type::send_granted>(*stream.send);
    completions_.note_leaving(*stream.send);
  }
  stream.granted = std::max(stream.granted, grant.up_to);
  queues_.refresh(stream);
  pacing_.drop_reservation(stream);
  stream_advanced(stream);
  return nullptr;
}

bool OutgoingTransfers::supply(SendCore& core, Pieces&& pieces, BufferMemory memory) {
  if (core.stream == nullptr || !Peers::reads(*core.peer, memory)) return false;
  OutgoingStream& stream = *core.stream;
  if (!core.late || stream.granted == 0 || stream.available != 0 || pieces.bytes() != core.bytes)
    throw_wrong_supply(core.bytes, pieces.bytes());
  core.pieces = std::move(pieces);
  stream.available = stream.length;
  stream.started_ns = context_.now();
  queues_.refresh(stream);
  return true;
}

/// Ends a message of which the receiver has read everything that it wanted from our memory.
const char* OutgoingTransfers::take_finish(Peer& peer, const wire::Finish& finish) {
  OutgoingStream* const found = peer.outgoing.find(finish.stream);
  if (found == nullptr) return nullptr;
  OutgoingStream& stream = *found;
  const bool readable =
      stream.send != nullptr || (stream.child != nullptr && stream.child->address != 0 && stream.child->offer_sent);
  const bool begun = stream.granted > 0 || (stream.send != nullptr && stream.cursor > 0);
  if (!readable || begun) return "the end of a copy of a message that is sent in segments";
  if (stream.child != nullptr) {
    stream.granted = stream.cursor = stream.limit;
    children_.child_progress(*stream.child);
    return nullptr;
  }
  SendCore& core = *stream.send;
  end_stream(stream);
  core.stream = nullptr;
  trace_.request_event<trace::Type::message_sent>(core);
  finish_send(core, Ending::done);
  return nullptr;
}

const char* OutgoingTransfers::take_share(Rail& rail, const wire::Share& share) {
  Peer& peer = *rail.peer;
  OutgoingStream* const found = peer.outgoing.find(share.stream);
  if (found == nullptr) return nullptr;
  OutgoingStream& stream = *found;
  const bool begun = stream.granted > 0 || stream.cursor > 0;
  if (stream.send == nullptr || stream.send->late || stream.send->queued() || begun || !stream.source->contiguous())
    return "a share in a message that is not shared";
  if (share.bytes > stream.length || share.part_bytes == 0 || share.part_bytes > share.bytes) {
    return "a share in bytes that the message does not have";
  }
  const std::uint64_t parts = parts_of(share.bytes, share.part_bytes);
  std::atomic<std::uint64_t>* const word = rail.link->shared_word(Link::Direction::outgoing);
  const bool pushed = std::any_of(pushing_.begin(), pushing_.end(),
                                  [&](const Push& push) { return push.stream == &stream; });
  if (parts == 0 || parts > Meeting::kMostParts || word == nullptr || pushed) return "a share that cannot be";
  trace_.request_event<trace::Type::send_granted>(*stream.send);
  pushing_.push_back(Push{.stream = &stream,
                          .address = share.address,
                          .bytes = share.bytes,
                          .part_bytes = share.part_bytes,
                          .meeting = Meeting::join(*word, stream.id, base::narrow<std::uint32_t>(parts))});
  return nullptr;
}

/// Copies one part of a message that its receiver reads, too. The push is gone when none is left.
void OutgoingTransfers::copy_outgoing(Push& push) {
  const OutgoingStream& stream = *push.stream;
  Peer& peer = *stream.peer;
  bool refused = false;
  if (const auto part = push.meeting.take()) {
    const std::uint64_t at = *part * push.part_bytes;
    const auto* const from = static_cast<const std::byte*>(stream.source->data()) + stream.base + at;
    refused =
        !Peers::copy_link(peer).write_remote(push.address + at, {from, std::min(push.part_bytes, push.bytes - at)});
    if (!refused && push.meeting.left()) return;
  }
  if (push.meeting.taken() > 0) {
    wire::Shared shared{.stream = stream.id, .bytes = push.taken_bytes()};
    if (refused) shared.prefix.flags = wire::flag_refused;
    queues_.post_control(peer, shared);
  }
  stop_pushing(stream);
}

void OutgoingTransfers::stop_pushing(const OutgoingStream& stream) {
  if (!pushing_.empty()) [[unlikely]] pushing_.remove_if([&](const Push& push) { return push.stream == &stream; });
}

void OutgoingTransfers::copy_some() {
  // The list changes when a copy ends, hence by index.
  for (std::size_t i = 0; i < pushing_.size(); ++i) copy_outgoing(pushing_[i]);
}

void OutgoingTransfers::stop_pushing_to(const Peer& peer) {
  pushing_.remove_if([&](const Push& push) { return push.stream->peer == &peer; });
}

}  // namespace tandem::comm::internal
