// tandem/comm/transport/shm/connector_calls.cpp: the connector's calls to other ranks.
#include "tandem/comm/transport/shm/connector.hpp"

#include <unistd.h>

#include <utility>

#include <fmt/core.h>

namespace tandem::comm::internal {
namespace {

/// Calls after which a listening peer that dropped each of them is given up.
constexpr unsigned kMostAttempts = 500;

}  // namespace

void Connector::call(Rank peer, const ShmCard& card) {
  TANDEM_ASSERT(!calls_.contains(peer));
  auto call = std::make_unique<Call>();
  call->peer = peer;
  call->name = card.name;
  call->shortage = base::Shortage(options_.descriptor_patience_ns);
  Call& placed = *calls_.emplace(peer, std::move(call)).first->second;
  // A refusal is not reported from here, but from a dispatch, which the timer causes.
  if (connect_to(placed.name, placed.socket) == Connected::yes) {
    placed.phase = Call::Phase::to_be_challenged;
    placed.watch = events_.add(placed.socket.get(), [this, peer] { read_from_called(peer); });
    if (placed.watch == 0) placed.phase = Call::Phase::to_connect;
  }
  set_timer();
}

void Connector::cancel_call(Rank peer) {
  const auto found = calls_.find(peer);
  if (found == calls_.end()) return;
  events_.remove(found->second->watch);
  calls_.erase(found);
  set_timer();
}

void Connector::try_connect(Call& call) {
  const Connected answer = connect_to(call.name, call.socket);
  if (answer == Connected::busy) return note_busy(), wait_for_descriptors(call, "this rank");
  if (answer == Connected::refused)
    return give_up(call, "nobody listens under its name any more: its process has ended");
  if (++call.attempts > kMostAttempts) return give_up(call, "its process drops every call");
  if (answer == Connected::later) return;
  const Rank peer = call.peer;
  call.phase = Call::Phase::to_be_challenged;
  call.watch = events_.add(call.socket.get(), [this, peer] { read_from_called(peer); });
  if (call.watch == 0) call.phase = Call::Phase::to_connect;
}

void Connector::retry(Call& call) {
  events_.remove(std::exchange(call.watch, 0));
  call.socket.close();
  call.phase = Call::Phase::to_connect;
  set_timer();
}

/// Calls again, until descriptors have been missing for too long.
void Connector::wait_for_descriptors(Call& call, std::string_view whose) {
  if (!call.shortage.lasts(now_ns_)) return retry(call);
  give_up_for_want(call,
                   fmt::format("{} has no file descriptors for the connection; raise the limit (`ulimit -n`)", whose));
}

void Connector::give_up(Call& call, std::string reason) {
  const Rank peer = call.peer;
  cancel_call(peer);
  owner_.unreachable(peer, std::move(reason));
}

void Connector::give_up_for_want(Call& call, std::string reason) {
  const Rank peer = call.peer;
  cancel_call(peer);
  owner_.unattachable(peer, std::move(reason));
}

void Connector::read_from_called(Rank peer) {
  Call& call = *calls_.at(peer);
  std::array<std::byte, sizeof(HandshakeMessage) + 1> room;
  Received received = receive_message(call.socket, room);
  if (received.outcome == Received::Outcome::nothing_yet) return;
  if (received.outcome == Received::Outcome::closed) return retry(call);
  const MessageKind expected =
      call.phase == Call::Phase::to_be_challenged ? MessageKind::challenge : MessageKind::welcome;
  const auto heard = read_message({room.data(), received.bytes}, expected);
  if (!heard || call.phase == Call::Phase::crossed) return give_up(call, "it does not follow the handshake");
  if (heard->format != kShmFormat)
    return give_up(call, fmt::format("its build shares memory in format {}, ours in {}", heard->format, kShmFormat));
  if (heard->kind == MessageKind::refusal) {
    // Keeps our call, whose closing would show a death, until the peer's call replaces it.
    if (heard->refusal == Refusal::crossed && peer < options_.rank) call.phase = Call::Phase::crossed;
    else if (heard->refusal == Refusal::busy) --call.attempts, wait_for_descriptors(call, "its process");
    else if (heard->refusal == Refusal::resources || heard->refusal == Refusal::known)
      give_up_for_want(call, fmt::format("it refused the connection: {}", name_of(heard->refusal)));
    else give_up(call, fmt::format("it refused the connection: {}", name_of(heard->refusal)));
    return;
  }
  if (expected == MessageKind::challenge) send_hello(call, *heard);
  else take_welcome(call, *heard, received);
}

void Connector::send_hello(Call& call, const HandshakeMessage& challenge) {
  const RingSizes sizes{options_.record_ring_bytes, options_.data_ring_bytes};
  base::Result<base::FileDescriptor> file = make_shared_file("tandem-rings", segment_file_bytes(sizes));
  if (!file && lacks_descriptors(errno)) return note_busy(), wait_for_descriptors(call, "this rank");
  if (!file) return give_up_for_want(call, file.error().message);
  base::Result<Segment> segment = map_segment(file.value().get(), sizes);
  if (!segment) return give_up_for_want(call, segment.error().message);
  call.segment = std::move(segment).value();
  call.challenge = challenge.nonce;
  call.nonce = std::make_unique<Nonce>(fresh_nonce());

  HandshakeMessage hello = message(MessageKind::hello, call.peer);
  hello.sizes = sizes;
  hello.nonce = *call.nonce;
  hello.probe_address = options_.remote_copies ? reinterpret_cast<std::uintptr_t>(call.nonce.get()) : 0;
  prove(hello, options_.secret, challenge.nonce);
  const std::array fds{file.value().get(), hub_file_.get(), doorbell_};
  if (!send_message(call.socket, std::as_bytes(std::span(&hello, 1)), fds)) return retry(call);
  call.phase = Call::Phase::to_be_welcomed;
}

void Connector::take_welcome(Call& call, const HandshakeMessage& welcome, Received& received) {
  const PeerIdentity identity = identity_of(call.socket);
  if (!is_proven(welcome, options_.secret, *call.nonce) || welcome.nonce != call.challenge ||
      identity.uid != ::geteuid())
    return give_up(call, "the process that listens under its name does not have the job's secret");
  if (received.cut) return note_busy(), wait_for_descriptors(call, "this rank");
  if (welcome.from != call.peer.value() || welcome.to != options_.rank.value() || received.fd_count != 2)
    return give_up(call, "its welcome makes no sense");
  Attachment attachment;
  attachment.segment = std::move(call.segment);
  attachment.outgoing = 0;
  attachment.peer = doorbell_of(received, 0);
  if (attachment.peer.hub.base() == nullptr) return give_up(call, "its page could not be mapped");
  attachment.pid = probe(call.socket, welcome);
  attachment.process = watch_process(identity);
  attachment.nonce = std::move(call.nonce);
  events_.remove(std::exchange(call.watch, 0));
  attachment.socket = std::move(call.socket);
  const Rank peer = call.peer;
  cancel_call(peer);
  owner_.attached(peer, std::move(attachment));
}

}  // namespace tandem::comm::internal
