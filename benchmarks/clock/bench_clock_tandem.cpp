// benchmarks/clock/bench_clock_tandem.cpp: how well ranks with wrong clocks know the time of rank 0.
//
// All processes read one TSC through one calibration, made before they part, and each adds a drift that is known: the
// truth of every rank's clock is a formula of the common one, and no measurement of ours.
//
// --ranks N (2), --drift constant|linear|sinusoidal, --transport shm|tcp, --at SECONDS,... (2), --interval MS (1000),
// --barriers N (100). Results, for each time T of --at, over the second before it and all ranks but 0, in us:
// `error_p50_Ts`, `error_p99_Ts`, `error_max_Ts`, the reported bound `bound_Ts` (median), and `outside_bound_Ts`,
// percent of the samples that were wrong by more than their bound; `global_now`, ns per call; `barrier_exit`, us
// between the first and the last rank that leave a barrier; `barrier_agreed`, us between the instants that they waited
// for.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/clock/endpoint.hpp"
#include "benchmarks/clock/ranks.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "tandem/clock/drifting_clock.hpp"
#include "tandem/clock/tsc_clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/sync/clock_sync.hpp"

namespace benchmarks::clocks {
namespace {

namespace clock = tandem::clock;
using Us = std::vector<double>;

constexpr std::int64_t second_ns = 1'000'000'000;

struct Plan {
  unsigned ranks, interval_ms, barriers;
  std::string drift, transport;
  std::vector<unsigned> at_s;

  Plan(int argc, char** argv)
      : Plan(Options(argc, argv, {"ranks", "drift", "transport", "at", "interval", "barriers"})) {}

 private:
  explicit Plan(const Options& options)
      : ranks(options.count("ranks", 2)),
        interval_ms(options.count("interval", 1000)),
        barriers(options.count("barriers", 100)),
        drift(options.text("drift", "linear")),
        transport(options.text("transport", "shm")) {
    const std::string list = options.text("at", "2");
    for (std::size_t first = 0; first < list.size(); first = list.find(',', first), first += first != std::string::npos)
      at_s.push_back(static_cast<unsigned>(std::max(1L, std::strtol(list.c_str() + first, nullptr, 10))));
    std::sort(at_s.begin(), at_s.end());
    const bool known = drift == "constant" || drift == "linear" || drift == "sinusoidal";
    if (known && ranks <= Board::most_ranks && barriers <= Board::most_samples && !at_s.empty()) return;
    std::fprintf(
        stderr, "--drift is constant, linear or sinusoidal, --ranks at most %u, --barriers at most %zu, --at seconds\n",
        Board::most_ranks, Board::most_samples);
    std::exit(2);
  }
};

/// Of one rank: all different. Rank 0's clock drifts too.
clock::Drift drift_of(unsigned rank, const Plan& plan, std::int64_t origin_ns) {
  clock::Drift drift{.origin_ns = origin_ns, .offset_ns = 1'234'567'890LL * (rank + 1)};
  const double sign = rank % 2 == 0 ? -1 : 1;
  if (plan.drift != "constant") drift.rate = sign * 15e-6 * (rank + 1);
  if (plan.drift == "sinusoidal" && rank > 0) drift.amplitude_ns = 10'000, drift.period_ns = 60 * second_ns;
  return drift;
}

/// One rank's view of the experiment: the common clock, its own wrong one, and rank 0's.
struct Setting {
  const clock::TscClock& common;
  clock::Drift own, reference;
};

struct Errors {
  Us error_us, bound_us;
};

/// Samples from now on until the common clock shows `until_ns`.
Errors sample_errors(const comm::ClockSync& sync, const Setting& setting, std::int64_t until_ns) {
  Errors errors;
  while (setting.common.now_ns() < until_ns && errors.error_us.size() < Board::most_samples) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const clock::GlobalClock line = sync.global_clock();
    const std::int64_t common_ns = setting.common.now_ns();
    const clock::GlobalTime time = line.to_global(setting.own.at(common_ns));
    errors.error_us.push_back(std::abs(static_cast<double>(time.ns - setting.reference.at(common_ns))) * 1e-3);
    errors.bound_us.push_back(static_cast<double>(time.error_ns) * 1e-3);
  }
  return errors;
}

double percentile(Us& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

/// Of all ranks but the reference.
Us joined(const std::vector<Us>& of_ranks) {
  Us all;
  for (std::size_t rank = std::min<std::size_t>(1, of_ranks.size() - 1); rank < of_ranks.size(); ++rank)
    all.insert(all.end(), of_ranks[rank].begin(), of_ranks[rank].end());
  return all;
}

void measure_errors(Ranks& ranks, const comm::ClockSync& sync, const Setting& setting, const Plan& plan,
                    Report& report) {
  for (const unsigned at_s : plan.at_s) {
    const std::int64_t until_ns = setting.own.origin_ns + at_s * second_ns;
    const std::int64_t wait_ns = until_ns - second_ns - setting.common.now_ns();
    if (wait_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
    const Errors errors = sample_errors(sync, setting, until_ns);
    Us error_us = joined(ranks.gather(errors.error_us)), bound_us = joined(ranks.gather(errors.bound_us));
    if (error_us.empty()) continue;
    std::size_t outside = 0;
    for (std::size_t i = 0; i < error_us.size(); ++i) outside += error_us[i] > bound_us[i];
    std::sort(error_us.begin(), error_us.end());
    const std::string suffix = std::string("_").append(std::to_string(at_s)).append("s");
    report.results.push_back({"error_p50" + suffix, "us", {percentile(error_us, 0.5)}});
    report.results.push_back({"error_p99" + suffix, "us", {percentile(error_us, 0.99)}});
    report.results.push_back({"error_max" + suffix, "us", {error_us.back()}});
    report.results.push_back({"bound" + suffix, "us", {median(bound_us)}});
    const double outside_share = static_cast<double>(outside) / static_cast<double>(error_us.size());
    report.results.push_back({"outside_bound" + suffix, "%", {100 * outside_share}});
  }
}

void measure_cost(const comm::ClockSync& sync, const Setting& setting, Report& report) {
  constexpr int calls = 200'000;
  Us samples_ns;
  for (int repetition = 0; repetition < 11; ++repetition) {
    std::int64_t sum = 0;
    const std::int64_t start_ns = setting.common.now_ns();
    for (int i = 0; i < calls; ++i) sum += sync.global_now().error_ns;
    const std::int64_t spent_ns = setting.common.now_ns() - start_ns;
    if (sum > 0) samples_ns.push_back(static_cast<double>(spent_ns) / calls);
  }
  report.results.push_back({"global_now", "ns", std::move(samples_ns)});
}

/// When the common clock shows what the drift makes `local_ns`.
std::int64_t common_time(const clock::Drift& drift, std::int64_t local_ns) {
  std::int64_t common_ns = local_ns - drift.offset_ns;
  for (int i = 0; i < 5; ++i) common_ns -= drift.at(common_ns) - local_ns;
  return common_ns;
}

/// For every barrier the difference between the last and the first rank.
Us spreads(const std::vector<Us>& of_ranks) {
  Us spread;
  for (std::size_t i = 0; i < of_ranks.front().size(); ++i) {
    double first = of_ranks.front()[i], last = first;
    for (const Us& times : of_ranks) first = std::min(first, times[i]), last = std::max(last, times[i]);
    spread.push_back(last - first);
  }
  return spread;
}

void measure_barriers(Ranks& ranks, comm::ClockSync& sync, const Setting& setting, const Plan& plan, Report& report) {
  Us left_us, agreed_us;
  for (unsigned i = 0; i < plan.barriers; ++i) {
    const comm::BarrierExit exit = checked(sync.barrier());
    left_us.push_back(static_cast<double>(setting.common.now_ns() - setting.own.origin_ns) * 1e-3);
    agreed_us.push_back(static_cast<double>(common_time(setting.own, exit.local_ns) - setting.own.origin_ns) * 1e-3);
  }
  report.results.push_back({"barrier_exit", "us", spreads(ranks.gather(left_us))});
  report.results.push_back({"barrier_agreed", "us", spreads(ranks.gather(agreed_us))});
}

void run(Ranks& ranks, const Plan& plan, const clock::TscClock& common, std::int64_t origin_ns) {
  base::Log log;
  const Setting setting{common, drift_of(ranks.rank(), plan, origin_ns), drift_of(0, plan, origin_ns)};
  const clock::DriftingClock local(common, setting.own);  // outlives the endpoint
  const auto endpoint = open_endpoint(ranks, plan.transport, log);
  auto sync =
      checked(comm::ClockSync::open(*endpoint, {.interval_ns = plan.interval_ms * 1'000'000LL, .clock = &local}, log));
  Report report{"tandem", "0.1.0", ranks.size(), {}};
  measure_errors(ranks, *sync, setting, plan, report);
  const bool reports = ranks.rank() == ranks.size() - 1;  // not rank 0, whose corrections cost nothing
  if (reports) measure_cost(*sync, setting, report);
  measure_barriers(ranks, *sync, setting, plan, report);
  ranks.meet();
  if (reports) report.print();
  sync.reset();
  endpoint->close();
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
