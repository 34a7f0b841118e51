// benchmarks/urgent/bench_urgent_tandem.cpp: a chain of urgent tasks on two ranks, while one of these has bulk to send
// to others.
//
// Rank 0 computes (sleeps for --compute-ms), what it has computed travels to rank 1, whose answer it needs before it
// goes on: that is a step. The tasks of the chain have priority 10. Meanwhile rank 0 sends --bulk MiB of priority 0 to
// each of the other ranks. Then the same chain without bulk, while rank 1 has --chores tasks of priority 0 to run,
// which sleep for --chore-ms, twice that, and half of that in turn.
// `tandem run -n 6` starts it.
//
//   --bytes N (409600): of each step; --steps N (20); --compute-ms N (20); --bulk N (12), in pieces of 1 MiB;
//   --chores N (60); --chore-ms N (20); --repetitions N (3)
//
// Results: `step`, ms, the median of a repetition's steps; `step_alone`, the same without bulk and chores; `bulk`, ms
// from the first step's beginning until the last rank has all of its bulk; `step_chores`, ms, the mean of the steps
// beside chores; `chores`, ms from the first step's beginning until the last of them has ended.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "benchmarks/common/trips.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;
using Bytes = std::vector<unsigned char>;

struct Setting {
  std::size_t bytes;
  unsigned steps, compute_ms, pieces, chores, chore_ms;
};

/// Sleeps, and notes when it ended.
struct Chore {
  unsigned ms;
  void operator()(std::int64_t& end) const {
    usleep(ms * 1000);
    end = benchmarks::now_ns();
  }
};

class Bench {
 public:
  static constexpr std::size_t kPieceBytes = 1 << 20;

  Bench(Runtime& rt, const Setting& setting)
      : rt_(rt), setting_(setting), state_(rt.vector<unsigned char>("state", setting.bytes, {.owner = 0})),
        answer_(rt.scalar<int>("answer", {.owner = 1})),
        kinds_{Codelet("chore", Chore{setting.chore_ms}), Codelet("long chore", Chore{2 * setting.chore_ms}),
               Codelet("short chore", Chore{setting.chore_ms / 2})} {
    for (std::uint32_t rank = 2; rank < rt.size(); ++rank) {
      for (unsigned i = 0; i < setting.pieces; ++i)
        bulk_.push_back(rt.vector<unsigned char>("bulk", kPieceBytes, {.owner = 0}));
      ends_.push_back(rt.scalar<std::int64_t>("end", {.owner = rank}));
    }
    for (unsigned i = 0; i < setting.chores; ++i) chores_.push_back(rt.scalar<std::int64_t>("chore", {.owner = 1}));
    fill(state_);
    rt.submit(Codelet("begin", [](int& answer) { answer = 0; }), write(answer_));
    for (const auto& end : ends_) rt.submit(Codelet("begin", [](std::int64_t& date) { date = 0; }), write(end));
    rt.wait();
    beside_chores(3);  // so that it is known how long one takes
  }

  struct Times {
    double step_ms = 0, bulk_ms = 0;
  };
  Times run(bool with_bulk) {
    const Codelet take("take", [](std::span<const unsigned char>, std::int64_t& end) { end = benchmarks::now_ns(); });
    const Codelet see("see", [this](const std::int64_t& end) { last_ns_ = std::max(last_ns_, end); });
    for (const auto& piece : bulk_) fill(piece);
    rt_.wait();
    dates_.clear();
    last_ns_ = 0;
    const std::int64_t start_ns = benchmarks::now_ns();
    if (with_bulk) {
      for (std::size_t rank = 0; rank < ends_.size(); ++rank)
        for (unsigned i = 0; i < setting_.pieces; ++i)
          rt_.submit({.on = static_cast<std::uint32_t>(rank + 2)}, take, read(bulk_[rank * setting_.pieces + i]),
                     read_write(ends_[rank]));
    }
    chain(setting_.steps);
    if (with_bulk)
      for (const auto& end : ends_) rt_.submit({.on = 0}, see, read(end));
    rt_.wait();
    Times times;
    if (rt_.rank() != 0) return times;
    std::vector<double> steps;
    for (std::size_t i = 1; i < dates_.size(); ++i)
      steps.push_back(static_cast<double>(dates_[i] - dates_[i - 1]) / 1e6);
    times.step_ms = benchmarks::median(steps);
    times.bulk_ms = static_cast<double>(last_ns_ - start_ns) / 1e6;
    return times;
  }

  struct ChoreTimes {
    double step_ms = 0, chores_ms = 0;
  };
  /// The chain and the chores begin together; the mean of the steps that began before the last chore ended.
  ChoreTimes beside_chores(unsigned count) {
    const Codelet see("see", [this](const std::int64_t& end) { last_ns_ = std::max(last_ns_, end); });
    dates_.clear();
    last_ns_ = 0;
    const std::int64_t start_ns = benchmarks::now_ns();
    for (unsigned i = 0; i < count; ++i) rt_.submit(kinds_[i % 3], write(chores_[i]));
    chain(setting_.steps);
    for (unsigned i = 0; i < count; ++i) rt_.submit({.on = 0}, see, read(chores_[i]));
    rt_.wait();
    ChoreTimes times;
    if (rt_.rank() != 0) return times;
    std::size_t beside = 0;
    while (beside + 1 < dates_.size() && dates_[beside] < last_ns_) ++beside;
    if (beside > 0) times.step_ms = static_cast<double>(dates_[beside] - dates_[0]) / 1e6 / static_cast<double>(beside);
    times.chores_ms = static_cast<double>(last_ns_ - start_ns) / 1e6;
    return times;
  }

 private:
  void fill(const Data<Vector<unsigned char>>& data) {
    rt_.submit(Codelet("fill", [](std::span<unsigned char> bytes) { std::fill(bytes.begin(), bytes.end(), 1); }),
               write(data));
  }

  void chain(unsigned steps) {
    const Codelet compute("compute", [this](std::span<unsigned char> state, const int& answer) {
      dates_.push_back(benchmarks::now_ns());
      usleep(setting_.compute_ms * 1000);
      state[0] = static_cast<unsigned char>(answer);
    });
    const Codelet use("use", [](std::span<const unsigned char> state, int& answer) { answer = state[0] + 1; });
    for (unsigned step = 0; step < steps; ++step) {
      rt_.submit({.priority = 10, .on = 0}, compute, read_write(state_), read(answer_));
      rt_.submit({.priority = 10, .on = 1}, use, read(state_), read_write(answer_));
    }
  }

  Runtime& rt_;
  const Setting setting_;
  Data<Vector<unsigned char>> state_;
  Data<int> answer_;
  std::vector<Data<Vector<unsigned char>>> bulk_;  ///< rank 2's first
  std::vector<Data<std::int64_t>> ends_;
  std::array<Codelet<Chore>, 3> kinds_;  ///< the runtime knows how long each takes
  std::vector<Data<std::int64_t>> chores_;
  std::vector<std::int64_t> dates_;
  std::int64_t last_ns_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv,
                                    {"bytes", "steps", "compute-ms", "bulk", "chores", "chore-ms", "repetitions"});
  Runtime rt(tandem::Options{.workers = 1});
  if (rt.size() < 3) {
    std::fprintf(stderr, "bench_urgent_tandem: needs three ranks or more; start it with tandem run -n 6\n");
    return 2;
  }
  const Setting setting{.bytes = options.count("bytes", 409'600),
                        .steps = options.count("steps", 20),
                        .compute_ms = options.count("compute-ms", 20),
                        .pieces = options.count("bulk", 12),
                        .chores = std::max(options.count("chores", 60), 3U),
                        .chore_ms = options.count("chore-ms", 20)};
  benchmarks::Measurement step{"step", "ms", {}}, alone{"step_alone", "ms", {}}, bulk{"bulk", "ms", {}};
  benchmarks::Measurement step_chores{"step_chores", "ms", {}}, chores{"chores", "ms", {}};
  {
    Bench bench(rt, setting);
    for (unsigned repetition = options.count("repetitions", 3); repetition > 0; --repetition) {
      alone.samples.push_back(bench.run(false).step_ms);
      const Bench::Times times = bench.run(true);
      step.samples.push_back(times.step_ms);
      bulk.samples.push_back(times.bulk_ms);
      const auto [step_ms, chores_ms] = bench.beside_chores(setting.chores);
      step_chores.samples.push_back(step_ms);
      chores.samples.push_back(chores_ms);
    }
  }
  if (rt.rank() == 0) benchmarks::Report{"tandem", "0.1.0", 1, {step, alone, bulk, step_chores, chores}}.print();
}
