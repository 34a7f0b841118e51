// benchmarks/linalg/peer_cholesky_kernels.cpp: the bound of a tiled Cholesky of plain tile calls: its kernels' own
// times.
//
// With t_k the time of one call of kernel k and c_k how often the algorithm calls it (nt potrf, nt (nt-1) / 2 trsm and
// syrk, nt (nt-1) (nt-2) / 6 gemm, for nt x nt tiles), no schedule on p cores is faster than sum_k c_k t_k / p. Each
// t_k is measured on all p cores at once, which so share the memory and the clock as in a real run, and with operands
// as cold as the algorithm's order leaves them: the updated tile comes from memory; of what is read, the triangle of a
// step and the left operand of a row are those of the call before, and right operands go round a panel of tiles.
#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/linalg/harness.hpp"
#include "benchmarks/linalg/kernels.hpp"

namespace benchmarks::linalg {
namespace {

/// Tiles that one core works on: a panel that calls read, and many more, of which each call updates another one.
template <class T>
class Pool {
 public:
  Pool(unsigned order, std::size_t panel_count, std::size_t call_count) : order_(order), panel_count_(panel_count) {
    for (std::size_t i = 0; i < panel_count + call_count; ++i) {
      tiles_.emplace_back(new T[std::size_t{order} * order]);
    }
  }

  /// All tiles become the same definite matrix, on which all four kernels do finite work. Starts the calls afresh.
  void fill() {
    for (const auto& tile : tiles_) {
      for (std::size_t entry = 0; entry < std::size_t{order_} * order_; ++entry) {
        tile[entry] = static_cast<T>(test_entry(entry / order_, entry % order_, order_));
      }
    }
    call_ = 0;
  }

  /// The tile that the next call updates. At most `call_count` calls after fill().
  T* updated() { return tiles_[panel_count_ + call_++].get(); }
  /// The tile that all calls read.
  const T* shared() const { return tiles_[0].get(); }
  /// A tile that the last few calls did not read.
  const T* panel() const { return tiles_[call_ % panel_count_].get(); }

 private:
  unsigned order_;
  std::size_t panel_count_;
  std::size_t call_ = 0;
  std::vector<std::unique_ptr<T[]>> tiles_;
};

/// Seconds of one call of `kernel(pool)`, averaged over the calls and the cores, all of which run it at the same time.
template <class T, class Kernel>
double call_seconds(std::vector<Pool<T>>& pools, std::size_t call_count, const Kernel& kernel) {
  std::barrier start(static_cast<std::ptrdiff_t>(pools.size()));
  std::vector<double> elapsed(pools.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t core = 0; core < pools.size(); ++core) {
      threads.emplace_back([&, core] {
        pools[core].fill();
        start.arrive_and_wait();
        elapsed[core] = seconds([&] {
          for (std::size_t call = 0; call < call_count; ++call) {
            kernel(pools[core]);
          }
        });
      });
    }
  }
  double total = 0;
  for (const double one : elapsed) {
    total += one;
  }
  return total / static_cast<double>(pools.size() * call_count);
}

/// One round: a sample for the rate of each kernel on all cores, and one for the bound.
template <class T>
class Rounds {
 public:
  explicit Rounds(const Plan& plan)
      : plan_(plan), call_count_(std::max(std::size_t{32}, pool_bytes / (std::size_t{plan.nb} * plan.nb * sizeof(T)))) {
    const std::size_t panel_count = std::clamp<std::size_t>(plan.n / plan.nb, 2, 16);
    for (unsigned core = 0; core < plan.workers; ++core) {
      pools_.emplace_back(plan.nb, panel_count, call_count_);
    }
  }

  void run() {
    const int nb = static_cast<int>(plan_.nb);
    const Extents cube{nb, nb, nb};
    const double side = plan_.n / plan_.nb;
    const double flop = 2.0 * nb * nb * nb;
    total_seconds_ = 0;
    add(potrf_, flop / 6, side, [nb](Pool<T>& pool) { require_definite(linalg::potrf(nb, pool.updated())); });
    add(trsm_, flop / 2, side * (side - 1) / 2,
        [cube](Pool<T>& pool) { linalg::trsm(cube, pool.shared(), pool.updated()); });
    add(syrk_, flop / 2, side * (side - 1) / 2,
        [cube](Pool<T>& pool) { linalg::syrk(cube, pool.shared(), pool.updated()); });
    add(gemm_, flop, side * (side - 1) * (side - 2) / 6, [cube](Pool<T>& pool) {
      const T* const right = pool.panel();
      linalg::gemm(cube, pool.shared(), right, pool.updated());
    });
    bound_.samples.push_back(cholesky_flop(plan_.n) / (total_seconds_ / plan_.workers) * 1e-9);
  }

  /// Forgets the samples so far.
  void reset() {
    for (Measurement* measurement : {&bound_, &potrf_, &trsm_, &syrk_, &gemm_}) {
      measurement->samples.clear();
    }
  }

  std::vector<Measurement> results() const { return {bound_, potrf_, trsm_, syrk_, gemm_}; }

 private:
  /// What the calls of one kernel update: several times what a core's share of the caches holds.
  static constexpr std::size_t pool_bytes = std::size_t{96} << 20;

  template <class Kernel>
  void add(Measurement& rate, double flop, double count, const Kernel& kernel) {
    const double one_call_seconds = call_seconds(pools_, call_count_, kernel);
    rate.samples.push_back(flop * plan_.workers / one_call_seconds * 1e-9);
    total_seconds_ += count * one_call_seconds;
  }

  Plan plan_;
  std::size_t call_count_;
  std::vector<Pool<T>> pools_;
  double total_seconds_ = 0;
  Measurement bound_{"bound", "GFlop/s", {}};
  Measurement potrf_{"tile_potrf", "GFlop/s", {}};
  Measurement trsm_{"tile_trsm", "GFlop/s", {}};
  Measurement syrk_{"tile_syrk", "GFlop/s", {}};
  Measurement gemm_{"tile_gemm", "GFlop/s", {}};
};

template <class T>
std::vector<Measurement> measure(const Plan& plan) {
  Rounds<T> rounds(plan);
  rounds.run();
  rounds.reset();
  for (unsigned i = 0; i < plan.repetitions; ++i) {
    rounds.run();
  }
  return rounds.results();
}

}  // namespace
}  // namespace benchmarks::linalg

int main(int argc, char** argv) {
  namespace linalg = benchmarks::linalg;
  const linalg::Plan plan(argc, argv);
  if (plan.n % plan.nb != 0) {
    std::fprintf(stderr, "the bound counts whole tiles: --n has to be a multiple of --nb\n");
    return 2;
  }
  openblas_set_num_threads(1);
  benchmarks::Report report{"kernels", linalg::library_version(), plan.workers, {}};
  report.results = plan.single ? linalg::measure<float>(plan) : linalg::measure<double>(plan);
  report.print();
  return 0;
}
