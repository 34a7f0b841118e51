// tandem/runtime/wait/accesses.cpp: grants and releases accesses of the application.
#include "tandem/runtime/wait/accesses.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/exec/log_lines.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::runtime {

Accesses::Begun Accesses::begin(Handle* handle, AccessMode mode, const SourceLine& where, const TaskRef* after,
                                NodeIndex node) {
  auto access = std::make_unique<ApplicationAccess>();
  access->accesses = this;
  access->handle = handle;
  access->where = where;
  const bool had_value = handle == nullptr || handle->flow.has_value;
  submit(*access, mode, after, node);
  try {
    wait_granted(*access, after);
  } catch (...) {
    if (!had_value) handle->flow.has_value = false;
    leave(std::move(access));
    throw;
  }
  return access;
}

void Accesses::submit(ApplicationAccess& access, AccessMode mode, const TaskRef* after, NodeIndex node) {
  // The combining task must come before this access.
  if (access.handle != nullptr) submission_.close_reduction(*access.handle);
  Task& task = submission_.begin_node(TaskKind::application, access.handle != nullptr ? 1 : 0);
  task.where = access.where;
  TaskExtra& extra = submission_.extra_of(task);
  extra.context = &access;
  extra.on_ready = &grant;
  extra.node = node;
  access.task = &task;
  if (access.handle != nullptr) task.accesses()[0].set(access.handle, mode);
  if (after != nullptr) submission_.submit_after(task, after, 1);
  else submission_.submit(task);
  submission_.window().begin_hold();
}

void Accesses::grant(Task&, void* context) {
  auto* const access = static_cast<ApplicationAccess*>(context);
  Executor& executor = access->accesses->executor_;  // read now: once granted, the access may be gone
  if (access->state.exchange(ApplicationAccess::State::granted, std::memory_order_acq_rel) ==
      ApplicationAccess::State::left)
    return end_unused(access);
  executor.caller().wake();
}

void Accesses::wait_granted(ApplicationAccess& access, const TaskRef* after) {
  const auto is_granted = [](void* waiting) {
    return static_cast<const ApplicationAccess*>(waiting)->state.load(std::memory_order_acquire) ==
           ApplicationAccess::State::granted;
  };
  if (!held_.any() || is_granted(&access)) return loop_.run_until(is_granted, &access);
  const std::string what = access.handle != nullptr ? access.handle->described() : describe(*after->task);
  if (const ApplicationAccess* const held = held_.before(*access.task))
    throw UsageError(fmt::format(
        "cannot wait for {}: it comes after the access to {} that was acquired at {}, which only this thread "
        "can release; release that access first",
        what, held->handle->described(), describe(held->where)));
  wait_beside_held(access, what);
}

/// Waits as long as the access does not wait for memory that other accesses keep.
void Accesses::wait_beside_held(ApplicationAccess& access, const std::string& what) {
  struct Waited {
    const ApplicationAccess& access;
    const std::atomic<std::uint64_t>& blocks;
    std::uint64_t seen;
    bool is_granted() const noexcept {
      return access.state.load(std::memory_order_acquire) == ApplicationAccess::State::granted;
    }
  };
  Room& room = executor_.memory().room();
  Waited waited{access, room.blocks(), room.blocks().load(std::memory_order_acquire)};
  for (; !waited.is_granted(); waited.seen = waited.blocks.load(std::memory_order_acquire)) {
    if (const std::vector<const Task*> blocked = room.blocked(); HeldAccesses::waits_for(*access.task, blocked)) {
      std::string why = room.why_waits(*access.task);
      if (why.empty()) why = "it comes after tasks that wait for memory";
      throw StuckError(fmt::format("cannot wait for {}: {}, and the application holds {}; release that first, or allow "
                                   "more memory", what, why, held_.described()));
    }
    loop_.run_until(
        [](void* context) {
          const auto& known = *static_cast<const Waited*>(context);
          return known.is_granted() || known.blocks.load(std::memory_order_acquire) != known.seen;
        },
        &waited);
  }
}

void Accesses::leave(Begun access) noexcept {
  submission_.window().end_hold();
  ApplicationAccess* const left = access.release();
  if (left->state.exchange(ApplicationAccess::State::left, std::memory_order_acq_rel) ==
      ApplicationAccess::State::granted)
    end_unused(left);
}

void Accesses::end_unused(ApplicationAccess* access) noexcept {
  Task& task = *access->task;
  Executor& executor = access->accesses->executor_;
  delete access;
  executor.complete(task);
}

void Accesses::throw_failure(FlowFailure& failure) {
  executor_.failures().note_thrown(failure, submission_.last_id());
  std::rethrow_exception(failure.exception);
}

std::unique_ptr<ApplicationAccess> Accesses::acquire(Handle& handle, AccessMode mode, const SourceLine& where,
                                                     NodeIndex node) {
  submission_.thread().check("acquire data");
  data_.check_owned("acquire", handle, where);
  if (submission_.recorder() != nullptr)
    throw UsageError(
        fmt::format("cannot acquire {} while a graph is recorded; submit a task with a lambda instead, which gets the "
                    "data in main memory in each replay",
                    handle.described()));
  Begun access = begin(&handle, mode, where, nullptr, node);
  FlowFailure* failure = sees_value(mode) ? handle.poison.settle() : nullptr;
  // There is no memory for the value, or fetching it failed.
  if (access->task->poisoned.load(std::memory_order_relaxed))
    failure = executor_.failures().cause_of(flow_position(*access->task));
  if (failure != nullptr) {
    access->handle = nullptr;  // the access has written nothing
    release(*access);
    throw_failure(*failure);
  }
  held_.add(*access);
  executor_.memory().note_held(*access->task, node, true);
  return access;
}

void Accesses::release(ApplicationAccess& access) noexcept {
  Task& task = *access.task;
  if (held_.remove(access)) executor_.memory().note_held(task, task.extra->node, false);
  if (access.handle != nullptr && makes_value(task.accesses()[0].mode())) {
    const bool sees = sees_value(task.accesses()[0].mode());
    if (!sees || !access.handle->poison.any()) {
      Memory::note_written(*access.handle, task.extra->node);
      access.handle->poison.clear();
    }
  }
  access.task = nullptr;
  submission_.window().end_hold();
  executor_.complete(task);
}

void Accesses::prefetch(Handle& handle, NodeIndex node, const SourceLine& where) {
  submission_.thread().check("prefetch data");
  data_.check_owned("prefetch", handle, where);
  if (submission_.recorder() != nullptr)
    throw UsageError(
        fmt::format("cannot prefetch {} while a graph is recorded; prefetch it before the replay", handle.described()));
  const FlowState& flow = handle.flow;
  // A reader would end a group of commuting or reducing tasks, and trigger the gathering of parts.
  const bool disturbs = (flow.kind != GroupKind::readers && !flow.members.empty()) || (flow.asks & 1U) != 0;
  if (!flow.has_value || disturbs) return executor_.memory().note_ignored_prefetch();
  Task& task = submission_.begin_node(TaskKind::event, 1);
  task.where = where;
  TaskExtra& extra = submission_.extra_of(task);
  extra.name = "prefetch of " + handle.name;
  extra.node = node;
  extra.is_hint = true;
  extra.context = &executor_;
  extra.on_ready = [](Task& hint, void* executor) { static_cast<Executor*>(executor)->complete(hint); };
  task.accesses()[0].set(&handle, AccessMode::read);
  submission_.submit(task);
}

void Accesses::wait(Handle& handle) {
  data_.check_owned("wait for", handle);
  const bool has_value = handle.flow.has_value;
  auto access = acquire(handle, has_value ? AccessMode::read_write : AccessMode::write, SourceLine{});
  // The access has written nothing.
  access->handle = nullptr;
  handle.flow.has_value = has_value;
  release(*access);
}

void Accesses::wait(const TaskRef& task) {
  submission_.thread().check("wait");
  if (task.task == nullptr) return;
  if (task.is_recorded())
    throw UsageError(
        "cannot wait for a recorded task, which runs in the replays of its graph only; wait for a replay, or for the "
        "task in one of them: rt.wait(replay, task)");
  refuse_while_recording("a task");
  const Begun access = begin(nullptr, AccessMode::read, SourceLine{}, &task);
  FlowFailure* failure = executor_.why_cancelled(*access->task);
  release(*access);
  if (executor_.is_behind_end(task.id))
    throw FlowCancelled("a task that is waited for did not run: the flow was cancelled before it");
  if (failure != nullptr) throw_failure(*failure);
}

void Accesses::wait(const TaskRef& node, TaskId position) {
  submission_.thread().check("wait");
  refuse_while_recording("a task");
  release(*begin(nullptr, AccessMode::read, SourceLine{}, &node));
  if (executor_.is_behind_end(position))
    throw FlowCancelled("a task that is waited for did not run: the flow was cancelled before it");
  FlowFailure* failure = executor_.failures().any() ? executor_.failures().cause_of(position) : nullptr;
  if (failure != nullptr) throw_failure(*failure);
}

void Accesses::refuse_while_recording(const char* what) const {
  if (submission_.recorder() != nullptr)
    throw UsageError(
        fmt::format("cannot wait for {} while a graph is recorded: nothing runs; wait after the recording", what));
}

void Accesses::wait_quietly(const TaskRef& task, const char* what) noexcept {
  const Submission::Unrecorded unrecorded(submission_);
  try {
    release(*begin(nullptr, AccessMode::read, SourceLine{}, &task));
  } catch (const std::exception& error) {
    log_lines(loop_.log(), fmt::format("at the end of {}: ", what), error.what());
  }
}

void Accesses::wait_for_users(Handle& handle, bool wanted) {
  const Submission::Unrecorded unrecorded(submission_);
  release(*begin(&handle, wanted ? AccessMode::read_write : AccessMode::write, handle.registered_at, nullptr));
}

}  // namespace tandem::runtime
