// tandem/comm/engine/peer.hpp: what the engine knows of one peer that it has spoken to, and of the streams between
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/engine/allowance.hpp"
#include "tandem/comm/engine/copy_choice.hpp"
#include "tandem/comm/engine/copy_meeting.hpp"
#include "tandem/comm/engine/core.hpp"
#include "tandem/comm/engine/recycled.hpp"
#include "tandem/comm/engine/stream_table.hpp"
#include "tandem/comm/engine/deferred_sends.hpp"
#include "tandem/comm/mcast/port_rate.hpp"
#include "tandem/comm/schedule/port_pacer.hpp"
#include "tandem/comm/schedule/send_queue.hpp"
#include "tandem/comm/schedule/strategy.hpp"
#include "tandem/comm/transport/transport.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm {
struct KnownNetwork;  // endpoint.hpp
}

namespace tandem::comm::internal {

struct Strand;
struct Child;
struct Incoming;
struct Envelope;

/// A record of our own (grant, finish, note) that waits to be sent, before all messages and in order.
struct ControlItem final : Item, Recycled<ControlItem> {
  ControlItem() noexcept : Item(ItemKind::control) {}
  static constexpr std::size_t kMostBytes = sizeof(wire::McastLost) > sizeof(wire::Grant) ? sizeof(wire::McastLost)
                                                                                          : sizeof(wire::Grant);
  std::array<std::byte, kMostBytes> record;
};

using Meeting = CopyMeeting<std::atomic<std::uint64_t>>;

/// The bytes of a large message on their way out, cut into segments when a rail can take one. Bytes count from the
/// stream's start. Invariant: cursor <= min(granted, available, limit) <= length.
struct OutgoingStream final : Item, Recycled<OutgoingStream> {
  OutgoingStream() noexcept : Item(ItemKind::stream) {}
  Peer* peer = nullptr;
  std::uint32_t id = 0;             ///< number that we gave it towards this peer
  const Pieces* source = nullptr;
  std::uint64_t base = 0;           ///< where the stream's first byte lies in `source`
  std::uint64_t length = 0;
  std::uint64_t limit = 0;          ///< most bytes that the receiver wants
  std::uint64_t cursor = 0;         ///< bytes handed to rails
  std::uint64_t granted = 0;        ///< bytes that the receiver allows
  std::uint64_t available = 0;      ///< bytes that are in `source` already
  std::uint64_t segment = UINT64_MAX;  ///< most bytes of a packet: a forwarder waits for a whole packet
  std::uint32_t posted = 0;         ///< packets that rails still read
  std::uint8_t epoch = 0;
  bool call = false;                ///< a message for a channel that the peer wants all of
  /// When bytes could go: at the first grant, or with the announcement that met its receive.
  std::int64_t started_ns = 0;
  SendCore* send = nullptr;         ///< the send whose message it is, or
  Child* child = nullptr;           ///< the child whose part of a broadcast it is
  std::uint64_t expected = 0;       ///< number of its announcement to the port's pacer, until it is granted; 0: none

  /// Bytes that the queue may hand to a rail now.
  std::uint64_t ready() const noexcept {
    const std::uint64_t end = std::min({granted, available, limit});
    return end > cursor ? std::min(end - cursor, segment) : 0;
  }
};

/// A packet whose payload a rail still reads.
struct PostedPacket {
  SendCore* send = nullptr;
  OutgoingStream* stream = nullptr;
  Child* child = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t next_free = UINT32_MAX;
};

/// Where a link puts the payload that it is delivering now.
struct LandingPlace {
  enum class Kind : std::uint8_t {
    none,
    drop,
    receive,
    envelope,
    incoming,
    superseded,  ///< a segment of a strand whose parent was replaced meanwhile: the link still writes into the
                 ///< broadcast's memory
  } kind = Kind::none;
  ReceiveCore* receive = nullptr;
  Envelope* envelope = nullptr;
  Incoming* incoming = nullptr;
  Strand* strand = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::int64_t started_ns = 0;  ///< of a receive's, where it shows the network's rate
  std::vector<iovec> pieces;  ///< scratch, kept for its capacity
};

/// One link as the engine sees it; `Link::owner` points here.
struct Rail {
  Peer* peer = nullptr;
  Link* link = nullptr;
  bool blocked = false;  ///< answered `retry`, and has not said `writable` since
  bool awaited = false;  ///< stands for the rails of a transport that is not known yet
  LandingPlace landing;
  std::vector<PostedPacket> posted;
  std::uint32_t free_posted = UINT32_MAX;

  /// Whether it still reads a packet.
  bool is_reading() const noexcept {
    return std::ranges::any_of(posted, [](const PostedPacket& packet) {
      return packet.send != nullptr || packet.stream != nullptr || packet.child != nullptr;
    });
  }
};

/// Up to this size data travels among the records, so that several messages share a packet and none needs a landing.
inline constexpr std::size_t kInlineBytes = 1024;

/// One network, as far as this rank sends into it.
struct Port {
  PortRate rate;
  double assumed_bytes_per_ns = 0;  ///< until the rate is known: measured earlier, or the transport's estimate
  CopyChoice copies;
  PortPacer pacer;
  std::int64_t look_ns = 0;  ///< while the pacer makes bulk wait: when to ask it again
  unsigned backlogged = 0;  ///< peers with something in their queue
};

/// A peer. It lives until the endpoint ends, also after its death. It takes some hundred bytes, and what is in flight.
struct Peer {
  Peer(Rank rank_of, SendOrder order) : rank(rank_of), queue(order) {}

  Rank rank;
  Transport* transport = nullptr;
  Port* port = nullptr;  ///< of the transport, and the engine's
  std::vector<Transport*> failed_transports = {};  ///< that should reach it by its address, and could not connect
  std::vector<std::unique_ptr<Rail>> all_rails;  ///< of all links, including those that only bring packets
  std::vector<Rail*> rails;                      ///< for sending, by number; empty before the first send
  std::vector<RailState> rail_states;
  SendQueue queue;
  /// Messages of fewer bytes go eagerly and inline. 0: none does, because there are no rails yet, messages are
  /// deferred, or the peer is dead or has left.
  std::size_t at_once_below = 0;
  bool pumping = false;   ///< guards against forming packets from inside forming packets
  bool backlogged = false;  ///< something waits that its rails did not take
  bool dirty = false;     ///< in the engine's list of peers to be pumped
  bool held = false;      ///< the pacer makes its bulk wait: in `PortPacing`'s list
  std::optional<std::int32_t> paced_priority;  ///< the priority of its most urgent ready stream, as the pacer knows it
  bool awaited = false;      ///< its address is being looked up: what sends to it has links of an `AwaitedTransport`
  bool unreachable = false;  ///< no transport, or not in the directory: dead as soon as `peer_failed` may be called
  bool dead = false;
  bool left = false;           ///< said goodbye
  bool goodbye_answered = false;  ///< it answered our goodbye

  Allowance allowed;    ///< what the peer keeps of our messages
  Occupancy occupied;   ///< what we keep of the peer's messages
  std::uint64_t asked = 0;  ///< messages that we asked for while it deferred some
  std::uint32_t wants_sent = 0;   ///< while it defers, wants sent since we renewed them; at most `kMostWants`
  bool wants_everything = false;  ///< while it defers: we asked for whatever it has

  // What we sent, and what the peer's blocks reported about it. Counters modulo 2^32, as on the wire.
  std::uint32_t envelopes_sent = 0;
  std::uint32_t eager_sent = 0;
  std::uint32_t units_sent = 0;
  wire::BlockHead head_received;  ///< the newest head of the peer's blocks
  // What the peer sent, and what our blocks reported about it.
  wire::BlockHead head;  ///< as it would be sent now
  wire::BlockHead head_sent;  ///< as it was sent last

  std::uint32_t announced = 0;         ///< messages that have a stream
  std::uint32_t announced_calls = 0;   ///< of these, `OutgoingStream::call`
  std::unique_ptr<DeferredSends> deferred;  ///< null: nothing is deferred for the peer
  std::vector<MatchPattern> probed;    ///< wanted by probes that have met nothing, while the peer defers messages

  std::uint32_t next_stream = 1;
  StreamTable<OutgoingStream> outgoing;
  StreamTable<Incoming> incoming;

  const KnownNetwork* known = nullptr;  ///< of the transport; null: the transport's own estimate counts
  // Measured values; before the first measurement what is known, or the transport's estimate.
  double bytes_per_ns = 0;
  std::int64_t latency_ns = 0;
  bool measured = false;
  bool no_remote_copy = false;  ///< reading was tried, and is not permitted
  bool no_sharing = false;      ///< writing was tried, and is not permitted
  Incoming* shared = nullptr;   ///< the one message of the peer that both copy now
  bool receives_wait = false;   ///< whether a receive waited for our last announcement, as the peer reported
};

/// A large message on its way in, by its sender's number. It ends, and its memory is the user's again, only when no
/// payload is landing in it: a peer that sends bytes twice, on two rails, must not write into memory that was returned.
struct Incoming final : Recycled<Incoming> {
  Peer* peer = nullptr;
  std::uint32_t stream = 0;
  std::uint64_t length = 0;   ///< bytes that we want: the receive's buffer may be shorter than the message
  std::uint64_t landed = 0;   ///< bytes that are here (rails may bring them in any order)
  std::uint64_t granted = 0;
  std::uint8_t epoch = 0;
  std::uint32_t landings = 0;         ///< payloads of it that links are delivering now
  bool met = false;           ///< a receive waited for it
  bool restart = false;       ///< what came with its announcement was dropped
  bool call = false;          ///< counts in `Peer::occupied`, as a message for a handler
  ReceiveCore* receive = nullptr;     ///< the receive of a plain message, or
  Strand* strand = nullptr;           ///< the strand of a broadcast; both null: to be dropped
  // By remote copy:
  std::uint64_t pull_at = 0, pull_address = 0;
  bool pulling = false;
  std::optional<Meeting> meeting;     ///< the sender copies, too
  std::uint64_t part_bytes = 0;       ///< bytes that each side takes at a time
  std::optional<CopyWay> way;         ///< when it was chosen, for `CopyChoice`
  std::int64_t started_ns = 0;
};

/// The sender's side of a message that both copy. It stays in the engine's list until no part is left.
struct Push {
  OutgoingStream* stream;
  std::uint64_t address;     ///< of the buffer in the receiver's process
  std::uint64_t bytes;       ///< wanted
  std::uint64_t part_bytes;
  Meeting meeting;

  /// Bytes of the last parts, which we took; at least one part.
  std::uint64_t taken_bytes() const noexcept { return bytes - (meeting.parts() - meeting.taken()) * part_bytes; }
};

/// A message that came before its receive. An eager one no longer than its announcement would be is stored in it.
struct Envelope final : ArrivedEnvelope, Recycled<Envelope> {
  enum class Kind : std::uint8_t { announced, eager, broadcast };
  static constexpr std::size_t small_bytes = 16;
  struct Announced {
    std::uint64_t address;
    std::uint32_t stream;
    std::uint32_t along;  ///< bytes of the stream that came with the announcement
  };

  Envelope(Kind kind_of, MatchKey from, Peer* sender, std::uint64_t bytes_of, std::span<const std::byte> header_of)
      : ArrivedEnvelope(from),
        peer(sender),
        bytes(bytes_of),
        announced{},
        header_bytes(base::narrow<std::uint16_t>(header_of.size())),
        kind(kind_of) {
    if (!header_of.empty()) [[unlikely]] {
      header_copy = std::make_unique_for_overwrite<std::byte[]>(header_of.size());
      std::memcpy(header_copy.get(), header_of.data(), header_of.size());
    }
  }
  std::span<const std::byte> header() const noexcept { return {header_copy.get(), header_bytes}; }
  /// Where the data of an eager message is, or is to go.
  std::span<std::byte> room() noexcept { return {bytes <= small_bytes ? small.data() : data.get(), bytes}; }
  /// Allocates `room`.
  void make_room() {
    if (bytes > small_bytes) data = std::make_unique_for_overwrite<std::byte[]>(bytes);
  }

  Peer* peer;  ///< null: a broadcast
  std::uint64_t bytes;
  std::unique_ptr<std::byte[]> data;    ///< eager, and not small
  union {
    std::array<std::byte, small_bytes> small;  ///< eager
    Announced announced;
    Broadcast* broadcast;
  };
  ReceiveCore* receive = nullptr;  ///< took it while it was not complete
  std::unique_ptr<std::byte[]> header_copy;
  std::uint16_t header_bytes;
  const Kind kind;
  bool complete : 1 = false;       ///< eager: the data is there
  bool kept : 1 = false;           ///< in the matcher
  bool late : 1 = false;           ///< announced, and no receive waited: what came along was dropped
  bool lost : 1 = false;           ///< its data will not come
  bool counted : 1 = false;        ///< in `Peer::occupied`
  bool call : 1 = false;           ///< in `Peer::occupied`, as an announcement for a handler
  bool placed : 1 = false;         ///< announced: the network writes its payloads, also into the memory of CUDA devices
  std::uint8_t unused : 1 = 0;     ///< so that nothing of the byte need be read before it is written
};
static_assert(sizeof(wire::Eager) + Envelope::small_bytes <= sizeof(wire::Announce),
              "a small message costs what its announcement does");
static_assert(sizeof(Envelope) <= 128, "many may wait at once");

}  // namespace tandem::comm::internal
