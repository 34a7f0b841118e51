// tandem/comm/engine/broadcast.hpp: one broadcast as one rank sees it: what came from above, what goes below, and in
// which order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/core.hpp"
#include "tandem/comm/engine/held_broadcasts.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/mcast/cost.hpp"
#include "tandem/comm/mcast/route.hpp"
#include "tandem/comm/mcast/tree.hpp"

namespace tandem::comm::internal {

/// Most entries of one route, so that it fits with the user's header into the smallest control block of a transport.
inline constexpr std::size_t kMostPerRoute = 340;

/// The tree that was chosen for a broadcast, and what it was chosen for: the content of a `BroadcastPlan`. What differs
/// from one broadcast to the next, the order of each recipient's messages, is no part of it.
struct PlannedTree {
  /// The routes of one strand.
  struct Way {
    std::vector<std::byte> route;           ///< of all recipients
    std::vector<std::uint32_t> recipients;  ///< index of each entry's recipient
    bool sequential = false;
  };

  const void* planner = nullptr;      ///< the planner that filled it; null: none yet
  std::vector<Recipient> given;       ///< as the user gave them
  std::vector<Recipient> sorted;      ///< `given` in the order of `Broadcast::recipients`
  bool sorted_by_priority = true;     ///< that order is theirs

  // What the tree is for:
  std::vector<Recipient> recipients;  ///< that the tree serves; empty: there is no tree yet
  std::uint64_t bytes = 0;
  TreeOptions wanted;
  NetworkCosts costs;
  bool one_machine = false;           ///< one of the costs, and as lasting as the recipients

  // The tree:
  TreeKind chosen = TreeKind::automatic;  ///< what was wanted, or what was found to be best
  unsigned strand_count = 0;
  std::size_t segment_bytes = 0;      ///< 0: strands go whole
  std::array<Way, 2> ways;            ///< one per strand
};

/// The first packet of a strand to a child: its route and the first segment.
struct OfferItem final : Item {
  OfferItem() noexcept : Item(ItemKind::offer) {}
  Child* child = nullptr;
};

/// A recipient that we serve, and its subtree.
struct Child {
  Broadcast* broadcast = nullptr;
  unsigned strand = 0;
  Rank rank{0};
  Peer* peer = nullptr;
  RouteView route;               ///< its entry first; in the strand's `route_bytes`
  OfferItem offer;
  OutgoingStream* stream = nullptr;  ///< until the child is `sent` and `acknowledged`
  std::uint64_t unasked = 0;         ///< bytes that may be sent before the child's first grant
  std::uint64_t address = 0;         ///< where the child may read the strand in our memory; 0: it may not
  bool credited = false;         ///< counts against the child's credit; cannot be declined
  bool adopted = false;          ///< was below a rank that died or declined
  std::uint16_t deaths = 0;      ///< deaths of ranks above it that led to our serving it
  bool declined = false;         ///< takes the data only when it asks
  bool offered = false;          ///< its first packet is queued or sent
  bool offer_sent = false;
  bool offer_posted = false;     ///< a rail still reads the first segment
  bool lost_sent = false;        ///< the child was told that the data will not come
  bool sent = false;             ///< nothing of ours is read for it any more
  bool acknowledged = false;     ///< its subtree has everything; or it is dead and replaced
};

/// A range of the message's bytes that follows one tree.
struct Strand {
  Broadcast* broadcast = nullptr;
  unsigned index = 0;
  bool known = false;            ///< its header was here (at the root: always)
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  std::uint32_t segment = 0;
  bool sequential = false;
  std::uint64_t arrived = 0;     ///< bytes that are here, from the strand's beginning; the root has all
  /// Ranges (begin, end) that several rails brought beyond that. No two of them touch, so that an honest parent causes
  /// no more than it has rails.
  std::map<std::uint64_t, std::uint64_t> islands;
  static constexpr std::size_t kMostIslands = 256;
  std::uint32_t superseded = 0;  ///< payloads of earlier parents that are still landing here (`LandingPlace`)
  bool complete = false;         ///< everything is here, and nothing is landing
  bool done_sent = false;        ///< the parent has our acknowledgement
  bool serves = false;           ///< `children` are ours to serve: the strand was accepted at its header
  Peer* parent = nullptr;
  std::uint32_t parent_stream = 0;
  std::uint16_t deaths = 0;  ///< deaths of ranks above us that led to this parent
  Incoming* incoming = nullptr;
  bool declined = false;         ///< we will ask the parent for it, and have not yet
  std::uint32_t credit_messages = 0;  ///< of the parent, to be freed with our memory; more than one if it lies
  std::uint32_t credit_units = 0;
  std::vector<std::byte> route_bytes;          ///< of our subtree, our own entry first; at the root, of everybody
  std::list<std::unique_ptr<Child>> children;  ///< in the order in which they are served
};

/// Bytes of a segment of a strand, of which 32 bits travel: `wanted`, or the whole strand (0), up to 1 GiB, which is
/// more than packets carry. Never 0, also for an empty strand.
constexpr std::uint32_t strand_segment(std::uint64_t wanted, std::uint64_t strand_bytes) noexcept {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted == 0 ? strand_bytes : wanted, 1, kMostBytes));
}

/// The low bits of a broadcast's number, as `wire::BlockHead` has them.
constexpr std::uint32_t fences_on_wire(std::uint64_t up_to) noexcept { return static_cast<std::uint32_t>(up_to); }

/// The number of a rank's first broadcast. Later ones are larger: 64 bits never wrap. It lies just below 2^32, so that
/// each test, and each long program, shows where only 32 bits were kept. 0 names none.
inline constexpr std::uint64_t kFirstBroadcast = (std::uint64_t{1} << 32) - 5;

/// The key of messages that are matched in the order of their posting, if they go from one rank to one rank.
struct BroadcastKey {
  std::uint32_t channel;
  std::uint64_t tag;
  friend bool operator==(const BroadcastKey&, const BroadcastKey&) = default;
};
struct BroadcastKeyHash {
  std::size_t operator()(const BroadcastKey& key) const noexcept {
    return std::hash<std::uint64_t>()(key.tag * 0x9e3779b97f4a7c15u + key.channel);
  }
};

/// Invariants. A broadcast exists from its first record until (1) its data was given to the receive (recipient) or
/// is released (root), (2) all children have acknowledged, (3) the parent has our acknowledgement. `entered` means that
/// it stands in the order of its key: it was matched, or it waits in the matcher; a strand is acknowledged upwards only
/// then.
struct Broadcast {
  Rank root{0};
  std::uint64_t id = 0;
  Channel channel{0};
  Tag tag{0};
  std::uint64_t bytes = 0;
  std::uint64_t after = 0;
  std::vector<std::byte> header;
  unsigned strand_count = 1;
  std::array<Strand, 2> strands;
  Pieces own;                      ///< the root's buffer, or all of `library`
  const Pieces* memory = nullptr;  ///< where the bytes are forwarded from: `own`, or the receive's; null: nowhere yet

  // The root's:
  McastCore* request = nullptr;          ///< until it is released
  std::vector<Recipient> recipients;     ///< in the order in which they are served
  std::set<std::uint32_t> plainly;       ///< ranks that are served by plain sends
  TreeOptions tree;
  std::shared_ptr<BroadcastPlan> plan;   ///< until it starts; null: none
  bool cancelled = false;
  bool started = false;
  bool acknowledged = false;             ///< by all recipients
  std::int64_t start_at_ns = 0;          ///< not before
  WaitingRanks unjoined;                 ///< recipients whose addresses it waits for, while it is held
  bool cards_asked = false;              ///< the directory was asked for all of them
  std::size_t next_looked_at = 0;        ///< while it waits for a free rail: the recipient whose rail is checked next
  std::uint32_t plain_pending = 0;       ///< recipients that are served by plain sends

  // A recipient's:
  RouteEntry self;
  std::unique_ptr<std::byte[]> library;  ///< memory of ours, when no fitting receive was posted
  bool entered = false;
  bool waiting = false;                  ///< in `RootState::waiting`
  Envelope* envelope = nullptr;          ///< in the matcher
  ReceiveCore* receive = nullptr;        ///< matched
  bool arrived = false;
  bool delivered = false;                ///< the receive has arrived, or failed
  bool given_away = false;               ///< `library` is the receive's now
  bool released = false;                 ///< nothing reads the user's memory any more (root: the request has ended)
  bool lost = false;                     ///< a recipient's: the data will not come
  bool recipient_died = false;                   ///< a recipient died (root)
  Rank culprit{0};                       ///< the dead rank, with `lost` or `recipient_died`

  bool forgotten = false;

  BroadcastKey key() const noexcept { return {channel.value(), tag.value()}; }
  /// Whether the root sends it to that rank. Searches when there are many recipients.
  bool goes_to(Rank rank) const;

  /// Bytes that its `library` memory counts in `Broadcasts::forward_bytes`, including what is kept beside the data, so
  /// that many small ones are bounded, too. Saturates, since `bytes` may be anything.
  std::uint64_t library_bytes() const noexcept {
    const std::uint64_t beside = sizeof(Broadcast) + sizeof(Envelope);
    return bytes > UINT64_MAX - beside ? UINT64_MAX : bytes + beside;
  }

 private:
  /// Sorted ranks of `recipients`, valid while their number stays. Made by `goes_to`.
  mutable std::vector<std::uint32_t> sorted_ranks_;
};

/// Marks the root's request to end as `peer_dead`.
inline void note_dead_recipient(Broadcast& broadcast, Rank dead) noexcept {
  broadcast.recipient_died = true;
  broadcast.culprit = dead;
}

inline bool Broadcast::goes_to(Rank rank) const {
  constexpr std::size_t kFew = 16;
  if (recipients.size() <= kFew)
    return std::any_of(recipients.begin(), recipients.end(),
                       [rank](const Recipient& recipient) { return recipient.rank == rank; });
  if (sorted_ranks_.size() != recipients.size()) {
    sorted_ranks_.clear();
    for (const Recipient& recipient : recipients) sorted_ranks_.push_back(recipient.rank.value());
    std::sort(sorted_ranks_.begin(), sorted_ranks_.end());
  }
  return std::binary_search(sorted_ranks_.begin(), sorted_ranks_.end(), rank.value());
}

/// What the parts below it tell the part that receives broadcasts.
class BroadcastListener {
 public:
  /// A receive has met the broadcast.
  virtual void matched(Broadcast& broadcast, ReceiveCore& core) = 0;
  /// The bytes [begin, end) of a strand are here.
  virtual void landed(Strand& strand, std::uint64_t begin, std::uint64_t end) = 0;
  /// A payload of an earlier parent has landed, or its link is gone.
  virtual void superseded_landed(Strand& strand) = 0;
  /// Something was sent to a child, is not read for it any more, or was acknowledged.
  virtual void child_advanced(const Child& child) = 0;

 protected:
  ~BroadcastListener() = default;
};

using HeldBroadcasts = BasicHeldBroadcasts<Broadcast, BroadcastKey, BroadcastKeyHash>;

/// What a recipient knows of one root.
struct RootState {
  struct Plain {
    Envelope* envelope;
    std::uint64_t after;  ///< the broadcast that the message waits for
  };

  std::uint64_t low_id = 0;
  std::set<std::uint64_t> entered;       ///< ids not below low_id that stand in the order of their key
  std::map<std::uint64_t, Rank> lost;    ///< ids of `entered` whose data will not come, and the dead rank
  std::deque<Plain> plain;               ///< messages that wait for a broadcast
  std::vector<Broadcast*> waiting;       ///< broadcasts that wait for messages or for each other
  std::uint64_t fences_passed = kFirstBroadcast - 1;  ///< a lower bound (`wire::BlockHead::fences_passed`)

  bool has_entered(std::uint64_t id) const { return id < low_id || entered.contains(id); }
  void enter(std::uint64_t id) {
    if (!has_entered(id)) entered.insert(id);
  }
  /// The root's blocks contain the low bits of a growing number. So this never runs ahead of the root, and is exact
  /// when called once in 2^32 broadcasts; where it is behind, the fence itself decides.
  std::uint64_t passed(std::uint32_t low_bits) noexcept {
    return fences_passed += low_bits - static_cast<std::uint32_t>(fences_passed);
  }
};

/// All broadcasts of an engine.
struct Broadcasts {
  struct Name {
    std::uint32_t root;
    std::uint64_t id;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const noexcept {
      return std::hash<std::uint64_t>()(name.id * 0x9e3779b97f4a7c15u + name.root);
    }
  };
  static Name name(Rank root, std::uint64_t id) noexcept { return {root.value(), id}; }

  /// `left` counts the entries of the lists.
  explicit Broadcasts(std::size_t& left) noexcept : held(left), to_offer(left), forgotten(left) {}
  /// The number up to which all broadcasts of this rank have begun.
  std::uint64_t started_up_to() const noexcept { return (held.empty() ? next_id : held.first_id()) - 1; }

  std::unordered_map<Name, std::unique_ptr<Broadcast>, NameHash> all;
  std::unordered_map<std::uint32_t, RootState> roots;
  std::size_t forward_bytes = 0;  ///< in `library` memories

  // Broadcasts of which this rank is the root:
  std::uint64_t next_id = kFirstBroadcast;
  std::set<std::uint64_t> unacknowledged;
  /// Unacknowledged broadcasts of each key, oldest first.
  std::unordered_map<BroadcastKey, std::vector<Broadcast*>, BroadcastKeyHash> by_key;
  HeldBroadcasts held;  ///< broadcasts that have not started

  CountedList<Child*> to_offer;                       ///< first packets to be queued when no transport is being polled
  CountedList<std::unique_ptr<Broadcast>> forgotten;  ///< destroyed at the next step, when no function uses it

  TreeBuilder builder;
  TreeChooser chooser{NetworkCosts{}};
  Forest forest;
  std::vector<std::byte> route;
  PlannedTree unplanned;  ///< of a broadcast without a plan, when it starts; kept for its memory
};

}  // namespace tandem::comm::internal
