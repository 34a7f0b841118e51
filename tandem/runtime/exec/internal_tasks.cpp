// tandem/runtime/exec/internal_tasks.cpp: the task that combines partial results.
#include "tandem/runtime/exec/internal_tasks.hpp"

#include <memory>

#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"

namespace tandem::runtime {

namespace {

void invoke_combine(KernelCall& call) {
  const Replica replica = call.memory(0);
  Memory::combine_partials(*call.task.accesses()[0].handle(), replica.pointer, replica.ld);
}
void skip_combine(Task& task) noexcept { Memory::discard_partials(*task.accesses()[0].handle()); }
constexpr TaskOps kCombine{.invoke = &invoke_combine, .skip = &skip_combine, .always = true};

}  // namespace

const TaskOps& combine_ops() noexcept { return kCombine; }

CodeletCore& combine_codelet() {
  // Never destroyed: a runtime that a static object holds may use it later.
  static const auto* const codelet = new std::shared_ptr<CodeletCore>(make_cpu_codelet("combine"));
  return **codelet;
}

}  // namespace tandem::runtime
