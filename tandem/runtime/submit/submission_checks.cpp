// tandem/runtime/submit/submission_checks.cpp: finds mistakes of the application in submitted tasks.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/record/recorder.hpp"
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
    throw UsageError(
        fmt::format("{} names an empty Data object as its access {} ({}); give it data that was registered", who,
                    access + 1, name_of(slot.mode())));
  }
  Handle& handle = *slot.handle();
  std::string mistake;
  if (handle.registry == nullptr)
    mistake =
        fmt::format("uses {} after it was unregistered; register it again, or unregister it later", handle.described());
  else if (!is_registered(handle))
    mistake = fmt::format("uses {}, which belongs to another runtime", handle.described());
  // Arriving data is ordered already.
  else if (task.kind != TaskKind::event && (handle.flow.asks & (makes_value(slot.mode()) ? 2U : 1U)) != 0)
    mistake = fmt::format(
        "uses {} and another task argument that is a part of it, or that it is a part of, or of another partition; use "
        "either the parts or the whole in one task",
        handle.described());
  else if (sees_value(slot.mode()) && !handle.flow.has_value)
    mistake = fmt::format("sees {} with mode {}, but nobody has written it before; write it first, or use mode write",
                          handle.described(), name_of(slot.mode()));
  else if (slot.mode() == AccessMode::reduce && handle.reduction == nullptr)
    mistake = fmt::format("reduces into {}, which has no reduction; give it one with .reduction(init, combine)",
                          handle.described());
  else if (slot.mode() == AccessMode::reduce && !handle.flow.has_value)
    mistake = fmt::format("reduces into {}, but it has no value to add to; write it first", handle.described());
  if (mistake.empty()) {
    if (slot.mode() == AccessMode::reduce && handle.flow.kind != GroupKind::reducers && recorder_ == nullptr)
      open_reductions_.add(handle);
    return;
  }
  const std::string who = describe(task);
  abandon(task);
  throw UsageError(who + " " + mistake);
}

/// Finds data that the task names more than once, by sorting.
void Submission::check_many(Task& task) {
  std::vector<std::pair<const Handle*, unsigned>> named;
  named.reserve(task.access_count);
  check_accesses(task, [&](unsigned i) { named.emplace_back(task.accesses()[i].handle(), i); });
  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? std::less<>()(a.first, b.first) : a.second < b.second;
  });
  for (std::size_t i = 1, first = 0; i < named.size(); ++i) {
    if (named[i].first != named[first].first) first = i;
    else merge_accesses(task, named[first].second, named[i].second);
  }
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
    throw UsageError(fmt::format(
        "{} names {} twice, once with a mode other than read, write and read_write; name it once", who, what));
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
  throw UsageError(
      fmt::format("{} is to run after a recorded task, which runs in the replays of its graph only; name a replay, as "
                  "returned by replay, or let data order the tasks",
                  who));
}

void Submission::check_runnable(Task& task) {
  if (task.codelet == nullptr) return;
  WorkerGroup* group = nullptr;
  try {
    group = executor_.group_of(*task.codelet);
  } catch (...) {  // thrown by its can_run
    abandon(task);
    throw;
  }
  if (group != nullptr) {
    // Without devices, an implementation for them costs nothing.
    if (executor_.is_everyone(*group)) task.restricted = false;
    else extra_of(task).group = group;
    return;
  }
  const std::string who = describe(task);
  abandon(task);
  throw UsageError(fmt::format(
      "{} can run on no worker: none has a device of its implementations, or its can_run refuses all of them; "
      "add an implementation for the CPU, or relax can_run",
      who));
}

void Submission::look_closer(Task& task) {
  if (restricts_all_ && !task.restricted && task.kind == TaskKind::kernel && task.codelet != nullptr &&
      !task.ops->serves) {
    task.restricted = true;
    check_runnable(task);
  }
  if (executor_.order() != nullptr && task.kind == TaskKind::kernel) task.special = true;
  if (has_budgets_) check_fits(task);
  if (recorder_ != nullptr) recorder_->note_values(task);
  if (counts_depth_ && task.kind == TaskKind::kernel) note_depth(task);
}

/// The depth is one more than the largest depth of the tasks that it follows, by its data. `reduce` counts as reading,
/// since such tasks do not follow each other.
void Submission::note_depth(Task& task) {
  const std::span<const AccessSlot> slots(task.accesses(), task.access_count);
  const auto only_reads = [](const AccessSlot& slot) {
    return slot.mode() == AccessMode::read || slot.mode() == AccessMode::reduce;
  };
  std::uint32_t before = 0;
  for (const AccessSlot& slot : slots) {
    if (slot.mode() == AccessMode::scratch) continue;
    const FlowDepth& known = slot.handle()->depth;
    before = std::max({before, known.written, only_reads(slot) ? 0 : known.read});
  }
  const std::uint32_t depth = before + 1;
  for (const AccessSlot& slot : slots) {
    FlowDepth& known = slot.handle()->depth;
    if (only_reads(slot)) known.read = std::max(known.read, depth);
    else if (slot.mode() != AccessMode::scratch) known.written = depth;
  }
  if (task.restricted) extra_of(task).depth = depth;
}

void Submission::check_fits(Task& task) {
  task.budgeted = budgeted_at_once_ && task.kind == TaskKind::kernel && !task.restricted;
  Memory& memory = executor_.memory();
  std::string smallest;  // reason for the node that comes closest
  std::size_t over = SIZE_MAX;
  const auto has = [](const WorkerGroup& group, unsigned worker) {
    return std::find(group.members.begin(), group.members.end(), worker) != group.members.end();
  };
  const auto fits = [&](NodeIndex node) {
    if (!memory.is_limited(node)) return true;
    const std::size_t bytes = memory.room().bytes_of(task, node);
    const std::size_t budget = memory.room().budget(node);
    if (bytes > budget && bytes - budget < over) {
      over = bytes - budget;
      smallest = fmt::format("takes {} bytes in {}, whose budget is {} bytes; split the data and use fewer pieces at a time, or allow more "
                             "memory{}", bytes, memory.described(node), budget, node == 0 ? " (option memory)" : "");
    }
    return bytes <= budget;
  };
  if (task.kind != TaskKind::kernel) {
    if (task.extra != nullptr && task.extra->is_hint) return;
    if (fits(task.extra != nullptr ? task.extra->node : 0)) return;
  } else {
    const std::vector<WorkerSpec>& workers = executor_.workers();
    const WorkerGroup* const group = task.restricted ? extra_of(task).group : nullptr;
    for (unsigned worker = 0; worker < workers.size(); ++worker) {
      const bool runs_it =
          group == nullptr ? workers[worker].device == DeviceKind::cpu
                           : has(*group, worker) || (group->processors != nullptr && has(*group->processors, worker));
      if (runs_it && fits(workers[worker].node)) return;
    }
  }
  const std::string who = describe(task);
  abandon(task);
  throw OutOfMemory(fmt::format("{} can never run: its data {}", who, smallest));
}

}  // namespace tandem::runtime
