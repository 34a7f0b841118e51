// benchmarks/clock/bench_ring_tandem.cpp: how long messages took, by clocks that were wrong and set right in several
// ways: the experiment of the article's figure 17.
//
// Messages of 4 bytes go round a ring of processes, one round every --period ms. All processes read one TSC through one
// calibration made before they part, and each stamps by a clock with a drift of its own, which is known: another
// offset, a rate within 20 ppm, and all but rank 0's a slow wave of some us. So the true duration of each message is
// known, and the error of what
//
//   plain_barrier  the offset at the exit of a barrier of messages, taken for one instant (figure 14),
//   one_barrier    the offset at a synchronised barrier in the beginning,
//   two_barriers   the line through two of them, in the beginning and in the end,
//   piecewise      these, points of the background synchronisation every second, and the messages themselves
//
// make of the durations (clock/correction.hpp). --ranks N (4), --seconds N (60), --period MS (10; longer where a rank
// would have more than 8000 messages), --transport shm|tcp. Results in us: `true`, the median duration, and for each
// method the 99th percentile of the absolute error of a duration. "details": `duration`, the median; `error_p01`,
// `error_p99`, percentiles of measured minus true; `error_p99_abs`; `drift`, the range of the median error in tenths of
// the run, of the ring's worst hop; `violations`, messages received before they were sent; `series`, by hop, [seconds,
// duration, error] of some messages.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/clock/endpoint.hpp"
#include "benchmarks/clock/ranks.hpp"
#include "benchmarks/common/options.hpp"
#include "tandem/clock/correction.hpp"
#include "tandem/clock/drifting_clock.hpp"
#include "tandem/clock/tsc_clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/sync/clock_sync.hpp"

namespace benchmarks::clocks {
namespace {

namespace clock = tandem::clock;

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t most_rounds = 8000, tenths = 10, shown_per_hop = 400;
static_assert(most_rounds <= Board::most_samples);

struct Plan {
  unsigned ranks, seconds;
  std::string transport;
  std::size_t rounds;
  std::int64_t period_ns;

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"ranks", "seconds", "period", "transport"})) {}

 private:
  explicit Plan(const Options& options)
      : ranks(options.count("ranks", 4)),
        seconds(options.count("seconds", 60)),
        transport(options.text("transport", "shm")),
        rounds(std::clamp<std::size_t>(std::size_t{1000} * seconds / options.count("period", 10), tenths, most_rounds)),
        period_ns(seconds * second_ns / static_cast<std::int64_t>(rounds)) {
    if (ranks >= 2 && ranks <= Board::most_ranks) return;
    std::fprintf(stderr, "--ranks is 2 to %u\n", Board::most_ranks);
    std::exit(2);
  }
};

/// Rates from -20 to 20 ppm, in an order in which neighbours differ much; waves that bend by 0.07 ppm per second at
/// most, which is within what clocks are assumed to do (`ClockSyncOptions::rate_change_per_s`).
clock::Drift drift_of(unsigned rank, std::int64_t origin_ns) {
  constexpr std::array rates{-7e-6, 20e-6, -20e-6, 11e-6, -3e-6, 16e-6, -13e-6, 5e-6};
  clock::Drift drift{
      .origin_ns = origin_ns, .offset_ns = 1'234'567'890LL * (rank + 1), .rate = rates[rank % rates.size()]};
  if (rank > 0) drift.amplitude_ns = 6'000, drift.period_ns = (40 + 20 * (1 + rank % 4)) * second_ns;
  return drift;
}

/// What one rank notes. Stamps of messages are the common clock's since `origin_ns`: what its own clock shows then is a
/// formula.
struct Notes {
  std::vector<double> sends, receives;
  std::vector<clock::SyncPoint> points;  ///< the first and the last are synchronised barriers
  std::int64_t plain_exit_ns = 0;        ///< local
};

class Rank {
 public:
  Rank(Ranks& ranks, const Plan& plan, const clock::TscClock& common, std::int64_t origin_ns)
      : plan_(plan),
        common_(common),
        origin_ns_(origin_ns),
        own_(drift_of(ranks.rank(), origin_ns)),
        local_(common, own_),
        endpoint_(open_endpoint(ranks, plan.transport, log_)),
        sync_(checked(comm::ClockSync::open(*endpoint_, {.clock = &local_}, log_))),
        next_((ranks.rank() + 1) % plan.ranks),
        previous_((ranks.rank() + plan.ranks - 1) % plan.ranks) {}

  Notes run() {
    std::this_thread::sleep_for(settling);
    pass_plain_barrier();
    notes_.plain_exit_ns = local_.now_ns();
    pass_synchronised_barrier();
    go_round();
    pass_synchronised_barrier();
    return std::move(notes_);
  }
  void leave() {
    sync_.reset();
    endpoint_->close();
  }

 private:
  /// The first measurements of offsets follow each other quickly, and may have been disturbed by processes that start.
  static constexpr std::chrono::milliseconds settling{1'000};
  static constexpr comm::Tag ring_tag{1}, barrier_tag{2};

  /// Dissemination: after step d, 2d ranks are known to be there.
  void pass_plain_barrier() {
    const unsigned rank = endpoint_->rank().value();
    for (unsigned distance = 1; distance < plan_.ranks; distance *= 2) {
      const auto send = endpoint_->isend(comm::Rank((rank + distance) % plan_.ranks), barrier_tag, {});
      endpoint_->wait(endpoint_->irecv(comm::Rank((rank + plan_.ranks - distance) % plan_.ranks), barrier_tag, {}));
      endpoint_->wait(send);
    }
  }

  void pass_synchronised_barrier() {
    const comm::BarrierExit exit = checked(sync_->barrier());
    notes_.points.push_back({exit.local_ns, exit.global_ns, exit.error_ns, true});
    next_point_ns_ = exit.local_ns + second_ns;
  }

  /// What the background synchronisation knows, once a second.
  void note_point() {
    const std::int64_t local_ns = local_.now_ns();
    if (local_ns < next_point_ns_) return;
    const clock::GlobalTime time = sync_->to_global(local_ns);
    notes_.points.push_back({local_ns, time.ns, time.error_ns, false});
    next_point_ns_ += second_ns;
  }

  void go_round() {
    const std::int64_t start_ns = common_.now_ns();
    for (std::size_t round = 0; round < plan_.rounds; ++round) {
      note_point();
      if (endpoint_->rank().value() == 0) {
        const std::int64_t wait_ns = start_ns + static_cast<std::int64_t>(round) * plan_.period_ns - common_.now_ns();
        if (wait_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
        send();
        receive();
      } else {
        receive();
        send();
      }
    }
  }

  double stamp() const { return static_cast<double>(common_.now_ns() - origin_ns_); }
  void send() {
    notes_.sends.push_back(stamp());
    endpoint_->wait(endpoint_->isend(next_, ring_tag, {&sent_, sizeof sent_}));
  }
  void receive() {
    endpoint_->wait(endpoint_->irecv(previous_, ring_tag, {&received_, sizeof received_}));
    notes_.receives.push_back(stamp());
  }

  const Plan& plan_;
  const clock::TscClock& common_;
  std::int64_t origin_ns_;
  clock::Drift own_;
  clock::DriftingClock local_;  // outlives the endpoint
  base::Log log_;
  std::unique_ptr<comm::Endpoint> endpoint_;
  std::unique_ptr<comm::ClockSync> sync_;
  comm::Rank next_, previous_;
  Notes notes_;
  std::int64_t next_point_ns_ = 0;
  std::int32_t sent_ = 29, received_ = 0;
};

/// All ranks' notes, on every rank. Times count from the origin, so that a double holds them exactly.
std::vector<Notes> gather(Ranks& ranks, const Notes& own, std::int64_t origin_ns) {
  std::vector<double> local, reference, error, barrier;
  for (const clock::SyncPoint& point : own.points) {
    local.push_back(static_cast<double>(point.local_ns - origin_ns));
    reference.push_back(static_cast<double>(point.reference_ns - origin_ns));
    error.push_back(static_cast<double>(point.error_ns));
    barrier.push_back(point.is_barrier ? 1 : 0);
  }
  const double plain = static_cast<double>(own.plain_exit_ns - origin_ns);
  const auto sends = ranks.gather(own.sends), receives = ranks.gather(own.receives), locals = ranks.gather(local),
             references = ranks.gather(reference), errors = ranks.gather(error), barriers = ranks.gather(barrier),
             plains = ranks.gather(std::span(&plain, 1));
  std::vector<Notes> all;
  for (unsigned rank = 0; rank < ranks.size(); ++rank) {
    all.push_back({sends[rank], receives[rank], {}, origin_ns + std::llround(plains[rank].front())});
    for (std::size_t i = 0; i < locals[rank].size(); ++i)
      all.back().points.push_back({origin_ns + std::llround(locals[rank][i]),
                                   origin_ns + std::llround(references[rank][i]), std::llround(errors[rank][i]),
                                   barriers[rank][i] > 0});
  }
  return all;
}

double percentile(std::vector<double> values, double share) {
  const auto at = std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// One method's durations, in us.
struct Outcome {
  std::string name;
  std::vector<double> seconds, durations, errors;  ///< of each message: when it was sent, measured, measured minus true
  clock::Violations violations;
};

class Analysis {
 public:
  Analysis(std::vector<Notes> notes, std::int64_t origin_ns) : notes_(std::move(notes)), origin_ns_(origin_ns) {
    for (std::size_t round = 0; round < notes_.front().sends.size(); ++round) {
      for (unsigned hop = 0; hop < size(); ++hop) {
        const std::int64_t sent_ns = origin_ns + std::llround(notes_[hop].sends[round]);
        const std::int64_t received_ns = origin_ns + std::llround(notes_[(hop + 1) % size()].receives[round]);
        common_.emplace_back(sent_ns, received_ns);
        messages_.push_back({comm::Rank(hop), comm::Rank((hop + 1) % size()), drift_of(hop, origin_ns).at(sent_ns),
                             drift_of((hop + 1) % size(), origin_ns).at(received_ns)});
      }
    }
  }

  void print(const Plan& plan) const {
    const std::array outcomes{
        by("plain_barrier", plain_points(), clock::CorrectionMethod::none),
        by("one_barrier", points(false), clock::CorrectionMethod::none),
        by("two_barriers", points(false), clock::CorrectionMethod::linear),
        by("piecewise", points(true), clock::CorrectionMethod::piecewise)};
    std::vector<double> durations;
    for (const auto& [sent_ns, received_ns] : common_)
      durations.push_back(static_cast<double>(received_ns - sent_ns) * 1e-3);
    std::printf("{\"tandem\": \"0.1.0\", \"ranks\": %u, \"seconds\": %u, \"messages\": %zu, \"results\": [", plan.ranks,
                plan.seconds, messages_.size());
    std::printf("{\"name\": \"true\", \"unit\": \"us\", \"median\": %.4g, \"details\": {\"duration\": %.4g}}",
                percentile(durations, 0.5), percentile(durations, 0.5));
    for (const Outcome& outcome : outcomes) print(outcome);
    std::printf("]}\n");
    std::fflush(stdout);
  }

 private:
  using Points = std::vector<std::vector<clock::SyncPoint>>;

  unsigned size() const { return static_cast<unsigned>(notes_.size()); }

  Points plain_points() const {
    Points all;
    for (const Notes& notes : notes_) all.push_back({{notes.plain_exit_ns, notes_.front().plain_exit_ns, 0, true}});
    return all;
  }
  Points points(bool background) const {
    Points all(size());
    for (unsigned rank = 0; rank < size(); ++rank)
      for (const clock::SyncPoint& point : notes_[rank].points)
        if (point.is_barrier || background) all[rank].push_back(point);
    return all;
  }

  Outcome by(const char* name, Points points, clock::CorrectionMethod method) const {
    const clock::CorrectedClocks clocks =
        clock::correct_clocks({.points = std::move(points), .messages = messages_}, {.method = method});
    Outcome outcome{.name = name, .seconds = {}, .durations = {}, .errors = {}, .violations = clocks.report.after};
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const clock::TracedMessage& message = messages_[i];
      const std::int64_t sent_ns = clocks.of_rank[message.sender.index()].to_reference(message.send_local_ns);
      const std::int64_t received_ns = clocks.of_rank[message.receiver.index()].to_reference(message.receive_local_ns);
      const auto [true_sent_ns, true_received_ns] = common_[i];
      outcome.seconds.push_back(static_cast<double>(true_sent_ns - common_.front().first) * 1e-9);
      outcome.durations.push_back(static_cast<double>(received_ns - sent_ns) * 1e-3);
      outcome.errors.push_back(outcome.durations.back() - static_cast<double>(true_received_ns - true_sent_ns) * 1e-3);
    }
    return outcome;
  }

  /// How much the median error of a hop varies between tenths of the run.
  double drift_of_hop(const Outcome& outcome, unsigned hop) const {
    std::array<std::vector<double>, tenths> errors;
    const std::size_t rounds = messages_.size() / size();
    for (std::size_t round = 0; round < rounds; ++round)
      errors[round * tenths / rounds].push_back(outcome.errors[round * size() + hop]);
    std::array<double, tenths> medians;
    std::transform(errors.begin(), errors.end(), medians.begin(),
                   [](const auto& tenth) { return percentile(tenth, 0.5); });
    const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
    return *most - *least;
  }

  void print(const Outcome& outcome) const {
    std::vector<double> sizes = outcome.errors;
    for (double& error : sizes) error = std::abs(error);
    double drift = 0;
    for (unsigned hop = 0; hop < size(); ++hop) drift = std::max(drift, drift_of_hop(outcome, hop));
    const double worst = percentile(sizes, 0.99);
    std::printf(", {\"name\": \"%s\", \"unit\": \"us\", \"median\": %.4g, \"details\": {\"duration\": %.5g, ",
                outcome.name.c_str(), worst, percentile(outcome.durations, 0.5));
    std::printf(
        "\"error_p01\": %.4g, \"error_p99\": %.4g, \"error_p99_abs\": %.4g, \"drift\": %.4g, \"violations\": %llu, ",
        percentile(outcome.errors, 0.01), percentile(outcome.errors, 0.99), worst, drift,
        static_cast<unsigned long long>(outcome.violations.count));
    std::printf("\"series\": [");
    const std::size_t step = std::max<std::size_t>(1, messages_.size() / size() / shown_per_hop);
    for (unsigned hop = 0; hop < size(); ++hop) {
      std::printf("%s[", hop == 0 ? "" : ", ");
      for (std::size_t i = hop; i < messages_.size(); i += step * size())
        std::printf("%s[%.3f, %.5g, %.4g]", i == hop ? "" : ", ", outcome.seconds[i], outcome.durations[i],
                    outcome.errors[i]);
      std::printf("]");
    }
    std::printf("]}}");
  }

  std::vector<Notes> notes_;
  std::int64_t origin_ns_;
  std::vector<clock::TracedMessage> messages_;
  std::vector<std::pair<std::int64_t, std::int64_t>> common_;  ///< of each message, when it was sent and received
};

void run(Ranks& ranks, const Plan& plan, const clock::TscClock& common, std::int64_t origin_ns) {
  Rank rank(ranks, plan, common, origin_ns);
  const Notes own = rank.run();
  std::vector<Notes> all = gather(ranks, own, origin_ns);
  if (ranks.rank() == 0) Analysis(std::move(all), origin_ns).print(plan);
  rank.leave();
}

}  // namespace
}  // namespace benchmarks::clocks

int main(int argc, char** argv) {
  using namespace benchmarks::clocks;
  const Plan plan(argc, argv);
  const auto common = checked(tandem::clock::TscClock::calibrate(50'000'000));
  const std::int64_t origin_ns = common.now_ns();
  Ranks ranks(plan.ranks);
  run(ranks, plan, common, origin_ns);
  return ranks.end();
}
