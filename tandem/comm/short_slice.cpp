// tandem/comm/short_slice.cpp: the system calls of short turns.
#include "tandem/comm/short_slice.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tandem::comm::internal {

namespace {
constexpr std::uint64_t kSliceNs = 100'000;  // the least that the kernel grants
}

bool ShortSlice::get(Attributes& attributes) noexcept {
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0;
}

bool ShortSlice::set(Attributes& attributes) noexcept { return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0; }

void ShortSlice::take() noexcept {
  if (taken_ || useless_) return;
  useless_ = !get(before_) || before_.policy != SCHED_OTHER;
  if (useless_) return;
  Attributes wanted = before_;
  wanted.runtime_ns = kSliceNs;
  taken_ = set(wanted);
  useless_ = !taken_ || !get(wanted) || wanted.runtime_ns != kSliceNs;
}

void ShortSlice::give_back() noexcept {
  if (!taken_) return;
  taken_ = false;
  set(before_);
}

}  // namespace tandem::comm::internal
