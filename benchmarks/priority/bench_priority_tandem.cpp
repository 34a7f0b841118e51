// benchmarks/priority/bench_priority_tandem.cpp: an urgent message on Tandem; for `tandem run -n 2`. Callers make
// progress.
#include "benchmarks/common/tandem_rank.hpp"
#include "benchmarks/priority/harness.hpp"

int main(int argc, char** argv) {
  const benchmarks::priority::Plan plan(argc, argv);
  benchmarks::TandemRank rank(plan.transport, "inline");
  benchmarks::priority::measure(rank, plan);
}
