// tandem/runtime/worker/expected_end.hpp: reports to events, as a kernel begins, when it is expected to end.
#pragma once

#include <cstdint>

#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Calls `TaskExtra::on_expected` of the events that follow `task`, which is about to run for about `in_ns`. By the
/// worker that runs it: its successors wait for it, so they outlive this call.
void report_expected_end(const Task& task, std::int64_t in_ns);

}  // namespace tandem::runtime
