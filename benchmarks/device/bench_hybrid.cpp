// benchmarks/device/bench_hybrid.cpp: linear algebra on cores alone, on CUDA devices alone, and on both, in turns.
//
// Usage: bench_hybrid [--op all] [--n 8192] [--tile n/16, from 256 to 2048] [--repetitions 3] [--seconds 600]
// [--tandem.OPTION=...]
//
// `device` runs all tasks on devices for which these have a kernel: panels of QR, and the tournaments that choose the
// pivots of LU, stay on cores. `device_and_one` has one core beside the device, and the default scheduler, which also
// knows what to keep in little memory. `third`: the budget of each device is a third of the data. Data begins in main
// memory; a repetition ends with its last task. One round comes first, in which the runtimes learn how long kernels
// take. `both/better`: the rate of both, as a multiple of the best of the others.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tandem/cuda.hpp>
#include <tandem/linalg.hpp>
#include <tandem/tandem.hpp>
#include <utility>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "benchmarks/device/cuda_harness.hpp"
#include "benchmarks/device/tiled.hpp"

namespace {

using namespace tandem::linalg;
using benchmarks::cuda::require_near;
using benchmarks::cuda::Tiled;

struct Plan {
  std::size_t n, tile;
  unsigned repetitions;
  double seconds;
  std::vector<std::string> options;  ///< of the runtime, as the command line has them
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  bool has_time() const { return benchmarks::cuda::seconds_since(start) < seconds; }
  TileShape square() const { return {.rows = n, .cols = n, .tile = tile}; }
  double cube() const { return std::pow(static_cast<double>(n), 3); }
};

// --- operations: made of data that is new, they run once and look at their result

class Gemm {
 public:
  static constexpr const char* name = "gemm";
  static double operations(const Plan& plan) { return 2 * plan.cube(); }
  static std::size_t elements(const Plan& plan) { return 3 * plan.n * plan.n; }

  Gemm(tandem::Runtime& rt, const Plan& plan)
      : rt_(rt), n_(plan.n), a_(rt, "A", plan.square()), b_(rt, "B", plan.square()), c_(rt, "C", plan.square()) {
    generate(rt, benchmarks::cuda::general_a, a_.data);
    generate(rt, benchmarks::cuda::general_b, b_.data);
    generate(rt, benchmarks::cuda::general_c, c_.data);
  }
  void run() { gemm(rt_, Op::no_trans, Op::no_trans, 1.0, a_.data, b_.data, benchmarks::cuda::product_beta, c_.data); }
  void check() { benchmarks::cuda::check_product(*this, n_, 1); }
  double element(std::size_t i, std::size_t j) const { return c_.element(rt_, i, j); }

 private:
  tandem::Runtime& rt_;
  std::size_t n_;
  Tiled a_, b_, c_;
};

class Potrf {
 public:
  static constexpr const char* name = "potrf";
  static double operations(const Plan& plan) { return plan.cube() / 3; }
  static std::size_t elements(const Plan& plan) { return plan.n * plan.n / 2; }

  Potrf(tandem::Runtime& rt, const Plan& plan)
      : rt_(rt), n_(plan.n), a_(rt, "A", {.rows = plan.n, .cols = plan.n, .tile = plan.tile, .uplo = Uplo::lower}) {
    generate(rt, benchmarks::cuda::positive_definite(n_), a_.data);
  }
  void run() { info_ = potrf(rt_, Uplo::lower, a_.data); }
  void check() {
    require_near("info", static_cast<double>(info_), 0, 0);
    benchmarks::cuda::check_factor(*this, n_, 1);
  }
  double element(std::size_t i, std::size_t j) const { return a_.element(rt_, i, j); }

 private:
  tandem::Runtime& rt_;
  std::size_t n_, info_ = 0;
  Tiled a_;
};

class Getrf {
 public:
  static constexpr const char* name = "getrf";
  static double operations(const Plan& plan) { return 2 * plan.cube() / 3; }
  static std::size_t elements(const Plan& plan) { return plan.n * plan.n; }

  Getrf(tandem::Runtime& rt, const Plan& plan) : rt_(rt), n_(plan.n), a_(rt, "A", plan.square()), pivots_(rt, a_.data) {
    generate(rt, benchmarks::cuda::general_a, a_.data);
  }
  void run() { info_ = getrf(rt_, a_.data, pivots_); }
  /// Two elements of P A = L U in the last row.
  void check() {
    require_near("info", static_cast<double>(info_), 0, 0);
    std::size_t row = n_ - 1;  // of A, which P takes to the last one: as the interchanges do, in their reverse order
    const std::vector<std::size_t> ipiv = pivots_.ipiv(rt_);
    for (std::size_t t = ipiv.size(); t-- > 0;) {
      if (row == t) row = ipiv[t] - 1;
      else if (row == ipiv[t] - 1) row = t;
    }
    for (const std::size_t j : {std::size_t(0), n_ - 1}) {
      double sum = 0;
      for (std::size_t k = 0; k <= j; ++k)
        sum += (k == n_ - 1 ? 1 : a_.element(rt_, n_ - 1, k)) * a_.element(rt_, k, j);
      require_near("the LU factor", sum, benchmarks::cuda::general_a.element<double>(row, j),
                   1e-12 * static_cast<double>(n_));
    }
  }

 private:
  tandem::Runtime& rt_;
  std::size_t n_, info_ = 0;
  Tiled a_;
  TiledPivots pivots_;
};

class Geqrf {
 public:
  static constexpr const char* name = "geqrf";
  static double operations(const Plan& plan) { return 4 * plan.cube() / 3; }
  static std::size_t elements(const Plan& plan) { return plan.n * plan.n; }

  Geqrf(tandem::Runtime& rt, const Plan& plan)
      : rt_(rt), n_(plan.n), a_(rt, "A", plan.square()), t_(rt, "T", geqrf_factors_shape(plan.square())) {
    generate(rt, benchmarks::cuda::general_a, a_.data);
  }
  void run() { geqrf(rt_, a_.data, t_.data); }
  /// Two elements of R^T R = A^T A in the last column.
  void check() {
    for (const std::size_t j : {std::size_t(0), n_ - 1}) {
      double of_r = 0, of_a = 0;
      for (std::size_t i = 0; i <= j; ++i) of_r += a_.element(rt_, i, j) * a_.element(rt_, i, n_ - 1);
      constexpr auto a = benchmarks::cuda::general_a;
      for (std::size_t i = 0; i < n_; ++i) of_a += a.element<double>(i, j) * a.element<double>(i, n_ - 1);
      require_near("the QR factor", of_r, of_a, 1e-12 * static_cast<double>(n_));
    }
  }

 private:
  tandem::Runtime& rt_;
  std::size_t n_;
  Tiled a_, t_;
};

// --- runtimes

/// Those of the command line between `before` and `after`: what comes last counts.
std::unique_ptr<tandem::Runtime> start(const Plan& plan, std::vector<std::string> before,
                                       const std::vector<std::string>& after) {
  std::vector<std::string> words{"bench_hybrid"};
  for (const auto* const some : {&std::as_const(before), &plan.options, &after})
    words.insert(words.end(), some->begin(), some->end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  return std::make_unique<tandem::Runtime>(count, arguments.data(), tandem::Options{});
}

struct Mode {
  const char* name;
  std::unique_ptr<tandem::Runtime> rt;
  std::vector<double> rates{};  ///< GFlop/s
};

/// With this budget of each device, in bytes; 0: all its memory.
std::vector<Mode> start_all(const Plan& plan, std::size_t budget) {
  const std::vector<std::string> device{"--tandem.cuda=1", "--tandem.cuda.memory=" + std::to_string(budget)};
  std::vector<Mode> modes;
  modes.push_back({"cores", start(plan, {}, {"--tandem.cuda=0"})});
  modes.push_back(
      {"device", start(plan, device, {"--tandem.sched=lws"})});  // which leaves tasks to devices, as their codelets say
  modes.push_back({"device_and_one", start(plan, device, {"--tandem.workers=1"})});
  modes.push_back({"both", start(plan, device, {})});
  return modes;
}

// --- measurements

template <class Operation>
void run_once(Mode& mode, const Plan& plan, bool counts) {
  Operation operation(*mode.rt, plan);
  mode.rt->wait();
  const auto begun = std::chrono::steady_clock::now();
  operation.run();
  const double seconds = benchmarks::cuda::seconds_since(begun);
  operation.check();
  if (counts) mode.rates.push_back(Operation::operations(plan) / seconds * 1e-9);
}

template <class Operation>
void measure(const Plan& plan, std::vector<benchmarks::Measurement>& results, unsigned& workers) {
  for (const bool third : {false, true}) {
    const std::string name = std::string(Operation::name) + (third ? "_third_" : "_");
    const std::size_t bytes = Operation::elements(plan) * sizeof(double) / 3;
    std::vector<Mode> modes = start_all(plan, third ? std::max(bytes, 8 * plan.tile * plan.tile * sizeof(double)) : 0);
    workers = static_cast<unsigned>(modes.back().rt->worker_count());
    for (unsigned round = 0; round <= plan.repetitions && plan.has_time(); ++round)
      for (Mode& mode : modes) run_once<Operation>(mode, plan, round > 0);
    if (std::ranges::any_of(modes, [](const Mode& mode) { return mode.rates.empty(); })) {
      std::fprintf(stderr, "%s%zu: out of time\n", name.c_str(), plan.n);
      continue;
    }
    double better = 0;
    for (Mode& mode : modes) {
      const double rate = benchmarks::median(mode.rates);
      std::fprintf(stderr, "%s%s: %.4g GFlop/s\n", name.c_str(), mode.name, rate);
      if (&mode == &modes.back()) results.push_back({name + "both/better", "ratio", {rate / better}});
      better = std::max(better, rate);
      results.push_back({name + mode.name, "GFlop/s", std::move(mode.rates)});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  std::vector<std::string> options;
  std::erase_if(words, [&](std::string_view word) {
    return word.starts_with("--tandem.") && (options.emplace_back(word), true);
  });
  const benchmarks::Options given(static_cast<int>(words.size()), words.data(),
                                  {"op", "n", "tile", "repetitions", "seconds"});
  const unsigned n = given.count("n", 8192);
  const Plan plan{.n = n,
                  .tile = given.count("tile", std::clamp(n / 16, 256U, 2048U)),
                  .repetitions = given.count("repetitions", 3),
                  .seconds = static_cast<double>(given.count("seconds", 600)),
                  .options = std::move(options)};
  const std::string op = given.text("op", "all");
  std::vector<benchmarks::Measurement> results;
  unsigned workers = 0;
  const auto measure_if_asked = [&]<class Operation>(const Operation*) {
    if (op == "all" || op == Operation::name) measure<Operation>(plan, results, workers);
  };
  measure_if_asked(static_cast<const Gemm*>(nullptr));
  measure_if_asked(static_cast<const Potrf*>(nullptr));
  measure_if_asked(static_cast<const Getrf*>(nullptr));
  measure_if_asked(static_cast<const Geqrf*>(nullptr));
  if (results.empty()) {
    std::fprintf(stderr,
                 "bench_hybrid: nothing was measured: --op takes all, gemm, potrf, getrf or geqrf, and the first two "
                 "rounds must end within --seconds\n");
    return 2;
  }
  benchmarks::Report{"tandem", "0.1.0", workers, results}.print();
}
