// tandem/runtime/wait/accesses.cpp: grants and releases accesses of the application.
#include "tandem/runtime/wait/accesses.hpp"

#include <fmt/core.h>

#include <exception>

#include "tandem/base/log.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/record/graph.hpp"

namespace tandem::runtime {

void Accesses::begin(ApplicationAccess& access, Handle* handle, AccessMode mode, const SourceLine& where, const TaskRef* after) {
  Task& task = submission_.begin_node(TaskKind::application, handle != nullptr ? 1 : 0);
  task.where = where;
  TaskExtra& extra = submission_.extra_of(task);
  extra.context = &access;
  extra.on_ready = [](Task&, void* context) {
    auto& ready = *static_cast<ApplicationAccess*>(context);
    Executor& executor = ready.accesses->executor_;  // once granted, the access may be gone
    ready.granted.store(true, std::memory_order_release);
    executor.caller().wake();
  };
  access.accesses = this;
  access.task = &task;
  access.handle = handle;
  if (handle != nullptr) {
    submission_.close_reduction(*handle);
    task.accesses()[0].set(handle, mode);
  }
  if (after != nullptr) submission_.submit_after(task, after, 1);
  else submission_.submit(task);
  submission_.window().begin_hold();
}

void Accesses::wait_granted(ApplicationAccess& access) {
  loop_.run_until(
      [](void* context) { return static_cast<ApplicationAccess*>(context)->granted.load(std::memory_order_acquire); }, &access);
}

void Accesses::throw_failure(FlowFailure& failure) {
  executor_.failures().note_thrown(failure, submission_.last_id());
  std::rethrow_exception(failure.exception);
}

std::unique_ptr<ApplicationAccess> Accesses::acquire(Handle& handle, AccessMode mode, const SourceLine& where) {
  submission_.thread().check("acquire data");
  data_.check_owned("acquire", handle, where);
  if (submission_.recorder() != nullptr)
    throw UsageError(fmt::format("cannot acquire {} while a graph is recorded", handle.described()));
  auto access = std::make_unique<ApplicationAccess>();
  begin(*access, &handle, mode, where, nullptr);
  wait_granted(*access);
  FlowFailure* failure = sees_value(mode) ? handle.poison.settle() : nullptr;
  if (failure != nullptr) {
    release(*access);
    throw_failure(*failure);
  }
  return access;
}

void Accesses::release(ApplicationAccess& access) noexcept {
  Task& task = *access.task;
  if (access.handle != nullptr && makes_value(task.accesses()[0].mode())) {
    const bool sees = sees_value(task.accesses()[0].mode());
    if (!sees || !access.handle->poison.any()) {
      Memory::note_written(*access.handle, 0);
      access.handle->poison.clear();
    }
  }
  access.task = nullptr;
  submission_.window().end_hold();
  executor_.complete(task);
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
    throw UsageError("cannot wait for a recorded task, which runs in the replays of its graph only; wait for a replay, or for the "
                     "task in one of them: rt.wait(replay, task)");
  refuse_while_recording("a task");
  ApplicationAccess access;
  begin(access, nullptr, AccessMode::read, SourceLine{}, &task);
  wait_granted(access);
  FlowFailure* failure = executor_.why_cancelled(*access.task);
  release(access);
  if (executor_.is_behind_end(task.id))
    throw FlowCancelled("a task that is waited for did not run: the flow was cancelled before it");
  if (failure != nullptr) throw_failure(*failure);
}

void Accesses::wait_in_replay(const TaskRef& end, std::uint32_t recording, TaskId first, const TaskRef& task) {
  submission_.thread().check("wait");
  refuse_while_recording("a task");
  if (!task.is_of_recording(recording))
    throw UsageError("cannot wait for a task in this replay: it is not of the recording that was replayed; give what submit returned "
                     "while that one was recorded");
  const TaskId position = first + task.recorded_index();
  const TaskRef node = node_to_wait_for(end, task.recorded_index());
  ApplicationAccess access;
  begin(access, nullptr, AccessMode::read, SourceLine{}, &node);
  wait_granted(access);
  release(access);
  if (executor_.is_behind_end(position))
    throw FlowCancelled("a task that is waited for did not run: the flow was cancelled before it");
  FlowFailure* failure = executor_.failures().any() ? executor_.failures().cause_of(position) : nullptr;
  if (failure != nullptr) throw_failure(*failure);
}

void Accesses::refuse_while_recording(const char* what) const {
  if (submission_.recorder() != nullptr)
    throw UsageError(fmt::format("cannot wait for {} while a graph is recorded: nothing runs; wait after the recording", what));
}

void Accesses::wait_quietly(const TaskRef& task, const char* what) noexcept {
  const Submission::Unrecorded unrecorded(submission_);
  try {
    ApplicationAccess access;
    begin(access, nullptr, AccessMode::read, SourceLine{}, &task);
    wait_granted(access);
    release(access);
  } catch (const std::exception& error) {
    loop_.log().error("at the end of {}: {}", what, error.what());
  }
}

void Accesses::wait_for_users(Handle& handle, bool wanted) {
  const Submission::Unrecorded unrecorded(submission_);
  ApplicationAccess access;
  begin(access, &handle, wanted ? AccessMode::read_write : AccessMode::write, handle.registered_at, nullptr);
  wait_granted(access);
  release(access);
}

}  // namespace tandem::runtime
