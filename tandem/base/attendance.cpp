// tandem/base/attendance.cpp: what this thread has promised.
#include "tandem/base/attendance.hpp"

namespace tandem::base {

constinit thread_local IdleWork::Promised IdleWork::promised_;

}  // namespace tandem::base
