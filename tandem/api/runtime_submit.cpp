// tandem/api/runtime_submit.cpp: what the templates call to submit tasks, alone and on several ranks.
#include "tandem/api/runtime.hpp"

#include <vector>

#include "tandem/api/for_tasks_of.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem {

runtime::Task* Runtime::begin_task(const std::shared_ptr<runtime::CodeletCore>& codelet, const runtime::TaskOps& ops,
                                   unsigned accesses) {
  return core_->submission().begin_unless_over(codelet, ops, accesses);
}

TaskRef Runtime::enter_task(runtime::Task& task) { return core_->submission().submit(task); }

TaskRef Runtime::enter_task(runtime::Task& task, const TaskOptions& options) {
  check_rank(options, task);
  set_options(options, task);
  if (options.after.empty()) return core_->submission().submit(task);
  return core_->submission().submit_after(task, options.after.data(), options.after.size());
}

void Runtime::check_rank(const TaskOptions& options, runtime::Task& task) {
  if (__builtin_expect(options.on.value_or(0) == 0, 1)) return;
  const SourceLine where = task.where ? task.where : SourceLine(options.where);
  core_->submission().abandon(task);
  throw UsageError("a task (at " + runtime::describe(where) + ") is to run on rank " + std::to_string(*options.on) +
                   ", but there is one rank only, rank 0");
}

IterationScope Runtime::iteration(std::int64_t number) {
  core_->submission().thread().check("begin an iteration");
  if (!std::in_range<std::int32_t>(number))
    throw UsageError("iteration " + std::to_string(number) + " cannot be traced: iterations have numbers of 32 bits");
  return {core_->submission().flow().trace().iteration, static_cast<std::int32_t>(number)};
}

static bool has_facts(const TaskOptions& options) noexcept {
  return options.iteration || options.flops != 0 || options.tag != 0 || !options.parameters.empty();
}

/// Sets the options. An exception from copying the program's types leaves this, and the task is gone.
void Runtime::set_options(const TaskOptions& options, runtime::Task& task) try {
  task.priority = options.priority;
  if (!task.where) task.where = options.where;
  if (!options.name.empty()) core_->submission().extra_of(task).name = options.name;
  if (options.callback) core_->submission().extra_of(task).callback = options.callback;
  // An emulation sees the tag.
  if (has_facts(options) && (core_->submission().is_traced() || flow_->is_recording() || options.tag != 0)) {
    runtime::TaskFacts& facts = core_->submission().extra_of(task).facts;
    if (options.iteration) facts.iteration = *options.iteration;
    facts.flops = options.flops;
    facts.tag = options.tag;
    facts.parameters = options.parameters;
  }
} catch (...) {
  core_->submission().abandon(task);
  throw;
}

void Runtime::drop_unfilled(runtime::Task& task) noexcept { core_->submission().abandon_unfilled(task); }

bool Runtime::skip_in_flow(std::span<const dist::Use> uses, const SourceLine& where) {
  core_->submission().thread().check("submit");  // before the operation counts, since other ranks do not submit it
  return !__builtin_expect(several_->enters_all(), 0) && several_->try_skip(uses, where);
}

runtime::Task* Runtime::begin_in_flow(internal::FlowTask& call, const std::shared_ptr<runtime::CodeletCore>& codelet,
                                      const runtime::TaskOps& ops) {
  core_->submission().thread().check("submit");
  const bool placed = (call.options != nullptr && call.options->on) || __builtin_expect(several_->enters_all(), 0);
  if (!placed && !call.looked && several_->try_skip(call.uses, call.wish.where)) return nullptr;
  if (!several_->is_recording()) core_->submission().make_room();  // before other ranks count on the task
  if (several_->is_over()) return nullptr;
  core_->submission().adopt(codelet);
  call.wish.codelet = codelet.get();
  if (call.options != nullptr) {
    call.wish.on = call.options->on;
    call.wish.priority = call.options->priority;
    call.wish.after = call.options->after;
  }
  if (!several_->begin_task(call.uses, call.wish, call.reduces)) return nullptr;
  return &core_->submission().begin(codelet, ops, base::narrow<unsigned>(call.uses.size()));
}

TaskRef Runtime::enter_in_flow(internal::FlowTask& call, runtime::Task& task) {
  // With `reduce`, this rank's share has taken the place of the data.
  if (call.reduces)
    for (unsigned i = 0; i < call.uses.size(); ++i) task.accesses()[i].rebind(call.uses[i].handle);
  if (several_->is_recording()) core_->submission().keep_iteration(task);
  if (call.options != nullptr) set_options(*call.options, task);
  return several_->submit(task, call.uses, call.wish);
}

void Runtime::skip_tasks(std::uint64_t tasks) {
  core_->submission().thread().check("skip tasks");
  flow_->skip(tasks);
}

bool internal::checks_pruning(Runtime& rt) noexcept { return rt.flow()->checks_pruning(); }

void internal::submit_skipped(Runtime& rt, std::size_t i, const std::function<void()>& submit) {
  const dist::Flow::SkipCheck skipping(*rt.flow(), i);
  submit();
  skipping.check_count();
}

void internal::check_access_count(const std::string& codelet, std::size_t count, const SourceLine& where) {
  if (count <= runtime::kMaxAccesses) return;
  throw UsageError("task '" + codelet + "' (at " + runtime::describe(where) + ") names " + std::to_string(count) +
                   " data, and a task may name " + std::to_string(runtime::kMaxAccesses) +
                   " at most; use several tasks, or larger data");
}

std::size_t Runtime::grain_of(std::size_t count, const RangeOptions& options) const noexcept {
  if (options.grain != 0) return options.grain;
  // The chunks depend on the most workers of a rank, since every rank must submit the same tasks.
  return std::max<std::size_t>(1, count / (std::size_t{8} * flow_->most_workers()));
}

std::size_t Runtime::chunk_count(std::size_t begin, std::size_t end, const RangeOptions& options) const noexcept {
  if (begin >= end) return 0;
  const std::size_t grain = grain_of(end - begin, options);
  return (end - begin) / grain + ((end - begin) % grain != 0 ? 1 : 0);
}

}  // namespace tandem
