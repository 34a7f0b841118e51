// tandem/runtime/worker/emulated_kernel.cpp: asks the model of a task's duration.
#include "tandem/runtime/worker/emulated_kernel.hpp"

#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

std::optional<std::int64_t> EmulatedKernel::ask_model(const Task& task) const {
  if (task.ops->serves) return {};
  Shape shapes[UINT8_MAX];
  for (unsigned i = 0; i < task.access_count; ++i) {
    if (task.accesses()[i].mode() == AccessMode::reduce) return {};
    shapes[i] = task.accesses()[i].handle()->shape;
  }
  return (*model_)({task.codelet->name, {shapes, task.access_count}});
}

}  // namespace tandem::runtime
