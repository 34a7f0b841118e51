// benchmarks/pingpong/bench_flow_pingpong_tandem.cpp: what the task flow adds to a message: a datum that tasks of two
// ranks touch in turn, beside the same exchange by the ranks' endpoints alone.
//
// Ranks 2 k and 2 k + 1 are a pair; all pairs play at once. `tandem run -n 2` starts it.
//
//   --bytes N (8), --trips N (1000): round trips of each sample; --repetitions N (5); --pairs N (all): the others wait;
//   --bound: each rank, with all its threads, to a core of its own
//
// Results, in us, of a pair's round trips: `comm_N`, half of one by the endpoint; `flow_N`, half of one through
// handles, submitted ahead; both the medians of a sample's trips; `added_N`, their difference; and `..._p99`, the 99th
// percentiles.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "benchmarks/common/trips.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;
using benchmarks::Trips;
using Bytes = std::vector<unsigned char>;

struct Setting {
  std::size_t bytes;
  unsigned trips, repetitions;
  std::uint32_t pairs;
};

class Bench {
 public:
  Bench(Runtime& rt, const Setting& setting)
      : rt_(rt), setting_(setting), first_(rt.rank() & ~1U), plays_(rt.rank() / 2 < setting.pairs), in_(setting.bytes),
        out_(setting.bytes) {
    for (std::uint32_t pair = 0; pair < setting.pairs; ++pair)
      data_.push_back(rt.vector<unsigned char>("ball " + std::to_string(pair), setting.bytes, {.owner = 2 * pair}));
    for (std::uint32_t pair = 0; pair < setting.pairs; ++pair)
      rt.submit(Codelet("serve", [](std::span<unsigned char> ball) { std::fill(ball.begin(), ball.end(), 0); }),
                write(data_[pair]));
    rt.wait();
  }

  /// By tasks. Of pair k, rank 2 k has the times.
  Trips flow() {
    Trips trips(setting_.trips);
    const Codelet touch("touch", [&trips](std::span<unsigned char> ball) { ++ball[0]; });
    const Codelet touch_and_note("touch", [&trips](std::span<unsigned char> ball) {
      ++ball[0];
      trips.note();
    });
    for (unsigned trip = 0; trip <= setting_.trips; ++trip) {
      for (std::uint32_t pair = 0; pair < setting_.pairs; ++pair) {
        rt_.submit({.on = 2 * pair}, touch_and_note, read_write(data_[pair]));
        rt_.submit({.on = 2 * pair + 1}, touch, read_write(data_[pair]));
      }
    }
    rt_.wait();
    return trips;
  }

  /// By the endpoint, as the flow uses it and with its options.
  Trips comm() {
    Trips trips(setting_.trips);
    comm::Endpoint& endpoint = rt_.flow()->endpoint();
    const comm::Rank other(rt_.rank() ^ 1U);
    const comm::Channel channel = endpoint.channel("bench.flow_pingpong");
    for (unsigned trip = 0; trip <= setting_.trips && plays_; ++trip) {
      if (rt_.rank() == first_) {
        trips.note();
        endpoint.wait(endpoint.isend(other, tag, comm::SendBuffer(out_.data(), out_.size()), {.channel = channel}));
      }
      endpoint.wait(endpoint.irecv(other, tag, comm::ReceiveBuffer(in_.data(), in_.size()), {.channel = channel}));
      if (rt_.rank() != first_)
        endpoint.wait(endpoint.isend(other, tag, comm::SendBuffer(out_.data(), out_.size()), {.channel = channel}));
    }
    rt_.wait();
    return trips;
  }

 private:
  static constexpr comm::Tag tag{1};

  Runtime& rt_;
  const Setting setting_;
  const std::uint32_t first_;  ///< rank of this pair
  const bool plays_;
  Bytes in_, out_;
  std::vector<Data<Vector<unsigned char>>> data_;
};

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"bytes", "trips", "repetitions", "pairs"}, {"bound"});
  // Before any thread is there, so that all are bound. The launcher's variable says which rank this is.
  if (options.has("bound") && !benchmarks::bind_to_core(benchmarks::rank_by_launcher())) {
    std::fprintf(stderr, "bench_flow_pingpong_tandem: binding to a core is forbidden\n");
    return 1;
  }
  Runtime rt;
  if (rt.size() < 2 || rt.size() % 2 != 0) {
    std::fprintf(stderr,
                 "bench_flow_pingpong_tandem: needs two ranks, or four, and so on; start it with tandem run -n 2\n");
    return 2;
  }
  const Setting setting{.bytes = options.count("bytes", 8),
                        .trips = options.count("trips", 1000),
                        .repetitions = options.count("repetitions", 5),
                        .pairs = std::min(options.count("pairs", UINT32_MAX), rt.size() / 2)};
  benchmarks::TripResults results(setting.bytes);
  {
    Bench bench(rt, setting);
    for (unsigned repetition = 0; repetition <= setting.repetitions; ++repetition) {
      const Trips comm = bench.comm();
      const Trips flow = bench.flow();
      if (rt.rank() == 0 && repetition > 0) results.add(comm, flow);
    }
  }
  if (rt.rank() == 0) results.print("tandem", "0.1.0", rt.worker_count());
}
