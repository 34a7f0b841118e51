// tandem/runtime/record/recorder.cpp: dependency inference inside a recording.
#include "tandem/runtime/record/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/dependencies.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::runtime {

Recorder::Recorder(RecordedGraph& graph) : graph_(graph) {
  Submission& submission = graph_.runtime_.submission();
  submission.thread().check("record a graph");
  if (submission.recorder() != nullptr) throw UsageError("cannot record a graph while another is recorded");
  submission.close_reductions();
  submission.record_to(this);
  graph_.runtime_.data().begin_recording();
}

Recorder::~Recorder() {
  graph_.runtime_.submission().record_to(nullptr);
  graph_.runtime_.data().end_recording();
}

Task& Recorder::take(const TaskOps& ops, unsigned access_count) {
  const std::size_t bytes = (Task::value_offset(access_count, ops.value_alignment) + ops.value_bytes + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  auto* task = new (memory) Task;
  for (unsigned i = 0; i < access_count; ++i) new (task->accesses() + i) AccessSlot;
  task->ops = &ops;
  task->access_count = static_cast<std::uint16_t>(access_count);
  task->id = graph_.templates_.size() + 1;
  task->recorded = true;
  task->successors.seal();  // it never runs: to live tasks it has ended
  return *task;
}

void Recorder::abandon(Task& task) noexcept {
  graph_.runtime_.submission().pool().release_extra(task);
  std::free(&task);
}

RecordIndex Recorder::add(Task& task, std::size_t bytes) {
  const auto index = static_cast<RecordIndex>(graph_.templates_.size());
  task.id = index + 1;
  graph_.templates_.push_back(&task);
  graph_.bytes_.push_back(bytes);
  graph_.predecessors_.push_back(0);
  successors_.emplace_back();
  explicit_successors_.emplace_back();
  has_entry_.push_back(false);
  return index;
}

void Recorder::check(Task& task, const TaskRef* predecessors, std::size_t count) {
  if (task.ops->value_bytes != 0 && task.ops->copy_values == nullptr) {
    const std::string who = describe(task);
    graph_.runtime_.submission().abandon(task);
    throw UsageError(who + " has values that cannot be copied, so it cannot be recorded; pass copyable values");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const TaskRef& before = predecessors[i];
    if (before.is_of_recording(graph_.number_)) continue;
    const std::string who = describe(task);
    graph_.runtime_.submission().abandon(task);
    throw UsageError(who + " is recorded after a task that is not of the same recording");
  }
}

TaskRef Recorder::enter(Task& task, const TaskRef* predecessors, std::size_t count) {
  const std::size_t bytes =
      (Task::value_offset(task.access_count, task.ops->value_alignment) + task.ops->value_bytes + 63) / 64 * 64;
  const RecordIndex index = add(task, bytes);
  for (unsigned i = 0; i < task.access_count; ++i) graph_.kept_.keep(*task.accesses()[i].handle());
  for (std::size_t i = 0; i < count; ++i) edge(predecessors[i].recorded_index(), index, true);
  for (unsigned i = 0; i < task.access_count; ++i)
    if (!task.accesses()[i].alias()) infer(index, static_cast<std::uint16_t>(i));
  return TaskRef::recorded(&task, graph_.number_, index);
}

void Recorder::note_values(const Task& task) {
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (makes_value(slot.mode()) && !slot.handle()->flow.has_value) graph_.runtime_.data().note_value(*slot.handle());
  }
}

TaskRef Recorder::enter_event(Task& task, bool with_release) {
  const TaskRef event = enter(task);
  if (!with_release) return event;
  Task& released = take(kNoValues, 0);
  released.kind = TaskKind::event;
  graph_.runtime_.submission().extra_of(released).name = task.extra->name + " (released)";
  const RecordIndex half = add(released, (sizeof(Task) + 63) / 64 * 64);
  graph_.predecessors_[half] = 1;  // its completion counts as a predecessor
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (!makes_value(slot.mode()) || slot.alias()) continue;
    // As for a live event, both halves are among the readers of the new version.
    DataState& state = state_of(slot.handle());
    state.kind = GroupKind::readers;
    state.members.push_back(event.recorded_index());
    state.members.push_back(half);
  }
  return event;
}

Recorder::DataState& Recorder::state_of(Handle* handle) {
  auto [at, is_new] = data_.try_emplace(handle);
  if (is_new) {
    at->second.use = graph_.uses_.size();
    graph_.uses_.push_back({});
    graph_.uses_.back().handle = handle;
  }
  return at->second;
}

/// An access of a recorded task; without an access, a node that ends a group.
struct Recorder::Follower {
  Recorder& recorder;
  RecordIndex index;
  std::uint16_t slot = 0;

  RecordIndex task() const noexcept { return index; }
  void follow_writer(const DataState& state) {
    if (state.writer != kNoTask) return recorder.edge(state.writer, index);
    RecordedUse& use = recorder.graph_.uses_[state.use];
    const AccessMode mode = recorder.graph_.templates_[index]->accesses()[slot].mode();
    if (sees_value(mode) || mode == AccessMode::reduce) use.needs_value = true;
    use.entries.push_back({index, slot});
    recorder.has_entry_[index] = true;
  }
  void follow_members(const DataState& state) {
    for (const RecordIndex member : state.members) recorder.edge(member, index);
    if (state.writer != kNoTask || state.kind != GroupKind::readers) return;
    // Readers that come first in the recording join the live readers: the node that ends their group follows these,
    // too.
    recorder.graph_.uses_[state.use].writer_after_readers = index;
    recorder.has_entry_[index] = true;
  }
};

/// Makes the nodes that end groups of one datum.
struct Recorder::Groups {
  Recorder& recorder;
  Handle* handle;

  static bool member_may_close(const DataState&) noexcept { return false; }
  Follower begin_closing(bool reduced) {
    return {recorder, recorder.add_internal(reduced ? TaskKind::kernel : TaskKind::join, reduced ? handle : nullptr)};
  }
  void end_closing(const Follower&) noexcept {}
};

void Recorder::infer(RecordIndex task, std::uint16_t slot) {
  const AccessSlot& access = graph_.templates_[task]->accesses()[slot];
  if (access.mode() == AccessMode::scratch) return;
  DataState& state = state_of(access.handle());
  enter_access(access.mode(), state, Follower{*this, task, slot}, [&] { close(state); });
}

void Recorder::close(DataState& state) { close_group(state, Groups{*this, graph_.uses_[state.use].handle}); }

RecordIndex Recorder::add_internal(TaskKind kind, Handle* combined) {
  Task* task = nullptr;
  if (combined != nullptr) {
    task = &take(combine_ops(), 1);
    task->codelet = &combine_codelet();
    task->accesses()[0].set(combined, AccessMode::read_write);
  } else {
    task = &take(kNoValues, 0);
  }
  task->kind = kind;
  return add(*task, combined != nullptr ? 128 : (sizeof(Task) + 63) / 64 * 64);
}

void Recorder::edge(RecordIndex from, RecordIndex to, bool explicitly) {
  // Accesses of a task are inferred one after the other, so a double edge is at the end of the list.
  auto& list = explicitly ? explicit_successors_[from] : successors_[from];
  if (!list.empty() && list.back() == to) return;
  list.push_back(to);
  ++graph_.predecessors_[to];
}

void Recorder::finish() {
  for (auto& [handle, state] : data_)
    if (state.kind != GroupKind::readers && !state.members.empty()) close(state);

  const auto count = static_cast<RecordIndex>(graph_.templates_.size());
  const RecordIndex end = add_internal(TaskKind::join, nullptr);
  for (RecordIndex task = 0; task < count; ++task)
    if (successors_[task].empty() && explicit_successors_[task].empty()) edge(task, end);

  std::vector<bool> boundary(graph_.templates_.size(), false);
  boundary[end] = true;
  // The program may wait for a started event.
  for (RecordIndex task = 0; task < count; ++task) boundary[task] = graph_.templates_[task]->kind == TaskKind::event;
  for (const auto& [handle, state] : data_) {
    RecordedUse& use = graph_.uses_[state.use];
    use.exit_writer = state.writer;
    if (state.writer != kNoTask) boundary[state.writer] = true;
    use.exit_at_end = state.members.size() > RecordedGraph::kExactReaders;
    use.exit_readers = use.exit_at_end ? std::vector<RecordIndex>{end} : state.members;
    for (const RecordIndex reader : use.exit_readers) boundary[reader] = true;
    // Readers that come first in a recording are members of the live group when they are entered, before the exits
    // replace it.
    for (const RecordedAccess& entry : use.entries) boundary[entry.task] = true;
  }

  for (RecordIndex task = 0; task <= count; ++task) {
    graph_.first_successor_.push_back(static_cast<std::uint32_t>(graph_.successors_.size()));
    graph_.successors_.insert(graph_.successors_.end(), successors_[task].begin(), successors_[task].end());
    graph_.explicit_from_.push_back(static_cast<std::uint32_t>(successors_[task].size()));
    graph_.successors_.insert(graph_.successors_.end(), explicit_successors_[task].begin(),
                              explicit_successors_[task].end());
    if (has_entry_[task]) graph_.guarded_.push_back(task);
    else if (graph_.predecessors_[task] == 0) graph_.roots_.push_back(task);
    if (boundary[task]) graph_.boundary_.push_back(task);
  }
  graph_.first_successor_.push_back(static_cast<std::uint32_t>(graph_.successors_.size()));
  graph_.at_boundary_ = std::move(boundary);
}

std::unique_ptr<RecordedGraph> record_graph(RuntimeCore& runtime, const std::function<void()>& flow) {
  auto graph = std::make_unique<RecordedGraph>(runtime);
  Recorder recorder(*graph);
  flow();
  recorder.finish();
  return graph;
}

}  // namespace tandem::runtime
