// tandem/comm/endpoint.cpp: the facade: takes the lock, asks the engine, and waits through the progress engine.
#include "tandem/comm/endpoint.hpp"

#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/engine/engine.hpp"
#include "tandem/comm/progress.hpp"
#include "tandem/comm/schedule/strategy.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/comm/transports.hpp"
#include "tandem/comm/wire.hpp"
#include "tandem/comm/wrong_argument.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::comm {
namespace {

/// A peer that needs something of this rank for longer may be dead. Not sooner: a root that leaves does not count as
/// dead.
constexpr std::int64_t kPendingSoonNs = 1'000'000'000;
constexpr std::int64_t kPendingPatienceNs = 60'000'000'000;
constexpr std::int64_t kGoodbyePatienceNs = 2'000'000'000;
constexpr unsigned kLastLooks = 64;  ///< polls for peers that are connecting; sockets count every 32nd

/// FNV-1a: equal everywhere, and never 0, which is the default channel.
std::uint32_t hash_of(std::string_view name) noexcept {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash == 0 ? 1 : hash;
}

}  // namespace

/// Members are destroyed in reverse order: first all stepping ends, then the engine with its transports.
struct Endpoint::Parts {
  base::ProcessMark made_here;
  Job job;
  EndpointOptions options;
  base::Log* log = nullptr;
  std::shared_ptr<clock::Clock> clock;
  base::EventLoop* loop = nullptr;
  std::mutex channels_mutex;
  std::unordered_map<std::uint32_t, std::string> channels;
  trace::Session* trace = nullptr;  ///< guarded by `channels_mutex`
  bool closed = false;
  std::unique_ptr<internal::Engine> engine;
  std::unique_ptr<internal::Progress> progress;

  bool is_in_child() const noexcept { return !made_here.is_of_this_process(); }
  std::int64_t now() const { return loop != nullptr ? loop->now_ns() : clock->now_ns(); }

  base::Result<void> make_engine();
  void check_rank(std::string_view call, Rank rank) const {
    if (rank.value() >= job.size) [[unlikely]] internal::throw_no_such_rank(call, rank, job.size);
  }
  void check_source(std::string_view call, Source source) const {
    if (!source.any()) [[likely]] check_rank(call, source.rank());
  }
  void trace_to(trace::Session& session);

  /// Runs `act` on the engine, and continues what it posted.
  template <class Act>
  auto post(Act act) {
    if (is_in_child()) [[unlikely]] base::refuse_in_child("endpoint");
    progress->lock().lock();
    const Posting posting{*progress};
    return act(*engine);
  }
  struct Posting {
    internal::Progress& progress;
    ~Posting() { progress.posted_and_unlock(); }
  };
};

base::Result<void> Endpoint::Parts::make_engine() {
  auto strategy = make_strategy(options.strategy);
  if (!strategy) return strategy.error();
  internal::EngineContext context{
      .rank = job.rank,
      .size = job.size,
      .options = options,
      .log = log,
      .directory = job.directory,
      .now_ns = [this] { return now(); },
      .with_lock =
          [this](const std::function<void()>& act) {
            progress->lock().lock();
            act();
            progress->posted_and_unlock();
          },
      .wake = [this] { progress->kick(); },
      .cores = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()))};
  engine = std::make_unique<internal::Engine>(std::move(context), std::move(strategy).value());
  // With many more ranks than cores, a rank that polls keeps the core from the rank that it waits for.
  EndpointOptions how = options;
  if (job.ranks_here > 2 * std::thread::hardware_concurrency()) how.spin_ns = 0;
  progress = std::make_unique<internal::Progress>(*engine, how, [this] { return now(); }, loop);
  if (options.trace != nullptr) trace_to(*options.trace);
  return {};
}

namespace {

/// Channels are hashes, which the trace does not number.
void describe_channel(trace::Session& session, std::uint32_t id, std::string_view name) {
  session.name(trace::NameKind::channel, fmt::format("{} {}", id, name));
}

}  // namespace

void Endpoint::Parts::trace_to(trace::Session& session) {
  {
    const std::lock_guard guard(channels_mutex);
    trace = &session;
    for (const auto& [id, name] : channels) describe_channel(session, id, name);
  }
  session.attach(engine->trace(), {.kind = trace::ActorKind::progress, .name = "comm engine"});
  if (!progress->has_thread()) return;
  session.attach(progress->trace(), {.kind = trace::ActorKind::progress, .name = "progress thread", .index = 1});
}

base::Result<std::unique_ptr<Endpoint>> Endpoint::open(Job job, const EndpointOptions& options, base::Log& log) {
  base::raise_descriptor_limit();  // a descriptor or two for each peer
  auto parts = std::make_unique<Parts>();
  parts->job = std::move(job);
  parts->options = options;
  parts->log = &log;
  parts->clock = clock::best_clock();
  if (auto made = parts->make_engine(); !made) return made.error();
  auto transports = internal::make_transports(options, parts->job, *parts->engine, log);
  if (!transports) return transports.error();
  PeerCard card{.wire_version = wire::version,
                .version = internal::kVersion,
                .host = base::host_identity().text(),
                .host_name = base::host_name(),
                .transports = {},
                .credit_bytes = options.credit_bytes,
                .credit_messages = options.credit_messages,
                .credit_announcements = options.credit_announcements};
  for (auto& transport : transports.value()) {
    card.transports.emplace_back(transport->name(), transport->card());
    parts->engine->add_transport(std::move(transport));
  }
  if (parts->job.directory != nullptr) {
    if (auto published = parts->job.directory->publish(card); !published) return published.error();
  }
  if (auto started = parts->progress->start(); !started) return started.error();
  return std::unique_ptr<Endpoint>(new Endpoint(std::move(parts)));
}

namespace {

/// What every rank of a loop network knows without a launcher.
class LoopDirectory final : public Directory {
 public:
  explicit LoopDirectory(const LoopNetwork& network) : network_(network) {}
  base::Result<void> publish(const PeerCard&) override { return {}; }
  base::Result<PeerCard> lookup(Rank peer) override {
    return PeerCard{.wire_version = wire::version,
                    .version = internal::kVersion,
                    .host = std::to_string(peer.value() / network_.options().ranks_per_host),
                    .host_name = "loop",
                    .transports = {{"loop", "loop"}}};
  }

 private:
  const LoopNetwork& network_;
};

}  // namespace

std::unique_ptr<Endpoint> Endpoint::open_loop(LoopNetwork& network, Rank rank, const EndpointOptions& options,
                                              base::Log& log, base::EventLoop* loop) {
  auto parts = std::make_unique<Parts>();
  parts->job = Job{.rank = rank,
                   .size = network.options().ranks,
                   .source = "threads",
                   .directory = std::make_shared<LoopDirectory>(network)};
  parts->options = options;
  parts->log = &log;
  parts->loop = loop;
  if (loop == nullptr) parts->clock = std::make_shared<clock::RawMonotonicClock>();
  const auto made = parts->make_engine();
  TANDEM_ASSERT(made.ok());
  internal::Progress& progress = *parts->progress;
  parts->engine->add_transport(network.attach(rank, *parts->engine, [&progress] { progress.kick(); }));
  const auto started = progress.start();
  TANDEM_ASSERT(started.ok());
  return std::unique_ptr<Endpoint>(new Endpoint(std::move(parts)));
}

Endpoint::Endpoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

/// In a forked child the parts stay as they are: their threads are missing, their locks may be held, and their shared
/// memory is the parent's.
Endpoint::~Endpoint() {
  if (parts_->is_in_child()) {
    (void)parts_.release();
    return;
  }
  close();
  parts_->progress->stop();
  parts_->engine.reset();
}

Rank Endpoint::rank() const noexcept { return parts_->job.rank; }
std::uint32_t Endpoint::size() const noexcept { return parts_->job.size; }

Channel Endpoint::channel(std::string_view name) {
  const std::uint32_t id = hash_of(name);
  const std::lock_guard guard(parts_->channels_mutex);
  const auto [it, fresh] = parts_->channels.emplace(id, name);
  if (fresh && parts_->trace != nullptr) describe_channel(*parts_->trace, id, name);
  if (!fresh && it->second != name) internal::throw_same_channel(name, it->second);
  return Channel{id};
}

Request Endpoint::isend(Rank to, Tag tag, SendBuffer buffer, const SendOptions& options) {
  return Request(
      parts_->post([&](internal::Engine& engine) { return engine.send(to, tag, std::move(buffer), options); }));
}

Request Endpoint::isend_later(Rank to, Tag tag, std::size_t bytes, const SendOptions& options) {
  parts_->check_rank("isend_later", to);
  if (to == rank()) internal::throw_to_itself("isend_later", to);
  if (options.header.size() > max_header_bytes) internal::throw_long_header("isend_later", options.header.size());
  return Request(parts_->post([&](internal::Engine& engine) { return engine.send_later(to, tag, bytes, options); }));
}

bool Endpoint::supply(const Request& send, SendBuffer buffer, BufferMemory memory) {
  if (!send.valid() || send.released()) return false;
  return parts_->post([&](internal::Engine& engine) { return engine.supply(*send.core_, std::move(buffer), memory); });
}

bool Endpoint::reads(Rank to, BufferMemory memory) {
  return parts_->post([&](internal::Engine& engine) { return engine.reads(to, memory); });
}

Request Endpoint::irecv(Source from, TagPattern tag, ReceiveBuffer buffer, const ReceiveOptions& options) {
  parts_->check_source("irecv", from);
  if (options.memory != BufferMemory::host) [[unlikely]] {
    internal::RequestCore* const core = parts_->post(
        [&](internal::Engine& engine) { return engine.receive_placed(from, tag, std::move(buffer).take(), options); });
    if (core == nullptr) internal::throw_not_placed();
    return Request(core);
  }
  internal::ReceiveCore& core = internal::Engine::make_receive(from, tag, std::move(buffer).take(), false, options);
  return Request(parts_->post([&core](internal::Engine& engine) { return engine.receive(core); }));
}

Request Endpoint::irecv_owned(Source from, TagPattern tag, const ReceiveOptions& options) {
  parts_->check_source("irecv_owned", from);
  internal::ReceiveCore& core = internal::Engine::make_receive(from, tag, Pieces(), true, options);
  return Request(parts_->post([&core](internal::Engine& engine) { return engine.receive(core); }));
}

Request Endpoint::mcast(std::span<const Recipient> recipients, Tag tag, SendBuffer buffer,
                        const McastOptions& options) {
  for (const Recipient& recipient : recipients) parts_->check_rank("mcast", recipient.rank);
  if (options.header.size() > max_header_bytes) internal::throw_long_header("mcast", options.header.size());
  return Request(parts_->post(
      [&](internal::Engine& engine) { return engine.mcast(recipients, tag, std::move(buffer), options); }));
}

bool Endpoint::append(const Request& mcast, Recipient recipient) {
  parts_->check_rank("append", recipient.rank);
  if (!mcast.valid()) return false;
  return parts_->post([&](internal::Engine& engine) { return engine.append(*mcast.core_, recipient); });
}

void Endpoint::register_rpc(Channel channel, RpcHandler handler) {
  if (parts_->post([&](internal::Engine& engine) { return engine.register_rpc(channel, std::move(handler)); })) return;
  const std::lock_guard guard(parts_->channels_mutex);
  const auto known = parts_->channels.find(channel.value());
  internal::throw_second_handler(known != parts_->channels.end() ? std::string_view(known->second)
                                                                 : std::string_view());
}

Request Endpoint::rpc(Rank to, Channel channel, Tag tag, std::span<const std::byte> header, SendBuffer buffer,
                      int priority) {
  return isend(to, tag, std::move(buffer), {.channel = channel, .priority = priority, .header = header});
}

std::optional<Peeked> Endpoint::probe(Source from, TagPattern tag, Channel channel) {
  parts_->check_source("probe", from);
  return parts_->post([&](internal::Engine& engine) { return engine.probe(from, tag, channel); });
}

Request Endpoint::iprobe(Rank from, Tag tag, const ReceiveOptions& options) {
  parts_->check_rank("iprobe", from);
  internal::ReceiveCore& core = internal::Engine::make_receive(from, tag, Pieces(), false, options);
  return Request(parts_->post([&core](internal::Engine& engine) { return engine.await_message(core); }));
}

bool Endpoint::cancel(const Request& request) {
  if (!request.valid() || request.released()) return false;
  return parts_->post([&](internal::Engine& engine) { return engine.cancel(*request.core_); });
}

inline Status Endpoint::await_status(const internal::RequestCore& core, std::uint8_t stage) {
  if ((core.stage_now() & stage) == 0) await(core, stage);
  return core.known_status();
}

Status Endpoint::wait(const Request& request) {
  if (!request.valid()) return {};
  return await_status(*request.core_, internal::RequestCore::kReleased);
}

Status Endpoint::wait_arrived(const Request& request) {
  if (!request.valid()) return {};
  return await_status(*request.core_, internal::RequestCore::kArrived);
}

void Endpoint::await(const internal::RequestCore& core, std::uint8_t stage) {
  if (parts_->is_in_child()) base::refuse_in_child("endpoint");
  parts_->progress->await([&core, stage] { return (core.stage_now() & stage) != 0; });
}

void Endpoint::wait_all(std::span<const Request> requests) {
  if (parts_->is_in_child()) base::refuse_in_child("endpoint");
  const auto ended = [](const internal::RequestCore* core) {
    return core == nullptr || core->ended();
  };
  // Requests are checked in order, each until it has ended and never again.
  std::size_t next = 0;
  parts_->progress->await([&] {
    while (next < requests.size() && ended(requests[next].core_)) ++next;
    return next == requests.size();
  });
}

bool Endpoint::step() {
  if (parts_->is_in_child()) [[unlikely]] base::refuse_in_child("endpoint");
  return parts_->progress->once();
}

bool Endpoint::progress() {
  if (parts_->is_in_child()) [[unlikely]] base::refuse_in_child("endpoint");
  return parts_->progress->poll();
}
void Endpoint::expect(std::int64_t within_ns) { parts_->progress->expect(within_ns); }

std::uint64_t Endpoint::announce(Rank to, std::uint64_t bytes, std::int64_t in_ns, int priority) {
  return parts_->post([&](internal::Engine& engine) { return engine.announce(to, bytes, in_ns, priority); });
}

void Endpoint::withdraw(Rank to, std::uint64_t announced) {
  parts_->post([&](internal::Engine& engine) { return engine.withdraw(to, announced), true; });
}

bool Endpoint::uses_announcements(Rank to) {
  return parts_->post([&](internal::Engine& engine) { return engine.uses_announcements(to); });
}

base::IdleWork* Endpoint::idle_work() noexcept { return parts_->loop == nullptr ? parts_->progress.get() : nullptr; }

void Endpoint::on_peer_death(std::function<void(Rank, std::string_view)> call) {
  const std::lock_guard guard(parts_->progress->lock());
  parts_->engine->on_death(std::move(call));
}

void Endpoint::on_incoming(std::function<void(Rank, Channel, Tag, std::uint64_t, std::int64_t)> call) {
  const std::lock_guard guard(parts_->progress->lock());
  parts_->engine->on_incoming(std::move(call));
}

void Endpoint::trace_to(trace::Session& session) { parts_->trace_to(session); }

bool Endpoint::same_host(Rank a, Rank b) {
  Directory* const directory = parts_->job.directory.get();
  if (a == b || directory == nullptr) return a == b;
  const auto first = directory->lookup(a), second = directory->lookup(b);  // without the lock: may take long
  return first && second && first.value().host == second.value().host;
}

std::vector<Rank> Endpoint::connected_ranks() const {
  const std::lock_guard guard(parts_->progress->lock());
  return parts_->engine->connected_ranks();
}

EndpointStatistics Endpoint::statistics() const {
  const std::lock_guard guard(parts_->progress->lock());
  EndpointStatistics statistics = parts_->engine->statistics();
  statistics.deferred_messages = parts_->engine->deferred_messages();
  statistics.spare_bytes = parts_->engine->spare_bytes();
  return statistics;
}

std::string Endpoint::describe() const {
  const std::lock_guard guard(parts_->progress->lock());
  return parts_->engine->describe();
}

std::vector<Rank> Endpoint::missing_ranks() const {
  return parts_->job.directory != nullptr ? parts_->job.directory->missing() : std::vector<Rank>();
}

std::string_view Endpoint::transport_to(Rank peer) {
  if (parts_->job.directory != nullptr)
    (void)parts_->job.directory->lookup(peer).ok();  // so that the engine need not wait for it
  const std::lock_guard guard(parts_->progress->lock());
  const Transport* transport = parts_->engine->transport_to(peer);
  return transport != nullptr ? transport->name() : peer == parts_->job.rank ? "self" : "none";
}

void Endpoint::abandon() {
  parts_->post([](internal::Engine& engine) { return engine.abandon(), true; });
}

void Endpoint::close() {
  if (parts_->is_in_child()) return;
  if (std::exchange(parts_->closed, true)) return;
  internal::Engine& engine = *parts_->engine;
  internal::Progress& progress = *parts_->progress;
  const auto locked = [&](auto look) {
    return [&progress, look] {
      const std::lock_guard guard(progress.lock());
      return look();
    };
  };
  const auto nothing_pending = locked([&] { return !engine.pending_for_peers(); });
  if (!progress.until(nothing_pending, parts_->now() + kPendingSoonNs)) {
    parts_->post([](internal::Engine& mine) { return mine.connect_to_roots(), true; });
  }
  if (!progress.until(nothing_pending, parts_->now() + kPendingPatienceNs) && parts_->loop == nullptr) {
    parts_->log->warn("rank {} leaves; other ranks may still wait for data that it forwards:\n{}", rank().value(),
                      describe());
  }
  parts_->post([&](internal::Engine& mine) { return mine.say_goodbye(), true; });
  // A peer that is stopped cannot answer; it will find our goodbye when it goes on.
  const std::int64_t deadline = parts_->now() + kGoodbyePatienceNs;
  // Ranks that wait for this one may be connecting now: they get a goodbye, too, instead of a refused connection.
  for (unsigned look = 0; parts_->loop == nullptr && look < kLastLooks; ++look) progress.once();
  const auto nobody_waits = [&] {
    return !engine.accepts_now() && engine.all_answered_goodbye() && !engine.pending_for_peers();
  };
  progress.until(locked(nobody_waits), deadline);
  progress.stop();
  engine.stop_lookups();
  const std::lock_guard guard(progress.lock());
  engine.cancel_everything();
}

}  // namespace tandem::comm
