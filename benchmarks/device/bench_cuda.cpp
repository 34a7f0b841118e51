// benchmarks/device/bench_cuda.cpp: products and Cholesky factorisations on a CUDA device, in tiles, against one call of cuBLAS and cuSOLVER, and
// with a budget of a third of the data.
//
// Usage: bench_cuda [n [tile [repetitions [seconds]]]]. It begins no further measurement after so many seconds.
//
// All are flows of linalg: one call of the library is a flow of one tile. `gemm` and `potrf` begin with all data on the device, and leave it there.
// `third`: the device's budget is a third of the data, which lies in page-locked main memory, and comes and goes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tandem/cuda.hpp>
#include <tandem/linalg.hpp>
#include <tandem/tandem.hpp>
#include <vector>

namespace {

using namespace tandem::linalg;
using Clock = std::chrono::steady_clock;

struct Job {
  std::size_t n = 32'768;
  std::size_t tile = 2'048;
  int repetitions = 3;
  double seconds = 300;
  const Clock::time_point start = Clock::now();

  bool has_time() const { return std::chrono::duration<double>(Clock::now() - start).count() < seconds; }
};

/// GFlop/s of each repetition.
using Rates = std::vector<double>;

double median(Rates rates) {
  std::sort(rates.begin(), rates.end());
  return rates.empty() ? 0 : rates[rates.size() / 2];
}

double seconds_of(const std::function<void()>& action) {
  const auto start = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Its memory is page-locked.
struct Tiled {
  Tiled(tandem::Runtime& rt, const char* name, TileShape shape)
      : matrix(shape), lock(rt, matrix.tile(0, 0).data, matrix.bytes()), data(rt, name, matrix) {}
  TileMatrix<double> matrix;
  tandem::PageLock lock;
  TiledData<double> data;
};

/// Brings the tiles to the device.
void touch(tandem::Runtime& rt, const TiledData<double>& data) {
  static const auto codelet = tandem::Codelet("touch", [](tandem::MatrixView<double>) {})
                                  .cuda([](tandem::CudaQueue&, tandem::MatrixView<double>) {})
                                  .prefer_devices();
  for (std::size_t j = 0; j < data.col_tiles(); ++j)
    for (std::size_t i = 0; i < data.row_tiles(); ++i)
      if (data.matrix().stores(i, j)) rt.submit(codelet, read_write(data(i, j)));
  rt.wait();
}

/// One repetition more than is counted: the first loads libraries.
Rates rates(const Job& job, double operations, const std::function<void()>& prepare, const std::function<void()>& timed) {
  Rates all;
  for (int i = 0; i <= job.repetitions && job.has_time(); ++i) {
    prepare();
    const double seconds = seconds_of(timed);
    if (i > 0) all.push_back(operations / seconds * 1e-9);
  }
  return all;
}

Rates products(tandem::Runtime& rt, const Job& job, std::size_t tile, bool in_core) {
  const TileShape shape{.rows = job.n, .cols = job.n, .tile = tile};
  Tiled a(rt, "A", shape), b(rt, "B", shape), c(rt, "C", shape);
  for (Tiled* const one : {&a, &b, &c}) generate(rt, RandomGeneral{.seed = 1}, one->data);
  if (in_core)
    for (Tiled* const one : {&a, &b, &c}) touch(rt, one->data);
  const double order = static_cast<double>(job.n);
  return rates(job, 2 * order * order * order, [] {}, [&] { gemm(rt, Op::no_trans, Op::no_trans, 1.0, a.data, b.data, 0.5, c.data); });
}

Rates factorisations(tandem::Runtime& rt, const Job& job, std::size_t tile, bool in_core) {
  Tiled a(rt, "A", {.rows = job.n, .cols = job.n, .tile = tile, .uplo = Uplo::lower});
  const double order = static_cast<double>(job.n);
  return rates(
      job, order * order * order / 3,
      [&] {
        generate(rt, RandomPositiveDefinite{.seed = 1, .order = job.n}, a.data);
        if (in_core) touch(rt, a.data);
      },
      [&] {
        if (const std::size_t info = potrf(rt, Uplo::lower, a.data); info != 0) {
          std::fprintf(stderr, "bench_cuda: the leading minor of order %zu is not positive definite\n", info);
          std::exit(1);
        }
      });
}

void print(const char* name, const Rates& rates, const Rates* against, const char* end) {
  if (rates.empty()) {
    std::printf("{\"name\": \"%s\", \"skipped\": \"out of time\"}%s", name, end);
    return;
  }
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  std::printf("{\"name\": \"%s\", \"unit\": \"GFlop/s\", \"median\": %.5g, \"min\": %.5g, \"max\": %.5g, \"n\": %zu", name, median(rates), *least, *most,
              rates.size());
  if (against != nullptr && !against->empty()) std::printf(", \"ratio\": %.4g", median(rates) / median(*against));
  std::printf("}%s", end);
}

/// A runtime takes its options out of `arguments`.
std::unique_ptr<tandem::Runtime> start(std::vector<char*>& arguments, std::size_t budget) {
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  auto rt = std::make_unique<tandem::Runtime>(count, arguments.data(),
                                              tandem::Options{.more = {{"cuda", "1"}, {"cuda.memory", std::to_string(budget)}}});
  arguments.resize(static_cast<std::size_t>(count));
  return rt;
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  const std::vector<char*> all(argv, argv + argc);
  std::vector<char*> ours = all;
  auto rt = start(ours, 0);
  if (ours.size() > 1) job.n = std::strtoul(ours[1], nullptr, 10);
  if (ours.size() > 2) job.tile = std::strtoul(ours[2], nullptr, 10);
  if (ours.size() > 3) job.repetitions = std::atoi(ours[3]);
  if (ours.size() > 4) job.seconds = std::atof(ours[4]);
  if (job.n == 0 || job.tile == 0 || job.repetitions <= 0) {
    std::fprintf(stderr, "usage: bench_cuda [n [tile [repetitions [seconds]]]], all above 0\n");
    return 2;
  }
  const Rates cublas = products(*rt, job, job.n, true), gemm_rates = products(*rt, job, job.tile, true);
  const Rates cusolver = factorisations(*rt, job, job.n, true), potrf_rates = factorisations(*rt, job, job.tile, true);
  rt.reset();
  const std::size_t bytes = job.n * job.n * sizeof(double);
  // Of the three matrices of a product a third is one; of the triangle of a factorisation it is a sixth of the square.
  const auto with_budget = [&](std::size_t budget) {
    std::vector<char*> arguments = all;
    return start(arguments, std::max(budget, 8 * job.tile * job.tile * sizeof(double)));
  };
  const Rates gemm_third = products(*with_budget(bytes), job, job.tile, false);
  const Rates potrf_third = factorisations(*with_budget(bytes / 6), job, job.tile, false);
  std::printf("{\"peer\": \"tandem\", \"n\": %zu, \"tile\": %zu, \"results\": [", job.n, job.tile);
  print("cublas", cublas, nullptr, ", ");
  print("gemm", gemm_rates, &cublas, ", ");
  print("gemm_third", gemm_third, &gemm_rates, ", ");
  print("cusolver", cusolver, nullptr, ", ");
  print("potrf", potrf_rates, &cusolver, ", ");
  print("potrf_third", potrf_third, &potrf_rates, "]}\n");
}
