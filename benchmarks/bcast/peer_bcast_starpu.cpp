// benchmarks/bcast/peer_bcast_starpu.cpp: one datum that rank 0 writes and all others need, on StarPU-MPI.
//
// The requests are posted while rank 0 still writes, as in a flow of tasks that was submitted ahead, so that StarPU may
// gather them. Its MPI backend serves them one by one; only its NewMadeleine backend, which Debian does not build, has
// trees.
#include <mpi.h>
#include <starpu.h>
#include <starpu_mpi.h>
#include <unistd.h>

#include "benchmarks/bcast/harness.hpp"
#include "benchmarks/common/options.hpp"

namespace {

benchmarks::BroadcastTimes broadcast(starpu_data_handle_t datum, std::vector<unsigned char>& message,
                                     std::uint32_t round, int rank, int size, unsigned pause_ms) {
  starpu_mpi_cache_flush(MPI_COMM_WORLD, datum);
  starpu_mpi_barrier(MPI_COMM_WORLD);
  std::int64_t start_ns = 0;
  if (rank == 0) {
    starpu_data_acquire(datum, STARPU_W);
    benchmarks::fill(message, round);
  }
  starpu_mpi_get_data_on_all_nodes_detached(MPI_COMM_WORLD, datum);
  if (rank == 0) {
    usleep(pause_ms * 1000);
    start_ns = benchmarks::shared_now_ns();
    starpu_data_release(datum);
  }
  starpu_data_acquire(datum, STARPU_R);
  const std::int64_t end_ns = benchmarks::shared_now_ns();
  starpu_data_release(datum);
  starpu_mpi_wait_for_all(MPI_COMM_WORLD);
  starpu_mpi_barrier(MPI_COMM_WORLD);
  std::vector<std::int64_t> ends(static_cast<std::size_t>(size));
  MPI_Gather(&end_ns, 1, MPI_INT64_T, ends.data(), 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  benchmarks::BroadcastTimes times;
  for (std::size_t other = 1; other < ends.size(); ++other) times.arrived_ns.push_back(ends[other] - start_ns);
  times.released_ns = times.arrived_ns;
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"bytes", "repetitions", "pause-ms"});
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  // Ranks outnumber cores here: bound threads would share one.
  setenv("STARPU_NCPU", "1", 0);
  setenv("STARPU_WORKERS_NOBIND", "1", 0);
  setenv("STARPU_MPI_NOBIND", "1", 0);
  setenv("STARPU_SILENT", "1", 0);
  starpu_conf conf;
  starpu_conf_init(&conf);
  if (starpu_mpi_init_conf(&argc, &argv, 0, MPI_COMM_WORLD, &conf) != 0) {
    std::fprintf(stderr, "peer_bcast_starpu: StarPU-MPI does not start\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<unsigned char> message(options.count("bytes", 439'296));
  starpu_data_handle_t datum = nullptr;
  starpu_vector_data_register(&datum, STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(message.data()),
                              static_cast<std::uint32_t>(message.size()), 1);
  starpu_mpi_data_register(datum, 7, 0);
  benchmarks::BroadcastResult result{"automatic", {}};
  const unsigned rounds = options.count("repetitions", 3);
  for (std::uint32_t round = 0; round <= rounds; ++round) {
    const benchmarks::BroadcastTimes times =
        broadcast(datum, message, round, rank, size, options.count("pause-ms", 30));
    if (!benchmarks::holds(message, round)) {
      std::fprintf(stderr, "peer_bcast_starpu: wrong bytes on rank %d\n", rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0 && round > 0) result.rounds.push_back(times);
  }
  int major = 0, minor = 0, release = 0;
  starpu_get_version(&major, &minor, &release);
  if (rank == 0) {
    benchmarks::print_broadcasts(
        "starpu", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release), {result});
  }
  starpu_data_unregister(datum);
  starpu_mpi_shutdown();
  MPI_Finalize();
}
