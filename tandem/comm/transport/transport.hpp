// tandem/comm/transport/transport.hpp: what carries packets between two ranks, and how it reports to the engine above
// it.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tandem/base/assert.hpp"
#include "tandem/base/ids.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm {

using base::Rank;

/// What a rail carries at once: a control block (records of the engine, see `wire.hpp`; never empty), and optionally
/// the payload that belongs to the block's last record. The transport keeps the boundary between the two and between
/// packets.
struct Packet {
  std::span<const std::byte>
      control;  ///< at most `Capabilities::max_control_bytes`; free again when `try_send` returns
  std::span<const iovec> payload = {};  ///< pieces; the array is free again when `try_send` returns, the bytes are not
  std::size_t payload_bytes = 0;           ///< sum over `payload`, at most `Capabilities::max_payload_bytes`
  std::uint64_t message_bytes = 0;         ///< of the message that the payload is of, whole or a segment
  std::uint64_t cookie = 0;                ///< returned by `PacketSink::sent` when the answer was `posted`
};

enum class SendStatus {
  done,    ///< everything was taken: the payload may be reused at once
  posted,  ///< taken, but the payload is read until `PacketSink::sent(link, cookie)`; later packets may be tried at
           ///< once
  retry,   ///< nothing was taken, nothing has changed; `PacketSink::writable(link)` says when to try again
};

/// Where a payload goes. `pieces` stay valid until `landed` (or until the link is gone); bytes beyond their sum are
/// dropped.
struct Landing {
  std::span<const iovec> pieces = {};  ///< empty: the payload is read and dropped
  std::uint64_t token = 0;             ///< passed to `landed`
  std::uint64_t message_bytes = 0;     ///< of the message that the payload is a segment of; 0: it is no segment
  /// Not null: the block does not follow its format, for this reason; the link is closed.
  const char* malformed = nullptr;
};

/// One rail to one peer. Owned by its transport, and valid until the transport is destroyed, also after the peer failed
/// (then `try_send` always answers `retry`, and the sink gets nothing more about it).
class Link {
 public:
  virtual ~Link() = default;

  /// Gives a packet to the rail. Packets of one link arrive whole and in order. Never blocks. A link that is still
  /// connecting answers `retry`, and `writable` follows.
  virtual SendStatus try_send(const Packet& packet) = 0;

  /// Room where the caller writes the control block of a packet without payload; `send_reserved` then sends it. Nothing
  /// of this link may be called in between. `own` is memory of the caller, of the block's size, a multiple of 8. A rail
  /// with memory of its own returns that instead, which saves a copy. Empty: no room now, as `retry`. Of a block longer
  /// than `kFirstBytes` the beginning must be written last: a polling reader takes that cache line away from the
  /// writer.
  virtual std::span<std::byte> reserve(std::span<std::byte> own) { return own; }
  virtual SendStatus send_reserved(std::span<const std::byte> block) { return try_send(Packet{.control = block}); }
  static constexpr std::size_t kFirstBytes = 56;
  /// What `reserve` would return for a block of up to `kFirstBytes`, for callers that skip that call; null: call it.
  /// Set by the link during calls to it or to its transport.
  std::byte* line = nullptr;

  /// After `retry`: whether the link would take that packet now; then no `writable` follows. For a thread that posts
  /// and may not poll. Costs almost nothing; false where only a poll can find out.
  virtual bool has_room_again() { return false; }

  /// Reads memory of the peer's process (capability `remote_read`): `to.size()` bytes at `address` there. Blocks for
  /// the time of the copy, so that callers cut large reads. False: not permitted or gone; nothing may be assumed about
  /// `to`.
  virtual bool read_remote(std::uint64_t address, std::span<std::byte> to) { return (void)address, (void)to, false; }

  /// Writes into memory of the peer's process; counterpart of `read_remote`. Nothing is written once the peer is seen
  /// to be gone.
  virtual bool write_remote(std::uint64_t address, std::span<const std::byte> from) {
    return (void)address, (void)from, false;
  }

  /// A word, zero at first, that both sides share and that transports do not use: one for messages to the peer, one for
  /// messages from it. Valid while the link is. Null: none, or not connected yet.
  enum class Direction { outgoing, incoming };
  virtual std::atomic<std::uint64_t>* shared_word(Direction) noexcept { return nullptr; }

  /// Bytes that a packet of a large message should carry at least, where that is more than
  /// `Capabilities::segment_bytes`. The link sets it once it is known.
  std::size_t segment_bytes = 0;

  Rank peer() const noexcept { return peer_; }
  unsigned rail() const noexcept { return rail_; }
  void* owner = nullptr;  ///< the engine's, never touched by transports

 protected:
  Link(Rank peer, unsigned rail) noexcept : peer_(peer), rail_(rail) {}

 private:
  Rank peer_;
  unsigned rail_;
};

/// What a transport reports to the engine. Called only from inside calls to the transport (mostly `poll`), on that
/// thread. From inside, the sink may call `Link::try_send` of any link, and nothing else.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// A packet's control block is here. With `payload_bytes` > 0 the result says where the payload goes, and `landed`
  /// follows before any later packet of this link is reported. `control` is valid during the call; its address is a
  /// multiple of 8.
  virtual Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) = 0;
  /// Like `arrived`, for a packet without payload: returns `Landing::malformed` alone.
  virtual const char* arrived_whole(Link& link, std::span<const std::byte> control) {
    return arrived(link, control, 0).malformed;
  }
  /// The payload is where `arrived` wanted it. Also called for dropped payloads.
  virtual void landed(Link& link, std::uint64_t token) = 0;
  /// A posted packet's payload may be reused.
  virtual void sent(Link& link, std::uint64_t cookie) = 0;
  /// The link that answered `retry` may take a packet now.
  virtual void writable(Link& link) = 0;
  /// The peer cannot be reached any more. Called once per peer and transport. Its links report nothing more, also not
  /// for posted packets.
  virtual void peer_failed(Rank peer, std::string_view reason) = 0;
  /// A peer has connected. It may never send anything: a peer also connects to learn of this rank's end.
  virtual void opened(Link&) {}
  /// Called instead of `peer_failed` where no connection was ever made: the peer may have left in order before.
  virtual void peer_unreachable(Rank peer, std::string_view reason) { peer_failed(peer, reason); }
  /// Called instead of `peer_unreachable` when memory or descriptors are lacking on either side, and nothing was taken
  /// for the peer: another transport may reach it. This transport must not be asked again for that peer.
  virtual void peer_needs_other_transport(Rank peer, std::string_view reason) { peer_unreachable(peer, reason); }
};

/// What a transport can do.
struct Capabilities {
  std::size_t max_control_bytes = 0;   ///< at least 4096
  std::size_t max_payload_bytes = 0;   ///< largest payload of one packet
  std::size_t segment_bytes = 0;  ///< payload of a packet: keeps the rail busy, and lets an urgent message wait little
  std::size_t eager_bytes = 0;         ///< messages up to this size are sent eagerly
  unsigned rails = 1;  ///< links per peer that may share a large message; rail 0 carries everything else
  bool poll_is_costly = false;         ///< a `poll` that finds nothing takes a system call
  bool remote_read = false;  ///< `Link::read_remote` may work, and `write_remote`, where links have shared words
  std::size_t remote_copy_bytes = 0;   ///< from this size on remote reads may be faster than segments; 0: never
  std::size_t remote_broadcast_bytes = 0;  ///< from this size on, recipients of broadcasts read remotely; 0: never
  /// Payloads may lie in the memory of CUDA devices on either side, if both say so, on all rails.
  bool cuda_memory = false;
  /// No network in between: how fast rails take packets depends on cores, so they have no rate.
  bool shared_memory = false;
  std::int64_t latency_ns = 0;         ///< first guess of the time of a small packet, replaced by measurement
  double bytes_per_ns = 0;             ///< first guess of the bandwidth, replaced by measurement
  double message_ns = 1000;            ///< work of one packet on one side, beside its bytes
  double copy_ns_per_byte = 0.1;       ///< work of a byte, both sides together
};

/// A way to move packets. All calls on a transport and its links are serialised by the caller (the engine's lock); none
/// blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const noexcept = 0;  ///< "loop", "shm", "tcp", "ucx", "mpi"
  virtual const Capabilities& capabilities() const noexcept = 0;

  /// What peers need to reach this rank: opaque bytes, at most 4096, published by the bootstrap under the transport's
  /// name.
  virtual std::string card() const = 0;
  /// Whether a peer with this address can be reached by this transport (for shm: same host, same namespace, segment
  /// mappable).
  virtual bool reaches(Rank peer, std::string_view card) = 0;

  /// The link to a peer on a rail, made on first use; the existing one (for instance, one that the peer opened) if
  /// there is one.
  virtual Link& connect(Rank peer, std::string_view card, unsigned rail) = 0;

  /// Whether a peer is making a connection with this rank. A rank that leaves tells that peer so first.
  virtual bool accepts_now() const noexcept { return false; }

  /// Reads what arrived, finishes what was posted, accepts connections. Returns the number of calls to the sink.
  /// Bounded work.
  virtual unsigned poll(std::int64_t now_ns) = 0;

  /// Wakes the peers that sleep, after sends that no `poll` follows soon. Peers that fall asleep at this moment may be
  /// left to the next `poll`, which must come within milliseconds.
  virtual void hurry() {}

  /// Bytes that were taken and have not left this rank's buffers, as far as is known: they delay later packets.
  virtual std::size_t unsent_bytes() const { return 0; }

  /// A rate that the network has recently reached with much to carry; it may be faster. Independent of whether sender
  /// and receiver had a core. 0: not known.
  virtual double carried_bytes_per_ns() const { return 0; }

  /// A descriptor that becomes readable when `poll` would find something after `arm`; -1: none.
  virtual int wait_descriptor() const noexcept = 0;
  /// Whether a sleeping engine is woken when there is something to poll, by the descriptor or by its waker. False: the
  /// engine polls with bounded back-off.
  virtual bool rings() const noexcept { return wait_descriptor() >= 0; }
  /// Declares that polling stops. False: something is already there, so polling must go on; then nothing is declared.
  /// Links may be made and packets sent meanwhile: whatever then waits for a `poll` (room for what was refused, the
  /// rest of what was posted, a connection, a failure) also wakes the sleeping engine. A `poll` may take what would
  /// have woken it: `disarm` and `arm` follow.
  virtual bool arm() = 0;
  /// Resumes polling. Pairs with a successful `arm`.
  virtual void disarm() = 0;

  /// The peer said goodbye: closing links are no failure from now on.
  virtual void peer_left(Rank peer) = 0;
  /// Closes the links to a peer that sent malformed bytes, or that the engine has given up.
  virtual void disconnect(Rank peer) = 0;
};

}  // namespace tandem::comm
