// tests/cuda/fake_rows.cpp: the kernels that exchange rows, compiled from the text that devices get, for the driver of
// tests.
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "tandem/linalg/kernels/cuda_functions.hpp"
#include "tests/cuda/fake_objects.hpp"

namespace tandem::fake_cuda {
namespace {

// CUDA C++ as C++: a block has one thread here, so nothing waits for others.
struct Index {
  unsigned x, y;
};
thread_local Index blockIdx, blockDim, threadIdx;
void __syncthreads() {}
struct double2 {
  double x, y;
};
constexpr std::size_t kSharedBytes = 48 << 10;
double2 shared[kSharedBytes / sizeof(double2)];
std::mutex shared_mutex;  ///< streams have threads of their own

#define __global__
#define __shared__
#define TANDEM_CUDA_KERNELS(...) __VA_ARGS__
#include "tandem/linalg/kernels/cuda_rows.inc"
#undef TANDEM_CUDA_KERNELS
#undef __shared__
#undef __global__

template <class T>
void exchange(const Launch& launch) {
  const auto count = launch.get<std::size_t>(1), cols = launch.get<std::size_t>(8);
  if (launch.threads() < count * cols) std::abort();
  blockDim = {1, 1};
  for (blockIdx.y = 0; blockIdx.y < cols; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < count; ++blockIdx.x)
      exchange_rows(launch.get<const std::size_t*>(0), count, launch.get<std::size_t>(2), launch.get<T*>(3),
                    launch.get<std::size_t>(4), launch.get<T*>(5), launch.get<std::size_t>(6),
                    launch.get<std::size_t>(7), cols);
}

template <class T>
void interchange(const Launch& launch) {
  const auto rows = launch.get<std::size_t>(4);
  if (rows * sizeof(T) > kSharedBytes) std::abort();
  const std::lock_guard guard(shared_mutex);
  blockDim = {1, 1};
  for (blockIdx = {0, 0}; blockIdx.x < launch.blocks(); ++blockIdx.x)
    laswp(launch.get<const std::size_t*>(0), launch.get<std::size_t>(1), launch.get<T*>(2), launch.get<std::size_t>(3),
          rows);
}

template <class T>
void add(Control& control) {
  using Symbols = linalg::internal::CudaSymbols<T>;
  control.add(Symbols::exchange_rows, {std::vector<std::size_t>(9, 8), exchange<T>});
  control.add(Symbols::laswp, {std::vector<std::size_t>(5, 8), interchange<T>});
}

}  // namespace

void add_row_kernels(Control& control) {
  add<float>(control);
  add<double>(control);
  add<std::complex<float>>(control);
  add<std::complex<double>>(control);
}

}  // namespace tandem::fake_cuda
