// tandem/base/blas_threads.hpp: keeps the BLAS from starting threads beside our workers, and notices threads that compute beside them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tandem::base {

/// Makes the BLAS that this program is linked with, if any, use one thread per call: workers times threads would share the
/// cores otherwise. Which library stands behind the BLAS's names is known only when the program runs (Debian's alternatives,
/// LD_PRELOAD), so its switch is looked up by name. The first call acts, later ones cost a load; any thread. Returns the name of
/// the switch, or null when no library that we know is there. `omp_set_num_threads` is not touched: it governs the user's own
/// OpenMP regions.
const char* restrict_blas_threads() noexcept;

/// Time on a core of each thread of this process, in ns, by thread id; empty where the system does not say.
std::map<std::string, std::uint64_t> thread_times_ns();

/// Looks for threads that compute beside the workers. Made and used by the thread of worker 0.
class ThreadWatch {
 public:
  explicit ThreadWatch(std::int64_t now_ns) : since_ns_(now_ns), times_(thread_times_ns()) {}

  /// How many threads, without the calling one and those of Tandem ("tandem-..."), have used a core for more than a quarter of the
  /// time since the last look. Returns 0 when that was less than `least_ns` ago. A look costs some 20 us per thread.
  int busy_others(std::int64_t now_ns, std::int64_t least_ns);

 private:
  std::int64_t since_ns_;
  std::map<std::string, std::uint64_t> times_;
};

}  // namespace tandem::base
