// tandem/base/affinity.cpp: sched_getaffinity and sched_setaffinity for any number of processors.
#include "tandem/base/affinity.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/core.h>

#include "tandem/base/pu_list.hpp"

namespace tandem::base {
namespace {

constexpr unsigned first_size = 1024, most_size = 1u << 20;  ///< processors that a set has room for

struct FreeSet {
  void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};
using Set = std::unique_ptr<cpu_set_t, FreeSet>;

}  // namespace

std::vector<unsigned> affinity_of_this_thread() {
  for (unsigned size = first_size; size <= most_size; size *= 4) {
    const Set set(CPU_ALLOC(size));
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;  // the kernel knows more processors
      return {};
    }
    std::vector<unsigned> pus;
    for (unsigned pu = 0; pu < size; ++pu)
      if (CPU_ISSET_S(pu, bytes, set.get())) pus.push_back(pu);
    return pus;
  }
  return {};
}

Result<void> set_affinity_of_this_thread(std::span<const unsigned> pus) {
  const unsigned size = std::max(first_size, pus.empty() ? 0 : *std::max_element(pus.begin(), pus.end()) + 1);
  const Set set(CPU_ALLOC(size));
  const std::size_t bytes = CPU_ALLOC_SIZE(size);
  CPU_ZERO_S(bytes, set.get());
  for (const unsigned pu : pus) CPU_SET_S(pu, bytes, set.get());
  if (sched_setaffinity(0, bytes, set.get()) == 0) return {};
  return Error{errno == EINVAL ? ErrorCode::invalid_argument : ErrorCode::io,
               fmt::format("a thread cannot be bound to the hardware threads {}: {}", format_pu_list(pus),
                           std::strerror(errno))};
}

ScopedAffinity::ScopedAffinity(std::span<const unsigned> pus)
    : former_(affinity_of_this_thread()), result_(set_affinity_of_this_thread(pus)) {}

ScopedAffinity::~ScopedAffinity() {
  // A refusal leaves the thread where it may run, which is only slower.
  if (result_.ok() && !former_.empty()) (void)set_affinity_of_this_thread(former_).ok();
}

}  // namespace tandem::base
