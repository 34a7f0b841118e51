// tandem/base/attendance.cpp: the promises of this thread.
#include "tandem/base/attendance.hpp"

namespace tandem::base {

constinit thread_local IdleWork::Promised IdleWork::promised_;

}  // namespace tandem::base
