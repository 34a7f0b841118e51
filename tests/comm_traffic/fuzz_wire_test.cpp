// tests/comm_traffic/fuzz_wire_test.cpp: engines that a lying peer sends damaged blocks to. FUZZ_WIRE_SEED=n plays one
// seed, FUZZ_WIRE_COUNT=n that many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tandem/comm/engine/engine.hpp"
#include "tests/environment.hpp"

// Sizes that damaged records ask for are refused as they are without a sanitizer.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=512"; }

namespace tandem::comm::internal::fuzz_wire_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kLiar = 3;
constexpr Channel kHonest{1};  // between honest ranks alone, so that nothing damaged can look like it
constexpr Channel kMixed{2};
constexpr Channel kCalls{3};

struct Flying {
  std::uint32_t from = 0;
  unsigned rail = 0;
  std::vector<std::uint64_t> control;  // aligned to 8 bytes
  std::size_t control_bytes = 0;
  Bytes payload;
};

/// Packets on their way, by receiver; what the liar sends is damaged here.
class Wires {
 public:
  Wires(std::uint64_t seed, unsigned damage_percent) : random_(seed), damage_percent_(damage_percent) {}

  void put(std::uint32_t to, Flying packet) {
    if (packet.from == kLiar && below(100) < damage_percent_) damage(to, packet);
    flying_[to].push_back(std::move(packet));
  }
  std::deque<Flying>& to(std::uint32_t rank) { return flying_[rank]; }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool idle() const {
    return std::all_of(std::begin(flying_), std::end(flying_), [](const auto& packets) { return packets.empty(); });
  }

 private:
  void damage(std::uint32_t to, Flying& packet) {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(packet.control.data());
    switch (below(7)) {
      case 0:
      case 1:
        for (std::uint64_t flips = 1 + below(4); flips > 0; --flips) {
          bytes[below(packet.control_bytes)] ^= static_cast<std::uint8_t>(1u << below(8));
        }
        return;
      case 2: packet.control_bytes = below(packet.control_bytes + 1); return;
      case 3: flying_[to].push_back(packet); return;  // twice
      case 4:
        for (std::size_t i = 0; i < packet.control_bytes; ++i) bytes[i] = static_cast<std::uint8_t>(random_());
        return;
      case 5: packet.payload.resize(below(2) == 0 ? 0 : below(3000)); return;
      default: {  // a field of a record, which are multiples of four bytes, becomes something that may be plausible
        const std::uint32_t values[] = {0, 1, 2, 3, 4, 16, 255, 65536, 0x7fffffff, 0xffffffff};
        if (packet.control_bytes < 4) return;
        std::memcpy(bytes + 4 * below(packet.control_bytes / 4), &values[below(std::size(values))], 4);
        return;
      }
    }
  }

  std::mt19937_64 random_;
  unsigned damage_percent_;
  std::deque<Flying> flying_[kRanks];
};

class HandLink final : public Link {
 public:
  HandLink(Wires& wires, std::uint32_t self, Rank peer, unsigned rail) noexcept
      : Link(peer, rail), wires_(wires), self_(self) {}

  SendStatus try_send(const Packet& packet) override {
    if (closed) return SendStatus::retry;
    Flying flying{.from = self_, .rail = rail(), .control = {}, .control_bytes = packet.control.size(), .payload = {}};
    flying.control.resize((packet.control.size() + 7) / 8);
    std::memcpy(flying.control.data(), packet.control.data(), packet.control.size());
    for (const iovec& piece : packet.payload) {
      const auto* const first = static_cast<const std::uint8_t*>(piece.iov_base);
      flying.payload.insert(flying.payload.end(), first, first + piece.iov_len);
    }
    wires_.put(peer().value(), std::move(flying));
    return SendStatus::done;
  }
  bool closed = false;

 private:
  Wires& wires_;
  std::uint32_t self_;
};

class HandTransport final : public Transport {
 public:
  HandTransport(Wires& wires, std::uint32_t self, PacketSink& sink, unsigned rails)
      : wires_(wires), self_(self), sink_(sink) {
    able_ = Capabilities{.max_control_bytes = 8192,
                         .max_payload_bytes = 16384,
                         .segment_bytes = 1024,
                         .eager_bytes = 2048,
                         .rails = rails};
  }
  std::string_view name() const noexcept override { return "hand"; }
  const Capabilities& capabilities() const noexcept override { return able_; }
  std::string card() const override { return ""; }
  bool reaches(Rank, std::string_view) override { return true; }
  Link& connect(Rank peer, std::string_view, unsigned rail) override { return link(peer, rail); }
  int wait_descriptor() const noexcept override { return -1; }
  bool arm() override { return true; }
  void disarm() override {}
  void peer_left(Rank) override {}
  void disconnect(Rank peer) override { close(peer); }

  unsigned poll(std::int64_t) override {
    auto& packets = wires_.to(self_);
    if (packets.empty()) return 0;
    Flying packet = std::move(packets.front());
    packets.pop_front();
    HandLink& from = link(Rank{packet.from}, packet.rail);
    if (from.closed) return 1;
    const std::span control(reinterpret_cast<const std::byte*>(packet.control.data()), packet.control_bytes);
    const Landing landing = sink_.arrived(from, control, packet.payload.size());
    if (landing.malformed != nullptr) {
      fail(Rank{packet.from}, landing.malformed);
    } else if (!packet.payload.empty()) {
      std::size_t at = 0;
      for (const iovec& piece : landing.pieces) {
        const std::size_t part = std::min(piece.iov_len, packet.payload.size() - at);
        if (part > 0) std::memcpy(piece.iov_base, packet.payload.data() + at, part);
        at += part;
      }
      sink_.landed(from, landing.token);
    }
    return 1;
  }
  void fail(Rank peer, std::string_view why) {
    if (!close(peer)) return;
    failures[peer.value()] = why;
    sink_.peer_failed(peer, why);
  }
  std::map<std::uint32_t, std::string> failures;  ///< by peer, why

 private:
  HandLink& link(Rank peer, unsigned rail) {
    auto& links = links_[peer.value()];
    while (links.size() <= rail) {
      links.push_back(std::make_unique<HandLink>(wires_, self_, peer, static_cast<unsigned>(links.size())));
    }
    return *links[rail];
  }
  bool close(Rank peer) {
    bool any = false;
    for (unsigned rail = 0; rail < able_.rails; ++rail) any |= !std::exchange(link(peer, rail).closed, true);
    return any;
  }

  Wires& wires_;
  std::uint32_t self_;
  PacketSink& sink_;
  Capabilities able_;
  std::map<std::uint32_t, std::vector<std::unique_ptr<HandLink>>> links_;
};

class HandDirectory final : public Directory {
 public:
  base::Result<void> publish(const PeerCard&) override { return {}; }
  base::Result<PeerCard> lookup(Rank rank) override {
    return PeerCard{.wire_version = wire::version,
                    .version = "",
                    .host = std::to_string(rank.value()),
                    .host_name = "",
                    .transports = {{"hand", ""}}};
  }
};

/// Four engines, one of which seems to lie. Honest ranks talk with each other on a channel of their own, and with the
/// liar.
class LyingWorld {
 public:
  explicit LyingWorld(std::uint64_t seed)
      : random_(seed), wires_(seed * 7 + 1, static_cast<unsigned>(1 + seed % 60)), log_(base::LogLevel::error) {
    const unsigned rails = 1 + static_cast<unsigned>(seed % 2);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EndpointOptions options;
      if (seed % 3 == 0) options.forward_bytes = 10'000;
      if (seed % 5 == 0) options.credit_messages = 3;
      if (seed % 7 < 3) options.credit_announcements = 1 + static_cast<std::uint32_t>(seed % 4);
      engines_.push_back(std::make_unique<Engine>(
          EngineContext{.rank = Rank{rank}, .size = kRanks, .options = options, .log = &log_,
                         .directory = std::make_shared<HandDirectory>(), .now_ns = [this] { return now_ns_; },
                         .with_lock = [](const std::function<void()>& act) { act(); }, .cores = 2},
          std::move(make_strategy("split")).value()));
      auto transport = std::make_unique<HandTransport>(wires_, rank, *engines_.back(), rails);
      transports_.push_back(transport.get());
      engines_.back()->add_transport(std::move(transport));
      const auto wants = [](const RpcArrival& arrival) { return RpcAnswer{.wanted = arrival.bytes % 2 == 0}; };
      engines_.back()->register_rpc(kCalls, {.arrived = wants, .done = [](const Status&) {}});
    }
  }
  ~LyingWorld() {
    for (auto& engine : engines_) engine->cancel_everything();
    for (auto& engine : engines_) deliver(*engine);
  }

  std::set<std::string> reasons;  ///< for which links to the liar were closed

  /// What went wrong, or "".
  std::string run() {
    for (unsigned i = 0; i < 60; ++i) {
      post_honest();
      post_mixed();
      for (std::uint64_t steps = below(12); steps > 0; --steps) step(below(kRanks));
    }
    if (!settle()) return "packets go round for ever";
    // The liar is dead now; the ranks that have not noticed are notified.
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (rank != kLiar) transports_[rank]->fail(Rank{kLiar}, "the end");
    }
    if (!settle()) return "packets go round for ever after the liar's death";
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (rank == kLiar) continue;
      for (const auto& [peer, why] : transports_[rank]->failures) {
        if (peer != kLiar) return "rank " + std::to_string(rank) + " closed an honest link: " + why;
        reasons.insert(why);
      }
    }
    for (const Talk& talk : talks_) {
      const bool done = talk.receive->status().ending == Ending::done && talk.send->status().ending == Ending::done;
      if (!done) return "an honest message did not arrive";
      if (talk.sent != talk.got) return "an honest message arrived damaged";
    }
    return "";
  }

 private:
  struct Drop {
    void operator()(RequestCore* core) const noexcept { core->drop(); }
  };
  using Held = std::unique_ptr<RequestCore, Drop>;  ///< the user's reference
  struct Talk {
    Bytes sent, got;
    Held send, receive;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  Bytes some_bytes() {
    Bytes bytes(below(3) == 0 ? below(20'000) : below(600));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }

  void post_honest() {
    const auto from = static_cast<std::uint32_t>(below(kLiar));
    const auto to = static_cast<std::uint32_t>((from + 1 + below(kLiar - 1)) % kLiar);
    Talk& talk = talks_.emplace_back();
    talk.sent = some_bytes();
    talk.got.resize(talk.sent.size());
    const Tag tag{talks_.size()};
    const auto send = [&] { talk.send.reset(engines_[from]->send(Rank{to}, tag, talk.sent, {.channel = kHonest})); };
    const bool late = below(2) == 0;
    if (late) send();
    Pieces place(talk.got.data(), talk.got.size());
    talk.receive.reset(
        engines_[to]->receive(Engine::make_receive(Rank{from}, tag, std::move(place), false, {.channel = kHonest})));
    if (!late) send();
  }

  void post_mixed() {
    const auto from = static_cast<std::uint32_t>(below(kRanks));
    buffers_.push_back(some_bytes());
    const Tag tag{below(3)};
    const auto to = static_cast<std::uint32_t>(below(kRanks));
    switch (below(4)) {
      case 0:
        Held(engines_[from]->send(Rank{to}, tag, buffers_.back(), {.channel = below(4) == 0 ? kCalls : kMixed}));
        return;
      case 1: {
        std::vector<Recipient> all;
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) all.push_back({Rank{rank}, static_cast<int>(below(3))});
        const auto tree = static_cast<TreeKind>(below(tree_kind_count));
        Held(engines_[from]->mcast(all, tag, buffers_.back(), {.channel = kMixed, .tree = {tree, 512}}));
        return;
      }
      default: {
        const Source source = below(2) == 0 ? Source(any_source) : Source(Rank{to});
        const TagPattern pattern = below(2) == 0 ? TagPattern(any_tag) : TagPattern(tag);
        const bool owned = below(2) == 0;
        Pieces pieces = owned ? Pieces() : Pieces(buffers_.back().data(), buffers_.back().size());
        Held(engines_[from]->receive(
            Engine::make_receive(source, pattern, std::move(pieces), owned, {.channel = kMixed})));
      }
    }
  }

  void step(std::size_t rank) {
    now_ns_ += 100;
    engines_[rank]->step(now_ns_);
    deliver(*engines_[rank]);
  }
  static void deliver(Engine& engine) {
    while (!engine.events().empty()) {
      for (Event& event : engine.events().take()) {
        if (event.call) event.call();
        if (event.core != nullptr) event.core->drop();
      }
    }
  }
  bool settle() {
    for (unsigned quiet = 0, steps = 0; quiet < 3; ++steps) {
      if (steps > 20'000) return false;
      now_ns_ += 1'000'000;  // broadcasts that wait for a free rail go on
      for (std::size_t rank = 0; rank < kRanks; ++rank) step(rank);
      quiet = wires_.idle() ? quiet + 1 : 0;
    }
    return true;
  }

  std::mt19937_64 random_;
  Wires wires_;
  base::Log log_;
  std::int64_t now_ns_ = 1;
  std::deque<Bytes> buffers_;
  std::deque<Talk> talks_;
  std::vector<HandTransport*> transports_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

TEST(FuzzWire, DamagedRecordsOfOneRankHarmNoMessagesOfOthers) {
  const std::uint64_t first = test::number_of("FUZZ_WIRE_SEED", 0);
  const std::uint64_t count = std::getenv("FUZZ_WIRE_SEED") != nullptr ? 1 : test::number_of("FUZZ_WIRE_COUNT", 500);
  std::set<std::string> reasons;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    LyingWorld world(seed);
    ASSERT_EQ(world.run(), "") << "FUZZ_WIRE_SEED=" << seed;
    reasons.merge(world.reasons);
  }
  if (count >= 500) {
    EXPECT_GT(reasons.size(), 15u) << "the damage is found in too few ways to be thorough";
  }
}

}  // namespace
}  // namespace tandem::comm::internal::fuzz_wire_test
