// benchmarks/burst/peer_burst_mpi.cpp: bursts of requests on the MPI library that is found; started by mpirun -np 2.
#include "benchmarks/burst/harness.hpp"
#include "benchmarks/common/mpi_rank.hpp"

int main(int argc, char** argv) {
  const benchmarks::burst::Plan plan(argc, argv);
  benchmarks::MpiRank rank;
  benchmarks::burst::measure(rank, plan);
}
