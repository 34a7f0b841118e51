// tandem/comm/engine/arrivals.hpp: from arrived messages to receives: matching, unexpected messages, active messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/completions.hpp"
#include "tandem/comm/engine/context.hpp"
#include "tandem/comm/engine/engine_trace.hpp"
#include "tandem/comm/engine/peer.hpp"
#include "tandem/comm/match/matcher.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Pairs messages with receives. A message without a receive becomes an envelope in the matcher; a message on a channel
/// with a handler goes to the handler.
///
/// State: the matcher, the handlers, and the envelopes whose handler is being asked. Under the endpoint's lock;
/// handlers run without it.
class Arrivals {
 public:
  explicit Arrivals(EngineParts& parts);

  Matcher& matcher() noexcept { return matcher_; }
  const Matcher& matcher() const noexcept { return matcher_; }
  /// Calls `act(channel)` for each channel that has a handler.
  template <class Act>
  void for_each_handler(Act act) const {
    for (const auto& [channel, handler] : handlers_) act(channel);
  }
  /// Calls `act(envelope)` for each active message whose handler has not answered yet.
  template <class Act>
  void for_each_asked(Act act) const {
    for (const Envelope* envelope : asked_) act(*envelope);
  }
  /// Marks active messages of that sender whose handler is being asked: their data will not come.
  void lose_asked(Rank sender) noexcept;
  void lose_asked() noexcept;
  void drop_asked() noexcept;

  const char* take_eager(Rail& rail, wire::Reader& reader, std::size_t payload_bytes);
  bool has_handler(std::uint32_t channel) const { return !handlers_.empty() && handlers_.contains(channel); }
  /// Takes a block that holds one eager message only, by far the most frequent kind. `first` is the `wire::first_word`
  /// that showed it.
  const char* take_plain_message(Rail& rail, Peer& peer, std::span<const std::byte> control, std::uint64_t first);
  const char* take_announce(Rail& rail, wire::Reader& reader, std::size_t payload_bytes);
  /// Calls `Endpoint::on_incoming` for a message that begins to come from `peer`.
  void notify_incoming(const Peer& peer, const MatchKey& key, std::uint64_t bytes);
  /// The posted receive that a message goes to, now unlinked. Null: none, or a handler takes the message.
  ReceiveCore* match(MatchKey key);
  /// Ends a receive or a probe that was posted for a rank that cannot be reached (null) or is gone.
  [[gnu::noinline]] void fail_posted(ReceiveCore& core, const Peer* peer);
  /// Puts a message into the order of its key. The envelope may be gone then.
  void match_envelope(Envelope& envelope);
  /// Gives a message that no receive waits for to its handler, or keeps it as unexpected, or makes it wait for the
  /// broadcast that it was posted behind (`after`; 0: none).
  void set_aside(Envelope& envelope, std::uint64_t after = 0);
  void keep_no_more(Envelope& envelope);
  /// Gives an unexpected message to a receive. The envelope is gone afterwards, or when its data is complete.
  void give(Envelope& envelope, ReceiveCore& core);
  /// Drops an unexpected message.
  void discard(Envelope* envelope);
  /// Writes into a receive what is known of its message, and allocates its memory if the library brings it.
  static void fill(ReceiveCore& core, Peer& peer, Tag tag, std::uint64_t bytes, std::span<const std::byte> header);
  /// As `PacketSink::landed`.
  void landed(Link& link, std::uint64_t token);
  std::optional<Peeked> probe(const MatchPattern& pattern);
  /// Ends `core` once there is a message that it would match; the message stays.
  void await_message(ReceiveCore& core);
  /// Unlinks a posted receive or probe. False: it was not posted.
  bool take_back(ReceiveCore& core) noexcept;
  /// Unlinks and returns the requests that wait for a message of rank `from`; without a rank, all of them.
  std::vector<ReceiveCore*> extract_awaiting(std::optional<Rank> from);
  std::size_t awaiting_count() const noexcept { return awaiting_.size(); }
  bool awaits(Rank rank) const noexcept {
    return std::ranges::any_of(awaiting_, [&](const auto& entry) { return entry.second->pattern.source == rank; });
  }
  /// Calls `act(pattern)` for each request that waits for a message.
  template <class Act>
  void for_each_awaited(Act act) const {
    for (const auto& [tag, core] : awaiting_) act(core->pattern);
  }
  /// Whether the message that a receive posted now would match is written by the network itself.
  bool is_placed(const MatchPattern& pattern);
  bool register_rpc(Channel channel, RpcHandler handler);
  /// A receive to be posted. Thread-safe. With memory of the library (`owned`) there are no `pieces`.
  static ReceiveCore& make_receive(Source from, TagPattern tag, Pieces&& pieces, bool owned,
                                   const ReceiveOptions& options) {
    auto* core = new ReceiveCore(pattern_of(from, tag, options.channel), std::move(pieces), owned);
    core->beyond_host = options.memory != BufferMemory::host;
    Completions::keep_notify(*core, options);
    if (core->notifies) [[unlikely]] core->keep();
    else core->leave_to_users();
    return *core;
  }
  static MatchPattern pattern_of(Source from, TagPattern tag, Channel channel) noexcept {
    return {.source = from.any() ? Rank{0} : from.rank(),
            .channel = channel.value(),
            .tag = tag.tag().value(),
            .any_source = from.any(),
            .any_tag = tag.any()};
  }
  /// Notes that the data of the message will not come, since its sender is dead.
  static void lose_envelope(Envelope& envelope);
  /// The reason for closing the links of a peer whose messages take more of our memory than it was allowed.
  static constexpr const char* kBeyondCredit = "more messages than this rank allows (comm.credit_...)";
  static constexpr const char* kBeyondCalls = "more active messages at once than a rank may announce";

 private:
  std::uint64_t not_entered(Rank root, std::uint64_t named);
  ReceiveCore* receive_for(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint64_t after,
                           std::span<const std::byte> header, std::span<const std::byte> data, const char*& wrong);
  const char* take_message(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint64_t after,
                           std::span<const std::byte> header, std::span<const std::byte> data);
  [[gnu::noinline]] const char* look_up_plain_message(Rail& rail, const wire::Eager& eager,
                                                      std::span<const std::byte> control);
  void deliver(ReceiveCore& receive, Peer& peer, std::uint32_t bytes, std::size_t header_bytes,
               std::span<const std::byte> data);
  [[gnu::noinline]] const char* keep_eager(Rail& rail, MatchKey key, std::uint32_t bytes, std::uint64_t after,
                                           std::span<const std::byte> header, std::span<const std::byte> data);
  void keep(Envelope& envelope);
  void finish_envelope(Envelope& envelope, ReceiveCore& core);
  [[gnu::noinline]] void tell_awaiting(const Envelope& envelope);
  void end_awaiting(ReceiveCore& core, const Envelope& envelope);
  void hand_over(Envelope& envelope);
  void answered(Envelope& envelope, RpcAnswer answer, const RpcHandler& handler);

  const EngineContext& context_;
  EngineTrace& trace_;
  EndpointStatistics& statistics_;
  Broadcasts& broadcasts_;
  Completions& completions_;
  Peers& peers_;
  IncomingTransfers& incoming_;
  BroadcastListener& listener_;
  Matcher matcher_;
  std::unordered_map<std::uint32_t, RpcHandler> handlers_;
  const Allowance allowed_;  ///< to each peer
  std::unordered_set<Envelope*> asked_;  ///< active messages whose handler has not answered yet
  std::unordered_multimap<std::uint64_t, ReceiveCore*> awaiting_;  ///< requests of `Endpoint::iprobe`, by tag
};

}  // namespace tandem::comm::internal
