// tandem/base/attendance.cpp: the promises of this thread.
#include "tandem/base/attendance.hpp"

#include "tandem/base/fiber_local.hpp"

namespace tandem::base {

constinit thread_local IdleWork::Promised IdleWork::promised_;
const FiberLocal IdleWork::own_promise_([]() noexcept -> void* { return &promised_; }, sizeof promised_);

}  // namespace tandem::base
