// tandem/runtime/task/main_memory_codelet.hpp: codelets of the runtime's own tasks, of which some find data in main
// memory by themselves.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// Makes a codelet for CPU workers.
inline std::shared_ptr<CodeletCore> make_cpu_codelet(std::string name) {
  auto codelet = std::make_shared<CodeletCore>(std::move(name));
  codelet->devices.push_back(DeviceKind::cpu);
  codelet->is_own = true;
  return codelet;
}

/// Makes a codelet for CPU workers of main memory alone.
inline std::shared_ptr<CodeletCore> make_main_memory_codelet(std::string name) {
  auto codelet = make_cpu_codelet(std::move(name));
  codelet->in_main_memory = true;
  codelet->plain = false;
  return codelet;
}

}  // namespace tandem::runtime
