// tandem/base/fork.cpp: one handler that runs in each forked child, and a bit for each descriptor.
#include "tandem/base/fork.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <string>

#include "tandem/base/exceptions.hpp"

namespace tandem::base {
namespace {

// A bit for each number below 2^20; descriptors beyond are left to the children. A thread sets a bit after the
// descriptor is open and clears it before it is closed; the handler reads the bits in the child, where no other thread
// runs. Bits need no order: a thread that forks between another thread's socket() and the setting of its bit leaves
// that one descriptor to the child.
constexpr std::size_t most_numbers = 1u << 20;
std::array<std::atomic<std::uint64_t>, most_numbers / 64> kept{};
std::atomic<std::size_t> kept_words{0};  ///< how many of them have ever had a bit; grows only
std::atomic<int> nothing{-1};            ///< /dev/null, open from the first kept descriptor on
std::atomic<std::uint32_t> generation{0};

/// Runs in the child, where only functions that are safe in signal handlers may be called.
void begin_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  const int null = nothing.load(std::memory_order_relaxed);
  const std::size_t words = kept_words.load(std::memory_order_relaxed);
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bits = kept[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      const int number = static_cast<int>(64 * word) + std::countr_zero(bits);
      if (null < 0 || dup3(null, number, O_CLOEXEC) < 0) close(number);
    }
  }
}

/// Called once in each process; a library that is unloaded takes its handler with it.
void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, begin_child);
  (void)registered;
}

void open_nothing() {
  if (nothing.load(std::memory_order_relaxed) >= 0) return;
  FileDescriptor opened(open("/dev/null", O_RDWR | O_CLOEXEC));
  int none = -1;
  if (nothing.compare_exchange_strong(none, opened.get(), std::memory_order_relaxed)) (void)opened.release();
}

}  // namespace

ProcessMark::ProcessMark() noexcept {
  watch_forks();
  generation_ = generation.load(std::memory_order_relaxed);
}

bool ProcessMark::is_of_this_process() const noexcept {
  return generation_ == generation.load(std::memory_order_relaxed);
}

FileDescriptor kept_from_children(int number) {
  const auto at = static_cast<std::size_t>(number);
  if (number < 0 || at >= most_numbers) return FileDescriptor(number);
  watch_forks();
  open_nothing();
  kept[at / 64].fetch_or(std::uint64_t{1} << (at % 64), std::memory_order_relaxed);
  std::size_t words = kept_words.load(std::memory_order_relaxed);
  while (words <= at / 64 && !kept_words.compare_exchange_weak(words, at / 64 + 1, std::memory_order_relaxed)) {
  }
  return FileDescriptor(number);
}

void refuse_in_child(const char* what) {
  throw UsageError(std::string("this process is a child by fork() of the one that made the ") + what +
                   ", whose threads and connections it does not have: here it can do nothing but exec() or _exit()");
}

void internal::give_to_children(int number) noexcept {
  const auto at = static_cast<std::size_t>(number);
  if (at >= most_numbers) return;
  const std::uint64_t bit = std::uint64_t{1} << (at % 64);
  if ((kept[at / 64].load(std::memory_order_relaxed) & bit) != 0)
    kept[at / 64].fetch_and(~bit, std::memory_order_relaxed);
}

}  // namespace tandem::base
