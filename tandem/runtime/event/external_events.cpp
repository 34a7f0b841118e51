// tandem/runtime/event/external_events.cpp: submits and completes events.
#include "tandem/runtime/event/external_events.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/visit_successors.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

Task& ExternalEvents::begin(std::string name, unsigned access_count) {
  submission_.thread().check("submit an event");
  if (submission_.recorder() != nullptr)
    throw UsageError(
        fmt::format("event '{}': events cannot be recorded without a start, since nobody could complete the event of a "
                    "replay; give it a start, or submit it live",
                    name));
  Task& task = submission_.begin_node(TaskKind::event, access_count);
  submission_.extra_of(task).name = std::move(name);
  return task;
}

Task& ExternalEvents::begin_recorded(std::string name, unsigned access_count) {
  submission_.thread().check("record an event");
  Task& task = submission_.begin_recorded_node(TaskKind::event, access_count);
  submission_.extra_of(task).name = std::move(name);
  return task;
}

TaskRef ExternalEvents::record(Task& event, bool with_release) {
  submission_.check(event);
  return submission_.record_event(event, with_release);
}

void ExternalEvents::submit(Task& task, bool with_release, EventTasks& event, const TaskRef& after) {
  submission_.check(task);
  submission_.enter(task);
  Flow& flow = submission_.flow();
  flow.depend(task, nullptr, after, nullptr);
  flow.enter_accesses(task);
  event = {{&task, task.id}, {}};
  if (with_release) {
    // The released half is among the readers of the new version: the next writer waits for it, readers do not. The
    // event itself is among them, too, since its two completions may come in any order.
    Task& released = submission_.enter_beside(TaskKind::event, 1);  // `complete` counts it down
    submission_.extra_of(released).name = task.extra->name + " (released)";
    event.released = {&released, released.id};
    flow.trace().also(released);
    for (unsigned i = 0; i < task.access_count; ++i)
      if (makes_value(task.accesses()[i].mode()) && !task.accesses()[i].alias()) {
        FlowState& state = task.accesses()[i].handle()->flow;
        state.kind = GroupKind::readers;
        state.members.push_back(event.readable);
        state.members.push_back(event.released);
      }
  }
  submission_.leave(task);
}

void ExternalEvents::complete(const TaskRef& event, std::exception_ptr failure) {
  const CallCount::Guard guard(calls_);
  Task& task = *event.task;
  if (failure != nullptr) {
    std::string what = "failed";
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {
    }
    executor_.poison(task, *executor_.failures().add(flow_position(task), failure, describe_failure(task, what)));
  } else if (FlowFailure* cause = executor_.why_cancelled(task)) {
    executor_.cancel(task, *cause);
  } else {
    note_written(task);
  }
  executor_.complete(task);
}

void ExternalEvents::note_written(Task& event) {
  for (unsigned i = 0; i < event.access_count; ++i) {
    Handle& handle = *event.accesses()[i].handle();
    if (!makes_value(event.accesses()[i].mode())) continue;
    Memory::note_written(handle, node_of(event));
    handle.poison.clear();
  }
}

void ExternalEvents::ask(const TaskRef& event) {
  const CallCount::Guard guard(calls_);
  Task& task = *event.task;
  const Memory& memory = executor_.memory();
  if (task.extra->sources != 0 ? memory.is_limited() : memory.is_limited(task.extra->node))
    task.room.memory = RoomState::Memory::asked;
  Origin origin;
  executor_.dispatch(task, origin);
}

void ExternalEvents::give_back(const TaskRef& event) {
  const CallCount::Guard guard(calls_);
  Task& task = *event.task;
  executor_.memory().give_back(task, task.extra->node);
  task.room.memory = RoomState::Memory::none;
}

void ExternalEvents::complete_failed(const TaskRef& event, FlowFailure& failure) {
  const CallCount::Guard guard(calls_);
  executor_.poison(*event.task, failure);
  executor_.complete(*event.task);
}

void ExternalEvents::complete_read(const TaskRef& event) {
  const CallCount::Guard guard(calls_);
  executor_.complete(*event.task);
}

void ExternalEvents::drop_behind_end(const TaskRef& event) {
  const CallCount::Guard guard(calls_);
  executor_.drop_behind_end(*event.task);
  executor_.complete(*event.task);
}

/// The most urgent task that waits for `event` and that `counts`; null: none.
template <class Counts>
static const Task* most_urgent_behind(const TaskRef& event, const Counts& counts) {
  constexpr unsigned most_links = 64;  // the most links that are read
  const Task* best = nullptr;
  const auto look = [&](const Task& next) {
    if (next.kind == TaskKind::kernel && counts(next) && (best == nullptr || next.priority > best->priority))
      best = &next;
  };
  visit_successors(*event.task, look, most_links);
  return best;
}

std::optional<std::int32_t> ExternalEvents::urgency_of(const TaskRef& event) {
  const Task* const task = most_urgent_behind(event, [](const Task&) { return true; });
  return task != nullptr ? std::optional(task->priority) : std::nullopt;
}

std::uint64_t ExternalEvents::expect_end(const TaskRef& event, std::int64_t in_ns) {
  const Task* const task =
      most_urgent_behind(event, [](const Task& next) { return next.waits.load(std::memory_order_relaxed) == 1; });
  if (task == nullptr) return 0;
  workers_.report_expected_ends();  // the policy needs the durations of tasks
  const std::int64_t now_ns = clock_.now_ns();
  return executor_.messages().expect(*task, now_ns + in_ns, now_ns);
}

}  // namespace tandem::runtime
