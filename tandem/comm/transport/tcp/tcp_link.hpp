// tandem/comm/transport/tcp/tcp_link.hpp: the sockets, links and peers that the TCP transport keeps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/connection_proof.hpp"
#include "tandem/comm/transport/tcp/address.hpp"
#include "tandem/comm/transport/tcp/frame_reader.hpp"
#include "tandem/comm/transport/tcp/frame_writer.hpp"
#include "tandem/comm/transport/tcp/socket.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

class TcpTransport;
class TcpLink;
struct TcpPeer;

constexpr std::int64_t never = INT64_MAX;    ///< a deadline that does not come
constexpr std::int64_t at_once = INT64_MIN;  ///< a deadline for the next poll

/// One socket. Owned by the transport. After its end it stays until no event that the kernel has already returned can
/// name it.
struct Connection {
  enum class Stage {
    pausing,     ///< ours: will be tried again at `deadline_ns`
    connecting,  ///< ours: the system is connecting it
    proving,     ///< both sides prove that they know the job's secret
    open,        ///< carries packets
    ended,
  };

  explicit Connection(FrameReader::Limits limits) noexcept : reader(limits) {}

  base::FileDescriptor socket;
  Stage stage = Stage::ended;
  TcpLink* link = nullptr;  ///< null while its opener is unknown
  std::unique_ptr<ConnectionProof> proof;  ///< while proving
  FrameReader reader;
  FrameWriter writer;
  std::int64_t deadline_ns = never;  ///< of the stage, on the clock of `poll`
  std::int64_t silent_since_ns = 0;  ///< since when the peer's host acknowledges nothing; 0: it does
  std::uint32_t epoll_events = 0;    ///< what the epoll set watches for
  int write_error = 0;               ///< why nothing can be written any more
  std::size_t send_buffer_bytes = 0;  ///< as set in the kernel
  std::size_t low_water_bytes = 1;    ///< from this many on the kernel calls it readable
  std::int64_t blocked_at_ns = 0;    ///< time of the poll before a write was refused
  std::int64_t blocked_ns = 0;       ///< how long writes were refused since its speed was judged
  std::uint64_t carried_at_bytes = 0;  ///< bytes that it had written when the kernel was last asked what it carries
  std::uint64_t judged_at_bytes = 0;  ///< bytes that it had written when its speed was last judged
  std::uint64_t looked_from_bytes = 0;  ///< bytes that it had written by the poll at `looked_from_ns`
  std::int64_t looked_from_ns = 0;      ///< start of its observation, while it is not known to be fast
  std::uint64_t looked_at_poll = 0;     ///< number of the poll before the last check
  std::uint64_t paused_at_poll = 0;     ///< the number of the poll that paused its reading last
  unsigned idle_polls = 0;           ///< since it last had something, while hot
  bool watched = false;              ///< is in the transport's list of those with bytes perhaps not acknowledged
  bool hot = false;                  ///< is in the transport's list of those that `poll` reads directly
  bool within_host = false;          ///< its packets do not leave the host: it is fast, and not judged
  bool fast = false;                 ///< was judged so: gets no portions (`TcpOptions::burst_bytes`)
  bool blocked = false;              ///< is in the transport's list of those that wait until they can write
};

/// One rail to one peer. It may have two connections, when both sides opened one at the same time. Each side always
/// sends on one of them, so that packets of one direction never overtake each other. Both choose the same one where
/// they can (`TcpTransport::choose_way`).
///
/// A spliced payload (`SplicePipe`) must not change until a header from the peer acknowledges it: that of the peer's
/// next packet, or a header alone when the peer's next poll sends no packet. Meanwhile `splices` counts it and the
/// peer's `splices_read` does not.
class TcpLink final : public Link {
 public:
  TcpLink(TcpTransport& by, TcpPeer& to, Rank rank, unsigned rail) noexcept
      : Link(rank, rail), transport(by), owner_peer(to) {}

  SendStatus try_send(const Packet& packet) override;

  TcpTransport& transport;
  TcpPeer& owner_peer;
  Connection* ours = nullptr;    ///< the one that we opened, until its end
  Connection* theirs = nullptr;  ///< the one that the peer opened, until its end
  Connection* out = nullptr;     ///< the one to send on; never changes once a packet went that way
  /// The connection on which the peer's packets come, since its first packet. The other one must bring none: the engine
  /// lands one payload of a rail at a time. Kept after the connection's end, when it must not be dereferenced.
  const Connection* in = nullptr;
  bool wants_writable = false;   ///< `try_send` has answered retry

  // Spliced payloads; numbers are modulo 2^32.
  static constexpr std::uint32_t most_splices = 4;  ///< to the peer, not known to be read
  std::uint32_t splices_unread() const noexcept { return splices - splices_known_read; }
  bool must_acknowledge = false;             ///< is in the transport's list of links with splices to acknowledge
  std::uint32_t splices = 0;                 ///< to the peer, in all
  std::uint32_t splices_known_read = 0;      ///< of these, what the peer has acknowledged
  std::uint32_t splices_read = 0;            ///< from the peer, in all, that were read here
  std::uint32_t splices_acknowledged = 0;    ///< what the peer knows of that
  std::array<std::uint64_t, most_splices> splice_cookies = {};  ///< of those that are unread, by number
  std::uint64_t splice_read_at_poll = 0;     ///< the number of the poll that read the last one

  // For making our connection.
  std::vector<SocketAddress> candidates = {};
  std::size_t next_candidate = 0;
  std::int64_t give_up_ns = 0;      ///< 0: nothing has failed yet
  bool may_succeed_later = false;   ///< a failure in this round of candidates may pass
  std::string failure = {};         ///< the last one
};

/// What the transport knows of a peer that it has had a link to.
struct TcpPeer {
  enum class State {
    present,
    losing,  ///< a connection has ended without a goodbye: a goodbye may still be in another one, or in the engine's
             ///< hands
    gone,    ///< failed, given up, or left: the sink gets nothing more about it
  };

  explicit TcpPeer(Rank which) noexcept : rank(which) {}

  Rank rank;
  State state = State::present;
  bool left = false;  ///< it has said goodbye
  bool met = false;   ///< a connection with it was open
  std::vector<std::unique_ptr<TcpLink>> links = {};  ///< by rail; null where there is none
  std::string loss = {};                ///< why it is `losing`
  std::uint64_t lost_at_poll = 0;       ///< the number of that `poll`
  std::int64_t give_up_ns = never;      ///< until when its other connections may speak
};

}  // namespace tandem::comm::internal
