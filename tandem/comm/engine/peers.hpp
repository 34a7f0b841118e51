// tandem/comm/engine/peers.hpp: the peers of an engine, the transports that reach them, and the rails to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/comm/engine/awaited_transport.hpp"
#include "tandem/comm/engine/card_lookups.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/schedule/strategy.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

struct Broadcasts;

/// Finds and connects peers. The first contact looks up the peer's address in the job's directory, and chooses a
/// transport. It is not made while a transport is being polled (`mark_dirty` leaves it to the end of the step).
///
/// Another thread asks for an address that the directory does not have yet. Until it comes (`learn`) the peer is
/// `awaited`: its rails belong to an `AwaitedTransport` and take nothing, so that what is posted waits in the peer's
/// queue. A peer that speaks first shows its transport, but cannot be answered before its address is here.
///
/// State: the peers, which live as long as this, the transports and their ports, and the addresses. Under the
/// endpoint's lock.
class Peers {
 public:
  Peers(EngineParts& parts, SendOrder order);
  /// Ends look-ups under way: no more addresses come. Without the endpoint's lock.
  void stop_lookups() { lookups_.stop(); }

  void add_transport(std::unique_ptr<Transport> transport);
  std::span<const std::unique_ptr<Transport>> transports() const noexcept { return transports_; }
  std::unordered_map<Transport*, Port>& ports() noexcept { return ports_; }
  /// The transport that is being polled; null: none.
  void set_polled(Transport* transport) noexcept { polling_ = transport; }
  const Transport* polled() const noexcept { return polling_; }

  const std::unordered_map<std::uint32_t, std::unique_ptr<Peer>>& all() const noexcept { return by_rank_; }
  /// The peer of that rank. Null: this rank has not sent to it, nor received from it.
  Peer* find(Rank rank) const noexcept {
    const auto found = by_rank_.find(rank.value());
    return found != by_rank_.end() ? found->second.get() : nullptr;
  }
  /// The peer that was looked up last; null: none. It is alive and has not left.
  Peer* recent() const noexcept { return recent_peer_; }
  void forget_recent(const Peer& peer) noexcept {
    if (recent_peer_ == &peer) recent_peer_ = nullptr;
  }

  /// Whether something may be queued for some peer.
  bool any_backlogged() const noexcept {
    return any_dirty() || std::ranges::any_of(ports_, [](const auto& entry) { return entry.second.backlogged > 0; });
  }
  /// Whether peers have something new to send. `take_dirty` removes one of them; null: there is none.
  bool any_dirty() const noexcept { return !dirty_.empty(); }
  Peer* take_dirty() noexcept;

  /// Whether this rank has said goodbye.
  bool leaving() const noexcept { return leaving_; }
  /// Abandons the job: peers that this rank has not met yet are dead to it, as the others are.
  void give_up_on_strangers() noexcept { given_up_ = true; }
  bool leave() noexcept { return std::exchange(leaving_, true); }  ///< false: it had not left before

  /// The peer, connected on first use. Null: unreachable, which counts as dead. Not while a transport is being polled.
  Peer* peer_for(Rank rank) {
    if (recent_peer_ != nullptr && recent_peer_->rank == rank) [[likely]] return recent_peer_;
    return find_peer(rank);
  }
  /// The peer, connected or not.
  Peer& make_peer(Rank rank);
  /// Chooses the peer's transport. False: none reaches it.
  bool choose_transport(Peer& peer);
  void use_transport(Peer& peer, Transport* transport);
  /// The polled transport, which has taken nothing for the peer, cannot connect to it. True: another one reaches it,
  /// and connects at the end of the step.
  bool change_transport(Peer& peer);
  /// Makes the links on which this rank sends.
  void connect_rails(Peer& peer);
  Rail& rail_of(Link& link) {
    if (link.owner != nullptr) [[likely]] return *static_cast<Rail*>(link.owner);
    return make_rail(link);
  }
  /// What the job's directory says of a rank; null: nothing, or nothing yet.
  const PeerCard* card_of(Rank rank);
  /// Whether a broadcast should wait for the address of a recipient, since its tree depends on it: the address is being
  /// looked up, from now on or since a short while. Once false, it stays so.
  bool waits_for_card(Rank rank);
  bool knows_all_cards() const noexcept { return cards_.size() >= context_.size || context_.directory == nullptr; }
  bool awaits_card(Rank rank) { return cards_.size() < context_.size && know(rank) == Known::later; }
  /// Time for which broadcasts wait for the address of one peer.
  static constexpr std::int64_t kCardPatienceNs = 100'000'000;
  /// Whether packets can go to the peer, now or later.
  static bool has_transport(const Peer& peer) noexcept { return peer.transport != nullptr && !peer.awaited; }
  /// Whether the rails to the peer read, and write, messages in such memory.
  static bool reads(const Peer& peer, BufferMemory memory) noexcept {
    return memory == BufferMemory::host || (has_transport(peer) && peer.transport->capabilities().cuda_memory);
  }
  /// The link by which memory of the peer's process can be read and written.
  static Link& copy_link(Peer& peer) noexcept {
    const auto real = std::ranges::find_if(peer.all_rails, [](const auto& rail) { return !rail->awaited; });
    return *(real != peer.all_rails.end() ? *real : peer.all_rails.front())->link;
  }
  /// Notes that the peer has something new to send.
  void mark_dirty(Peer& peer);
  Transport* transport_to(Rank peer);
  std::vector<Rank> connected() const;
  bool is_dead(Rank rank) const noexcept;
  /// Connects at the end of the step, to hear of the peer's death. May be called while polling.
  void connect_to(Rank rank);
  /// Whether a transfer of this size shows the network's rate: buffers on the way hide small ones.
  static bool shows_rate(const Peer& peer, std::uint64_t bytes) noexcept;
  /// Updates the peer's rate by a transfer that began at `since_ns` and has ended.
  void measure(Peer& peer, std::uint64_t bytes, std::int64_t since_ns);
  /// Messages up to this size, in bytes, are sent without an announcement.
  std::size_t eager_limit(const Peer& peer) const noexcept;
  /// See `Peer::at_once_below`.
  std::size_t at_once_below(const Peer& peer) const noexcept {
    const bool never = peer.rails.empty() || peer.dead || peer.left || peer.deferred != nullptr;
    return never ? 0 : std::min(kInlineBytes, eager_limit(peer)) + 1;
  }
  /// Whether an empty block should bring the peer our counters, since nothing else goes there.
  bool head_is_due(const Peer& peer) const noexcept {
    return peer.head.seen - peer.head_sent.seen >= kSeenBetweenHeads ||
           peer.head.freed_messages - peer.head_sent.freed_messages >= due_messages_ ||
           peer.head.freed_units - peer.head_sent.freed_units >= due_units_;
  }

 private:
  struct Lookup {
    std::int64_t since_ns = 0;
    bool failed = false;
  };
  enum class Known { yes, no, later };

  Peer* find_peer(Rank rank);
  Known know(Rank rank);
  void learn(Rank rank, base::Result<PeerCard> card);
  void await(Peer& peer);
  bool find_transport(Peer& peer);
  Rail& make_rail(Link& link);

  const EngineContext& context_;
  EndpointStatistics& statistics_;
  Broadcasts& broadcasts_;

  /// Messages after which a peer gets our counters at the latest, so that its fences (9 bits) stay unambiguous.
  static constexpr std::uint32_t kSeenBetweenHeads = 64;
  const std::uint32_t due_messages_;  ///< a quarter of the credit
  const std::uint32_t
      due_units_;  ///< half of the credit: more than a message of one segment, whose answer carries the counters

  std::vector<std::unique_ptr<Transport>> transports_;
  std::unordered_map<Transport*, Port> ports_;
  Transport* polling_ = nullptr;
  const SendOrder order_;  ///< of the peers' queues
  std::unordered_map<std::uint32_t, std::unique_ptr<Peer>> by_rank_;
  Peer* recent_peer_ = nullptr;
  std::unordered_map<std::uint32_t, PeerCard> cards_;
  std::unordered_map<std::uint32_t, Lookup> lookups_under_way_;  ///< and those that have failed
  AwaitedTransport awaited_;
  CountedList<Peer*> dirty_;
  bool leaving_ = false;
  bool given_up_ = false;
  CardLookups lookups_;
};

}  // namespace tandem::comm::internal
