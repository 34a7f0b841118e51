// tandem/comm/sync/clock_sync.cpp: clock synchronisation over an endpoint's active messages.
#include "tandem/comm/sync/clock_sync.hpp"

#include <climits>
#include <utility>

#include <fmt/core.h>

#include "tandem/clock/tsc_clock.hpp"
#include "tandem/comm/sync/sync_engine.hpp"

namespace tandem::comm {
namespace {

using internal::sync::SharedCounter;
using internal::sync::SyncEngine;

/// One tag for all records, so that those of a pair of ranks keep their order.
constexpr Tag kTag{0};

/// The counter behind a clock, which other ranks of this host may read, too. Clocks of any other kind have to be
/// measured.
SharedCounter counter_of(const clock::Clock& clock) {
  if (const auto* tsc = dynamic_cast<const clock::TscClock*>(&clock)) return {SharedCounter::tsc, tsc->scale()};
  if (dynamic_cast<const clock::RawMonotonicClock*>(&clock) != nullptr) return {SharedCounter::kernel_clock, {}};
  return {};
}

/// Records as active messages of the highest priority on a channel of their own. Shared with the endpoint's handler,
/// which may run until the endpoint is closed.
struct Channelled final : internal::sync::Messenger, std::enable_shared_from_this<Channelled> {
  Channelled(Endpoint& endpoint_of, Channel channel_of) : endpoint(endpoint_of), channel(channel_of) {}

  void send(Rank to, std::span<const std::byte> bytes, bool watched) override {
    SendOptions options{.channel = channel, .priority = INT_MAX, .header = bytes};
    if (watched) {
      options.callbacks.failed = [weak = weak_from_this(), to](const Status& status) {
        if (const auto self = weak.lock()) self->engine->gone(to, status.ending == Ending::peer_left);
      };
    }
    endpoint.isend(to, kTag, SendBuffer(), options);
  }
  bool progress() override { return endpoint.step(); }
  void expect(std::int64_t within_ns) override { endpoint.expect(within_ns); }

  Endpoint& endpoint;
  const Channel channel;
  std::unique_ptr<clock::Clock> own_clock;  ///< when the user has given none
  std::unique_ptr<SyncEngine> engine;
};

base::Error nobody_answers(const Endpoint& endpoint, const SyncEngine& engine, const ClockSyncOptions& options) {
  const auto parent = engine.parent();
  const std::string from = parent ? fmt::format("from rank {}", parent->value())
                                  : "since all ranks between it and rank 0 are gone";
  return {base::ErrorCode::exhausted,
          fmt::format("rank {} did not learn the time within {} s, {}; every rank must open its clock synchronisation",
                      endpoint.rank().value(), options.timeout_ns / 1'000'000'000, from)};
}

}  // namespace

struct ClockSync::Parts {
  std::shared_ptr<Channelled> messenger;
  const SyncEngine& engine() const noexcept { return *messenger->engine; }
};

void add_clock_options(base::Registry& registry) {
  registry.add({.name = "clock.interval",
                .type = base::OptionType::duration,
                .default_value = "1s",
                .help = "time between measurements of the offsets between ranks' clocks",
                .minimum = 1e6});
  registry.add({.name = "clock.ping_pongs",
                .type = base::OptionType::integer,
                .default_value = "48",
                .help = "number of ping-pongs per measurement",
                .minimum = 1,
                .maximum = 100'000});
  registry.add(
      {.name = "clock.rate_limit_ppm",
       .type = base::OptionType::real,
       .default_value = "500",
       .help = "largest difference between the rates of two clocks, in parts per million; error bounds rely on it",
       .minimum = 0.001,
       .maximum = 100'000});
  registry.add(
      {.name = "clock.rate_change_ppm_per_s",
       .type = base::OptionType::real,
       .default_value = "0.2",
       .help = "largest change of the rate difference in a second, in parts per million; error bounds rely on it",
       .minimum = 0,
       .maximum = 100'000});
}

ClockSyncOptions clock_options(const base::Config& config) {
  return {.interval_ns = config.get_duration_ns("clock.interval"),
          .ping_pongs = static_cast<unsigned>(config.get_int("clock.ping_pongs")),
          .rate_limit = config.get_double("clock.rate_limit_ppm") * 1e-6,
          .rate_change_per_s = config.get_double("clock.rate_change_ppm_per_s") * 1e-6};
}

base::Result<std::unique_ptr<ClockSync>> ClockSync::open(Endpoint& endpoint, const ClockSyncOptions& options,
                                                         base::Log& log) {
  auto messenger = std::make_shared<Channelled>(endpoint, endpoint.channel("tandem.clock"));
  if (options.clock == nullptr) messenger->own_clock = clock::best_clock();
  const clock::Clock& local = options.clock != nullptr ? *options.clock : *messenger->own_clock;

  SyncEngine::Environment environment{endpoint.rank(), endpoint.size(), &local, counter_of(local),
                            [&endpoint](Rank peer) { return endpoint.same_host(endpoint.rank(), peer); }};
  internal::sync::ClockNode::Options node{.interval_ns = options.interval_ns, .ping_pongs = options.ping_pongs};
  node.limits = {options.rate_limit, options.rate_change_per_s};
  messenger->engine = std::make_unique<SyncEngine>(std::move(environment), node, *messenger);
  SyncEngine& engine = *messenger->engine;
  endpoint.register_rpc(messenger->channel, {.arrived = [messenger](const RpcArrival& message) {
                          messenger->engine->arrived(message.source, message.header);
                          return RpcAnswer{.wanted = false};
                        }});
  engine.start();
  if (!engine.wait_known(options.timeout_ns)) {
    engine.close();
    return nobody_answers(endpoint, engine, options);
  }
  const clock::GlobalTime now = engine.to_reference().to_global(local.now_ns());
  log.debug("rank {}: clock is {} ns behind rank 0's, known to {} ns", endpoint.rank().value(), now.ns - local.now_ns(),
            now.error_ns);
  return std::unique_ptr<ClockSync>(new ClockSync(std::make_unique<Parts>(Parts{std::move(messenger)})));
}

ClockSync::ClockSync(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ClockSync::~ClockSync() { parts_->messenger->engine->close(); }

clock::GlobalTime ClockSync::global_now() const noexcept {
  const SyncEngine& engine = parts_->engine();
  return engine.to_reference().to_global(engine.clock().now_ns());
}

clock::GlobalTime ClockSync::to_global(std::int64_t local_ns) const noexcept {
  return global_clock().to_global(local_ns);
}
clock::GlobalTime ClockSync::to_local(std::int64_t global_ns) const noexcept {
  return global_clock().to_local(global_ns);
}
clock::GlobalClock ClockSync::global_clock() const noexcept { return parts_->engine().to_reference(); }
const clock::Clock& ClockSync::local_clock() const noexcept { return parts_->engine().clock(); }

base::Result<BarrierExit> ClockSync::barrier() {
  const auto agreement = parts_->messenger->engine->barrier();
  if (!agreement) return agreement.error();
  const auto& [local_ns, global_ns, error_ns, late_ns] = agreement.value();
  return BarrierExit{local_ns, global_ns, error_ns, late_ns};
}

std::optional<Rank> ClockSync::parent() const { return parts_->engine().parent(); }
std::uint64_t ClockSync::corrections() const { return parts_->engine().measurements(); }

}  // namespace tandem::comm
