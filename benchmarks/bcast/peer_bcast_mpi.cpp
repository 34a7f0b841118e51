// benchmarks/bcast/peer_bcast_mpi.cpp: MPI_Bcast as any MPI program calls it, or MPI_Ibcast; which algorithm it takes
// is for mpirun's options.
#include <mpi.h>
#include <unistd.h>

#include "benchmarks/bcast/harness.hpp"
#include "benchmarks/common/options.hpp"

namespace {

/// One broadcast of a round that all ranks enter; on rank 0 the times of the others.
benchmarks::BroadcastTimes broadcast(std::vector<unsigned char>& message, int rank, int size, unsigned pause_ms,
                                     bool blocks) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) usleep(pause_ms * 1000);  // the others wait inside the broadcast
  const std::int64_t start_ns = benchmarks::shared_now_ns();
  const auto bytes = static_cast<int>(message.size());
  if (blocks) {
    MPI_Bcast(message.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(message.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  const std::int64_t end_ns = benchmarks::shared_now_ns();
  std::vector<std::int64_t> ends(static_cast<std::size_t>(size));
  MPI_Gather(&end_ns, 1, MPI_INT64_T, ends.data(), 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  benchmarks::BroadcastTimes times;
  for (std::size_t other = 1; other < ends.size(); ++other) times.arrived_ns.push_back(ends[other] - start_ns);
  times.released_ns = times.arrived_ns;
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const benchmarks::Options options(argc, argv, {"bytes", "repetitions", "pause-ms"}, {"nonblocking"});
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) {
    std::fprintf(stderr, "peer_bcast_mpi: needs two ranks or more; start it with mpirun\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::vector<unsigned char> message(options.count("bytes", 439'296));
  benchmarks::BroadcastResult result{"automatic", {}};
  const unsigned rounds = options.count("repetitions", 3);
  for (std::uint32_t round = 0; round <= rounds; ++round) {  // the first one warms up: connections are made
    if (rank == 0) benchmarks::fill(message, round);
    const benchmarks::BroadcastTimes times =
        broadcast(message, rank, size, options.count("pause-ms", 30), !options.has("nonblocking"));
    if (!benchmarks::holds(message, round)) {
      std::fprintf(stderr, "peer_bcast_mpi: wrong bytes on rank %d\n", rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0 && round > 0) result.rounds.push_back(times);
  }
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string name(version);
  name = name.substr(0, name.find(','));
  if (rank == 0) benchmarks::print_broadcasts("mpi", name, {result});
  MPI_Finalize();
}
