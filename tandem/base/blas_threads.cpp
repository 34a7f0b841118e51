// tandem/base/blas_threads.cpp: finds the BLAS's switch among the program's symbols; reads thread times from /proc.
#include "tandem/base/blas_threads.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tandem::base {

namespace {

/// The switches in order of preference; all take one int or long, which the calling conventions of our machines pass
/// alike.
constexpr const char* switches[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads",
                                    "flexiblas_set_num_threads"};

const char* apply_switch() noexcept {
  for (const char* name : switches) {
    if (void* const symbol = dlsym(RTLD_DEFAULT, name)) {
      reinterpret_cast<void (*)(long)>(symbol)(1);
      return name;
    }
  }
  return nullptr;
}

bool is_ours(const std::string& thread) {
  std::string name;
  std::getline(std::ifstream("/proc/self/task/" + thread + "/comm"), name);
  return name.starts_with("tandem-");
}

}  // namespace

const char* restrict_blas_threads() noexcept {
  static const char* const found = apply_switch();
  return found;
}

std::map<std::string, std::uint64_t> thread_times_ns() {
  std::map<std::string, std::uint64_t> times;
  std::error_code failure;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    std::uint64_t time_ns = 0;
    // Reads the first number of schedstat. A thread may end meanwhile.
    if (std::ifstream(task.path() / "schedstat") >> time_ns) times[task.path().filename().string()] = time_ns;
  }
  return times;
}

int ThreadWatch::busy_others(std::int64_t now_ns, std::int64_t least_ns) {
  const std::int64_t elapsed_ns = now_ns - since_ns_;
  if (elapsed_ns < least_ns) return 0;
  auto times = thread_times_ns();
  const std::string self = std::to_string(syscall(SYS_gettid));
  int others = 0;
  for (const auto& [thread, time_ns] : times) {
    const auto then = times_.find(thread);
    const std::uint64_t spent_ns = time_ns - (then == times_.end() ? 0 : then->second);
    if (spent_ns > static_cast<std::uint64_t>(elapsed_ns) / 4 && thread != self && !is_ours(thread)) ++others;
  }
  times_ = std::move(times);
  since_ns_ = now_ns;
  return others;
}

}  // namespace tandem::base
