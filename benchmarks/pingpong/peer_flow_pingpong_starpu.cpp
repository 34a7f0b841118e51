// benchmarks/pingpong/peer_flow_pingpong_starpu.cpp: what StarPU-MPI's task flow adds to a message of MPI's: a datum
// that tasks of two ranks touch in turn, beside the same exchange by MPI alone.
//
// As bench_flow_pingpong_tandem.cpp, with its options and results; `mpirun -n 2` starts it. Threads go where the system
// places them, for StarPU's default binds those of all processes to the same cores; with --bound each process to one
// core.
#include <mpi.h>
#include <starpu.h>
#include <starpu_mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/trips.hpp"

namespace {

using benchmarks::Trips;

Trips* noting = nullptr;  ///< codelets have no state of their own

unsigned char* bytes_of(void* buffers[]) {
  return reinterpret_cast<unsigned char*>(STARPU_VECTOR_GET_PTR(static_cast<starpu_vector_interface*>(buffers[0])));
}

void touch(void* buffers[], void*) { ++bytes_of(buffers)[0]; }

void touch_and_note(void* buffers[], void*) {
  ++bytes_of(buffers)[0];
  noting->note();
}

starpu_codelet codelet_of(starpu_cpu_func_t function) {
  starpu_codelet made{};
  made.cpu_funcs[0] = function;
  made.nbuffers = 1;
  made.modes[0] = STARPU_RW;
  return made;
}

struct Setting {
  unsigned bytes, trips, repetitions;
  int pairs;
};

class Bench {
 public:
  Bench(const Setting& setting, int rank) : setting_(setting), rank_(rank), bytes_(setting.bytes) {
    for (int pair = 0; pair < setting.pairs; ++pair) {
      const bool here = 2 * pair == rank;
      starpu_data_handle_t& ball = balls_.emplace_back();
      starpu_vector_data_register(&ball, here ? STARPU_MAIN_RAM : -1,
                                  here ? reinterpret_cast<std::uintptr_t>(bytes_.data()) : 0, setting.bytes, 1);
      starpu_mpi_data_register(ball, pair, 2 * pair);
    }
  }
  ~Bench() {
    for (starpu_data_handle_t ball : balls_) starpu_data_unregister(ball);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Trips flow() {
    Trips trips(setting_.trips);
    noting = &trips;
    for (unsigned trip = 0; trip <= setting_.trips; ++trip) {
      for (int pair = 0; pair < setting_.pairs; ++pair) {
        starpu_mpi_task_insert(MPI_COMM_WORLD, &noted_, STARPU_RW, balls_[pair], STARPU_EXECUTE_ON_NODE, 2 * pair, 0);
        starpu_mpi_task_insert(MPI_COMM_WORLD, &plain_, STARPU_RW, balls_[pair], STARPU_EXECUTE_ON_NODE, 2 * pair + 1,
                               0);
      }
    }
    starpu_task_wait_for_all();
    starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    starpu_mpi_barrier(MPI_COMM_WORLD);
    return trips;
  }

  /// StarPU's threads rest meanwhile.
  Trips comm() {
    Trips trips(setting_.trips);
    std::vector<unsigned char> message(setting_.bytes);
    const int count = static_cast<int>(setting_.bytes), other = rank_ ^ 1;
    starpu_pause();
    for (unsigned trip = 0; trip <= setting_.trips && rank_ / 2 < setting_.pairs; ++trip) {
      if (rank_ % 2 == 0) {
        trips.note();
        MPI_Send(message.data(), count, MPI_BYTE, other, 1, MPI_COMM_WORLD);
      }
      MPI_Recv(message.data(), count, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank_ % 2 != 0) MPI_Send(message.data(), count, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    }
    starpu_resume();
    starpu_mpi_barrier(MPI_COMM_WORLD);
    return trips;
  }

 private:
  const Setting setting_;
  const int rank_;
  std::vector<unsigned char> bytes_;
  std::vector<starpu_data_handle_t> balls_;
  starpu_codelet plain_ = codelet_of(touch), noted_ = codelet_of(touch_and_note);
};

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"bytes", "trips", "repetitions", "pairs"}, {"bound"});
  const unsigned launched = benchmarks::rank_by_launcher();
  if (options.has("bound") && !benchmarks::bind_to_core(launched)) {
    std::fprintf(stderr, "peer_flow_pingpong_starpu: binding to a core is forbidden\n");
    return 1;
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // As many workers as Tandem has: the ranks share the cores.
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency() / static_cast<unsigned>(size));
  setenv("STARPU_NCPU", std::to_string(workers).c_str(), 0);
  setenv("STARPU_WORKERS_NOBIND", "1", 0);
  setenv("STARPU_MPI_NOBIND", "1", 0);
  setenv("STARPU_SILENT", "1", 0);
  starpu_conf conf;
  starpu_conf_init(&conf);
  if (size < 2 || size % 2 != 0 || starpu_mpi_init_conf(&argc, &argv, 0, MPI_COMM_WORLD, &conf) != 0) {
    std::fprintf(stderr, "peer_flow_pingpong_starpu: needs two ranks, or four, and so on, and a worker\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const Setting setting{
      options.count("bytes", 8), options.count("trips", 1000), options.count("repetitions", 5),
      static_cast<int>(std::min(options.count("pairs", UINT32_MAX), static_cast<unsigned>(size) / 2))};
  benchmarks::TripResults results(setting.bytes);
  {
    Bench bench(setting, rank);
    for (unsigned repetition = 0; repetition <= setting.repetitions; ++repetition) {
      const Trips comm = bench.comm();
      const Trips flow = bench.flow();
      if (rank == 0 && repetition > 0) results.add(comm, flow);
    }
  }
  int major = 0, minor = 0, release = 0;
  starpu_get_version(&major, &minor, &release);
  if (rank == 0)
    results.print("starpu_mpi", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release),
                  workers);
  starpu_mpi_shutdown();
  MPI_Finalize();
}
