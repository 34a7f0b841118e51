// tests/comm_traffic/runner.cpp: playing a plan.
#include "runner.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

namespace tandem::comm_traffic {
namespace {

using comm::Ending;
using comm::Rank;
using comm::Request;
using comm::Status;
using comm::Tag;
using Bytes = std::vector<std::uint8_t>;

Bytes content_of(std::size_t message, std::size_t bytes) {
  Bytes content(bytes);
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::uint8_t>(i * 31 + message * 97 + (i >> 8) * 7);
  return content;
}

Bytes header_of(std::size_t message, std::size_t bytes) {
  Bytes header = content_of(message + 1000, bytes);
  const std::uint64_t number = message;
  std::memcpy(header.data(), &number, sizeof number);
  return header;
}

bool never(void*) { return false; }

constexpr std::int64_t settle_ns = 100'000'000;

}  // namespace

WorldOptions draw_world(const Shape& shape, std::uint64_t seed) {
  base::EventLoop dice(seed ^ 0x9e3779b9);
  const auto below = [&](std::uint64_t bound) { return dice.random() % bound; };
  WorldOptions options;
  options.network.ranks = shape.ranks;
  options.network.ranks_per_host = below(2) == 0 ? UINT32_MAX : static_cast<std::uint32_t>(1 + below(4));
  options.network.rails = static_cast<unsigned>(1 + below(3));
  options.network.eager_bytes = shape.eager_bytes;
  options.network.segment_bytes = 1024u << below(6);
  options.network.payload_bytes = options.network.segment_bytes << below(5);
  options.network.packets_in_flight = 1 + below(16);
  options.network.remote_copy = below(3) == 0;
  options.network.copies = below(2) == 0;
  options.network.latency_max_ns = static_cast<std::int64_t>(1 + below(100'000));
  // else nobody is in time to copy, too
  if (options.network.remote_copy && below(2) == 0) options.network.latency_max_ns = 0;
  options.network.latency_min_ns = below(2) == 0 ? 0 : options.network.latency_max_ns / 2;
  const char* const strategies[] = {"fifo", "aggregate", "priority", "split"};
  options.endpoint.strategy = strategies[below(4)];
  if (below(3) == 0) {
    options.endpoint.credit_bytes = 8192 << below(4);
    options.endpoint.credit_messages = static_cast<std::uint32_t>(1 + below(8));
  }
  if (below(2) == 0)
    options.endpoint.credit_announcements = static_cast<std::uint32_t>(1 + below(below(2) == 0 ? 3 : 12));
  if (below(3) == 0) options.endpoint.forward_bytes = below(3) == 0 ? 0 : below(200'000);
  options.network.deaths_are_seen_by_all = below(2) == 0;
  return options;
}

Runner::Runner(Plan plan, const WorldOptions& options, std::uint64_t seed)
    : plan_(std::move(plan)),
      options_(options),
      loop_(seed),
      network_(options.network, &loop_),
      next_step_(plan_.shape.ranks) {
  for (std::uint32_t rank = 0; rank < plan_.shape.ranks; ++rank) {
    endpoints_.push_back(comm::Endpoint::open_loop(network_, Rank{rank}, options.endpoint, log_, &loop_));
    endpoints_.back()->on_peer_death(
        [this](Rank dead, std::string_view why) { reported_dead_.try_emplace(dead.value(), why); });
  }
  for (std::uint32_t channel = 0; channel < plan_.shape.channels; ++channel) {
    for (auto& endpoint : endpoints_) {
      const comm::Channel made = endpoint->channel("traffic " + std::to_string(channel));
      if (endpoint == endpoints_.front()) channels_.push_back(made);
    }
  }
  for (std::size_t i = 0; i < plan_.messages.size(); ++i) {
    contents_.push_back(content_of(i, plan_.messages[i].bytes));
    headers_.push_back(header_of(i, plan_.messages[i].header_bytes));
  }
  sends_.resize(plan_.messages.size());
  receives_.resize(plan_.receives.size());
}

Runner::~Runner() {
  for (std::uint32_t rank = 0; rank < endpoints_.size(); ++rank) {  // before any is destroyed: goodbyes are answered
    if (!dead_.contains(rank)) endpoints_[rank]->close();
  }
}

std::string Runner::run() {
  while (play_some_step()) {
    loop_.step_some(static_cast<unsigned>(below(30)));
    disturb();
  }
  if (stopped_) network_.stop(Rank{*std::exchange(stopped_, std::nullopt)}, false);
  settle();
  cancel_what_is_left();
  do settle();
  while (sweep());
  if (std::string invented = invented_deaths(); !invented.empty()) return invented + '\n' + describe();
  if (std::string unfinished = unfinished_sends(); !unfinished.empty()) return unfinished + '\n' + describe();
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < plan_.receives.size(); ++i) outcomes.push_back(outcome_of(i));
  return broken_rule(plan_, outcomes);
}

std::string Runner::run_with_deaths(std::span<const std::uint32_t> victims, std::size_t steps_until_death) {
  for (std::size_t step = 0; play_some_step(); ++step) {
    loop_.step_some(static_cast<unsigned>(below(30)));
    disturb();
    if (step < steps_until_death || dead_.size() == victims.size()) continue;
    network_.kill(Rank{victims[dead_.size()]});
    dead_.insert(victims[dead_.size()]);
  }
  if (dead_.empty()) return "";
  if (stopped_) network_.stop(Rank{*std::exchange(stopped_, std::nullopt)}, false);
  settle();
  std::string wrong = invented_deaths();
  if (wrong.empty()) wrong = unheard_deaths();
  cancel_what_is_left();
  settle();
  if (wrong.empty()) wrong = unfinished_sends();
  if (wrong.empty()) wrong = unended_receives();
  return wrong.empty() ? wrong : wrong + '\n' + describe();
}

std::string Runner::describe() const {
  std::string text;
  for (std::uint32_t rank = 0; rank < endpoints_.size(); ++rank) {
    if (!dead_.contains(rank)) text += endpoints_[rank]->describe();
  }
  return text;
}

/// Stops a rank or lets the stopped one go on; takes a send back.
void Runner::disturb() {
  if (options_.stops && below(4) == 0) {
    if (stopped_) {
      network_.stop(Rank{*std::exchange(stopped_, std::nullopt)}, false);
    } else {
      stopped_ = static_cast<std::uint32_t>(below(plan_.shape.ranks));
      network_.stop(Rank{*stopped_}, true);
    }
  }
  if (options_.cancels && !sends_.empty() && below(3) == 0) take_back(below(sends_.size()));
}

/// A message that was taken back is received by nobody, so that receives of its group may be left.
void Runner::take_back(std::size_t message_index) {
  PlannedMessage& message = plan_.messages[message_index];
  if (!sends_[message_index].valid() || !endpoints_[message.source]->cancel(sends_[message_index])) return;
  for (PlannedReceive& receive : plan_.receives) {
    const bool is_recipient =
        std::ranges::any_of(message.to, [&](const Delivery& delivery) { return delivery.rank == receive.rank; });
    receive.may_starve |= is_recipient && receive.channel == message.channel;
  }
  message.to.clear();
  sends_[message_index] = {};
}

/// The next posting of a rank that has one left, drawn at random.
bool Runner::play_some_step() {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < plan_.shape.ranks; ++rank) {
    if (!dead_.contains(rank) && next_step_[rank] < plan_.steps[rank].size()) ranks.push_back(rank);
  }
  if (ranks.empty()) return false;
  const std::uint32_t rank = ranks[below(ranks.size())];
  const Step step = plan_.steps[rank][next_step_[rank]++];
  step.is_message ? post(step.index) : post_receive(step.index);
  return true;
}

void Runner::post(std::size_t message_index) {
  const PlannedMessage& message = plan_.messages[message_index];
  comm::Endpoint& endpoint = *endpoints_[message.source];
  const auto header = std::as_bytes(std::span(headers_[message_index]));
  const comm::Channel channel = channels_[message.channel];
  if (!message.broadcast) {
    sends_[message_index] = endpoint.isend(Rank{message.to[0].rank}, Tag{message.tag}, contents_[message_index],
                                           {.channel = channel, .priority = message.to[0].priority, .header = header});
    return;
  }
  std::vector<comm::Recipient> recipients;
  for (const Delivery& delivery : message.to) recipients.push_back({Rank{delivery.rank}, delivery.priority});
  comm::TreeOptions tree(message.tree, below(3) == 0 ? 512U << below(6) : 0);
  if (below(4) == 0) {
    using enum comm::TreeKind;
    constexpr std::array parts{flat, chain, binary, kary, binomial, knomial};
    tree.arity = 2 + static_cast<unsigned>(below(4));
    tree.above = parts[below(parts.size())];
    tree.below = parts[below(parts.size())];
    tree.first_group = static_cast<std::uint32_t>(below(4));
    tree.by_priority = below(2) == 0;
  }
  sends_[message_index] = endpoint.mcast(recipients, Tag{message.tag}, contents_[message_index],
                                         {.channel = channel,
                                          .tree = tree,
                                          .hold_ns = below(4) == 0 ? static_cast<std::int64_t>(below(200'000)) : 0,
                                          .header = header});
}

void Runner::post_receive(std::size_t receive_index) {
  const PlannedReceive& receive = plan_.receives[receive_index];
  Receiving& receiving = receives_[receive_index];
  comm::Endpoint& endpoint = *endpoints_[receive.rank];
  const comm::Source source = receive.any_source ? comm::Source(comm::any_source) : comm::Source(Rank{receive.source});
  const comm::TagPattern tag = receive.any_tag ? comm::TagPattern(comm::any_tag) : comm::TagPattern(Tag{receive.tag});
  comm::ReceiveOptions options{.channel = channels_[receive.channel]};
  // Memory of a failed receive is the user's again, who writes to it: nobody may read it any more.
  if (below(2) == 0) {
    options.callbacks.failed = [&receiving](const Status& status) {
      if (status.ending == Ending::peer_dead) std::ranges::fill(receiving.memory, 0xee);
    };
  }
  if (receive.owned) {
    receiving.request = endpoint.irecv_owned(source, tag, options);
  } else {
    receiving.memory.resize(receive.capacity_bytes);
    receiving.request = endpoint.irecv(source, tag, receiving.memory, options);
  }
}

void Runner::settle() { (void)loop_.run_until(never, nullptr, loop_.now_ns() + settle_ns); }

void Runner::cancel_what_is_left() {
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const Request& request = receives_[i].request;
    if (request.valid() && !request.arrived()) (void)endpoints_[plan_.receives[i].rank]->cancel(request);
  }
}

/// Receives by wildcards what cancelled receives have left. False: there was nothing.
bool Runner::sweep() {
  const std::size_t before = receives_.size();
  for (std::uint32_t rank = 0; rank < plan_.shape.ranks; ++rank) {
    for (std::uint32_t channel = 0; channel < plan_.shape.channels; ++channel) {
      while (endpoints_[rank]->probe(comm::any_source, comm::any_tag, channels_[channel])) {
        plan_.receives.push_back({.rank = rank, .channel = channel, .any_source = true, .any_tag = true, .owned = true,
                                  .sweep = true});
        receives_.emplace_back();
        post_receive(plan_.receives.size() - 1);
      }
    }
  }
  return receives_.size() > before;
}

Outcome Runner::outcome_of(std::size_t receive_index) const {
  const Receiving& receiving = receives_[receive_index];
  Outcome outcome;
  if (!receiving.request.valid()) return outcome;
  const Status status = receiving.request.status();
  if (status.ending != Ending::done && status.ending != Ending::truncated) return outcome;
  std::uint64_t number = UINT64_MAX;
  if (status.header.size() >= sizeof number) std::memcpy(&number, status.header.data(), sizeof number);
  outcome = {.message = number, .source = status.source.value(), .tag = status.tag.value(), .bytes = status.bytes,
             .truncated = status.ending == Ending::truncated};
  if (number >= plan_.messages.size()) return outcome;
  const Bytes& content = contents_[number];
  const auto* const got = plan_.receives[receive_index].owned
                              ? reinterpret_cast<const std::uint8_t*>(status.owned.data())
                              : receiving.memory.data();
  const std::size_t room = plan_.receives[receive_index].owned ? status.owned.size() : receiving.memory.size();
  const std::size_t compared = std::min(room, content.size());
  outcome.content_right = (compared == 0 || std::memcmp(got, content.data(), compared) == 0) &&
                          (!plan_.receives[receive_index].owned || room == content.size()) &&
                          std::ranges::equal(status.header, std::as_bytes(std::span(headers_[number])));
  return outcome;
}

std::string Runner::unfinished_sends() const {
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    const PlannedMessage& message = plan_.messages[i];
    if (!sends_[i].valid() || dead_.contains(message.source)) continue;
    const Ending ending = sends_[i].released() ? sends_[i].status().ending : Ending::pending;
    const std::string what = "message " + std::to_string(i) + " of rank " + std::to_string(message.source) +
                             " ended as " + std::string(comm::name_of(ending));
    if (ending == Ending::done) continue;
    const bool to_dead =
        std::ranges::any_of(message.to, [this](const Delivery& delivery) { return dead_.contains(delivery.rank); });
    // A message to a living rank stays unsent when its receive waits in vain for another one; it only has to end.
    if (dead_.empty() || (ending != Ending::pending && !to_dead)) return what;
    if (ending == Ending::pending && to_dead && message.to.size() == 1) return what;
  }
  return "";
}

std::string Runner::invented_deaths() const {
  for (const auto& [rank, why] : reported_dead_) {
    if (!dead_.contains(rank)) return "rank " + std::to_string(rank) + " is called dead: " + why;
  }
  return "";
}

/// A receive from a rank that is dead, and from nobody else, ends by itself, whether or not its message was on its way.
std::string Runner::unheard_deaths() const {
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const PlannedReceive& receive = plan_.receives[i];
    if (!receives_[i].request.valid() || receives_[i].request.arrived() || dead_.contains(receive.rank)) continue;
    if (receive.any_source || !dead_.contains(receive.source)) continue;
    return "receive " + std::to_string(i) + " of rank " + std::to_string(receive.rank) + " still waits for a dead rank";
  }
  return "";
}

std::string Runner::unended_receives() const {
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const Receiving& receiving = receives_[i];
    if (!receiving.request.valid() || dead_.contains(plan_.receives[i].rank)) continue;
    const std::string what = "receive " + std::to_string(i) + " of rank " + std::to_string(plan_.receives[i].rank);
    if (!receiving.request.arrived()) return what + " has not ended";
    const Status status = receiving.request.status();
    if (status.ending == Ending::peer_dead && !dead_.contains(status.culprit.value()))
      return what + " names another dead rank";
    const Outcome outcome = outcome_of(i);
    if (outcome.message && !outcome.content_right) return what + " has wrong bytes";
  }
  return "";
}

}  // namespace tandem::comm_traffic
