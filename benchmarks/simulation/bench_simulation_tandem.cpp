// benchmarks/simulation/bench_simulation_tandem.cpp: how fast one core simulates: messages between endpoints, tasks and
// messages of whole runtimes, and a broadcast to very many ranks.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/simulation/harness.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/sim/simulation.hpp"
#include "tandem/sim_rank/platform.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;
using namespace benchmarks::simulation;
using benchmarks::Measurement;

sim::Platform platform_of(std::uint32_t ranks, unsigned cores) {
  return {.ranks = ranks,
          .cores = cores,
          .latency_ns = static_cast<std::int64_t>(latency_s * 1e9),
          .bytes_per_ns = bytes_per_s * 1e-9};
}

/// The traffic through the simulated network alone, whose packets a rank sends and receives without a library.
class Network {
 public:
  explicit Network(const Traffic& traffic)
      : traffic_(traffic), network_(sim::network_of(platform_of(traffic.ranks, 1), sim::Execution::none), &loop_) {
    for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank) {
      Card& card = *cards_.emplace_back(std::make_unique<Card>(*this, rank));
      card.waker = &loop_.add(card, {});
      card.transport = network_.attach(comm::Rank{rank}, card, [&card] { card.waker->wake(); });
    }
  }

  /// Returns the virtual time, in s.
  double play() {
    for (auto& card : cards_) card->next();
    const auto is_over = [](void* self) {
      return static_cast<Network*>(self)->arrived_ == static_cast<Network*>(self)->traffic_.count();
    };
    if (loop_.run_until(is_over, this, base::kNever) != base::RunEnd::done) std::exit(1);
    return static_cast<double>(loop_.now_ns()) * 1e-9;
  }

 private:
  struct Card final : base::Steppable, comm::PacketSink {
    Card(Network& all, std::uint32_t self) : network(all), receivers(self, all.traffic_.ranks) {}

    /// Begins the next message, or goes on with the present one.
    void next() {
      if (left_bytes == 0) {
        if (begun == network.traffic_.messages) return;
        ++begun;
        link = &transport->connect(comm::Rank{receivers.next()}, "loop", 0);
        left_bytes = network.traffic_.bytes;
      }
      while (left_bytes > 0) {
        const std::size_t bytes = std::min<std::size_t>(left_bytes, segment_bytes);
        const std::uint64_t is_last = bytes == left_bytes ? 1 : 0;
        const iovec piece{network.memory_.data(), bytes};
        const comm::Packet packet{
            .control = std::as_bytes(std::span(&is_last, 1)), .payload = {&piece, 1}, .payload_bytes = bytes};
        if (link->try_send(packet) == comm::SendStatus::retry) return;
        left_bytes -= bytes;
      }
    }

    std::int64_t step(std::int64_t now_ns) override {
      while (transport->poll(now_ns) > 0) continue;
      return base::kNever;
    }
    comm::Landing arrived(comm::Link& from, std::span<const std::byte> control, std::size_t) override {
      if (control[0] != std::byte{0}) {
        ++network.arrived_;
        network.cards_[from.peer().value()]->next();
      }
      return {};
    }
    void landed(comm::Link&, std::uint64_t) override {}
    void sent(comm::Link&, std::uint64_t) override {}
    void writable(comm::Link&) override { next(); }
    void peer_failed(comm::Rank, std::string_view) override {}

    Network& network;
    Receivers receivers;
    base::Waker* waker = nullptr;
    std::unique_ptr<comm::Transport> transport;
    comm::Link* link = nullptr;
    std::size_t left_bytes = 0;
    std::uint32_t begun = 0;
  };
  static constexpr std::size_t segment_bytes = 64 << 10;

  Traffic traffic_;
  base::EventLoop loop_{1};
  comm::LoopNetwork network_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(segment_bytes);
  std::vector<std::unique_ptr<Card>> cards_;
  std::uint64_t arrived_ = 0;
};

/// The traffic through the communication library, packet by packet, without runtimes.
class Endpoints {
 public:
  explicit Endpoints(const Traffic& traffic)
      : traffic_(traffic),
        network_(sim::network_of(platform_of(traffic.ranks, 1), sim::Execution::none), &loop_),
        buffer_(traffic.bytes),
        sent_(traffic.ranks) {
    for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank) {
      at_.push_back(comm::Endpoint::open_loop(network_, comm::Rank{rank}, {}, log_, &loop_));
      channel_ = at_.back()->channel("messages");
      at_.back()->register_rpc(channel_, {.arrived = [this](const comm::RpcArrival&) {
                                            return comm::RpcAnswer{.buffer = buffer_};
                                          },
                                          .done = [this](const comm::Status& status) {
                                            ++arrived_;
                                            send(status.source.value());
                                          }});
    }
  }

  /// Returns the virtual time, in s.
  double play() {
    for (std::uint32_t rank = 0; rank < traffic_.ranks; ++rank) receivers_.emplace_back(rank, traffic_.ranks);
    for (std::uint32_t rank = 0; rank < traffic_.ranks; ++rank) send(rank);
    const auto is_over = [](void* self) {
      return static_cast<Endpoints*>(self)->arrived_ == static_cast<Endpoints*>(self)->traffic_.count();
    };
    const auto end = loop_.run_until(is_over, this, base::kNever);
    if (end == base::RunEnd::done) return static_cast<double>(loop_.now_ns()) * 1e-9;
    std::fprintf(stderr, "bench_simulation_tandem: %llu of %llu messages have arrived\n",
                 static_cast<unsigned long long>(arrived_), static_cast<unsigned long long>(traffic_.count()));
    std::exit(1);
  }

 private:
  void send(std::uint32_t rank) {
    if (sent_[rank]++ == traffic_.messages) return;
    at_[rank]->isend(comm::Rank{receivers_[rank].next()}, comm::Tag{1}, comm::SendBuffer(buffer_),
                     {.channel = channel_});
  }

  Traffic traffic_;
  base::EventLoop loop_{1};
  base::Log log_{base::LogLevel::error};
  comm::LoopNetwork network_;
  std::vector<std::byte> buffer_;
  std::vector<std::unique_ptr<comm::Endpoint>> at_;
  comm::Channel channel_{0};
  std::vector<Receivers> receivers_;
  std::vector<std::uint32_t> sent_;  ///< by rank
  std::uint64_t arrived_ = 0;
};

void messages(const Traffic& traffic, bool times, std::vector<Measurement>& results) {
  {
    Network network(traffic);
    const double begin_s = processor_s(), virtual_s = network.play();
    results.push_back(measurement(traffic, times, processor_s() - begin_s, virtual_s));
  }
  if (times) return;
  Endpoints endpoints(traffic);
  const double begin_s = processor_s(), virtual_s = endpoints.play();
  results.push_back(measurement(traffic, times, processor_s() - begin_s, virtual_s));
  results.back().name = "endpoints_" + std::to_string(traffic.bytes);
}

/// Options that no file or variable of this machine changes.
Options plain() { return {.more = {{"trace", ""}, {"models", "off"}, {"log", "error"}}}; }

/// Runs the program on all ranks.
void simulate(const sim::Platform& platform, const std::function<void(Runtime&)>& program) {
  sim::Simulation simulation({.platform = platform, .kernels = [](const runtime::EmulatedTask&, std::uint32_t) {
                                return sim::KernelTime{.mean_ns = 1e5};
                              }});
  const auto outcome = simulation.run([&program](std::uint32_t) {
    Runtime rt(plain());
    program(rt);
    rt.wait();
    return 0;
  });
  if (!outcome.error.empty()) {
    std::fprintf(stderr, "bench_simulation_tandem: %s\n", outcome.error.c_str());
    std::exit(1);
  }
}

/// Steps of a ring of blocks of 32 KiB: each becomes what its neighbours are; blocks in turns on four ranks, so that
/// each task waits for messages.
void tasks(std::uint32_t steps, std::vector<Measurement>& results) {
  constexpr std::uint32_t ranks = 4, cores = 16, blocks = 256;
  std::uint64_t messages = 0;
  const double begin_s = processor_s();
  simulate(platform_of(ranks, cores), [&](Runtime& rt) {
    std::vector<Data<Vector<double>>> now, next;
    for (std::uint32_t block = 0; block < blocks; ++block)
      for (auto* side : {&now, &next}) side->push_back(rt.vector<double>("block", 4096, {.owner = block % rt.size()}));
    const Codelet make("make", [](std::span<double>) {});
    const Codelet step("step", [](std::span<const double>, std::span<const double>, std::span<double>) {});
    for (auto& block : now) rt.submit(make, write(block));
    for (std::uint32_t done = 0; done < steps; ++done, std::swap(now, next))
      for (std::uint32_t block = 0; block < blocks; ++block)
        rt.submit(step, read(now[block]), read(now[(block + 1) % blocks]), write(next[block]));
    rt.wait();
    messages += rt.flow_statistics().received;
  });
  const auto count = static_cast<double>(std::uint64_t{steps} * blocks + messages);
  results.push_back({"task_or_message", "us", {(processor_s() - begin_s) * 1e6 / count}});
}

/// One value for a task on each other rank; the flow detects the broadcast. Loops are pruned.
void broadcast(std::uint32_t ranks, std::vector<Measurement>& results) {
  const double begin_s = processor_s();
  simulate(platform_of(ranks, 1), [](Runtime& rt) {
    const auto value = rt.vector<std::byte>("value", 65536, {.owner = 0});
    rt.submit("make", [](std::span<std::byte>) {}, write(value));
    const Codelet use("use", [](std::span<const std::byte>) {});
    if (rt.rank() == 0) {
      for (std::uint32_t rank = 1; rank < rt.size(); ++rank) rt.submit({.on = rank}, use, read(value));
      return;
    }
    rt.skip_tasks(rt.rank() - 1);
    rt.submit({.on = rt.rank()}, use, read(value));
    rt.skip_tasks(rt.size() - 1 - rt.rank());
  });
  results.push_back({"broadcast_to_" + std::to_string(ranks), "s", {processor_s() - begin_s}});
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"ranks", "messages", "steps", "recipients"}, {"times"});
  const bool times = is_about_times(options);
  std::vector<Measurement> results;
  for (const Traffic& traffic : all_traffic(options)) messages(traffic, times, results);
  if (!times) {
    tasks(options.count("steps", 400), results);
    broadcast(options.count("recipients", 10'000), results);
  }
  benchmarks::Report{"tandem", "0.1.0", 1, results}.print();
}
