// benchmarks/burst/bench_burst_tandem.cpp: bursts of requests on Tandem; started by `tandem run -n 2`. Callers make
// progress.
#include "benchmarks/burst/harness.hpp"
#include "benchmarks/common/tandem_rank.hpp"

int main(int argc, char** argv) {
  const benchmarks::burst::Plan plan(argc, argv);
  benchmarks::TandemRank rank(plan.transport, "inline");
  benchmarks::burst::measure(rank, plan);
}
