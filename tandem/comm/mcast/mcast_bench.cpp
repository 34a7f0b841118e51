// tandem/comm/mcast/mcast_bench.cpp: what a broadcast costs its root until its first packets are posted, with a plan
// and without.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/endpoint_test_support.hpp"

namespace tandem::comm {
namespace {

/// Times the call at the root of a broadcast of `range(1)` bytes to `range(0)` recipients, eight on each host. All of
/// it has arrived before the next one.
void post(benchmark::State& state, TreeKind tree, bool with_plan) {
  const auto recipients = static_cast<std::uint32_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  endpoint_test::World world(recipients + 1, {.ranks_per_host = 8, .copies = true});
  const endpoint_test::Bytes sent = endpoint_test::pattern(bytes, 1);
  endpoint_test::Bytes got(bytes);
  std::vector<Recipient> to;
  for (std::uint32_t rank = 1; rank <= recipients; ++rank)
    to.push_back({Rank{rank}, static_cast<int>(rank * 7919 % 31)});
  McastOptions options{.tree = tree};
  if (with_plan) options.plan = std::make_shared<BroadcastPlan>();
  Tag tag{0};
  const auto once = [&] {
    std::vector<Request> receives;
    for (const Recipient& recipient : to)
      receives.push_back(world.at[recipient.rank.value()]->irecv(Rank{0}, tag, got));
    const auto begin = std::chrono::steady_clock::now();
    const Request mcast = world.at[0]->mcast(to, tag, sent, options);
    const auto end = std::chrono::steady_clock::now();
    world.at[0]->wait(mcast);
    for (std::uint32_t rank = 1; rank <= recipients; ++rank) world.at[rank]->wait(receives[rank - 1]);
    return std::chrono::duration<double>(end - begin).count();
  };
  for (int warm = 0; warm < 20; ++warm) once();
  for (auto _ : state) state.SetIterationTime(once());
  state.counters["plans_reused"] = static_cast<double>(world.at[0]->statistics().plans_reused);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int recipients : {7, 38, 255})
    for (const int bytes : {1024, 65536}) benchmark->Args({recipients, bytes});
  benchmark->UseManualTime()->Iterations(300)->Repetitions(5)->ReportAggregatesOnly();
}
BENCHMARK_CAPTURE(post, automatic, TreeKind::automatic, false)->Apply(sizes);
BENCHMARK_CAPTURE(post, automatic_planned, TreeKind::automatic, true)->Apply(sizes);
BENCHMARK_CAPTURE(post, binomial, TreeKind::binomial, false)->Apply(sizes);
BENCHMARK_CAPTURE(post, binomial_planned, TreeKind::binomial, true)->Apply(sizes);

}  // namespace
}  // namespace tandem::comm
