// benchmarks/overlap/peer_overlap_mpi.cpp: a transfer behind computation on the MPI library that is found; for mpirun
// -np 2.
#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/mpi_rank.hpp"
#include "benchmarks/overlap/harness.hpp"

int main(int argc, char** argv) {
  const benchmarks::overlap::Plan plan(argc, argv);
  benchmarks::MpiRank rank;
  benchmarks::bind_to_core(rank.rank());
  benchmarks::overlap::measure(rank, plan);
}
