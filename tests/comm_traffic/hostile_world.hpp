// tests/comm_traffic/hostile_world.hpp: one engine, and a peer that says to it whatever a test wants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/comm/engine/engine.hpp"

namespace tandem::comm::hostile {

/// Two rails to each peer. What the engine sends is forgotten, but for its number; what `say` gives it arrives.
class OneSidedTransport final : public Transport {
 public:
  explicit OneSidedTransport(PacketSink& sink) : sink_(sink) {
    able_ = Capabilities{
        .max_control_bytes = 8192, .max_payload_bytes = 16384, .segment_bytes = 1024, .eager_bytes = 2048, .rails = 2};
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
  void disconnect(Rank peer) override { closed_.push_back(peer); }
  /// What is due happens here: only a poll may call the sink.
  unsigned poll(std::int64_t) override {
    if (!next) return 0;
    std::exchange(next, nullptr)();
    return 1;
  }

  /// During a poll: a packet arrives.
  void say(Rank peer, unsigned rail, std::span<const std::byte> control, std::span<const std::byte> payload) {
    Link& from = link(peer, rail);
    const Landing landing = payload.empty() ? Landing{.malformed = sink_.arrived_whole(from, control)}
                                            : sink_.arrived(from, control, payload.size());
    if (landing.malformed != nullptr) return fail(peer, landing.malformed);
    if (payload.empty()) return;
    for (const iovec& piece : landing.pieces) {
      const std::size_t part = std::min(piece.iov_len, payload.size());
      if (part > 0) std::memcpy(piece.iov_base, payload.data(), part);
      payload = payload.subspan(part);
    }
    sink_.landed(from, landing.token);
  }
  /// As `say`, and the payload does not come before `finish`.
  void begin(Rank peer, unsigned rail, std::span<const std::byte> control, std::size_t payload_bytes) {
    const Landing landing = sink_.arrived(link(peer, rail), control, payload_bytes);
    if (landing.malformed != nullptr) return fail(peer, landing.malformed);
    begun_.push_back({peer, rail, landing.token, {landing.pieces.begin(), landing.pieces.end()}});
  }
  void finish(Rank peer, unsigned rail, std::byte value) {
    const auto found =
        std::ranges::find_if(begun_, [&](const Begun& begun) { return begun.peer == peer && begun.rail == rail; });
    if (found == begun_.end()) return;
    const Begun begun = *found;
    begun_.erase(found);
    for (const iovec& piece : begun.pieces) std::memset(piece.iov_base, std::to_integer<int>(value), piece.iov_len);
    sink_.landed(link(peer, rail), begun.token);
  }
  void fail(Rank peer, std::string_view why) {
    failure = why;
    std::erase_if(begun_, [&](const Begun& begun) { return begun.peer == peer; });
    sink_.peer_failed(peer, why);
  }

  std::function<void()> next;
  std::string failure;     ///< why the last peer's links were closed
  std::size_t packets = 0;  ///< that the engine sent

 private:
  struct OneSidedLink final : Link {
    OneSidedLink(OneSidedTransport& by, Rank peer, unsigned rail) noexcept : Link(peer, rail), transport(by) {}
    SendStatus try_send(const Packet&) override { return ++transport.packets, SendStatus::done; }
    OneSidedTransport& transport;
  };
  Link& link(Rank peer, unsigned rail) {
    for (const auto& known : links_) {
      if (known->peer() == peer && known->rail() == rail) return *known;
    }
    return *links_.emplace_back(std::make_unique<OneSidedLink>(*this, peer, rail));
  }

  struct Begun {
    Rank peer;
    unsigned rail;
    std::uint64_t token;
    std::vector<iovec> pieces;
  };

  PacketSink& sink_;
  Capabilities able_;
  std::vector<Begun> begun_;
  std::vector<std::unique_ptr<OneSidedLink>> links_;
  std::vector<Rank> closed_;
};

/// Rank 0 of `kRanks`, with handlers on channel 3. Each packet is followed by what the engine does then.
class HostileWorld {
 public:
  static constexpr std::uint32_t kRanks = 4;
  static constexpr Channel kCalls{3};

  explicit HostileWorld(EndpointOptions options = {}, std::string_view strategy = "split")
      : log_(base::LogLevel::error, [](base::LogLevel, std::string_view) {}) {
    engine_ = std::make_unique<internal::Engine>(
        internal::EngineContext{.rank = Rank{0}, .size = kRanks, .options = std::move(options), .log = &log_,
                                .directory = std::make_shared<AllAlike>(), .now_ns = [this] { return now_ns_; },
                                .with_lock = [](const std::function<void()>& act) { act(); }, .cores = 2},
        std::move(make_strategy(strategy)).value());
    auto transport = std::make_unique<OneSidedTransport>(*engine_);
    transport_ = transport.get();
    engine_->add_transport(std::move(transport));
    const auto wants = [](const RpcArrival& arrival) { return RpcAnswer{.wanted = arrival.bytes % 2 == 0}; };
    engine_->register_rpc(kCalls, {.arrived = wants, .done = [](const Status&) {}});
  }
  ~HostileWorld() {
    engine_->check_invariants();
    engine_->cancel_everything();
    deliver();
    for (internal::RequestCore* core : held_) core->drop();
  }

  /// A packet of that peer's. False: its links are closed.
  bool say(Rank peer, std::span<const std::byte> control, std::span<const std::byte> payload = {}, unsigned rail = 0) {
    if (!transport_->failure.empty()) return false;
    transport_->next = [&] { transport_->say(peer, rail, control, payload); };
    step();
    step();
    return transport_->failure.empty();
  }
  /// The beginning of a packet whose payload comes with `finish`.
  bool begin(Rank peer, std::span<const std::byte> control, std::size_t payload_bytes, unsigned rail) {
    if (!transport_->failure.empty()) return false;
    transport_->next = [&] { transport_->begin(peer, rail, control, payload_bytes); };
    step();
    step();
    return transport_->failure.empty();
  }
  void finish(Rank peer, unsigned rail, std::byte value) {
    transport_->next = [&] { transport_->finish(peer, rail, value); };
    step();
    step();
  }
  void die(Rank peer) {
    transport_->next = [&] { transport_->fail(peer, "its connection ended"); };
    step();
    step();
  }
  void step() {
    now_ns_ += 1'000'000;
    engine_->step(now_ns_);
    deliver();
  }
  internal::RequestCore& receive(Source from, TagPattern tag, std::span<std::byte> room, Channel channel) {
    auto& core =
        internal::Engine::make_receive(from, tag, Pieces(room.data(), room.size()), false, {.channel = channel});
    held_.push_back(engine_->receive(core));
    return core;
  }
  internal::RequestCore& receive_owned(Source from, TagPattern tag, Channel channel) {
    auto& core = internal::Engine::make_receive(from, tag, Pieces(), true, {.channel = channel});
    held_.push_back(engine_->receive(core));
    return core;
  }
  void send(Rank to, Tag tag, std::span<std::byte> bytes, Channel channel) {
    held_.push_back(engine_->send(to, tag, SendBuffer(bytes.data(), bytes.size()), {.channel = channel}));
  }
  /// To all others.
  void mcast(Tag tag, std::span<std::byte> bytes, Channel channel) {
    std::vector<Recipient> others;
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) others.push_back({Rank{rank}, 0});
    held_.push_back(engine_->mcast(others, tag, SendBuffer(bytes.data(), bytes.size()), {.channel = channel}));
  }
  const std::string& failure() const noexcept { return transport_->failure; }
  internal::Engine& engine() noexcept { return *engine_; }

 private:
  struct AllAlike final : Directory {
    base::Result<void> publish(const PeerCard&) override { return {}; }
    base::Result<PeerCard> lookup(Rank rank) override {
      return PeerCard{.wire_version = wire::version,
                      .version = "",
                      .host = std::to_string(rank.value()),
                      .host_name = "",
                      .transports = {{"hand", ""}}};
    }
  };
  void deliver() {
    while (!engine_->events().empty()) {
      for (internal::Event& event : engine_->events().take()) {
        if (event.call) event.call();
        if (event.core != nullptr) event.core->drop();
      }
    }
  }

  base::Log log_;
  std::int64_t now_ns_ = 1;
  std::unique_ptr<internal::Engine> engine_;
  OneSidedTransport* transport_ = nullptr;
  std::vector<internal::RequestCore*> held_;
};

}  // namespace tandem::comm::hostile
