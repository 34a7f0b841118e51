// tandem/base/blas_threads.hpp: keeps the BLAS from starting threads beside our workers, and detects computing threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tandem::base {

/// Makes the BLAS that this program is linked with, if any, use one thread per call: otherwise workers times threads
/// would share the cores. Which library implements the BLAS is known only when the program runs (Debian's alternatives,
/// LD_PRELOAD), so its switch is looked up by name. The first call acts, later ones cost a load; any thread. Returns
/// the name of the switch, or null when there is no known library. `omp_set_num_threads` is not touched: it governs the
/// user's own OpenMP regions.
const char* restrict_blas_threads() noexcept;

/// Time on a core of each thread of this process, in ns, by thread id; empty where the system does not say.
std::map<std::string, std::uint64_t> thread_times_ns();

/// Looks for threads that compute beside the workers. Made and used by the thread of worker 0.
class ThreadWatch {
 public:
  explicit ThreadWatch(std::int64_t now_ns) : since_ns_(now_ns), times_(thread_times_ns()) {}

  /// Number of threads, without the calling one and those of Tandem ("tandem-..."), that have used a core for more than
  /// a quarter of the time since the last check. Returns 0 when that was less than `least_ns` ago. A check costs some
  /// 20 us per thread.
  int busy_others(std::int64_t now_ns, std::int64_t least_ns);

 private:
  std::int64_t since_ns_;
  std::map<std::string, std::uint64_t> times_;
};

}  // namespace tandem::base
