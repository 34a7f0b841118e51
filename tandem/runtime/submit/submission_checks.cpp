// tandem/runtime/submit/submission_checks.cpp: mistakes of the application in tasks that it submits.
#include <fmt/core.h>

#include "tandem/runtime/submit/submission.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

bool Submission::is_last_user(const Task& task) const noexcept {
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (slot.alias() || slot.mode() == AccessMode::scratch) continue;
    const FlowState& flow = slot.handle()->flow;
    const bool writes = slot.mode() == AccessMode::write || slot.mode() == AccessMode::read_write;
    if (writes && (flow.writer.task != &task || flow.writer.id != task.id || !flow.members.empty())) return false;
    if (!writes && (flow.members.empty() || (flow.members.end() - 1)->task != &task)) return false;
  }
  return true;
}

void Submission::check_slowly(Task& task, unsigned access) {
  const AccessSlot& slot = task.accesses()[access];
  if (slot.handle() == nullptr) {
    const std::string who = describe(task);
    abandon(task);
    throw UsageError(fmt::format("{} names an empty Data object as its access {} ({}); give it data that was registered", who,
                                 access + 1, name_of(slot.mode())));
  }
  Handle& handle = *slot.handle();
  std::string mistake;
  if (handle.registry == nullptr)
    mistake = fmt::format("uses {} after it was unregistered; register it again, or unregister it later", handle.described());
  else if (!is_registered(handle))
    mistake = fmt::format("uses {}, which belongs to another runtime", handle.described());
  else if (sees_value(slot.mode()) && !handle.flow.has_value)
    mistake = fmt::format("sees {} with mode {}, but nobody has written it before; write it first, or use mode write",
                          handle.described(), name_of(slot.mode()));
  else if (slot.mode() == AccessMode::reduce && handle.reduction == nullptr)
    mistake =
        fmt::format("reduces into {}, which has no reduction; give it one with .reduction(init, combine)", handle.described());
  else if (slot.mode() == AccessMode::reduce && !handle.flow.has_value)
    mistake = fmt::format("reduces into {}, but it has no value to add to; write it first", handle.described());
  if (mistake.empty()) {
    if (slot.mode() == AccessMode::reduce && handle.flow.kind != GroupKind::reducers && recorder_ == nullptr)
      open_reductions_.push_back(&handle);
    return;
  }
  const std::string who = describe(task);
  abandon(task);
  throw UsageError(who + " " + mistake);
}

void Submission::merge_accesses(Task& task, unsigned first, unsigned second) {
  AccessSlot& a = task.accesses()[first];
  AccessSlot& b = task.accesses()[second];
  const auto simple = [](AccessMode mode) {
    return mode == AccessMode::read || mode == AccessMode::write || mode == AccessMode::read_write;
  };
  if (!simple(a.mode()) || !simple(b.mode())) {
    const std::string who = describe(task);
    const std::string what = a.handle()->described();
    abandon(task);
    throw UsageError(
        fmt::format("{} names {} twice, once with a mode other than read, write and read_write; name it once", who, what));
  }
  if (b.alias()) return;
  const bool reads = a.mode() == AccessMode::read && b.mode() == AccessMode::read;
  if (!reads) {
    const bool sees = sees_value(a.mode()) || sees_value(b.mode());
    a.set(a.handle(), sees ? AccessMode::read_write : AccessMode::write);
  }
  b.mark_alias();
}

void Submission::refuse_recorded_predecessor(Task& task) {
  const std::string who = describe(task);
  abandon(task);
  throw UsageError(fmt::format("{} is to run after a recorded task, which runs in the replays of its graph only; name a replay, as "
                               "returned by replay, or let data order the tasks",
                               who));
}

void Submission::check_runnable(Task& task) {
  if (task.codelet == nullptr) return;
  WorkerGroup* group = nullptr;
  try {
    group = executor_.group_of(*task.codelet);
  } catch (...) {  // its can_run
    abandon(task);
    throw;
  }
  if (group != nullptr) {
    extra_of(task).group = group;
    return;
  }
  const std::string who = describe(task);
  abandon(task);
  throw UsageError(
      fmt::format("{} can run on no worker: none has a device of its implementations, or its can_run refuses all of them; "
                  "add an implementation for the CPU, or relax can_run",
                  who));
}

}  // namespace tandem::runtime
