// benchmarks/pingpong/bench_arrival_tandem.cpp: whether progress is there when it is needed: how long a message of 8
// bytes takes to a rank that has rested for a millisecond or two, or that computes on all its workers.
//
// `tandem run -n 2` starts it; rank 0 sends.
//
//   --workers N: of rank 1 (all cores); --messages N (500): of each sample; --repetitions N (3)
//
// Results, in us, medians of a sample, and `..._p99`, its 99th percentiles:
//
//   arrive_idle        from before the send until a handler is called; rank 1 waits
//   arrive_busy        the same; all workers of rank 1 run a kernel that does not end
//   start_idle         from the end of a task on rank 0 to the beginning of one on rank 1 that reads what it wrote;
//                      workers rest
//   start_beside_busy  the same; all workers of rank 1 but one run such a kernel. Needs two workers
//   wake_bare          from before a thread's write to an eventfd until a thread that sleeps there, on another core,
//                      has read it
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/trips.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;
using Times = std::vector<double>;  ///< in us

/// Long enough that the other side sleeps, and never as long twice.
void pause_between(std::minstd_rand& random) { usleep(std::uniform_int_distribution<unsigned>(1000, 3000)(random)); }

class Bench {
 public:
  Bench(Runtime& rt, unsigned messages, unsigned workers)
      : rt_(rt), messages_(messages), workers_(workers), channel_(rt.flow()->endpoint().channel("bench.arrival")),
        date_(rt.scalar<std::int64_t>("date", {.owner = 0})) {
    for (unsigned worker = 0; worker < workers; ++worker) places_.push_back(rt.scalar<int>("place", {.owner = 1}));
    rt.flow()->endpoint().register_rpc(channel_, {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                                                  .done = [this](const comm::Status& status) { arrived(status); }});
    for (const auto& place : places_) rt.submit(Codelet("make", [](int& value) { value = 0; }), write(place));
    rt.wait();
  }

  Times arrive(bool busy) {
    noted_.clear();
    enough_.store(false);
    if (busy) compute(workers_);
    if (rt_.rank() == 0) {
      for (unsigned i = 0; i < messages_; ++i) {
        pause();
        send(benchmarks::now_ns(), date_tag);
      }
      pause();
      send(0, end_tag);
    }
    rt_.wait();
    return std::exchange(noted_, {});
  }

  Times start(bool busy) {
    noted_.clear();
    enough_.store(false);
    if (busy) compute(workers_ - 1);
    const Codelet make("make", [this](std::int64_t& date) {
      pause();
      date = benchmarks::now_ns();
    });
    const Codelet see("see", [this](const std::int64_t& date, int&) {
      note(date);
      if (noted_.size() == messages_) enough_.store(true);
    });
    for (unsigned i = 0; i < messages_; ++i) {
      rt_.submit(make, write(date_));
      rt_.submit({.priority = 1, .on = 1}, see, read(date_), read_write(places_.back()));
    }
    rt_.wait();
    return std::exchange(noted_, {});
  }

 private:
  static constexpr comm::Tag date_tag{1};
  static constexpr comm::Tag end_tag{2};

  void note(std::int64_t since_ns) { noted_.push_back(static_cast<double>(benchmarks::now_ns() - since_ns) / 1e3); }

  void arrived(const comm::Status& status) {
    if (status.ending != comm::Ending::done) return;
    std::int64_t date = 0;
    std::memcpy(&date, status.owned.data(), sizeof date);
    if (status.tag == date_tag) note(date);
    else enough_.store(true);
  }

  /// On rank 1, until there is enough.
  void compute(unsigned workers) {
    const Codelet long_one("compute", [this](int& value) {
      while (!enough_.load(std::memory_order_relaxed))
        for (unsigned i = 0; i < 1000; ++i) value = value * 3 + 1;
    });
    for (unsigned worker = 0; worker < workers; ++worker) rt_.submit(long_one, read_write(places_[worker]));
  }

  void pause() { pause_between(random_); }

  void send(std::int64_t date, comm::Tag tag) {
    comm::Endpoint& endpoint = rt_.flow()->endpoint();
    endpoint.isend(comm::Rank(1), tag, comm::SendBuffer(&date, sizeof date), {.channel = channel_});
    // Small ones have left their buffer when the call returns.
  }

  Runtime& rt_;
  const unsigned messages_, workers_;
  const comm::Channel channel_;
  Data<std::int64_t> date_;
  std::vector<Data<int>> places_;  ///< on rank 1, one for each worker
  std::atomic<bool> enough_{false};
  Times noted_;
  std::minstd_rand random_{1};
};

/// The cost of waking alone, from one core to another that is idle if there are two. Rank 0 waits meanwhile, asleep.
Times wake_bare(unsigned messages) {
  const int bell = eventfd(0, 0), answer = eventfd(0, 0);
  std::atomic<std::int64_t> date{0};
  Times times;
  std::thread sleeper([&] {
    benchmarks::bind_to_core(1);
    std::uint64_t rung = 0;
    for (unsigned i = 0; i < messages && read(bell, &rung, sizeof rung) == sizeof rung; ++i) {
      times.push_back(static_cast<double>(benchmarks::now_ns() - date.load()) / 1e3);
      if (write(answer, &rung, sizeof rung) < 0) return;
    }
  });
  std::thread waker([&] {
    benchmarks::bind_to_core(0);
    std::minstd_rand random{1};
    for (unsigned i = 0; i < messages; ++i) {
      pause_between(random);
      date.store(benchmarks::now_ns());
      std::uint64_t one = 1;
      if (write(bell, &one, sizeof one) < 0 || read(answer, &one, sizeof one) < 0) return;
    }
  });
  waker.join();
  sleeper.join();
  close(bell);
  close(answer);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"workers", "messages", "repetitions"});
  const unsigned workers = options.count("workers", std::max(1U, std::thread::hardware_concurrency()));
  const unsigned messages = options.count("messages", 500), repetitions = options.count("repetitions", 3);
  Runtime rt(tandem::Options{.workers = benchmarks::rank_by_launcher() == 0 ? 1 : workers});
  if (rt.size() != 2) {
    std::fprintf(stderr, "bench_arrival_tandem: needs two ranks; start it with tandem run -n 2\n");
    return 2;
  }
  benchmarks::Report report{"tandem", "0.1.0", workers, {}};
  const auto measure = [&](const std::string& name, auto sample) {
    benchmarks::Measurement median{name, "us", {}}, worst{name + "_p99", "us", {}};
    for (unsigned i = 0; i < repetitions; ++i) {
      const Times times = sample();
      if (times.empty()) continue;  // on the other rank
      median.samples.push_back(benchmarks::median(times));
      worst.samples.push_back(benchmarks::percentile(times, 0.99));
    }
    report.results.push_back(median);
    report.results.push_back(worst);
  };
  {
    Bench bench(rt, messages, workers);
    measure("arrive_idle", [&] { return bench.arrive(false); });
    measure("arrive_busy", [&] { return bench.arrive(true); });
    measure("start_idle", [&] { return bench.start(false); });
    if (workers > 1) measure("start_beside_busy", [&] { return bench.start(true); });
    measure("wake_bare", [&] {
      Times times = rt.rank() == 1 ? wake_bare(messages) : Times{};
      rt.wait();
      return times;
    });
  }
  if (rt.rank() == 1) report.print();
}
