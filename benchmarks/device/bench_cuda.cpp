// benchmarks/device/bench_cuda.cpp: `cuda_harness.hpp` with Tandem: flows of linalg.
//
// Usage: bench_cuda [--n 32768] [--tile 2048] [--repetitions 3] [--seconds 300] [--tandem.OPTION=...]
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tandem/cuda.hpp>
#include <tandem/linalg.hpp>
#include <tandem/tandem.hpp>
#include <vector>

#include "benchmarks/device/cuda_harness.hpp"
#include "benchmarks/device/tiled.hpp"

namespace {

using namespace tandem::linalg;
using benchmarks::cuda::Layout;
using benchmarks::cuda::Tiled;

/// The command line: each runtime takes its options, `--tandem.NAME=VALUE`, out of a copy.
std::vector<char*> command_line;

/// Brings the tiles to the device.
void touch(tandem::Runtime& rt, const TiledData<double>& data) {
  static const auto codelet =
      tandem::Codelet("touch", [](tandem::MatrixView<double>) {
      }).cuda([](tandem::CudaQueue&, tandem::MatrixView<double>) {
        }).can_run([](const tandem::WorkerDescription& worker) { return worker.device == tandem::DeviceKind::cuda; });
  for (std::size_t j = 0; j < data.col_tiles(); ++j)
    for (std::size_t i = 0; i < data.row_tiles(); ++i)
      if (data.matrix().stores(i, j)) rt.submit(codelet, read_write(data(i, j)));
  rt.wait();
}

class TandemAdapter {
 public:
  static constexpr const char* name = "tandem";

  explicit TandemAdapter(std::size_t budget) {
    std::vector<char*> arguments = command_line;
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    rt = std::make_unique<tandem::Runtime>(
        count, arguments.data(), tandem::Options{.more = {{"cuda", "1"}, {"cuda.memory", std::to_string(budget)}}});
  }
  std::string version() const { return "0.1.0"; }
  unsigned workers() const { return static_cast<unsigned>(rt->worker_count()); }

  class Product {
   public:
    Product(TandemAdapter& adapter, Layout layout)
        : Product(*adapter.rt, {.rows = layout.n, .cols = layout.n, .tile = layout.tile}) {
      generate(rt_, benchmarks::cuda::general_a, a_.data);
      generate(rt_, benchmarks::cuda::general_b, b_.data);
      generate(rt_, benchmarks::cuda::general_c, c_.data);
      if (!layout.is_on_device) return;
      for (Tiled* const one : {&a_, &b_, &c_}) touch(rt_, one->data);
    }
    void prepare() {}
    void run() {
      gemm(rt_, Op::no_trans, Op::no_trans, 1.0, a_.data, b_.data, benchmarks::cuda::product_beta, c_.data);
    }
    double element(std::size_t i, std::size_t j) { return c_.element(rt_, i, j); }

   private:
    Product(tandem::Runtime& rt, TileShape shape)
        : rt_(rt), a_(rt, "A", shape), b_(rt, "B", shape), c_(rt, "C", shape) {}
    tandem::Runtime& rt_;
    Tiled a_, b_, c_;
  };

  class Factorisation {
   public:
    Factorisation(TandemAdapter& adapter, Layout layout)
        : rt_(*adapter.rt),
          a_(rt_, "A", {.rows = layout.n, .cols = layout.n, .tile = layout.tile, .uplo = Uplo::lower}),
          layout_(layout) {}
    void prepare() {
      generate(rt_, benchmarks::cuda::positive_definite(layout_.n), a_.data);
      if (layout_.is_on_device) touch(rt_, a_.data);
    }
    void run() {
      if (const std::size_t info = potrf(rt_, Uplo::lower, a_.data); info != 0) {
        std::fprintf(stderr, "bench_cuda: the leading minor of order %zu is not positive definite\n", info);
        std::exit(1);
      }
    }
    double element(std::size_t i, std::size_t j) { return a_.element(rt_, i, j); }

   private:
    tandem::Runtime& rt_;
    Tiled a_;
    Layout layout_;
  };

  std::unique_ptr<tandem::Runtime> rt;
};

}  // namespace

int main(int argc, char** argv) {
  command_line.assign(argv, argv + argc);
  std::vector<char*> words = command_line;
  std::erase_if(words, [](std::string_view word) { return word.starts_with("--tandem."); });
  benchmarks::cuda::measure<TandemAdapter>(benchmarks::cuda::Plan(static_cast<int>(words.size()), words.data()));
}
