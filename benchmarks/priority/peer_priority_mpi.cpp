// benchmarks/priority/peer_priority_mpi.cpp: a message behind a large one on the MPI library that is found, which knows
// no priorities; started by mpirun -np 2.
#include "benchmarks/common/mpi_rank.hpp"
#include "benchmarks/priority/harness.hpp"

int main(int argc, char** argv) {
  const benchmarks::priority::Plan plan(argc, argv);
  benchmarks::MpiRank rank;
  benchmarks::priority::measure(rank, plan);
}
