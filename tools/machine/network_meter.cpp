// tools/machine/network_meter.cpp: rank 0 announces the next step to its partners, and measures times.
#include "tools/machine/network_meter.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/thread.hpp"
#include "tandem/model/transfers/transfer_model.hpp"

namespace tandem::tools {
namespace {

using comm::Rank;
using runtime::LinkCurves;
using runtime::MachineNetwork;

/// The next step of a partner.
enum class StepKind : std::uint64_t {
  answer,        ///< `count` times: receives a message, and sends one
  exchange,      ///< `count` times: sends and receives at once
  flow,          ///< exchanges with `other` until a message begins with `kLast`
  start_copies,  ///< over all links, of `bytes` each
  stop_copies,   ///< ends `start_copies`
  lead_pair,     ///< exchanges with `other`, which gets `flow`, until there is a next step; answers after the first
                 ///< exchange
  end_pair,      ///< ends `lead_pair`, and answers
  leave,         ///< ends the measurement
};
/// A message of rank 0 with a step.
struct MeterStep {
  StepKind kind = StepKind::leave;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t other = 0;  ///< the other rank of a pair
};
constexpr std::string_view kMessages = "tandem machine: messages", kSteps = "tandem machine: steps";  ///< channels
constexpr std::byte kLast{1};
constexpr unsigned kFewest = 4;  ///< least messages for a valid time

/// Thrown within this file when a message fails.
struct BrokenMessage {
  std::string what;
};

/// Messages between two ranks.
class PartnerTalk {
 public:
  PartnerTalk(comm::Endpoint& endpoint, Rank other)
      : endpoint_(endpoint), other_(other), messages_(endpoint.channel(kMessages)), steps_(endpoint.channel(kSteps)) {}

  Rank other() const noexcept { return other_; }
  /// Sends a step, or the answer to one.
  void tell(const MeterStep& step) { wait(endpoint_.isend(other_, {}, {&step, sizeof step}, {.channel = steps_})); }
  MeterStep listen() {
    MeterStep step;
    wait(endpoint_.irecv(other_, comm::Tag{}, {&step, sizeof step}, {.channel = steps_}));
    return step;
  }

  /// The arrival of the next step; both may fail.
  comm::Request next_step() { return endpoint_.iprobe(other_, comm::Tag{}, {.channel = steps_}); }

  /// Sends a message and receives one.
  void ask(std::size_t bytes) {
    make_room(bytes);
    const comm::Request answer = receive(bytes);
    wait(send(bytes));
    wait(answer);
  }
  void answer(std::size_t bytes) {
    make_room(bytes);
    wait(receive(bytes));
    wait(send(bytes));
  }
  /// Sends and receives a message at once. True: the received one was the last.
  bool exchange(std::size_t bytes, bool is_last = false) {
    make_room(bytes);
    out_[0] = is_last ? kLast : std::byte{0};
    const comm::Request incoming = receive(bytes);
    wait(send(bytes));
    wait(incoming);
    return in_[0] == kLast;
  }

 private:
  void make_room(std::size_t bytes) {
    if (out_.size() >= bytes) return;
    out_.resize(bytes);
    in_.resize(bytes);
  }
  comm::Request send(std::size_t bytes) {
    return endpoint_.isend(other_, {}, {out_.data(), bytes}, {.channel = messages_});
  }
  comm::Request receive(std::size_t bytes) {
    return endpoint_.irecv(other_, comm::Tag{}, {in_.data(), bytes}, {.channel = messages_});
  }
  void wait(const comm::Request& request) {
    if (const comm::Status status = endpoint_.wait(request); status.ending != comm::Ending::done)
      throw BrokenMessage{fmt::format("a message between rank {} and rank {} ended as {}", endpoint_.rank().value(),
                                      other_.value(), name_of(status.ending))};
  }

  comm::Endpoint& endpoint_;
  const Rank other_;
  const comm::Channel messages_, steps_;
  std::vector<std::byte> out_, in_;
};

/// Times by size.
struct MessageCurves {
  model::TransferCurve alone, both_ways, loaded, all_pairs;
};

/// Ranks that exchange messages while another pair is measured. The first one of each pair leads it.
class OtherPairs {
 public:
  OtherPairs(comm::Endpoint& endpoint, std::span<const Rank> here, Rank partner) {
    std::vector<Rank> near, far;
    const auto is_here = [&](Rank rank) { return std::ranges::find(here, rank) != here.end(); };
    for (std::uint32_t rank = 1; rank < endpoint.size(); ++rank)
      if (Rank(rank) != partner) (is_here(Rank(rank)) ? near : far).emplace_back(rank);
    if (!is_here(partner))  // pairs of this host use its network, too
      for (; !near.empty() && !far.empty(); near.pop_back(), far.pop_back()) add(endpoint, near.back(), far.back());
    for (std::vector<Rank>* const left : {&near, &far})
      for (; left->size() >= 2; left->resize(left->size() - 2)) add(endpoint, left->end()[-2], left->back());
  }

  bool is_empty() const noexcept { return pairs_.empty(); }
  /// Returns when all pairs have exchanged a message.
  void start(std::size_t bytes) {
    for (Pair& pair : pairs_) {
      pair.led.tell({.kind = StepKind::flow, .bytes = bytes, .other = pair.leader.other().value()});
      pair.leader.tell({.kind = StepKind::lead_pair, .bytes = bytes, .other = pair.led.other().value()});
    }
    for (Pair& pair : pairs_) pair.leader.listen();
  }
  /// Ends all pairs, and returns when they have answered.
  void stop() {
    for (Pair& pair : pairs_) pair.leader.tell({.kind = StepKind::end_pair});
    for (Pair& pair : pairs_) pair.leader.listen();
  }

 private:
  struct Pair {
    PartnerTalk leader, led;
  };
  void add(comm::Endpoint& endpoint, Rank leader, Rank led) {
    pairs_.push_back({{endpoint, leader}, {endpoint, led}});
  }
  std::vector<Pair> pairs_;
};

class PartnerMeter {
 public:
  PartnerMeter(comm::Endpoint& endpoint, Rank partner, runtime::LinkMeter& links, const clock::Clock& clock, const NetworkMeterOptions& options)
      : partner_(partner), transport_(endpoint.transport_to(partner)), talk_(endpoint, partner), other_pairs_(endpoint, options.here, partner), links_(links),
        clock_(clock), options_(options) {}

  std::optional<MachineNetwork> measure() {
    const auto sizes = static_cast<unsigned>(options_.sizes.size());
    kinds_ = 2 + (links_.has_links() ? 1 : 0) + (other_pairs_.is_empty() ? 0 : 1);
    steps_ = kinds_ * sizes;
    MessageCurves curves;
    measure_sizes(StepKind::answer, curves.alone, "alone");
    measure_sizes(StepKind::exchange, curves.both_ways, "both ways");
    if (links_.has_links()) {
      start_copies();
      measure_sizes(StepKind::answer, curves.loaded, "beside copies");
      links_.stop_traffic();
      talk_.tell({.kind = StepKind::stop_copies});
    }
    if (!other_pairs_.is_empty()) {
      other_pairs_.start(options_.load_bytes);
      measure_sizes(StepKind::answer, curves.all_pairs, "beside other ranks");
      other_pairs_.stop();
    }
    return network_of(curves);
  }

  /// Measures links while messages come and go.
  void measure_links() {
    talk_.tell({.kind = StepKind::flow, .bytes = options_.load_bytes});
    std::optional<BrokenMessage> broken;  // the thread's until it is joined
    std::atomic<bool> stops{false};  // orders no other memory
    base::ThreadGroup flow;
    flow.add({.name = "flow"}, [&] {
      try {
        while (!stops.load(std::memory_order_relaxed)) static_cast<void>(talk_.exchange(options_.load_bytes));
        static_cast<void>(talk_.exchange(options_.load_bytes, true));
      } catch (const BrokenMessage& why) {
        broken = why;
      }
    });
    try {
      links_.measure_beside_messages();
    } catch (...) {
      stops.store(true, std::memory_order_relaxed);
      throw;
    }
    stops.store(true, std::memory_order_relaxed);
    flow.join();
    if (broken) throw BrokenMessage{*broken};
  }

 private:
  void start_copies() {
    talk_.tell({.kind = StepKind::start_copies, .bytes = options_.load_bytes});
    links_.start_traffic(options_.load_bytes);
  }

  void measure_sizes(StepKind kind, model::TransferCurve& curve, std::string_view how) {
    bool is_too_slow = false;
    for (const std::size_t bytes : options_.sizes) {
      if (options_.progress)
        options_.progress(step_, steps_,
                          fmt::format("{} to rank {}, {}, {} bytes", transport_, partner_.value(), how, bytes));
      ++step_;
      if (!is_too_slow) is_too_slow = !measure_size(kind, bytes, curve);
    }
  }

  /// Measures one size. False: the time does not suffice for enough messages.
  bool measure_size(StepKind kind, std::size_t bytes, model::TransferCurve& curve) {
    const std::int64_t begin_ns = clock_.now_ns();
    trips(kind, bytes, 1, nullptr);  // not counted: makes the connection, and touches pages
    const std::int64_t first_ns = std::max<std::int64_t>(1, clock_.now_ns() - begin_ns);
    const std::int64_t slice_ns =
        options_.most_ns / (static_cast<std::int64_t>(kinds_) * static_cast<std::int64_t>(options_.sizes.size()));
    const auto count = static_cast<unsigned>(std::min<std::int64_t>(options_.trips, slice_ns / first_ns));
    if (count < kFewest) return false;
    trips(kind, bytes, count, &curve);
    return true;
  }

  void trips(StepKind kind, std::size_t bytes, unsigned count, model::TransferCurve* curve) {
    talk_.tell({.kind = kind, .bytes = bytes, .count = count});
    for (unsigned i = 0; i < count; ++i) {
      const std::int64_t begin_ns = clock_.now_ns();
      if (kind == StepKind::answer) talk_.ask(bytes);
      else static_cast<void>(talk_.exchange(bytes));
      const double took_ns = static_cast<double>(clock_.now_ns() - begin_ns) / (kind == StepKind::answer ? 2 : 1);
      if (curve != nullptr) curve->add(bytes, std::max(took_ns, 1.0));
    }
  }

  std::optional<MachineNetwork> network_of(const MessageCurves& curves) const {
    MachineNetwork network{.transport = transport_, .source = runtime::LinkSource::measured, .times = {}};
    const auto time_of = [](const model::TransferCurve& curve, std::size_t bytes) -> std::optional<double> {
      const auto rate = LinkCurves::rate(curve, bytes);
      return rate ? std::optional(static_cast<double>(bytes) / *rate) : std::nullopt;
    };
    for (const std::size_t bytes : options_.sizes)
      if (const auto alone = time_of(curves.alone, bytes))
        network.times.push_back({.bytes = bytes,
                                 .alone_ns = *alone,
                                 .both_ways_ns = time_of(curves.both_ways, bytes),
                                 .loaded_ns = time_of(curves.loaded, bytes),
                                 .all_pairs_ns = time_of(curves.all_pairs, bytes)});
    return network.times.empty() ? std::nullopt : std::optional(std::move(network));
  }

  const Rank partner_;
  const std::string transport_;
  PartnerTalk talk_;
  OtherPairs other_pairs_;
  runtime::LinkMeter& links_;
  const clock::Clock& clock_;
  const NetworkMeterOptions& options_;
  unsigned kinds_ = 0, step_ = 0, steps_ = 0;
};

/// Lets all other ranks leave.
void dismiss(comm::Endpoint& endpoint) {
  const MeterStep leave;
  std::vector<comm::Request> told;
  for (std::uint32_t rank = 1; rank < endpoint.size(); ++rank)
    told.push_back(endpoint.isend(Rank(rank), {}, {&leave, sizeof leave}, {.channel = endpoint.channel(kSteps)}));
  endpoint.wait_all(told);
  for (const comm::Request& one : told)
    if (one.status().ending != comm::Ending::done)
      throw BrokenMessage{
          fmt::format("the message to a rank that the measurement is over ended as {}", name_of(one.status().ending))};
}

void lead_pair(comm::Endpoint& endpoint, PartnerTalk& zero, const MeterStep& step) {
  PartnerTalk other(endpoint, Rank(static_cast<std::uint32_t>(step.other)));
  static_cast<void>(other.exchange(step.bytes));
  zero.tell(step);
  const comm::Request next = zero.next_step();
  while (!next.arrived()) static_cast<void>(other.exchange(step.bytes));
  static_cast<void>(other.exchange(step.bytes, true));
}

base::Error error_of(const BrokenMessage& broken) { return {base::ErrorCode::io, broken.what}; }

}  // namespace

base::Result<std::vector<MachineNetwork>> measure_networks(comm::Endpoint& endpoint, std::span<const Rank> partners,
                                                           runtime::LinkMeter& links, const clock::Clock& clock,
                                                           const NetworkMeterOptions& options) {
  std::vector<MachineNetwork> networks;
  try {
    for (const Rank partner : partners) {
      if (std::ranges::find(networks, endpoint.transport_to(partner), &MachineNetwork::transport) != networks.end())
        continue;
      if (auto network = PartnerMeter(endpoint, partner, links, clock, options).measure())
        networks.push_back(std::move(*network));
    }
    if (!partners.empty() && links.has_links())
      PartnerMeter(endpoint, partners.back(), links, clock, options).measure_links();
    dismiss(endpoint);
  } catch (const BrokenMessage& broken) {
    return error_of(broken);
  }
  return networks;
}

base::Result<void> serve_network(comm::Endpoint& endpoint, const std::function<runtime::LinkMeter&()>& links) {
  try {
    PartnerTalk talk(endpoint, Rank(0));
    for (;;) {
      const MeterStep step = talk.listen();
      switch (step.kind) {
        case StepKind::answer:
          for (std::uint64_t i = 0; i < step.count; ++i) talk.answer(step.bytes);
          break;
        case StepKind::exchange:
          for (std::uint64_t i = 0; i < step.count; ++i) static_cast<void>(talk.exchange(step.bytes));
          break;
        case StepKind::flow: {
          PartnerTalk other(endpoint, Rank(static_cast<std::uint32_t>(step.other)));
          while (!other.exchange(step.bytes)) {
          }
          break;
        }
        case StepKind::lead_pair: lead_pair(endpoint, talk, step); break;
        case StepKind::end_pair: talk.tell({.kind = StepKind::end_pair}); break;
        case StepKind::start_copies: links().start_traffic(step.bytes); break;
        case StepKind::stop_copies: links().stop_traffic(); break;
        case StepKind::leave: return {};
      }
    }
  } catch (const BrokenMessage& broken) {
    return error_of(broken);
  }
}

}  // namespace tandem::tools
