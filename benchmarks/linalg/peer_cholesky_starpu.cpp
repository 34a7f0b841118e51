// benchmarks/linalg/peer_cholesky_starpu.cpp: tiled Cholesky on StarPU 1.3: scheduler lws, or what STARPU_SCHED says.
#include <starpu.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/linalg/harness.hpp"
#include "benchmarks/linalg/kernels.hpp"
#include "benchmarks/linalg/tiled_cholesky.hpp"

namespace benchmarks::linalg {
namespace {

template <class T>
T* tile_of(void* interface) {
  return reinterpret_cast<T*>(STARPU_MATRIX_GET_PTR(interface));
}
int rows_of(void* interface) { return static_cast<int>(STARPU_MATRIX_GET_NX(interface)); }
int columns_of(void* interface) { return static_cast<int>(STARPU_MATRIX_GET_NY(interface)); }

template <class T>
void run_potrf(void** tiles, void*) {
  require_definite(potrf(rows_of(tiles[0]), tile_of<T>(tiles[0])));
}

template <class T>
void run_trsm(void** tiles, void*) {
  trsm<T>({rows_of(tiles[1]), columns_of(tiles[1]), 0}, tile_of<T>(tiles[0]), tile_of<T>(tiles[1]));
}

template <class T>
void run_syrk(void** tiles, void*) {
  syrk<T>({rows_of(tiles[1]), rows_of(tiles[1]), columns_of(tiles[0])}, tile_of<T>(tiles[0]), tile_of<T>(tiles[1]));
}

template <class T>
void run_gemm(void** tiles, void*) {
  gemm<T>({rows_of(tiles[2]), columns_of(tiles[2]), columns_of(tiles[0])}, tile_of<T>(tiles[0]), tile_of<T>(tiles[1]),
          tile_of<T>(tiles[2]));
}

/// A codelet that reads `access_count` - 1 tiles and updates the last.
starpu_codelet make_codelet(const char* name, starpu_cpu_func_t kernel, int access_count) {
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.name = name;
  codelet.cpu_funcs[0] = kernel;
  codelet.nbuffers = access_count;
  for (int i = 0; i < access_count; ++i) {
    codelet.modes[i] = i + 1 < access_count ? STARPU_R : STARPU_RW;
  }
  return codelet;
}

/// Owns the handles of a matrix and submits the tasks of its factorisation.
template <class T>
class Submitter {
 public:
  explicit Submitter(const TiledMatrix<T>& matrix) {
    for (std::size_t row = 0; row < matrix.side(); ++row) {
      for (std::size_t column = 0; column <= row; ++column) {
        const auto rows = static_cast<std::uint32_t>(matrix.extent(row));
        const auto columns = static_cast<std::uint32_t>(matrix.extent(column));
        handles_.emplace_back();
        starpu_matrix_data_register(&handles_.back(), STARPU_MAIN_RAM,
                                    reinterpret_cast<std::uintptr_t>(matrix.tile(row, column)), rows, rows, columns,
                                    sizeof(T));
      }
    }
  }
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;
  ~Submitter() {
    for (const starpu_data_handle_t handle : handles_) {
      starpu_data_unregister(handle);
    }
  }

  void potrf(std::size_t k, int priority) { submit(potrf_, priority, {handle(k, k)}); }
  void trsm(std::size_t k, std::size_t m, int priority) { submit(trsm_, priority, {handle(k, k), handle(m, k)}); }
  void syrk(std::size_t k, std::size_t m, int priority) { submit(syrk_, priority, {handle(m, k), handle(m, m)}); }
  void gemm(std::size_t k, std::size_t m, std::size_t n, int priority) {
    submit(gemm_, priority, {handle(m, k), handle(n, k), handle(m, n)});
  }

 private:
  starpu_data_handle_t handle(std::size_t row, std::size_t column) const {
    return handles_[row * (row + 1) / 2 + column];
  }

  static void submit(starpu_codelet& codelet, int priority, std::initializer_list<starpu_data_handle_t> handles) {
    starpu_task* task = starpu_task_create();
    task->cl = &codelet;
    task->priority = priority;
    std::copy(handles.begin(), handles.end(), task->handles);
    if (starpu_task_submit(task) != 0) {
      std::fprintf(stderr, "StarPU cannot run the task\n");
      std::exit(1);
    }
  }

  inline static starpu_codelet potrf_ = make_codelet("potrf", run_potrf<T>, 1);
  inline static starpu_codelet trsm_ = make_codelet("trsm", run_trsm<T>, 2);
  inline static starpu_codelet syrk_ = make_codelet("syrk", run_syrk<T>, 2);
  inline static starpu_codelet gemm_ = make_codelet("gemm", run_gemm<T>, 3);
  std::vector<starpu_data_handle_t> handles_;
};

/// Registering the tiles is inside the clock: the other peers need none, and it takes microseconds.
template <class T>
Measurement measure(const Plan& plan) {
  return measure_tiled<T>(plan, [](const TiledMatrix<T>& matrix) {
    Submitter<T> submitter(matrix);
    submit_cholesky(matrix.side(), submitter);
    starpu_task_wait_for_all();
  });
}

void start(unsigned workers, const std::string& scheduler) {
  setenv("STARPU_SILENT", "1", 0);
  starpu_conf configuration;
  starpu_conf_init(&configuration);
  configuration.precedence_over_environment_variables = 1;
  configuration.sched_policy_name = scheduler.c_str();
  configuration.ncpus = static_cast<int>(workers);
  configuration.ncuda = 0;
  configuration.nopencl = 0;
  configuration.calibrate = 0;
  configuration.bus_calibrate = 0;
  if (starpu_init(&configuration) != 0) {
    std::fprintf(stderr, "StarPU does not start\n");
    std::exit(1);
  }
}

}  // namespace
}  // namespace benchmarks::linalg

int main(int argc, char** argv) {
  namespace linalg = benchmarks::linalg;
  const linalg::Plan plan(argc, argv);
  openblas_set_num_threads(1);
  const char* const chosen = std::getenv("STARPU_SCHED");
  const std::string scheduler = chosen != nullptr ? chosen : "lws";
  linalg::start(plan.workers, scheduler);
  benchmarks::Report report{"starpu_" + scheduler, STARPU_VERSION, plan.workers, {}};
  report.results.push_back(plan.single ? linalg::measure<float>(plan) : linalg::measure<double>(plan));
  starpu_shutdown();
  report.print();
  return 0;
}
