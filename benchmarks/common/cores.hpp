// benchmarks/common/cores.hpp: binding a rank to a core of its own.
#pragma once

#include <sched.h>

namespace benchmarks {

/// Binds the calling thread to the rank's core among those that it may use. False: that is forbidden, and nothing has
/// changed.
inline bool bind_to_core(unsigned rank) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  unsigned wanted = rank % static_cast<unsigned>(CPU_COUNT(&allowed));
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || wanted-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  }
  return false;
}

}  // namespace benchmarks
