// tandem/linalg/blas_threads.cpp: watches threads while a gemm runs.
#include "tandem/linalg/blas_threads.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tandem/base/blas_threads.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

/// Threads that shared the work of one gemm of order n, the caller included. The library's own gemm, whole: our blocks
/// are too small for any library to share.
int threads_of_one_gemm(std::size_t order, std::vector<double>& storage) {
  const int n = internal::blas_int(order);
  const auto matrix = [&](std::size_t at) { return storage.data() + at * order * order; };
  const auto before = base::thread_times_ns();
  internal::blas_gemm(CblasNoTrans, CblasNoTrans, n, n, n, 1.0, matrix(0), n, matrix(1), n, 0.0, matrix(2), n);
  const auto after = base::thread_times_ns();

  const std::string self = std::to_string(syscall(SYS_gettid));
  const auto spent_ns = [&](const std::string& thread, std::uint64_t now_ns) {
    const auto then = before.find(thread);
    return now_ns - (then == before.end() ? 0 : then->second);
  };
  const auto own = after.find(self);
  if (own == after.end()) return 1;
  // A thread that shared the work has spent a similar time; one that merely woke up has not.
  const std::uint64_t own_ns = spent_ns(self, own->second);
  int working = 1;
  for (const auto& [thread, now_ns] : after) working += thread != self && spent_ns(thread, now_ns) > own_ns / 4;
  return working;
}

}  // namespace

int observed_blas_threads() {
  constexpr std::size_t n = 768;
  std::vector<double> storage(3 * n * n, 0.5);
  // The library's threads may spin for some tenths of a second after their start, without work from us: so a positive
  // result is checked again.
  constexpr int attempts = 4;
  int fewest = threads_of_one_gemm(n, storage);
  for (int i = 1; i < attempts && fewest > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fewest = std::min(fewest, threads_of_one_gemm(n, storage));
  }
  return fewest;
}

}  // namespace tandem::linalg
