// tandem/comm/engine/engine.hpp: the progress engine: what happens between posting and completion, on no thread of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/engine/counted_list.hpp"
#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/core.hpp"
#include "tandem/comm/engine/credit.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/match/matcher.hpp"
#include "tandem/comm/schedule/strategy.hpp"
#include "tandem/comm/transport/transport.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Something to be told to the user, once the lock is free.
struct Event {
  CompletionQueue::Event what = CompletionQueue::Event::released;
  RequestCore* core = nullptr;      ///< one reference is the event's
  std::function<void()> call = {};  ///< instead of a request: handlers of active messages, deaths
};

/// The progress engine of one rank. Not thread-safe: its owner, the endpoint, holds one lock around every call; what must be told
/// to users is left in `events` for the owner to tell without the lock.
///
/// It sends what is posted (sending.cpp), takes what arrives (receiving.cpp), moves announced messages (announced.cpp), holds
/// back what nobody wants (withholding.cpp), runs broadcasts (broadcast.cpp), and cleans up after deaths (failure.cpp). Requests
/// wait in the queue of their peer, and packets are formed only when a rail can take one; when nothing waits and the rail is
/// free, a small message goes straight to it.
class Engine final : public PacketSink {
 public:
  struct Context {
    Rank rank{0};
    std::uint32_t size = 1;
    EndpointOptions options;
    base::Log* log = nullptr;
    std::shared_ptr<Directory> directory;      ///< null: every transport reaches every peer with an empty card or its own
    std::function<std::int64_t()> now_ns;
    std::function<void(const std::function<void()>&)> with_lock;  ///< runs something under the owner's lock
    double cores = 1;                                             ///< that this host's ranks share
  };

  explicit Engine(Context context, std::unique_ptr<Strategy> strategy);
  ~Engine() override;

  void add_transport(std::unique_ptr<Transport> transport);
  std::span<const std::unique_ptr<Transport>> transports() const noexcept { return transports_; }

  // Posting. Each returns a core with a reference for the caller.
  RequestCore* send(Rank to, Tag tag, SendBuffer&& buffer, const SendOptions& options);  // send_short.hpp
  [[gnu::always_inline]] RequestCore* receive(ReceiveCore& core) {
    const Rank from = core.pattern.source;
    TANDEM_ASSERT(from.value() < context_.size);
    ++outstanding_;
    trace_.receive_posted(core);
    if (ArrivedEnvelope* found = matcher_.post(core)) [[unlikely]] {
      give(static_cast<Envelope&>(*found), core);
      return &core;
    }
    if (!deferring_peers_.empty()) [[unlikely]] want_from_all(core.pattern);
    // A receive from a rank is a use of it: the connection tells us of its death.
    if (!core.pattern.any_source) [[likely]] {
      Peer* peer = peer_for(from);
      if (peer == nullptr || peer->dead || peer->left) [[unlikely]] fail_posted(core, peer);
    }
    return &core;
  }
  /// A receive to be posted. Thread-safe. Where the library brings the memory (`owned`) there are no `pieces`.
  static ReceiveCore& make_receive(Source from, TagPattern tag, Pieces&& pieces, bool owned, const ReceiveOptions& options) {
    auto* core = new ReceiveCore(pattern_of(from, tag, options.channel), std::move(pieces), owned);
    keep_notify(*core, options);
    if (core->notifies) [[unlikely]] core->keep();
    else core->leave_to_users();
    return *core;
  }
  RequestCore* mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer, const McastOptions& options);
  bool append(RequestCore& mcast, Recipient recipient);
  bool cancel(RequestCore& core);
  /// A message for that rank will be posted in about `in_ns`: see `PortPacer`. 0: that is of no use.
  std::uint64_t announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, std::int32_t priority);
  bool uses_announcements(Rank to);
  void withdraw(Rank to, std::uint64_t announced);
  std::optional<Peeked> probe(Source from, TagPattern tag, Channel channel);
  void register_rpc(Channel channel, RpcHandler handler);

  /// Polls, sends what can be sent, copies a piece of what is copied remotely. Returns when it wants to be called again.
  std::int64_t step(std::int64_t now_ns);
  /// When `step` has something to do even if nothing arrives.
  std::int64_t due_ns(std::int64_t now_ns) const noexcept;
  /// The next step polls every transport, also those that cost a system call.
  void poll_all_next() noexcept { steps_ = UINT64_MAX; }
  /// Whether something was sent since `wake_peers`.
  bool wakeups_are_due() const noexcept { return packets_at_wake_ != statistics_.packets_sent; }
  /// After posts, when nobody will `step` soon: sees to it that peers that sleep are woken.
  void wake_peers() {
    packets_at_wake_ = statistics_.packets_sent;
    hurry_transports();
  }
  /// Events since the last call of `step` that took something from a transport.
  unsigned last_events() const noexcept { return last_events_; }

  /// Whether anything is left to be done without waiting for the network.
  bool busy() const noexcept { return copies() || !dirty_.empty() || !broadcasts_.to_offer.empty(); }
  /// Whether something happens at a time that nobody has asked the driver for yet.
  bool waits_for_time() const noexcept { return !broadcasts_.unstarted.empty() || !draining_.empty() || !paced_peers_.empty(); }
  /// Neither that, nor busy, nor are there events.
  bool nothing_left() const noexcept { return work_left_ == 0; }
  /// Whether nobody waits for anything: no send, stream, forward or receive is under way.
  bool quiet() const noexcept { return outstanding_ == 0; }
  /// Whether we owe others something: sends, forwards, acknowledgements that are not handed over.
  bool pending_for_peers() const noexcept;
  /// When leaving takes long: those below a broadcast may be held up by the death of its root, of which we are to hear, too.
  void connect_to_roots();
  void say_goodbye();
  bool all_answered_goodbye() const noexcept;
  /// Closes the links to all peers; what was under way ends as cancelled. Not while polling.
  void abandon();
  void cancel_everything();

  /// Held back, of all peers.
  std::uint64_t deferred_messages() const noexcept;
  /// Memory that a burst has left behind: of our tables, and of the requests of all engines of the process.
  std::size_t spare_bytes() const noexcept;
  /// Give it back. The second needs no lock, and takes longer the more it is.
  void trim_tables() noexcept { matcher_.trim(); }
  static void trim_requests() noexcept;

  bool same_host(Rank a, Rank b);
  Transport* transport_to(Rank peer);
  /// What is under way, for a person who wonders why nothing ends.
  std::string describe() const;
  const EndpointStatistics& statistics() const noexcept { return statistics_; }
  CountedList<Event>& events() noexcept { return events_; }
  trace::Stream& trace() noexcept { return trace_.stream; }

  std::function<void(Rank, std::string_view)> on_death;
  std::function<void(Rank, Channel, Tag, std::uint64_t, std::int64_t)> on_incoming;

  // PacketSink
  Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) override;
  const char* arrived_whole(Link& link, std::span<const std::byte> control) override;
  void landed(Link& link, std::uint64_t token) override;
  void sent(Link& link, std::uint64_t cookie) override;
  void writable(Link& link) override;
  void peer_failed(Rank peer, std::string_view reason) override;
  void opened(Link& link) override;
  void peer_unreachable(Rank peer, std::string_view reason) override;

 private:
  static MatchPattern pattern_of(Source from, TagPattern tag, Channel channel) noexcept {
    return {.source = from.any() ? Rank{0} : from.rank(),
            .channel = channel.value(),
            .tag = tag.tag().value(),
            .any_source = from.any(),
            .any_tag = tag.any()};
  }

  // engine.cpp
  // Connects on first use; null: unreachable (then it counts as dead). Not while polling.
  Peer* peer_for(Rank rank) {
    if (recent_peer_ != nullptr && recent_peer_->rank == rank) [[likely]] return recent_peer_;
    return find_peer(rank);
  }
  Peer* find_peer(Rank rank);
  Peer& make_peer(Rank rank);
  bool choose_transport(Peer& peer);
  bool find_transport(Peer& peer);
  void use_transport(Peer& peer, Transport& transport);
  void connect_rails(Peer& peer);
  Rail& rail_of(Link& link) {
    if (link.owner != nullptr) [[likely]] return *static_cast<Rail*>(link.owner);
    return make_rail(link);
  }
  Rail& make_rail(Link& link);
  const PeerCard* card_of(Rank rank);
  unsigned poll(Transport& transport, std::int64_t now_ns);
  void report_departures();
  void hurry_transports();
  void pump_dirty();
  [[gnu::noinline]] std::int64_t do_what_is_left(std::int64_t now_ns, bool events);
  void notify(RequestCore& core, CompletionQueue::Event what) {
    if (core.notifies) [[unlikely]] add_event(core, what);
  }
  void add_event(RequestCore& core, CompletionQueue::Event what);
  void finish_send(RequestCore& core, Ending ending, Rank culprit = Rank{0});
  [[gnu::always_inline]] void arrive(ReceiveCore& core, Ending ending) {
    if (core.counted()) [[unlikely]] {
      mark_arrived(core, ending);
      return release(core);
    }
    core.ending = ending;
    ++statistics_.messages_received;
    --outstanding_;
    trace_.arrived(core);
    trace_.released_too(core);
    core.end();
  }
  void mark_arrived(ReceiveCore& core, Ending ending);
  void release(RequestCore& core);
  void end(RequestCore& core, std::optional<CompletionQueue::Event> what);
  void fail_receive(ReceiveCore& core, Ending ending, Rank culprit);
  std::int64_t now() const { return context_.now_ns(); }
  template <class Options>
  static void keep_notify(RequestCore& core, const Options& options) {
    if constexpr (requires { Options::none(); }) {
      if (&options == &Options::none()) [[likely]] return;
    }
    const Callbacks& calls = options.callbacks;
    if (calls.arrived || calls.released || calls.failed || options.queue != nullptr) [[unlikely]] {
      keep_notify(core, calls, options.queue, options.user);
    }
  }
  static void keep_notify(RequestCore& core, const Callbacks& callbacks, CompletionQueue* queue, std::uint64_t user);

  // sending.cpp
  void prepare(SendCore& core, Peer& peer);
  std::uint64_t bytes_unasked(const SendCore& core, const Peer& peer) const noexcept;
  static std::uint32_t announced_bytes(const SendCore& core) noexcept;
  void make_stream(SendCore& core, Peer& peer);
  bool within_credit(const Peer& peer, std::uint64_t bytes, std::size_t header_bytes) const noexcept;
  static void take_credit(Peer& peer, std::uint32_t units) noexcept {
    ++peer.eager_sent;
    peer.units_sent += units;
  }
  bool announce_uncovered(Peer& peer);
  RequestCore* send_short(Peer& peer, Tag tag, const Pieces& pieces, const SendOptions& options);
  RequestCore* send_at_once(Peer& peer, Tag tag, const Pieces& pieces, std::uint32_t after, const SendOptions& options);
  RequestCore* send_otherwise(Rank to, Tag tag, SendBuffer&& buffer, const SendOptions& options);
  static bool takes_at_once(const Peer& peer, std::size_t bytes) noexcept;
  RequestCore* sent_at_once(Peer& peer, Tag tag, std::size_t bytes, std::uint32_t units, std::size_t packet_bytes,
                            const SendOptions& options);
  std::size_t eager_limit(const Peer& peer) const noexcept;
  std::size_t at_once_below(const Peer& peer) const noexcept {
    const bool never = peer.rails.empty() || peer.dead || peer.left || peer.deferred != nullptr;
    return never ? 0 : std::min(kInlineBytes, eager_limit(peer)) + 1;
  }
  void send_to_self(SendCore& core, Peer& peer);
  void mark_dirty(Peer& peer);
  void pump(Peer& peer);
  bool pump_rail(Peer& peer, unsigned rail);
  void note_backlog(Peer& peer);
  bool has_pacer(const Peer& peer) const noexcept;
  void note_ready_bulk(Peer& peer);
  bool must_wait_for_port(Peer& peer);
  void reserve_port(OutgoingStream& stream);
  void drop_reservation(OutgoingStream& stream);
  void withdraw(Port& port, std::uint64_t announced);
  void reserve_while_draining(const OutgoingStream& stream);
  std::int64_t port_busy_ns(const Peer& peer, unsigned segments) const;
  std::int64_t grace_ns(const Peer& peer) const;
  void note_segment(Peer& peer, std::int32_t priority);
  void release_paced(const Port& port);
  void check_pacers(std::int64_t now_ns);
  void check_draining(std::int64_t now_ns);
  std::pair<std::int64_t, std::size_t> unsent_bytes(const Transport& transport) const;
  static std::size_t segment_for(const Peer& peer) noexcept;
  static std::uint32_t post_packet(Rail& rail, const PostedPacket& packet);
  static void free_posted(Rail& rail, std::uint32_t slot);
  static void name_posted(SendItem& item, PostedPacket& packet);
  void write_record(SendItem& item, wire::Writer& writer);
  static void write_message(SendCore& core, wire::Writer& writer);
  static wire::Announce announcement(const SendCore& core) noexcept;
  bool announce_at_once(const SendCore& core, Peer& peer);
  static void payload_of(SendItem& item, std::uint64_t bytes, std::vector<iovec>& pieces);
  void after_sent(SendItem& item, Peer& peer, std::uint64_t bulk_bytes, bool posted);
  void post_control(Peer& peer, std::span<const std::byte> record);
  template <wire::IsRecord Record>
  void post_control(Peer& peer, const Record& record) {
    post_control(peer, std::as_bytes(std::span(&record, 1)));
  }
  bool sends_past_queue(const Peer& peer) const noexcept;
  bool send_alone(Peer& peer, std::span<const std::byte> record, std::span<const std::byte> header = {});
  /// Whether the peer should be told of what we took, though nothing else goes there.
  bool head_is_due(const Peer& peer) const noexcept {
    return peer.head.seen - peer.head_sent.seen >= kSeenBetweenHeads ||
           peer.head.freed_messages - peer.head_sent.freed_messages >= due_messages_ ||
           peer.head.freed_units - peer.head_sent.freed_units >= due_units_;
  }
  void send_head(Peer& peer);
  static void freed(Peer& peer, std::uint32_t units);
  static void freed_message(Peer& peer, std::uint64_t bytes, std::size_t header_bytes) noexcept {
    ++peer.head.freed_messages;
    peer.head.freed_units += units_of(bytes, header_bytes);
  }
  static std::uint32_t units_for(std::uint64_t bytes) noexcept;

  // withholding.cpp
  bool may_announce(const Peer& peer) const noexcept;
  void enqueue(SendCore& core, Peer& peer);
  bool has_to_wait(const SendCore& core, Peer& peer, bool covered);
  void settle_queue(Peer& peer);
  void start_deferring(Peer& peer);
  void stop_deferring(Peer& peer);
  static void make_announced(SendCore& core) noexcept;
  void announce_deferred(SendCore& core);
  void announce_more(Peer& peer);
  const char* take_want(Peer& peer, const wire::Want& want);
  void drop_deferred(SendCore& core);
  const char* take_defer(Peer& peer, const wire::Defer& record);
  void forget_deferring_peer(Peer& peer);
  void want(Peer& peer, const MatchPattern& pattern);
  void want_from_all(const MatchPattern& pattern);
  void want_probed(const MatchPattern& pattern);
  void want_all(Peer& peer, std::uint32_t channel);

  // receiving.cpp
  void after_arrival(Peer& peer);
  const char* take_block(Rail& rail, std::span<const std::byte> control, std::size_t payload_bytes);
  static void take_head(const Rail& rail, const std::byte* head);
  const char* take_eager(Rail& rail, wire::Reader& reader, std::size_t payload_bytes);
  [[gnu::noinline]] const char* take_other(Rail& rail, wire::Reader& reader, wire::Kind kind, std::size_t payload_bytes);
  bool has_handler(std::uint32_t channel) const { return !handlers_.empty() && handlers_.contains(channel); }
  ReceiveCore* receive_for(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint32_t after,
                           std::span<const std::byte> header, std::span<const std::byte> data);
  void take_message(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint32_t after, std::span<const std::byte> header,
                    std::span<const std::byte> data);
  void take_plain_message(Rail& rail, Peer& peer, std::span<const std::byte> control);
  [[gnu::noinline]] void look_up_plain_message(Rail& rail, std::span<const std::byte> control);
  void deliver(ReceiveCore& receive, Peer& peer, std::uint32_t bytes, std::size_t header_bytes, std::span<const std::byte> data);
  [[gnu::noinline]] void keep_eager(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint32_t after,
                                    std::span<const std::byte> header, std::span<const std::byte> data);
  const char* take_announce(Rail& rail, wire::Reader& reader, std::size_t payload_bytes);
  void notify_incoming(const Peer& peer, const MatchKey& key, std::uint64_t bytes);
  const char* take_goodbye(Peer& peer, const wire::Goodbye& goodbye);
  ReceiveCore* match(MatchKey key);
  [[gnu::noinline]] void fail_posted(ReceiveCore& core, const Peer* peer);
  void match_envelope(Envelope& envelope);
  void set_aside(Envelope& envelope);
  void keep(Envelope& envelope);
  void keep_no_more(Envelope& envelope);
  void give(Envelope& envelope, ReceiveCore& core);
  void finish_envelope(Envelope& envelope, ReceiveCore& core);
  void discard(Envelope* envelope);
  static void fill(ReceiveCore& core, Peer& peer, Tag tag, std::uint64_t bytes, std::span<const std::byte> header);
  void hand_over(Envelope& envelope);
  void answered(Envelope& envelope, RpcAnswer answer, const RpcHandler& handler);

  // announced.cpp
  static OutgoingStream& new_stream(Peer& peer);
  void refresh(OutgoingStream& stream);
  void stream_advanced(OutgoingStream& stream);
  void end_stream(OutgoingStream& stream);
  void drop_stream(OutgoingStream& stream);
  const char* take_grant(Peer& peer, const wire::Grant& grant);
  const char* take_finish(Peer& peer, const wire::Finish& finish);
  const char* take_data(Rail& rail, const wire::Data& data, std::size_t payload_bytes);
  void start_incoming(ReceiveCore& core, Peer& peer, const Envelope::Announced& announced, std::uint64_t bytes, bool late);
  void grant_all(Incoming& incoming);
  static void land_along(Rail& rail, Incoming& incoming, std::size_t bytes);
  void grant_strand(Incoming& incoming);
  void landed_data(Incoming& incoming, std::uint64_t offset, std::uint64_t bytes);
  void end_incoming(Incoming& incoming);
  static void land_in(Rail& rail, Incoming& incoming, std::uint64_t offset);
  static bool shows_rate(const Peer& peer, std::uint64_t bytes) noexcept;
  void measure(Peer& peer, std::uint64_t bytes, std::int64_t since_ns);
  bool can_pull(const Peer& peer) const noexcept;
  std::optional<CopyWay> choose_way(const Incoming& incoming, std::uint64_t address);
  void start_pull(Incoming& incoming, std::uint64_t address);
  bool copies() const noexcept { return !pulling_.empty() || !pushing_.empty(); }
  void copy_some();
  void copy_incoming(Incoming& incoming);
  void end_pull(Incoming& incoming);
  void stop_pull(Incoming& incoming);
  void pull_refused(Incoming& incoming);
  void send_instead(Incoming& incoming);
  bool share(Incoming& incoming);
  static void stop_sharing(Incoming& incoming);
  void nothing_left(Incoming& incoming);
  const char* take_share(Rail& rail, const wire::Share& share);
  const char* take_shared(Peer& peer, const wire::Shared& shared);
  void copy_outgoing(Push& push);
  void stop_pushing(const OutgoingStream& stream);

  // broadcast_root.cpp
  bool insert_recipient(Broadcast& broadcast, Recipient recipient);
  bool cancel_broadcast(McastCore& core);
  void start_waiting_broadcasts();
  bool may_start(const Broadcast& broadcast) const;
  static std::int64_t due_ns(const Broadcast& broadcast, std::int64_t now_ns) noexcept;
  void start_those_before(Rank to, Channel channel, Tag tag);
  std::uint32_t last_broadcast_to(Rank to, Channel channel, Tag tag, std::uint32_t before = UINT32_MAX) const;
  void start(Broadcast& broadcast);
  bool fence_for(const Broadcast& broadcast, Rank rank, std::uint16_t& fence) const;
  void send_plainly(Broadcast& broadcast, Recipient recipient, std::uint32_t after);
  static void note_dead_recipient(Broadcast& broadcast, Rank dead);
  void lay_out_routes(Broadcast& broadcast, std::span<const RouteRecipient> recipients);
  void trace_routed(const Strand& strand, TreeKind tree);
  void acknowledge_if_all(Broadcast& broadcast);
  std::uint32_t low_id() const noexcept;
  std::uint32_t started_up_to() const noexcept;
  void pass_fences(const Broadcast& broadcast);

  // broadcast_plan.cpp
  void sort_recipients(Broadcast& broadcast, std::span<const Recipient> given);
  const PlannedTree& planned(Broadcast& broadcast, std::span<const RouteRecipient> recipients);
  void make_plan(const Broadcast& broadcast, std::span<const RouteRecipient> recipients, PlannedTree& plan);
  TreeChoice choose_tree(const Broadcast& broadcast, std::span<const RouteRecipient> recipients, const NetworkCosts& costs);
  NetworkCosts costs_for(const Broadcast& broadcast, std::span<const RouteRecipient> recipients, bool one_machine);
  bool share_machine(std::span<const RouteRecipient> recipients);

  // broadcast_children.cpp
  static std::uint64_t window_bytes(std::uint32_t segment) noexcept;
  static Child& add_child(Strand& strand, RouteView route);
  static void adopt(const Child& lost, RouteView orphan);
  void offer_children(Strand& strand);
  static bool handed_over(const Child& child) noexcept;
  static bool worth_pulling(const Transport& transport, std::uint64_t bytes) noexcept;
  bool may_pull(const Peer& peer, const Strand& strand) const noexcept;
  static bool has_accepted(const Child& child) noexcept;
  void flush_offers();
  void offer(Child& child);
  void write_offer(Child& child, wire::Writer& writer);
  void offer_sent(Child& child, std::uint64_t bulk_bytes, bool posted);
  void child_progress(Child& child);
  const char* take_note(Peer& peer, const wire::McastNote& note);
  void declined(Child& child);
  void lose_child(Child& child);
  void await_lost(Strand& strand, RouteView leaf, Rank dead);

  // broadcast_recipient.cpp
  const char* take_mcast(Rail& rail, wire::Reader& reader, std::size_t payload_bytes);
  const char* check_mcast(const wire::Mcast& record, unsigned index, std::span<const std::byte> route_bytes,
                          std::size_t payload_bytes) const;
  const char* take_strand(Rail& rail, Broadcast& broadcast, const wire::Mcast& record, std::span<const std::byte> route_bytes,
                          std::size_t payload_bytes);
  const char* take_lost(Peer& peer, const wire::McastLost& record);
  static bool orphaned(const Broadcast& broadcast) noexcept;
  void pass_on_loss(Strand& strand, std::span<const std::byte> route_bytes);
  void end_below(Broadcast& broadcast);
  static bool all_sent(const Broadcast& broadcast) noexcept;
  Incoming& expect(Strand& strand);
  void listen(Strand& strand, std::uint64_t granted, std::uint8_t epoch);
  bool make_room(Broadcast& broadcast, bool always);
  void drop_library(Broadcast& broadcast);
  void decline(Strand& strand);
  void refuse(Peer& parent, const wire::Mcast& record);
  void ask_for_declined(Broadcast& broadcast);
  void free_credit(Strand& strand);
  bool may_enter(Broadcast& broadcast);
  void try_enter(Broadcast& broadcast);
  void enter(Broadcast& broadcast);
  void settle(Rank root);
  void wait_for_broadcast(Envelope& envelope);
  void forget_entered(Rank root, std::uint32_t low_id);
  void matched(Broadcast& broadcast, ReceiveCore& core);
  void strand_landed(Strand& strand, std::uint64_t begin, std::uint64_t end);
  void maybe_arrived(Broadcast& broadcast);
  void maybe_released(Broadcast& broadcast);
  void maybe_acknowledge(Strand& strand);
  void maybe_forget(Broadcast& broadcast);
  void lose(Broadcast& broadcast, Rank dead);

  // failure.cpp
  void end_everything();
  void peer_has_left(Peer& peer);
  bool waits_for(const Peer& peer) const;
  void fail_peer(Peer& peer, Ending ending);
  static void lose_envelope(Envelope& envelope);
  void fail_landings(Peer& peer, Ending ending);
  void fail_outgoing(Peer& peer, Ending ending);
  void fail_send(SendCore& core, Ending ending, Rank rank);
  void fail_broadcasts(Rank dead);
  bool is_dead(Rank rank) const noexcept;
  void orphan(Broadcast& broadcast);
  void connect_to(Rank rank);
  void drop_broadcasts();
  bool pending_below(const Broadcast& broadcast) const noexcept;
  static std::size_t posted_on(const Rail& rail) noexcept;

  /// The peer is told of what we took at least this often, so that its fences (9 bits) stay unambiguous.
  static constexpr std::uint32_t kSeenBetweenHeads = 64;

  const Context context_;
  const std::uint32_t due_messages_;  ///< of the credit, a quarter
  const std::uint32_t due_units_;     ///< of the credit, half: more than a message of one segment, whose answer tells it
  std::unique_ptr<Strategy> strategy_;
  std::vector<std::unique_ptr<Transport>> transports_;
  struct Polled {
    Transport* transport;
    bool costly;
  };
  std::vector<Polled> polled_;  ///< the same
  Matcher matcher_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Peer>> peers_;
  Peer* recent_peer_ = nullptr;  ///< the one looked up last
  std::unordered_map<std::uint32_t, PeerCard> cards_;
  std::unordered_map<std::uint32_t, RpcHandler> handlers_;
  std::size_t work_left_ = 0;  ///< entries of all counted lists, which come below
  CountedList<Peer*> dirty_{work_left_};
  std::vector<Peer*> deferring_peers_;  ///< hold messages for us back
  CountedList<Peer*> departed_{work_left_};  ///< said goodbye during this poll; their transports are told after it
  CountedList<Incoming*> pulling_{work_left_};
  CountedList<Push> pushing_{work_left_};
  std::unordered_set<Envelope*> asked_;  ///< active messages whose handler has not answered yet
  CountedList<Event> events_{work_left_};
  PacketPlan plan_;
  std::vector<SendItem*> sent_now_;
  std::vector<std::uint32_t> hosts_;  ///< of the recipients of the broadcast that is being planted; empty: all different
  TreeKind inside_ = TreeKind::flat;
  Transport* polling_ = nullptr;      ///< inside its `poll`
  std::unordered_map<Transport*, Port> ports_;
  Transport* busiest_ = nullptr;      ///< brought the last event
  CountedList<Peer*> paced_peers_{work_left_};           ///< their bulk waits at their ports' gates
  CountedList<Transport*> draining_{work_left_};  ///< their rates want a look at their buffers
  std::uint64_t steps_ = 0;
  std::vector<std::byte> block_;
  std::vector<iovec> pieces_;
  std::int64_t now_ns_ = 0;
  unsigned last_events_ = 0;
  std::uint64_t outstanding_ = 0;  ///< requests posted and not released
  bool leaving_ = false;
  EndpointStatistics statistics_;
  EngineTrace trace_;
  std::uint64_t packets_at_wake_ = 0;  ///< `packets_sent` when the transports were last asked to hurry

  Broadcasts broadcasts_{work_left_};
};

}  // namespace tandem::comm::internal

#include "tandem/comm/engine/send_short.hpp"  // `send`
