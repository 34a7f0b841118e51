// benchmarks/device/peer_cuda_cudastf.cpp: `cuda_harness.hpp` with CUDASTF: the same flows, submitted to a
// `stream_ctx`.
//
// Written against cudax of NVIDIA/cccl 3.x, whose headers a host compiler reads: the tasks call cuBLAS and cuSOLVER
// alone.
#include <cublas_v2.h>
#include <cusolverDn.h>

#include <cuda/experimental/stf.cuh>
#include <cuda/version>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/device/cuda_harness.hpp"

namespace {

namespace stf = cuda::experimental::stf;
using benchmarks::cuda::Layout;
using stf::cuda_safe_call;

using Tile = stf::slice<double, 2>;

/// A budget for data on the device: beyond it an allocation fails, and the context makes room.
class Limited : public stf::block_allocator_interface {
 public:
  explicit Limited(std::size_t budget) : budget_(static_cast<std::ptrdiff_t>(budget)) {}

  void* allocate(stf::backend_ctx_untyped& ctx, const stf::data_place& place, std::ptrdiff_t& bytes,
                 stf::event_list& before) override {
    const std::ptrdiff_t wanted = bytes;
    if (place.is_device() && used_ + wanted > budget_) {
      bytes = -wanted;
      return nullptr;
    }
    void* const memory = ctx.get_uncached_allocator().allocate(ctx, place, bytes, before);
    if (place.is_device() && bytes > 0) used_ += wanted;
    return memory;
  }
  void deallocate(stf::backend_ctx_untyped& ctx, const stf::data_place& place, stf::event_list& before, void* memory,
                  std::size_t bytes) override {
    if (place.is_device()) used_ -= static_cast<std::ptrdiff_t>(bytes);
    ctx.get_uncached_allocator().deallocate(ctx, place, before, memory, bytes);
  }
  stf::event_list deinit(stf::backend_ctx_untyped&) override { return {}; }
  std::string to_string() const override { return "a budget for each device"; }

 private:
  std::ptrdiff_t budget_, used_ = 0;
};

/// One device, and the libraries' handles for it.
class Stf {
 public:
  static constexpr const char* name = "cudastf";

  explicit Stf(std::size_t budget) {
    // Memory that is given back stays in the driver's pool, as it does in Tandem's.
    cudaMemPool_t pool;
    cuda_safe_call(cudaDeviceGetDefaultMemPool(&pool, 0));
    cuuint64_t kept = ~cuuint64_t{0};
    cuda_safe_call(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
    cuda_safe_call(cublasCreate(&blas));
    cuda_safe_call(cusolverDnCreate(&solver));
    if (budget > 0) ctx.set_allocator(stf::block_allocator<Limited>(ctx, budget));
  }
  ~Stf() {
    ctx.finalize();
    cusolverDnDestroy(solver);
    cublasDestroy(blas);
  }
  Stf(const Stf&) = delete;
  Stf& operator=(const Stf&) = delete;

  std::string version() const {
    return std::to_string(CCCL_MAJOR_VERSION) + "." + std::to_string(CCCL_MINOR_VERSION) + "." +
           std::to_string(CCCL_PATCH_VERSION);
  }
  unsigned workers() const { return 0; }
  void wait() { cuda_safe_call(cudaStreamSynchronize(ctx.fence())); }

  class Product;
  class Factorisation;

  stf::stream_ctx ctx;
  const stf::exec_place device = stf::exec_place::device(0);
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
};

/// Tiles that are contiguous in page-locked memory of the host; of a lower triangle, those of the triangle.
class Tiled {
 public:
  Tiled(Stf& stf, Layout layout, bool is_lower)
      : stf_(stf),
        tile_(layout.tile),
        n_(layout.n),
        tiles_((layout.n + layout.tile - 1) / layout.tile),
        is_lower_(is_lower),
        handles_(tiles_ * tiles_) {
    std::size_t count = 0;
    each([&](std::size_t i, std::size_t j) { count += extent(i) * extent(j); });
    cuda_safe_call(cudaMallocHost(reinterpret_cast<void**>(&memory_), count * sizeof(double)));
    double* next = memory_;
    each([&](std::size_t i, std::size_t j) {
      handles_[i + j * tiles_] =
          stf.ctx.logical_data(stf::make_slice(next, std::tuple{extent(i), extent(j)}, extent(i)));
      handles_[i + j * tiles_].set_write_back(false);
      next += extent(i) * extent(j);
    });
  }
  ~Tiled() {
    handles_.clear();
    stf_.wait();
    cudaFreeHost(memory_);
  }
  Tiled(const Tiled&) = delete;
  Tiled& operator=(const Tiled&) = delete;

  std::size_t tiles() const { return tiles_; }
  stf::logical_data<Tile>& operator()(std::size_t i, std::size_t j) { return handles_[i + j * tiles_]; }

  template <class Generator>
  void fill(const Generator& generator) {
    each([&](std::size_t i, std::size_t j) {
      stf_.ctx.host_launch((*this)(i, j).write())->*[generator, row = i * tile_, column = j * tile_](auto tile) {
        for (std::size_t c = 0; c < tile.extent(1); ++c)
          for (std::size_t r = 0; r < tile.extent(0); ++r)
            tile(r, c) = generator.template element<double>(row + r, column + c);
      };
    });
  }
  void take_to_device() {
    each([&](std::size_t i, std::size_t j) {
      stf_.ctx.task(stf_.device, (*this)(i, j).rw())->*[](cudaStream_t, auto) {};
    });
    stf_.wait();
  }
  double element(std::size_t i, std::size_t j) {
    double value = 0;
    stf_.ctx.host_launch((*this)(i / tile_, j / tile_).read())->*[&value, i = i % tile_, j = j % tile_](auto tile) {
      value = tile(i, j);
    };
    stf_.wait();
    return value;
  }

 private:
  std::size_t extent(std::size_t i) const { return std::min(tile_, n_ - i * tile_); }
  template <class Action>
  void each(const Action& action) {
    for (std::size_t j = 0; j < tiles_; ++j)
      for (std::size_t i = is_lower_ ? j : 0; i < tiles_; ++i) action(i, j);
  }

  Stf& stf_;
  std::size_t tile_, n_, tiles_;
  bool is_lower_;
  double* memory_ = nullptr;
  std::vector<stf::logical_data<Tile>> handles_;
};

void submit_gemm(Stf& stf, cublasOperation_t op_b, double alpha, stf::logical_data<Tile>& a, stf::logical_data<Tile>& b,
                 double beta, stf::logical_data<Tile>& c) {
  stf.ctx.task(stf.device, a.read(), b.read(), c.rw())->*[&](cudaStream_t stream, auto ta, auto tb, auto tc) {
    cuda_safe_call(cublasSetStream(stf.blas, stream));
    cuda_safe_call(cublasDgemm(stf.blas, CUBLAS_OP_N, op_b, static_cast<int>(tc.extent(0)),
                               static_cast<int>(tc.extent(1)), static_cast<int>(ta.extent(1)), &alpha, ta.data_handle(),
                               static_cast<int>(ta.stride(1)), tb.data_handle(), static_cast<int>(tb.stride(1)), &beta,
                               tc.data_handle(), static_cast<int>(tc.stride(1))));
  };
}

class Stf::Product {
 public:
  Product(Stf& stf, Layout layout) : stf_(stf), a_(stf, layout, false), b_(stf, layout, false), c_(stf, layout, false) {
    a_.fill(benchmarks::cuda::general_a);
    b_.fill(benchmarks::cuda::general_b);
    c_.fill(benchmarks::cuda::general_c);
    if (layout.is_on_device)
      for (Tiled* const one : {&a_, &b_, &c_}) one->take_to_device();
    stf.wait();
  }
  void prepare() {}
  void run() {
    for (std::size_t j = 0; j < c_.tiles(); ++j)
      for (std::size_t i = 0; i < c_.tiles(); ++i)
        for (std::size_t k = 0; k < c_.tiles(); ++k)
          submit_gemm(stf_, CUBLAS_OP_N, 1, a_(i, k), b_(k, j), k == 0 ? benchmarks::cuda::product_beta : 1, c_(i, j));
    stf_.wait();
  }
  double element(std::size_t i, std::size_t j) { return c_.element(i, j); }

 private:
  Stf& stf_;
  Tiled a_, b_, c_;
};

class Stf::Factorisation {
 public:
  /// The factorisations of diagonal tiles depend on each other: they share the libraries' memory.
  Factorisation(Stf& stf, Layout layout) : stf_(stf), a_(stf, layout, true), layout_(layout), infos_(a_.tiles()) {
    const int order = static_cast<int>(std::min(layout.tile, layout.n));
    cuda_safe_call(
        cusolverDnDpotrf_bufferSize(stf.solver, CUBLAS_FILL_MODE_LOWER, order, nullptr, order, &workspace_size_));
    cuda_safe_call(
        cudaMalloc(reinterpret_cast<void**>(&workspace_), static_cast<std::size_t>(workspace_size_) * sizeof(double)));
    cuda_safe_call(cudaMalloc(reinterpret_cast<void**>(&device_infos_), infos_.size() * sizeof(int)));
  }
  ~Factorisation() {
    stf_.wait();
    cudaFree(device_infos_);
    cudaFree(workspace_);
  }
  Factorisation(const Factorisation&) = delete;
  Factorisation& operator=(const Factorisation&) = delete;

  void prepare() {
    a_.fill(benchmarks::cuda::positive_definite(layout_.n));
    if (layout_.is_on_device) a_.take_to_device();
    stf_.wait();
  }
  void run() {
    for (std::size_t k = 0; k < a_.tiles(); ++k) {
      potrf(k);
      for (std::size_t m = k + 1; m < a_.tiles(); ++m) trsm(k, m);
      for (std::size_t m = k + 1; m < a_.tiles(); ++m) {
        for (std::size_t n = k + 1; n < m; ++n) submit_gemm(stf_, CUBLAS_OP_T, -1, a_(m, k), a_(n, k), 1, a_(m, n));
        syrk(k, m);
      }
    }
    stf_.wait();
    cuda_safe_call(cudaMemcpy(infos_.data(), device_infos_, infos_.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (const int info : infos_) {
      if (info == 0) continue;
      std::fprintf(stderr, "peer_cuda_cudastf: a leading minor is not positive definite\n");
      std::exit(1);
    }
  }
  double element(std::size_t i, std::size_t j) { return a_.element(i, j); }

 private:
  void potrf(std::size_t k) {
    stf_.ctx.task(stf_.device, a_(k, k).rw())->*[&](cudaStream_t stream, auto tile) {
      cuda_safe_call(cusolverDnSetStream(stf_.solver, stream));
      cuda_safe_call(cusolverDnDpotrf(stf_.solver, CUBLAS_FILL_MODE_LOWER, static_cast<int>(tile.extent(0)),
                                      tile.data_handle(), static_cast<int>(tile.stride(1)), workspace_, workspace_size_,
                                      device_infos_ + k));
    };
  }
  void trsm(std::size_t k, std::size_t m) {
    stf_.ctx.task(stf_.device, a_(k, k).read(), a_(m, k).rw())->*[&](cudaStream_t stream, auto diagonal, auto tile) {
      const double one = 1;
      cuda_safe_call(cublasSetStream(stf_.blas, stream));
      cuda_safe_call(
          cublasDtrsm(stf_.blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT,
                      static_cast<int>(tile.extent(0)), static_cast<int>(tile.extent(1)), &one, diagonal.data_handle(),
                      static_cast<int>(diagonal.stride(1)), tile.data_handle(), static_cast<int>(tile.stride(1))));
    };
  }
  void syrk(std::size_t k, std::size_t m) {
    stf_.ctx.task(stf_.device, a_(m, k).read(), a_(m, m).rw())->*[&](cudaStream_t stream, auto panel, auto tile) {
      const double minus_one = -1, one = 1;
      cuda_safe_call(cublasSetStream(stf_.blas, stream));
      cuda_safe_call(cublasDsyrk(stf_.blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, static_cast<int>(tile.extent(0)),
                                 static_cast<int>(panel.extent(1)), &minus_one, panel.data_handle(),
                                 static_cast<int>(panel.stride(1)), &one, tile.data_handle(),
                                 static_cast<int>(tile.stride(1))));
    };
  }

  Stf& stf_;
  Tiled a_;
  Layout layout_;
  double* workspace_ = nullptr;
  int workspace_size_ = 0;
  int* device_infos_ = nullptr;
  std::vector<int> infos_;
};

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::cuda::Plan plan(argc, argv);
  if (int devices = 0; cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "there is no CUDA device here\n");
    return 2;
  }
  benchmarks::cuda::measure<Stf>(plan);
}
