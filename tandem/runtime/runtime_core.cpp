// tandem/runtime/runtime_core.cpp: construction, data, submission.
#include "tandem/runtime/runtime_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <unordered_map>

#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/flow_chart.hpp"

namespace tandem::runtime {

constinit thread_local const char RuntimeCore::thread_token_ = 0;

namespace {

constexpr TaskOps kNoValues{};

/// Combines the partial results of a group of `reduce` accesses into the data.
void invoke_combine(KernelCall& call) {
  const Replica replica = call.memory(0);
  Memory::combine_partials(*call.task.accesses()[0].handle(), replica.pointer, replica.ld);
}
void skip_combine(Task& task) noexcept { Memory::discard_partials(*task.accesses()[0].handle()); }
constexpr TaskOps kCombine{.invoke = &invoke_combine, .skip = &skip_combine, .always = true};

}  // namespace

const TaskOps& RuntimeCore::combine_ops() noexcept { return kCombine; }

const std::shared_ptr<CodeletCore>& RuntimeCore::combine_codelet() {
  if (combine_ == nullptr) {
    combine_ = std::make_shared<CodeletCore>("combine");
    combine_->devices.push_back(DeviceKind::cpu);
  }
  return combine_;
}

std::uint32_t RuntimeCore::next_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

RuntimeCore::RuntimeCore(World world, const CoreOptions& options)
    : world_(std::move(world)), options_(options), flow_(pool_, *this), executor_(pool_, world_.workers), memory_(executor_) {
  const auto sharing = static_cast<unsigned>(std::count_if(world_.workers.begin(), world_.workers.end(),
                                                           [](const WorkerSpec& w) { return w.device == DeviceKind::cpu; }));
  TANDEM_ASSERT(sharing >= 1 && world_.distance.size() == sharing);
  for (auto& [node, copier] : world_.nodes) memory_.add_node(std::move(node), std::move(copier));
  queues_ = std::make_unique<ReadyQueues>(*world_.policy, world_.distance, static_cast<unsigned>(world_.workers.size()) - sharing,
                                          options_.seed);
  const WorkerOptions worker_options{.poll_max_ns = options_.poll_max_ns,
                                     .poll_for_ns = options_.poll_for_ns,
                                     .tasks_per_step = options_.tasks_per_step,
                                     .timed = options_.statistics || options_.timeline || options_.emulation,
                                     .timeline = options_.timeline,
                                     .emulation = options_.emulation ? &options_.emulation : nullptr,
                                     .expects = &expects_,
                                     .attendance = &attendance_};
  base::Waker* caller = world_.caller_works ? nullptr : &world_.driver->add_caller(idler_);
  for (unsigned i = 0; i < world_.workers.size(); ++i) {
    const WorkerSpec& spec = world_.workers[i];
    auto& worker = *workers_.emplace_back(
        std::make_unique<Worker>(i, spec, worker_options, executor_, *world_.clock, *world_.log));
    const bool is_caller = i == 0 && world_.caller_works;
    base::Waker& waker = is_caller ? world_.driver->add_caller(worker)
                                   : world_.driver->add(worker, {spec.core, fmt::format("tandem-w{}", i)});
    queues_->set_waker(i, &waker);
    if (is_caller) caller = &waker;
  }
  executor_.connect(queues_.get(), &memory_, caller);
  const std::uint64_t share = options_.window / (4 * world_.workers.size());
  executor_.set_ahead(options_.begin_ahead_ns);
  executor_.set_batch(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 1, 32)));
  if (!options_.graphviz.empty()) {
    chart_ = std::make_unique<FlowChart>();
    flow_.set_observer(chart_.get());
  }
  submitter_origin_.kind = Origin::Kind::submitter;
  submitter_origin_.trace = &flow_.trace().stream;
  owner_ = &thread_token_;
  submitter_.store(owner_, std::memory_order_relaxed);
  for (unsigned i = world_.caller_works ? 1 : 0; i < workers_.size(); ++i) queues_->start(i);
}

RuntimeCore::~RuntimeCore() { shut_down(); }

void RuntimeCore::shut_down() {
  if (std::exchange(is_shut_down_, true)) return;
  const auto quietly = [&](auto action) {
    try {
      action();
      return true;
    } catch (const StuckError& error) {
      log().error("at the end of the runtime: {}", error.what());
      return false;
    } catch (const UsageError& error) {
      log().error("at the end of the runtime: {}", error.what());
      return false;
    } catch (const std::exception& error) {
      log().error("at the end of the runtime: {}", error.what());
    } catch (...) {
      log().error("at the end of the runtime: a kernel threw something that is no std::exception");
    }
    return true;
  };
  if (quietly([&] { wait_all(); })) {
    quietly([&] {
      while (!handles_.empty()) unregister(**handles_.begin());
    });
  }
  completions_.drain();
  memory_.drain();
  world_.driver->stop();
  // When the end of tasks could not be waited for, data is let go as it is: nothing runs any more.
  free_orphans(true);
  while (!handles_.empty()) let_go(*handles_.begin());
  if (options_.statistics) log_statistics();
  if (chart_ != nullptr) {
    const auto written = chart_->write(options_.graphviz);
    if (!written.ok()) log().error("{}", written.error().message);
  }
}

// --- data

Handle* RuntimeCore::add_data(std::string name, const Shape& shape, void* memory, std::size_t ld, const std::type_info& type,
                              const SourceLine& where) {
  check_thread("register data");
  if (shape.rows > 1 && shape.cols > 1 && ld < shape.rows && memory != nullptr)
    throw UsageError(fmt::format("data '{}' (at {}): its leading dimension {} is less than its {} rows", name, describe(where),
                                 ld, shape.rows));
  if (memory == nullptr && ld == SIZE_MAX)
    throw UsageError(fmt::format("data '{}' (at {}): a null pointer was given as its memory", name, describe(where)));
  auto handle = std::make_unique<Handle>();
  handle->name = std::move(name);
  handle->shape = shape;
  handle->type = &type;
  handle->runtime = this;
  handle->runtime_number.store(number_, std::memory_order_relaxed);
  handle->registered_at = where;
  if (memory_.node_count() > 1) handle->elsewhere = std::make_unique<Handle::Place[]>(memory_.node_count() - 1);
  if (memory != nullptr) {
    handle->home = Replica{memory, ld, false};
    handle->user_memory = true;
    handle->valid.store(1, std::memory_order_relaxed);
    handle->flow.has_value = true;
  }
  handle->number = data_count_++;
  if (trace_ != nullptr && !owner_of_) describe_data(*handle, UINT32_MAX);
  if (orphans_.size() > 64 && recorder_ == nullptr) free_orphans(false);
  handles_.insert(handle.get());
  if (recorder_ != nullptr && memory == nullptr) unwritten_.insert(handle.get());
  return handle.release();
}

void RuntimeCore::unregister(Handle& handle) {
  check_thread("unregister data");
  if (!owns(handle)) refuse_data("unregister", handle, SourceLine{});
  // It concerns what was submitted before, whatever is recorded now.
  struct Unrecorded {
    RuntimeCore& core;
    Recorder* recorder;
    ~Unrecorded() { core.recorder_ = recorder; }
  } unrecorded{*this, std::exchange(recorder_, nullptr)};
  // The value must be at home when the user's memory is all that remains of it; a poisoned or unwritten one has none.
  const bool wanted = handle.user_memory && handle.flow.has_value;
  if (!nobody_uses(handle) || (wanted && !handle.valid_on(0))) {
    ApplicationAccess access;
    begin_access(access, &handle, wanted ? AccessMode::read_write : AccessMode::write, handle.registered_at, nullptr);
    wait_granted(access);
    release(access);
  }
  // Nothing refers to the handle but the flow's own references, which go with it.
  let_go(&handle);
}

void RuntimeCore::let_go(Handle* handle) noexcept {
  if (end_of_data_.let_go) end_of_data_.let_go(*handle);
  tell_numa_node(*handle);
  memory_.free_replicas(*handle);
  handles_.erase(handle);
  unwritten_.erase(handle);
  std::erase(open_reductions_, handle);
  handle->flow.forget();
  {
    std::lock_guard guard(foreign_mutex_);
    handle->runtime = nullptr;
    handle->runtime_number.store(0, std::memory_order_relaxed);
  }
  handle->drop_reference();
}

void RuntimeCore::drop_owner(Handle* handle) noexcept {
  std::uint32_t owners = handle->owners.load(std::memory_order_acquire);
  while (owners > 1)
    if (handle->owners.compare_exchange_weak(owners, owners - 1, std::memory_order_acq_rel, std::memory_order_acquire)) return;
  // The last one: nobody can make further ones from it any more, but a recorded graph that takes it over.
  RuntimeCore* runtime = handle->runtime;
  if (runtime == nullptr) return handle->drop_reference();
  if (!runtime->may_submit()) {
    std::lock_guard guard(runtime->foreign_mutex_);
    if (handle->runtime == nullptr) return handle->drop_reference();
    runtime->foreign_orphans_.push_back(handle);
    return;
  }
  try {
    if (runtime->end_of_data_.abandoned) runtime->end_of_data_.abandoned(*handle);
  } catch (const std::exception& error) {
    runtime->log().error("while {} was let go: {}", handle->described(), error.what());
  }
  if (!handle->user_memory) {
    runtime->orphans_.push_back(handle);
    return;
  }
  try {
    runtime->unregister(*handle);
  } catch (const std::exception& error) {
    runtime->log().error("while {} was let go: {}", handle->described(), error.what());
  }
  handle->drop_reference();
}

bool RuntimeCore::nobody_uses(const Handle& handle) const noexcept {
  const FlowState& flow = handle.flow;
  return flow.kind != GroupKind::reducers && has_ended(flow.writer) &&
         std::all_of(flow.members.begin(), flow.members.end(), [](const TaskRef& member) { return has_ended(member); });
}

void RuntimeCore::free_orphans(bool all) {
  {
    std::lock_guard guard(foreign_mutex_);
    orphans_.insert(orphans_.end(), foreign_orphans_.begin(), foreign_orphans_.end());
    foreign_orphans_.clear();
  }
  // `unregister` may come back here through a wait: work on a list of our own.
  std::vector<Handle*> orphans = std::exchange(orphans_, {});
  std::erase_if(orphans, [&](Handle* handle) {
    if (!owns(*handle)) {
      handle->drop_reference();
      return true;
    }
    if (handle->user_memory && !all) {
      unregister(*handle);
      handle->drop_reference();
      return true;
    }
    if (!all && !nobody_uses(*handle)) return false;
    let_go(handle);
    handle->drop_reference();
    return true;
  });
  orphans_.insert(orphans_.end(), orphans.begin(), orphans.end());
}

void RuntimeCore::refuse_data(const char* action, const Handle& handle, const SourceLine& where) {
  throw UsageError(fmt::format("cannot {} {}{}: {}", action, handle.described(),
                               where ? fmt::format(" (at {})", describe(where)) : "",
                               handle.runtime == nullptr ? "it was unregistered before" : "it belongs to another runtime"));
}

// --- checks of what the user submits

void RuntimeCore::refuse_thread(const char* action) {
  if (owner_ == &thread_token_)
    throw UsageError(
        fmt::format("cannot {} from inside a kernel: a flow is submitted by the thread that made the runtime, outside "
                    "kernels; submit the following tasks after this one instead",
                    action));
  throw UsageError(
      fmt::format("cannot {} from this thread: a flow is sequential, and belongs to the thread that made the runtime", action));
}

void RuntimeCore::check_slowly(Task& task, unsigned access) {
  const AccessSlot& slot = task.accesses()[access];
  if (slot.handle() == nullptr) {
    const std::string who = describe(task);
    abandon(task);
    throw UsageError(fmt::format("{} names an empty Data object as its access {} ({}); give it data that was registered", who,
                                 access + 1, name_of(slot.mode())));
  }
  Handle& handle = *slot.handle();
  std::string mistake;
  if (handle.runtime == nullptr)
    mistake = fmt::format("uses {} after it was unregistered; register it again, or unregister it later", handle.described());
  else if (!owns(handle))
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

void RuntimeCore::merge_accesses(Task& task, unsigned first, unsigned second) {
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

void RuntimeCore::check_runnable(const Task& task) {
  if (task.codelet == nullptr || executor_.any_can_run(*task.codelet)) return;
  const std::string who = describe(task);
  abandon(const_cast<Task&>(task));
  throw UsageError(
      fmt::format("{} can run on no worker: none has a device of its implementations, or its can_run refuses all of them; "
                  "add an implementation for the CPU, or relax can_run",
                  who));
}

void RuntimeCore::adopt_slowly(const std::shared_ptr<CodeletCore>& codelet, std::size_t slot) {
  adopted_[slot] = codelet.get();
  for (const auto& known : codelets_)
    if (known == codelet) return;
  codelets_.push_back(codelet);
}

// --- tasks

Task& RuntimeCore::begin_copy(Task& model) {
  check_thread("submit");
  Task& task = take(*model.ops, model.access_count);
  task.codelet = model.codelet;
  task.kind = model.kind;
  task.restricted = model.restricted;
  task.priority = model.priority;
  task.where = model.where;
  for (unsigned i = 0; i < model.access_count; ++i)
    task.accesses()[i].set(model.accesses()[i].handle(), model.accesses()[i].mode());
  if (model.ops->copy_values != nullptr) model.ops->copy_values(model, task, true);
  if (model.extra != nullptr) {
    extra_of(task).name = model.extra->name;
    extra_of(task).callback = model.extra->callback;
  }
  return task;
}

void RuntimeCore::abandon(Task& task) noexcept {
  if (task.ops->destroy_values != nullptr) task.ops->destroy_values(task);
  if (task.recorded) return recorder_->abandon(task);
  pool_.recycle(&task);
}

void RuntimeCore::start_recording(Recorder* recorder) {
  check_thread("record a graph");
  if (recorder_ != nullptr) throw UsageError("cannot record a graph while another is recorded");
  close_reductions();
  recorder_ = recorder;
  for (Handle* handle : handles_)
    if (!handle->flow.has_value) unwritten_.insert(handle);
}

void RuntimeCore::stop_recording() noexcept {
  // What was recorded has not written anything yet.
  recorder_ = nullptr;
  for (Handle* handle : unwritten_) handle->flow.has_value = false;
  unwritten_.clear();
}

Task& RuntimeCore::take_recorded(const TaskOps& ops, unsigned access_count) { return recorder_->take(ops, access_count); }

TaskRef RuntimeCore::record_task(Task& task) { return recorder_->enter(task); }

TaskRef RuntimeCore::submit_after(Task& task, const TaskRef* predecessors, std::size_t count) {
  check(task);
  if (recorder_ != nullptr) return recorder_->enter(task, predecessors, count);
  enter(task);
  for (std::size_t i = 0; i < count; ++i) {
    flow_.depend(task, nullptr, predecessors[i], nullptr, true);
    // One that has ended tells nobody any more that it failed. Looked up after the edge was tried, so none is missed.
    FlowFailure* cause = executor_.failures().any() ? executor_.failures().cause_of(predecessors[i].id) : nullptr;
    if (cause == nullptr) continue;
    executor_.failures().note_cause(task.id, *cause);
    task.poisoned.store(true, std::memory_order_relaxed);
  }
  flow_.enter_accesses(task);
  const TaskRef ref{&task, task.id};
  leave(task);
  return ref;
}

TaskRef RuntimeCore::submit_serving(Task& task) {
  check(task);
  enter(task);
  flow_.enter_accesses(task);
  const TaskRef ref{&task, task.id};
  leave_unthrottled(task);
  return ref;
}

void RuntimeCore::settle_submission() {
  while (Task* join = submitter_origin_.joins) {
    submitter_origin_.joins = join->next;
    executor_.end(*join, submitter_origin_);
  }
  executor_.flush(submitter_origin_);
}

Task* RuntimeCore::make_join() {
  Task& task = take(kNoValues, 0);
  task.kind = TaskKind::join;
  task.successors.reset();
  ++submitted_;
  return &task;
}

Task* RuntimeCore::make_combine(Handle& handle) {
  std::erase(open_reductions_, &handle);
  Task& task = take(kCombine, 1);
  task.kind = TaskKind::kernel;
  task.codelet = combine_codelet().get();
  task.accesses()[0].set(&handle, AccessMode::read_write);
  task.successors.reset();
  ++submitted_;
  return &task;
}

void RuntimeCore::entered_ready(Task& task) { executor_.make_ready(task, submitter_origin_); }

Task& RuntimeCore::begin_event(std::string name, unsigned access_count) {
  check_thread("submit an event");
  if (recorder_ != nullptr) throw UsageError(fmt::format("event '{}': events cannot be recorded; submit it live", name));
  Task& task = take(kNoValues, access_count);
  task.kind = TaskKind::event;
  TaskExtra& extra = pool_.extra_of(task);
  extra.name = std::move(name);
  return task;
}

void RuntimeCore::submit_event(Task& task, bool with_release, EventTasks& event, const TaskRef& after) {
  check(task);
  enter(task);
  flow_.depend(task, nullptr, after, nullptr);
  flow_.enter_accesses(task);
  event = {{&task, task.id}, {}};
  if (with_release) {
    // The released half stands among the readers of the new version: the next writer waits for it, readers do not. The event
    // itself stands there too, since its two completions may come in any order.
    Task& released = take(kNoValues, 0);
    released.kind = TaskKind::event;
    pool_.extra_of(released).name = task.extra->name + " (released)";
    released.successors.reset();
    released.waits.store(1, std::memory_order_relaxed);  // by `complete`
    ++submitted_;
    event.released = {&released, released.id};
    flow_.trace().also(released);
    for (unsigned i = 0; i < task.access_count; ++i)
      if (makes_value(task.accesses()[i].mode()) && !task.accesses()[i].alias()) {
        FlowState& flow = task.accesses()[i].handle()->flow;
        flow.kind = GroupKind::readers;
        flow.members.push_back(event.readable);
        flow.members.push_back(event.released);
      }
  }
  leave(task);
}

void RuntimeCore::complete(const TaskRef& event, std::exception_ptr failure) {
  const ForeignCalls::Guard guard(completions_);
  Task& task = *event.task;
  if (failure != nullptr) {
    std::string what = "failed";
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {
    }
    executor_.poison(task, *executor_.failures().add(task.id, failure, describe(task) + ": " + what));
  } else if (FlowFailure* cause = executor_.why_cancelled(task)) {
    executor_.cancel(task, *cause);
  } else {
    for (unsigned i = 0; i < task.access_count; ++i) {
      Handle& handle = *task.accesses()[i].handle();
      if (!makes_value(task.accesses()[i].mode())) continue;
      Memory::note_written(handle, 0);
      handle.poison.clear();
    }
  }
  executor_.complete(task);
}

std::uint64_t RuntimeCore::expect_end(const TaskRef& event, std::int64_t in_ns) {
  constexpr unsigned kMostLooked = 64;
  std::optional<std::int32_t> priority;
  unsigned looked = 0;
  for (const Link* link = event.task->successors.peek(); link != nullptr && looked < kMostLooked; link = link->next, ++looked) {
    const Task& next = *link->task();
    if (next.kind == TaskKind::kernel && next.waits.load(std::memory_order_relaxed) == 1)
      priority = std::max(priority.value_or(next.priority), next.priority);
  }
  if (!priority) return 0;
  tell_expected();  // workers measure how long tasks take
  const std::int64_t now_ns = world_.clock->now_ns();
  return executor_.expected().add(*priority, now_ns + in_ns, now_ns);
}

void RuntimeCore::complete_failed(const TaskRef& event, FlowFailure& failure) {
  const ForeignCalls::Guard guard(completions_);
  executor_.poison(*event.task, failure);
  executor_.complete(*event.task);
}

void RuntimeCore::complete_read(const TaskRef& event) {
  const ForeignCalls::Guard guard(completions_);
  executor_.complete(*event.task);
}

void RuntimeCore::pass_over(const TaskRef& event) {
  const ForeignCalls::Guard guard(completions_);
  executor_.pass_over(*event.task);
  executor_.complete(*event.task);
}

void* RuntimeCore::keep_block(std::size_t bytes) {
  auto& block = kept_.emplace_back(base::allocate_large(bytes));
  if (block == nullptr) throw std::bad_alloc();
  return block.get();
}

void RuntimeCore::forget_tasks(const void* first, const void* last) noexcept {
  const auto inside = [&](const TaskRef& ref) {
    return !std::less<>()(static_cast<const void*>(ref.task), first) && std::less<>()(static_cast<const void*>(ref.task), last);
  };
  for (Handle* handle : handles_) {
    if (inside(handle->flow.writer)) handle->flow.writer = {};
    handle->flow.members.erase_if(inside);
  }
}

// --- the trace

void RuntimeCore::trace_to(trace::Session& session) {
  check_thread("trace");
  TANDEM_ASSERT(trace_ == nullptr);
  trace_ = &session;
  flow_.trace().set_session(&session);
  session.attach(flow_.trace().stream,
                 {.kind = trace::ActorKind::submitter, .name = "submitter", .numa_node = world_.workers[0].numa_node});
  for (unsigned i = 0; i < workers_.size(); ++i)
    session.attach(workers_[i]->trace(), {.kind = trace::ActorKind::worker,
                                          .name = fmt::format("worker {}", i),
                                          .index = static_cast<std::uint16_t>(i),
                                          .core = world_.workers[i].core,
                                          .numa_node = world_.workers[i].numa_node});
  executor_.set_trace(&session);
  memory_.set_trace(&session);
  for (const Handle* handle : handles_) describe_data(*handle, owner_of_ ? owner_of_(*handle) : UINT32_MAX);
}

/// When data goes: then it lies where whoever touched it first has put it, and nobody waits.
void RuntimeCore::tell_numa_node(const Handle& handle) noexcept {
  trace::Stream& stream = flow_.trace().stream;
  if (!stream.any_on<trace::Type::data_numa>() || !world_.numa_node_of || handle.home.pointer == nullptr) return;
  if (const auto node = world_.numa_node_of(handle.home.pointer, handle.shape.bytes()))
    stream.emit<trace::Type::data_numa>(handle.number, *node);
}

void RuntimeCore::describe_data(const Handle& handle, std::uint32_t owner) {
  if (trace_ == nullptr) return;
  trace_->describe({.data = handle.number,
                    .owner = owner,
                    .bytes = handle.shape.bytes(),
                    .rows = handle.shape.rows,
                    .cols = handle.shape.cols,
                    .name = handle.name,
                    .file = handle.registered_at.file != nullptr ? handle.registered_at.file : "",
                    .line = handle.registered_at.line});
}

std::uint32_t RuntimeCore::trace_replay(std::uint32_t graph, TaskId base, const std::vector<Task*>& tasks) {
  SubmissionTrace& trace = flow_.trace();
  if (!trace.stream.begin_instant<trace::Type::task_submitted, trace::Type::task_deps, trace::Type::task_replayed>())
    return graph;
  if (graph == 0) {
    graph = ++traced_graphs_;
    std::unordered_map<const Task*, std::uint32_t> index;
    for (std::size_t i = 0; i < tasks.size(); ++i) index.emplace(tasks[i], static_cast<std::uint32_t>(i));
    std::vector<std::vector<std::uint32_t>> predecessors(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const RecordedPart& part = *tasks[i]->recording;
      for (std::uint32_t s = 0; s < part.successor_count; ++s)
        predecessors[index.at(part.successors[s])].push_back(static_cast<std::uint32_t>(base + i));
    }
    for (std::size_t i = 0; i < tasks.size(); ++i)
      trace.describe(*tasks[i], base + i, predecessors[i]);
  }
  trace.stream.append<trace::Type::task_replayed>(graph, base, tasks.size());
  return graph;
}

StatisticsReport RuntimeCore::statistics() {
  StatisticsReport report;
  const std::int64_t now_ns = world_.clock->now_ns();
  for (const auto& worker : workers_) {
    report.workers.push_back(worker->report(now_ns));
    for (const auto& [codelet, durations] : worker->durations()) {
      auto at = std::find_if(report.codelets.begin(), report.codelets.end(),
                             [&](const CodeletReport& known) { return known.name == codelet->name; });
      if (at == report.codelets.end()) at = report.codelets.insert(at, {codelet->name, {}});
      at->durations.merge(durations);
    }
  }
  std::sort(report.codelets.begin(), report.codelets.end(),
            [](const CodeletReport& a, const CodeletReport& b) { return a.durations.total_ns() > b.durations.total_ns(); });
  return report;
}

std::vector<TimelineEvent> RuntimeCore::timeline() const {
  std::vector<TimelineEvent> events;
  for (const auto& worker : workers_) events.insert(events.end(), worker->timeline().begin(), worker->timeline().end());
  std::sort(events.begin(), events.end(), [](const TimelineEvent& a, const TimelineEvent& b) { return a.start_ns < b.start_ns; });
  return events;
}

void RuntimeCore::log_statistics() { fmt::print(stderr, "{}", statistics().table()); }

}  // namespace tandem::runtime
