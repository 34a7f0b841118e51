// tandem/runtime/record/graph.cpp: replays of a recorded flow.
#include "tandem/runtime/record/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

#include "tandem/runtime/record/left_replays.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::runtime {

namespace {

void destroy(Task& task, TaskPool& pool) noexcept {
  if (task.ops->destroy_values != nullptr) task.ops->destroy_values(task);
  pool.release_extra(task);
  task.~Task();
}

}  // namespace

std::vector<std::unique_ptr<Instance>> Instance::take_running(std::vector<std::unique_ptr<Instance>>& instances) {
  const auto ended = [](const auto& instance) { return has_ended(instance->end); };
  const auto running = std::partition(instances.begin(), instances.end(), ended);
  std::vector<std::unique_ptr<Instance>> taken;
  taken.insert(taken.end(), std::make_move_iterator(running), std::make_move_iterator(instances.end()));
  instances.erase(running, instances.end());
  return taken;
}

void Instance::destroy(RuntimeCore& runtime) noexcept {
  TaskPool& pool = runtime.submission().pool();
  // The end belongs to the pool, since users may hold references to it.
  if (tasks.back()->successors.sealed()) pool.recycle(tasks.back());
  tasks.pop_back();
  for (Task* task : tasks) runtime::destroy(*task, pool);
  tasks.clear();
}

RecordedGraph::~RecordedGraph() {
  for (auto& instance : instances_) {
    if (!has_ended(instance->end)) runtime_.accesses().wait_quietly(instance->end, "a recorded graph");
    instance->state.graph = nullptr;
  }
  std::vector<std::unique_ptr<Instance>> left = Instance::take_running(instances_);
  kept_.forget_recorded_tasks(runtime_.data());
  for (const auto& instance : instances_) instance->destroy(runtime_);
  for (Task* task : templates_) {
    destroy(*task, runtime_.submission().pool());
    std::free(task);
  }
  if (!left.empty()) runtime_.left_replays().keep(std::move(left), std::move(kept_));
}

Replay RecordedGraph::replay() {
  Submission& submission = runtime_.submission();
  submission.thread().check("replay a graph");
  if (submission.recorder() != nullptr)
    throw UsageError(
        "cannot replay a graph while another is recorded: replays cannot be recorded; submit its tasks, or replay it "
        "after the recording");
  submission.make_room();
  if (templates_.size() <= 1 || submission.is_over()) return {};
  kept_.check(runtime_.data());
  for (const RecordedUse& use : uses_)
    if (use.needs_value && !use.handle->flow.has_value)
      throw UsageError(fmt::format("a recorded graph sees {}, but nobody has written it before; write it first",
                                   use.handle->described()));
  Instance& instance = idle_instance();
  update(instance);
  // The nodes that end open groups come before the replay, so their positions precede those of the replay.
  for (const RecordedUse& use : uses_) submission.flow().close_open_group(*use.handle);
  instance.state.base = submission.begin_replay(templates_.size());
  if (submission.counts_depth()) instance.state.depth = follow_depth();
  for (const RecordIndex index : boundary_) {
    Task& task = *instance.tasks[index];
    task.successors.reset();
    task.id = instance.state.base + index;
  }
  for (const RecordIndex index : guarded_) submission.pool().release_links(*instance.tasks[index]);
  instance.end = {instance.tasks.back(), instance.tasks.back()->id};
  enter_data(instance);
  leave_data(instance);
  if (traced_version_ != version_) traced_as_ = 0;
  traced_version_ = version_;
  traced_as_ = runtime_.trace().describe_replay(traced_as_, instance.state.base, instance.tasks);
  if (Memory& memory = runtime_.memory(); memory.is_limited())
    for (Task* const task : instance.tasks) memory.room().note_uses(*task);
  start(instance);
  return {instance.end, number_, instance.state.base};
}

/// How much deeper a replay is now than its tasks when they were recorded, as one block: it follows all tasks of its
/// data, and is followed as a whole.
std::uint32_t RecordedGraph::follow_depth() {
  std::uint32_t first = UINT32_MAX, last = 0, before = 0;
  for (const Task* const task : templates_) {
    if (task->extra == nullptr || task->extra->depth == 0) continue;
    first = std::min(first, task->extra->depth);
    last = std::max(last, task->extra->depth);
  }
  if (last == 0) return 0;
  for (const RecordedUse& use : uses_) before = std::max({before, use.handle->depth.written, use.handle->depth.read});
  const std::uint32_t deeper = before + 1 - first;  // difference modulo 2^32
  for (const RecordedUse& use : uses_) {
    FlowDepth& depth = use.handle->depth;
    (use.exit_writer == kNoTask ? depth.read : depth.written) = last + deeper;
  }
  return deeper;
}

void RecordedGraph::enter_data(Instance& instance) {
  Flow& flow = runtime_.submission().flow();
  for (const RecordedUse& use : uses_) {
    if (use.writer_after_readers != kNoTask)
      flow.follow_members(*instance.tasks[use.writer_after_readers], *use.handle);
    for (const RecordedAccess& entry : use.entries) {
      Task& task = *instance.tasks[entry.task];
      flow.enter_recorded(task, task.accesses()[entry.slot]);
    }
  }
}

void RecordedGraph::leave_data(Instance& instance) {
  const auto ref = [&](RecordIndex index) { return TaskRef{instance.tasks[index], instance.tasks[index]->id}; };
  for (const RecordedUse& use : uses_) {
    FlowState& flow = use.handle->flow;
    if (use.exit_writer == kNoTask) {
      // If the data is only read, `enter_data` has added each reader to the live ones. Many are replaced by the end
      // that follows them all.
      if (!use.exit_at_end) continue;
      flow.members.shrink_to(flow.members.size() -
                             std::min(flow.members.size(), static_cast<std::uint32_t>(use.entries.size())));
    } else {
      flow.members.clear();
      flow.kind = GroupKind::readers;
      flow.writer = ref(use.exit_writer);
      flow.has_value = true;
    }
    for (const RecordIndex reader : use.exit_readers)
      if (use.exit_writer != kNoTask || use.exit_at_end) flow.members.push_back(ref(reader));
  }
}

void RecordedGraph::start(Instance& instance) {
  Submission& submission = runtime_.submission();
  for (const RecordIndex index : roots_) submission.make_ready(*instance.tasks[index]);
  for (const RecordIndex index : guarded_) {
    Task& task = *instance.tasks[index];
    if (task.waits.fetch_sub(Flow::kGuard, std::memory_order_acq_rel) == Flow::kGuard) submission.make_ready(task);
  }
  submission.end_replay();
}

Instance& RecordedGraph::idle_instance() {
  for (auto& instance : instances_)
    if (has_ended(instance->end)) return *instance;
  return *instances_.emplace_back(build_instance());
}

std::unique_ptr<Instance> RecordedGraph::build_instance() {
  auto instance = std::make_unique<Instance>();
  std::size_t total = 0;
  for (const std::size_t bytes : bytes_) total += bytes;
  instance->bytes = total;
  instance->memory = base::allocate_large(total);
  if (instance->memory == nullptr) throw std::bad_alloc();
  instance->parts.resize(templates_.size());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < templates_.size(); ++i) {
    Task& model = *templates_[i];
    const bool is_end = i + 1 == templates_.size();
    Task* const task =
        is_end ? runtime_.submission().pool().take(sizeof(Task)) : new (instance->memory.get() + offset) Task;
    offset += bytes_[i];
    task->ops = model.ops;
    task->codelet = model.codelet;
    task->priority = model.priority;
    task->kind = model.kind;
    task->access_count = model.access_count;
    task->special = model.special;
    task->budgeted = model.budgeted;
    task->restricted = model.restricted;
    task->chooses = model.chooses;
    task->recorded = true;
    task->poisoned.store(false, std::memory_order_relaxed);
    task->progress = 0;
    task->where = model.where;
    if (model.extra != nullptr) {
      TaskExtra& extra = runtime_.submission().extra_of(*task);
      extra.take_options(*model.extra);
      extra.group = model.extra->group;
      extra.depth = model.extra->depth;
      extra.on_ready = model.extra->on_ready;
      extra.context = model.extra->context;
    }
    for (unsigned slot = 0; slot < model.access_count; ++slot)
      new (task->accesses() + slot) AccessSlot(model.accesses()[slot]);
    if (model.ops->copy_values != nullptr) model.ops->copy_values(model, *task, true);
    task->recording = &instance->parts[i];
    instance->tasks.push_back(task);
  }
  instance->successors.reserve(successors_.size());
  for (const RecordIndex successor : successors_) instance->successors.push_back(instance->tasks[successor]);
  std::vector<bool> guarded(templates_.size(), false);
  for (const RecordIndex index : guarded_) guarded[index] = true;
  for (const RecordIndex index : boundary_) instance->parts[index].boundary = true;
  for (std::size_t i = 0; i < templates_.size(); ++i) {
    RecordedPart& part = instance->parts[i];
    part.successors = instance->successors.data() + first_successor_[i];
    part.successor_count = first_successor_[i + 1] - first_successor_[i];
    part.explicit_from = explicit_from_[i];
    part.predecessor_count = predecessors_[i] + (guarded[i] ? Flow::kGuard : 0);
    part.index = static_cast<std::uint32_t>(i);
    part.replay = &instance->state;
    instance->tasks[i]->waits.store(part.predecessor_count, std::memory_order_relaxed);
  }
  instance->state.end = instance->tasks.back();
  instance->state.tasks = instance->tasks.data();
  instance->state.graph = this;
  instance->version = version_;
  instance->boundary_count = boundary_.size();
  return instance;
}

Task* RecordedGraph::change(const TaskRef& task) {
  check_change(task);
  ++version_;
  note_change(task.recorded_index());
  return templates_[task.recorded_index()];
}

void RecordedGraph::rebind(Handle& from, Handle& to) {
  const auto at = std::ranges::find(uses_, &from, &RecordedUse::handle);
  check_rebind(from, to, at != uses_.end(), std::ranges::find(uses_, &to, &RecordedUse::handle) != uses_.end());
  at->handle = &to;
  kept_.replace(from, to, runtime_.data());
  ++version_;
  for (RecordIndex index = 0; index < templates_.size(); ++index) {
    Task& task = *templates_[index];
    bool changed = false;
    for (unsigned slot = 0; slot < task.access_count; ++slot) {
      if (task.accesses()[slot].handle() != &from) continue;
      task.accesses()[slot].rebind(&to);
      changed = true;
    }
    if (changed) note_change(index);
  }
}

void RecordedGraph::watch(RecordIndex task) {
  if (at_boundary_[task]) return;
  boundary_.push_back(task);
  at_boundary_[task] = true;
}

static TaskRef node_to_wait_for(const TaskRef& end, RecordIndex index) {
  if (has_ended(end)) return end;
  const ReplayState& replay = *end.task->recording->replay;
  Task& task = *replay.tasks[index];
  if (task.recording->boundary) return {&task, task.id};
  if (replay.graph != nullptr) replay.graph->watch(index);
  return end;
}

void wait_in_replay(RuntimeCore& runtime, const Replay& replay, const TaskRef& task) {
  if (!task.is_of_recording(replay.recording))
    throw UsageError(
        "cannot wait for a task in this replay: it is not of the recording that was replayed; give what submit "
        "returned "
        "while that one was recorded");
  if (replay.first == 0) return runtime.accesses().wait(replay);
  runtime.accesses().wait(node_to_wait_for(replay, task.recorded_index()), replay.first + task.recorded_index());
}

void RecordedGraph::update(Instance& instance) {
  for (; instance.boundary_count < boundary_.size(); ++instance.boundary_count)
    instance.parts[boundary_[instance.boundary_count]].boundary = true;
  if (instance.version == version_) return;
  for (const auto& [version, index] : changes_) {
    if (version <= instance.version || version != changed_at_[index]) continue;
    Task& model = *templates_[index];
    Task& task = *instance.tasks[index];
    task.priority = model.priority;
    for (unsigned slot = 0; slot < model.access_count; ++slot)
      task.accesses()[slot].rebind(model.accesses()[slot].handle());
    if (model.ops->copy_values != nullptr) model.ops->copy_values(model, task, false);
  }
  instance.version = version_;
}

/// An unused instance may need all changes since its last replay. Only the last change of a task counts, so the list is
/// at most twice as long as there are tasks.
void RecordedGraph::note_change(RecordIndex task) {
  changed_at_.resize(templates_.size(), 0);
  changed_at_[task] = version_;
  changes_.emplace_back(version_, task);
  if (changes_.size() <= 2 * templates_.size()) return;
  std::erase_if(changes_, [&](const auto& change) { return change.first != changed_at_[change.second]; });
}

}  // namespace tandem::runtime
