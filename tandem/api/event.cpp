// tandem/api/event.cpp: the states of an event, and the calls that they refuse.
#include "tandem/api/event.hpp"

#include <mutex>
#include <utility>

#include "tandem/api/event_state.hpp"

namespace tandem {

void Event::readable(std::exception_ptr failure) {
  if (state_ != nullptr) state_->readable(std::move(failure));
}
void Event::released() {
  if (state_ != nullptr) state_->released();
}

namespace internal {

Event EventState::event() {
  Event event;
  event.state_ = shared_from_this();
  event.readable_ = tasks_.readable;
  return event;
}

void EventState::refuse(const char* why) const { throw UsageError("event '" + name_ + "' " + why); }

void EventState::readable(std::exception_ptr failure) {
  {
    const std::lock_guard guard(lock_);
    if (is_recorded_) refuse("was recorded; complete the event that `start` gets in each replay");
    if (by_itself_) return;
    if (readable_) refuse("was made readable before; complete each event once");
    if (has_start() && !begun_)
      refuse("has not been started: tasks before it have not ended; complete it in `start`, or later");
    readable_ = true;
    if (!begun_) {
      failure_ = std::move(failure);
      return;
    }
  }
  core_.events().complete(tasks_.readable, std::move(failure));
}

void EventState::released() {
  {
    const std::lock_guard guard(lock_);
    if (is_recorded_) refuse("was recorded; release the event that `start` gets in each replay");
    if (tasks_.released.task == nullptr)
      refuse("ends with `readable` alone; make it with Release::separate to release it later");
    if (by_itself_) return;
    if (released_) refuse("was released before; release each event once");
    if (has_start() && !begun_)
      refuse("has not been started: tasks before it have not ended; release it in `start`, or later");
    released_ = true;
  }
  end_released();
}

/// Ends the released half. Called by the thread that has set `released_`.
void EventState::end_released() {
  std::vector<runtime::Handle*> kept;
  {
    const std::lock_guard guard(lock_);
    kept.swap(kept_);
  }
  core_.memory().let_go(kept);
  core_.events().complete(tasks_.released);
}

bool EventState::end_by_itself() {
  const std::lock_guard guard(lock_);
  by_itself_ = true;
  return tasks_.released.task != nullptr && !std::exchange(released_, true);
}

void EventState::begin(runtime::Task& node) {
  const bool dropped = has_start() && core_.events().is_behind_end(node);
  if (dropped || core_.events().is_cancelled(node)) {
    if (end_by_itself()) end_released();
    if (dropped) core_.events().drop_behind_end(tasks_.readable);
    else core_.events().complete(tasks_.readable);
    return;
  }
  std::vector<runtime::Handle*> kept;
  if (tasks_.released.task != nullptr) kept = core_.memory().keep_written(node);
  std::exception_ptr failure;
  bool is_readable = false;
  {
    const std::lock_guard guard(lock_);
    begun_ = true;
    if (!released_) kept_.swap(kept);
    is_readable = readable_;
    failure = std::exchange(failure_, nullptr);
  }
  core_.memory().let_go(kept);  // it was released before
  if (is_readable) core_.events().complete(tasks_.readable, std::move(failure));
  else if (has_start()) start();
}

/// Starts the event. An exception of `start` fails it, as a kernel's exception fails its task.
void EventState::start() {
  const Start start = std::move(start_);
  try {
    start(event());
  } catch (...) {
    bool is_open = false;
    {
      const std::lock_guard guard(lock_);
      is_open = !std::exchange(readable_, true);
      by_itself_ = true;
    }
    if (end_by_itself()) end_released();
    if (is_open) core_.events().complete(tasks_.readable, std::current_exception());
  }
}

void RecordedEvent::begin(runtime::Task& ready, void* context) {
  const auto& recorded = *static_cast<const RecordedEvent*>(context);
  if (!recorded.core.events().may_begin(ready)) return;
  const auto state = std::make_shared<EventState>(recorded.core, recorded.name, recorded.start);
  state->tasks().readable = {&ready, ready.id};
  if (recorded.with_release) {
    runtime::Task* const released = ready.recording->replay->tasks[ready.recording->index + 1];
    state->tasks().released = {released, runtime::flow_position(*released)};
  }
  state->begin(ready);
}

}  // namespace internal
}  // namespace tandem
