// tandem/comm/sync/simulated_ranks.hpp: for tests: nodes with wrong clocks, joined by messages whose delays are drawn
// from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/clock/drifting_clock.hpp"
#include "tandem/comm/sync/barrier_node.hpp"
#include "tandem/comm/sync/clock_node.hpp"
#include "tandem/comm/sync/records.hpp"

namespace tandem::comm::internal::sync {

struct SimulationOptions {
  std::int64_t least_delay_ns = 250;
  double mean_extra_ns = 150;      ///< exponential, added to each message
  double sleepy_share = 0.02;      ///< of the messages meet a sleeping thread
  std::int64_t sleepy_ns = 40'000;
  ClockNode::Options node = {};
};

/// Ranks in a time that is simulated exactly: `now_ns()` is the truth, each rank sees its own drift of it. Messages of
/// a pair of ranks keep their order, as the library's do. Everything follows from the seed.
class SimulatedRanks {
 public:
  using Options = SimulationOptions;

  SimulatedRanks(unsigned seed, std::vector<clock::Drift> drifts, const Options& options = {})
      : options_(options), random_(seed) {
    const auto size = static_cast<std::uint32_t>(drifts.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      ClockNode node({.rank = Rank{i}}, options.node);
      ranks_.push_back(std::make_unique<Member>(drifts[i], std::move(node), BarrierNode(Rank{i}, size)));
      plan_step(i, 0);
    }
  }

  std::int64_t now_ns() const noexcept { return now_ns_; }
  std::int64_t local_ns(std::uint32_t rank) const noexcept { return ranks_[rank]->drift.at(now_ns_); }
  std::int64_t true_global_ns() const noexcept { return ranks_[0]->drift.at(now_ns_); }
  ClockNode& node(std::uint32_t rank) { return ranks_[rank]->node; }
  BarrierNode& barrier(std::uint32_t rank) { return ranks_[rank]->barrier; }
  const clock::Drift& drift(std::uint32_t rank) const { return ranks_[rank]->drift; }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ranks_.size()); }
  std::uint64_t messages() const noexcept { return messages_; }

  bool all_known() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& rank) { return !rank->alive || rank->node.known(); });
  }
  void enter_barrier(std::uint32_t rank) {
    Member& member = *ranks_[rank];
    Outbox outbox;
    member.barrier.enter(local_ns(rank), member.node.to_reference(), outbox);
    send(rank, outbox);
    plan_step(rank, 0);
  }
  /// Kills a rank: its messages are lost from now on; for watched ones the sender's `gone` is called.
  void kill(std::uint32_t rank) { ranks_[rank]->alive = false; }
  /// Stops a rank (SIGSTOP): its messages wait until then.
  void stop_until(std::uint32_t rank, std::int64_t until_ns) { ranks_[rank]->stopped_until_ns = until_ns; }

  void at(std::int64_t when_ns, std::function<void()> action) {
    events_.emplace(std::max(when_ns, now_ns_), std::move(action));
  }

  /// Runs until `done` or until that time; returns whether it is done.
  bool run(std::int64_t until_ns, const std::function<bool()>& done = [] { return false; }) {
    while (!done()) {
      if (events_.empty() || events_.begin()->first > until_ns) {
        now_ns_ = until_ns;
        return done();
      }
      auto event = events_.extract(events_.begin());
      now_ns_ = event.key();
      event.mapped()();
    }
    return true;
  }

 private:
  struct Member {
    Member(const clock::Drift& drift_of, ClockNode node_of, BarrierNode barrier_of)
        : drift(drift_of), node(std::move(node_of)), barrier(std::move(barrier_of)) {}
    clock::Drift drift;
    ClockNode node;
    BarrierNode barrier;
    bool alive = true;
    std::int64_t stopped_until_ns = 0;
    std::uint64_t planned = 0;  ///< counts plans: only the last one is valid
    std::map<std::uint32_t, std::int64_t> last_arrival_ns = {};
  };

  std::int64_t delay_ns() {
    std::exponential_distribution<double> extra(1 / options_.mean_extra_ns);
    std::bernoulli_distribution sleepy(options_.sleepy_share);
    return options_.least_delay_ns + static_cast<std::int64_t>(extra(random_)) +
           (sleepy(random_) ? options_.sleepy_ns : 0);
  }

  void plan_step(std::uint32_t rank, std::int64_t after_ns) {
    const std::uint64_t plan = ++ranks_[rank]->planned;
    at(now_ns_ + after_ns, [this, rank, plan] {
      if (ranks_[rank]->alive && ranks_[rank]->planned == plan) step(rank);
    });
  }

  void step(std::uint32_t rank) {
    Member& member = *ranks_[rank];
    if (member.stopped_until_ns > now_ns_) return plan_step(rank, member.stopped_until_ns - now_ns_);
    Outbox outbox;
    const std::int64_t local = local_ns(rank);
    const std::int64_t next = std::min(member.node.step(local, outbox), member.barrier.step(local, outbox));
    send(rank, outbox);
    if (next != base::kNever) plan_step(rank, std::max<std::int64_t>(1, next - local));
  }

  void send(std::uint32_t from, Outbox& outbox) {
    for (Outgoing& outgoing : std::exchange(outbox, {})) {
      const std::uint32_t to = outgoing.to.value();
      if (auto* ping = std::get_if<Ping>(&outgoing.record)) ping->send_ns = local_ns(from);
      if (!ranks_[to]->alive) {
        if (outgoing.watched) at(now_ns_ + 1'000, [this, from, to] { report_gone(from, to); });
        continue;
      }
      std::int64_t& last_ns = ranks_[to]->last_arrival_ns[from];
      last_ns = std::max(last_ns + 1, now_ns_ + delay_ns());
      ++messages_;
      at(last_ns, [this, from, to, record = outgoing.record] { arrive(from, to, record); });
    }
  }

  void report_gone(std::uint32_t rank, std::uint32_t who) {
    Outbox outbox;
    ranks_[rank]->node.gone(Rank{who}, outbox);
    ranks_[rank]->barrier.gone(Rank{who}, false, outbox);
    send(rank, outbox);
    plan_step(rank, 0);
  }

  void arrive(std::uint32_t from, std::uint32_t to, const Record& record) {
    Member& member = *ranks_[to];
    if (!member.alive) return;
    if (member.stopped_until_ns > now_ns_) {
      at(member.stopped_until_ns, [this, from, to, record] { arrive(from, to, record); });
      return;
    }
    Outbox outbox;
    const std::int64_t local = local_ns(to);
    if (const auto* ping = std::get_if<Ping>(&record))
      outbox.push_back({Rank{from}, Pong{ping->attempt, ping->send_ns, local}, false});
    member.node.take(Rank{from}, record, local, outbox);
    member.barrier.take(Rank{from}, record, local, member.node.to_reference(), outbox);
    send(to, outbox);
    plan_step(to, 0);
  }

  const Options options_;
  std::mt19937 random_;
  std::int64_t now_ns_ = 0;
  std::multimap<std::int64_t, std::function<void()>> events_;
  std::vector<std::unique_ptr<Member>> ranks_;
  std::uint64_t messages_ = 0;
};

/// Drifts of all kinds in turn, all different.
inline std::vector<clock::Drift> assorted_drifts(std::uint32_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> offset(-1'000'000'000'000, 1'000'000'000'000);
  std::uniform_real_distribution<double> rate(-100e-6, 100e-6);
  std::vector<clock::Drift> drifts;
  for (std::uint32_t i = 0; i < count; ++i) {
    clock::Drift drift{.offset_ns = offset(random)};
    if (i % 3 >= 1) drift.rate = rate(random);
    if (i % 3 == 2) drift.amplitude_ns = 3'000, drift.period_ns = 60'000'000'000;
    drifts.push_back(drift);
  }
  return drifts;
}

}  // namespace tandem::comm::internal::sync
