// tandem/api/runtime_events.cpp: accesses of the application, and events.
#include "tandem/api/runtime.hpp"

#include <utility>

#include "tandem/api/event_state.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/dist/recorded_operation.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem {

void internal::EndAccess::operator()(runtime::ApplicationAccess* access) const noexcept {
  access->accesses->release(*access);
  delete access;
}

internal::HeldAccess Runtime::begin_access(runtime::Handle* handle, AccessMode mode, const SourceLine& where,
                                           unsigned node) {
  runtime::Handle& data = named(handle, "acquire");
  core_->submission().thread().check("acquire data");
  check_node("acquire", node);
  if (is_over()) check_access_behind_end(data, mode);
  else share_access(data, mode, where);
  internal::HeldAccess access(core_->accesses().acquire(data, mode, where, node).release());
  flow_->entered();
  return access;
}

internal::HeldAccess Runtime::begin_access_at_owner(runtime::Handle* handle, AccessMode mode, const SourceLine& where) {
  runtime::Handle& data = named(handle, "acquire");
  core_->submission().thread().check("acquire data");
  if (is_over()) return flow_->owner_of(data) == rank() ? begin_access(handle, mode, where) : nullptr;
  dist::Use use{&data, mode};
  if (!flow_->enter({&use, 1}, {.on = flow_->owner_of(data), .where = where, .is_task = false})) return nullptr;
  internal::HeldAccess access(core_->accesses().acquire(data, mode, where).release());
  flow_->entered();
  return access;
}

Event Runtime::submit_event(std::string name, Release release, std::function<void(Event)> start,
                            std::span<const dist::Use> uses, const SourceLine& where) {
  core_->submission().thread().check("submit an event");
  if (is_over()) return {};
  if (flow_->is_recording() && start)
    return several_ != nullptr ? record_event_in_flow(name, release, start, uses, where)
                               : record_event(std::move(name), release, std::move(start), uses, where);
  if (!flow_->enter(uses, {.where = where})) return {};
  const auto state = enter_event(std::move(name), release, std::move(start), uses, where);
  flow_->entered();
  return state->event();
}

/// Enters an event that takes place here; on several ranks, at the position that was entered.
std::shared_ptr<internal::EventState> Runtime::enter_event(std::string name, Release release,
                                                           std::function<void(Event)> start,
                                                           std::span<const dist::Use> uses, const SourceLine& where) {
  runtime::Task& task = core_->events().begin(std::move(name), base::narrow<unsigned>(uses.size()));
  for (std::size_t i = 0; i < uses.size(); ++i) task.accesses()[i].set(uses[i].handle, uses[i].mode);
  task.where = where;
  // The state is shared with the task, which may start before this returns.
  const auto state = std::make_shared<internal::EventState>(*core_, runtime::name_of(task), std::move(start));
  // An event without a start does not count as a task: the program completes it in any case.
  set_start(task, state->has_start(), [state](runtime::Task& ready) { state->begin(ready); });
  core_->events().submit(task, release == Release::separate, state->tasks());
  return state;
}

/// All ranks note the event and its rank. Each replay submits another event there.
Event Runtime::record_event_in_flow(const std::string& name, Release release, const std::function<void(Event)>& start,
                                    std::span<const dist::Use> uses, const SourceLine& where) {
  static const std::shared_ptr<runtime::CodeletCore> codelet = runtime::make_cpu_codelet("recorded event");
  dist::Wish wish{.where = where};
  runtime::Task* model = nullptr;
  if (several_->place_recorded(uses, wish)) {
    model = &core_->submission().begin(codelet, runtime::kNoValues, base::narrow<unsigned>(uses.size()));
    for (std::size_t i = 0; i < uses.size(); ++i) model->accesses()[i].set(uses[i].handle, uses[i].mode);
  }
  const auto submit = [this, name, release, start, where](std::span<const dist::Use> now) {
    return enter_event(name, release, start, now, where)->tasks();
  };
  const dist::RecordedEvent event{submit, release == Release::separate};
  const TaskRef recorded = several_->add_recorded(uses, wish, model, &event);
  if (model == nullptr) return {};
  const auto state = std::make_shared<internal::EventState>(*core_, name, nullptr);
  state->mark_recorded(recorded);
  return state->event();
}

Event Runtime::record_event(std::string name, Release release, std::function<void(Event)> start,
                            std::span<const dist::Use> uses, const SourceLine& where) {
  runtime::Task& task = core_->events().begin_recorded(std::move(name), base::narrow<unsigned>(uses.size()));
  for (std::size_t i = 0; i < uses.size(); ++i) task.accesses()[i].set(uses[i].handle, uses[i].mode);
  task.where = where;
  const bool with_release = release == Release::separate;
  const auto recorded = std::make_shared<internal::RecordedEvent>(
      internal::RecordedEvent{*core_, runtime::name_of(task), std::move(start), with_release});
  task.extra->callback = [recorded] {};  // copied to each replay's task, so that it lives as long as they do
  task.extra->on_ready = &internal::RecordedEvent::begin;
  task.extra->context = recorded.get();
  const auto state = std::make_shared<internal::EventState>(*core_, recorded->name, nullptr);
  state->mark_recorded(core_->events().record(task, with_release));
  return state->event();
}

void Runtime::set_start(runtime::Task& task, bool counts_as_task, std::function<void(runtime::Task&)> start) {
  task.extra->callback = [&task, start = std::move(start)] { start(task); };
  task.extra->context = counts_as_task ? core_.get() : nullptr;
  task.extra->on_ready = [](runtime::Task& ready, void* core) {
    if (core != nullptr && !static_cast<runtime::RuntimeCore*>(core)->events().may_begin(ready)) return;
    // Moved out, since the task may be used again once the event is completed.
    const std::function<void()> begin = std::exchange(ready.extra->callback, nullptr);
    begin();
  };
}

}  // namespace tandem
