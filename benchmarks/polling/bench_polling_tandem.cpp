// benchmarks/polling/bench_polling_tandem.cpp: what idle workers that poll cost messages of 4 bytes (thesis, section
// 5.4.3); started by `tandem run -n 2`.
//
// Each rank exchanges messages on its main thread, bound to a core of its own, beside a runtime whose workers have
// nothing to do. They look for tasks after pauses that double up to the back-off, or sleep: by themselves after a
// while, as by default, or since they are paused.
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/tandem_rank.hpp"
#include "benchmarks/common/two_ranks.hpp"
#include "tandem/tandem.hpp"

namespace {

constexpr std::uint64_t data_tag = 1;

struct Idleness {
  std::string name;
  std::string poll_for, poll_max;
  bool pauses = false;
};
const std::vector<Idleness>& all_kinds() {
  static const std::vector<Idleness> kinds{{"asleep", "20us", "1us"},          {"paused", "1h", "60ns", true},
                                           {"back_off_32us", "1h", "32us"},    {"back_off_1us", "1h", "1us"},
                                           {"no_back_off", "1h", "60ns"}};
  return kinds;
}

/// Half a round trip, in us.
double half_round_trip_us(benchmarks::TandemRank& rank, unsigned trips) {
  std::uint32_t value = 0;
  benchmarks::meet(rank);
  const std::int64_t begin_ns = benchmarks::host_now_ns();
  for (unsigned i = 0; i < trips; ++i) {
    if (rank.rank() == 0) rank.send(data_tag, &value, sizeof value);
    rank.receive(data_tag, &value, sizeof value);
    if (rank.rank() == 1) rank.send(data_tag, &value, sizeof value);
  }
  return static_cast<double>(benchmarks::host_now_ns() - begin_ns) / 2e3 / trips;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  const benchmarks::Options options(argc, argv, {"transport", "workers", "trips", "repetitions"});
  const unsigned workers = options.count("workers", 1), trips = options.count("trips", 2000),
                 repetitions = options.count("repetitions", 3);
  benchmarks::TandemRank rank(options.text("transport", ""), "inline");
  cpu_set_t everywhere;  // for workers, which inherit what their maker has
  sched_getaffinity(0, sizeof everywhere, &everywhere);
  benchmarks::bind_to_core(rank.rank());
  half_round_trip_us(rank, trips);  // warms up
  std::vector<benchmarks::Measurement> results{{"no_workers", "us", {}}};
  for (unsigned i = 0; i < repetitions; ++i) results.back().samples.push_back(half_round_trip_us(rank, trips));
  for (const Idleness& kind : all_kinds()) {
    sched_setaffinity(0, sizeof everywhere, &everywhere);
    tandem::Runtime rt(tandem::Options{
        .workers = workers + 1,  // the main thread is the first one
        .more = {{"ranks", "alone"}, {"bind", "false"}, {"poll_for", kind.poll_for}, {"poll_max", kind.poll_max}}});
    rt.wait();
    if (kind.pauses) rt.pause();
    benchmarks::bind_to_core(rank.rank());
    std::this_thread::sleep_for(20ms);
    benchmarks::Measurement& result = results.emplace_back(benchmarks::Measurement{kind.name, "us", {}});
    for (unsigned i = 0; i < repetitions; ++i) result.samples.push_back(half_round_trip_us(rank, trips));
    benchmarks::meet(rank);
  }
  if (rank.rank() == 0) benchmarks::Report{benchmarks::TandemRank::name, rank.version(), workers, results}.print();
}
