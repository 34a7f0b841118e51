// benchmarks/bcast/bench_readers_tandem.cpp: when a task that reads what was broadcast starts, and when one that writes
// it does (thesis, figure 4.6).
//
// Rank 0 sends one piece of data to all others, which receive it into their own. On each of them a task that reads it
// is submitted, then one that writes it; both only note the time. Priorities are the numbers of the ranks. The tree,
// and whether readers wait until the data was forwarded, are options of the runtime: TANDEM_BROADCAST,
// TANDEM_EARLY_READ. A round counts by the mean of all readers: the last one is often a leaf of the tree, which
// forwards nothing.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/bcast/harness.hpp"
#include "benchmarks/common/options.hpp"
#include "tandem/base/config.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;
using Bytes = std::vector<unsigned char>;

struct Setting {
  std::size_t bytes = 409'600;
  unsigned rounds = 3;
  unsigned pause_ms = 30;
};

/// What a rank notes of one round: `start` on rank 0, the others elsewhere.
struct Dates {
  std::int64_t start_ns = 0, read_ns = 0, written_ns = 0;
};

class Bench {
 public:
  Bench(Runtime& rt, const Setting& setting) : rt_(rt), setting_(setting), message_(setting.bytes) {
    data_ = rt.data("message", message_);
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) dates_.push_back(rt.scalar<Dates>("dates", {.owner = rank}));
  }

  /// On rank 0, what all ranks have noted; elsewhere nothing.
  std::vector<Dates> play(std::uint32_t round) {
    Dates mine;
    std::atomic<bool> may_start{false};
    const bool root = rt_.rank() == 0;
    const Codelet make("make", [&](std::span<unsigned char> message) {
      if (!root) return;
      may_start.wait(false);
      for (std::size_t i = 0; i < message.size(); ++i) message[i] = benchmarks::expected_byte(i, round);
      mine.start_ns = benchmarks::shared_now_ns();
    });
    rt_.submit(make, write(data_));
    for (std::uint32_t other = 1; root && other < rt_.size(); ++other)
      rt_.send(data_, other, round, static_cast<int>(other));
    if (!root) rt_.receive(data_, 0, round);
    const int priority = static_cast<int>(rt_.rank());
    rt_.submit({.priority = priority}, Codelet("read", [&](std::span<const unsigned char>) {
                 mine.read_ns = benchmarks::shared_now_ns();
               }), read(data_));
    rt_.submit({.priority = priority}, Codelet("write", [&](std::span<unsigned char> message) {
                 mine.written_ns = benchmarks::shared_now_ns();
                 message[0] ^= 1;
               }), read_write(data_));
    if (root) {
      usleep(setting_.pause_ms * 1000);  // the others have submitted, and the network rests
      may_start.store(true);
      may_start.notify_all();
    }
    rt_.wait();
    message_[0] ^= 1;
    if (!benchmarks::holds(message_, round)) {
      std::fprintf(stderr, "bench_readers_tandem: wrong bytes on rank %u\n", rt_.rank());
      std::exit(1);
    }
    return collect(mine);
  }

 private:
  std::vector<Dates> collect(const Dates& mine) {
    std::vector<Dates> all;
    for (std::uint32_t rank = 0; rank < rt_.size(); ++rank) {
      rt_.submit(Codelet("note", [&mine](Dates& dates) { dates = mine; }), write(dates_[rank]));
      rt_.submit({.on = 0}, Codelet("collect", [&all](const Dates& dates, int&) { all.push_back(dates); }),
                 read(dates_[rank]), read_write(order_));
    }
    rt_.wait();
    return all;
  }

  Runtime& rt_;
  const Setting setting_;
  Bytes message_;
  int token_ = 0;
  Data<Vector<unsigned char>> data_;
  std::vector<Data<Dates>> dates_;
  Data<int> order_ = rt_.data("order", token_, {.owner = 0});
};

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"bytes", "repetitions", "pause-ms"});
  const Setting setting{.bytes = options.count("bytes", 409'600),
                        .rounds = options.count("repetitions", 3),
                        .pause_ms = options.count("pause-ms", 30)};
  Runtime rt(Options{.workers = 1});
  if (rt.size() < 2) {
    std::fprintf(stderr, "bench_readers_tandem: needs two ranks or more; start it with tandem run\n");
    return 2;
  }
  benchmarks::BroadcastResult result{
      rt.config().get_string("broadcast") + (rt.config().get_bool("early_read") ? "" : " wait"), {}};
  {
    Bench bench(rt, setting);
    for (std::uint32_t round = 0; round < setting.rounds + 2; ++round) {  // two to warm up, as in bench_bcast_tandem
      const std::vector<Dates> dates = bench.play(round);
      if (rt.rank() != 0 || round < 2) continue;
      benchmarks::BroadcastTimes times;
      for (std::uint32_t rank = 1; rank < rt.size(); ++rank) {
        times.arrived_ns.push_back(dates[rank].read_ns - dates[0].start_ns);
        times.released_ns.push_back(dates[rank].written_ns - dates[0].start_ns);
      }
      result.rounds.push_back(times);
    }
  }
  if (rt.rank() == 0) benchmarks::print_broadcasts("tandem", "", {result}, &benchmarks::BroadcastTimes::mean_ms);
}
