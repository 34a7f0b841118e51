// benchmarks/overlap/bench_overlap_tandem.cpp: a transfer behind computation on Tandem, whose progress threads share
// the cores that compute; started by `tandem run -n 2`.
#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/tandem_rank.hpp"
#include "benchmarks/overlap/harness.hpp"

int main(int argc, char** argv) {
  const benchmarks::overlap::Plan plan(argc, argv);
  benchmarks::TandemRank rank(plan.transport, "thread");
  benchmarks::bind_to_core(rank.rank());  // the caller alone: the progress thread goes where there is room
  benchmarks::overlap::measure(rank, plan);
}
