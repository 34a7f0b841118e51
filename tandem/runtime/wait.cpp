// tandem/runtime/wait.cpp: how the submitting thread waits, works meanwhile, and learns of failures.
#include <fmt/format.h>

#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/flow_chart.hpp"

namespace tandem::runtime {

namespace {

constexpr TaskOps kNoValues{};

struct CountReached {
  const Executor* executor;
  std::uint64_t count;
};
bool count_reached(void* context) {
  const auto& reached = *static_cast<CountReached*>(context);
  return reached.executor->finished() >= reached.count;
}
bool access_granted(void* context) { return static_cast<ApplicationAccess*>(context)->granted.load(std::memory_order_acquire); }

}  // namespace

base::RunEnd RuntimeCore::run_until(bool (*done)(void*), void* context) {
  if (done(context)) return base::RunEnd::done;
  submitter_trace().emit<trace::Type::wait_began>();
  // Kernels run on this thread from here on: what they submit is refused.
  struct Working {
    RuntimeCore& core;
    explicit Working(RuntimeCore& c) : core(c) { core.submitter_.store(nullptr, std::memory_order_relaxed); }
    ~Working() {
      if (core.world_.caller_works) core.workers_[0]->leave(core.world_.driver->now_ns());
      core.submitter_.store(core.owner_, std::memory_order_relaxed);
      core.submitter_trace().emit<trace::Type::wait_ended>();
    }
  } working(*this);

  base::Driver& driver = *world_.driver;
  std::uint64_t seen = executor_.finished();
  bool told = false;
  for (;;) {
    const std::int64_t deadline_ns =
        options_.watchdog_ns > 0 ? driver.now_ns() + options_.watchdog_ns : base::kNever;
    const base::RunEnd end = driver.run_until(done, context, deadline_ns);
    if (end == base::RunEnd::done) return end;
    if (end == base::RunEnd::stuck) throw StuckError(explain_stuck());
    const std::uint64_t now_finished = executor_.finished();
    if (now_finished != seen) {
      seen = now_finished;
      told = false;
      continue;
    }
    if (told) continue;
    told = true;
    const std::string why = explain_stuck();
    log().error("no task has ended for {:.1f} s\n{}", static_cast<double>(options_.watchdog_ns) * 1e-9, why);
    if (options_.watchdog_throws) throw StuckError(why);
  }
}

void RuntimeCore::throttle() {
  if (throttle_postponed_) return;
  finished_seen_ = executor_.finished();
  if (submitted_ - finished_seen_ < options_.window + held_) return;
  // Down to three quarters of the window, so that submission goes on in runs.
  CountReached reached{&executor_, submitted_ - held_ - options_.window + (options_.window + 3) / 4};
  executor_.flush(submitter_origin_);
  executor_.wake_at(reached.count);
  submitter_trace().emit<trace::Type::submission_throttled>();
  try {
    run_until(&count_reached, &reached);
  } catch (...) {
    executor_.wake_at(UINT64_MAX);
    submitter_trace().emit<trace::Type::submission_resumed>();
    throw;
  }
  submitter_trace().emit<trace::Type::submission_resumed>();
  executor_.wake_at(UINT64_MAX);
  finished_seen_ = executor_.finished();
}

void RuntimeCore::wait_all() {
  drain();
  end_flow();
  if (const FailureLog::Report report = take_failures(); report.failure != nullptr) throw_failure(report);
}

void RuntimeCore::end_flow() {
  cancelled_at_.reset();
  const TaskId end = executor_.freeze_end();
  if (executor_.is_behind_end(UINT64_MAX)) cancelled_at_ = std::min(end, last_id_);
  executor_.reopen();
}

void RuntimeCore::drain() {
  check_thread("wait");
  if (recorder_ != nullptr) throw UsageError("cannot wait while a graph is recorded: nothing runs; wait after its replay");
  close_reductions();
  executor_.flush(submitter_origin_);
  CountReached reached{&executor_, submitted_};
  executor_.wake_at(submitted_);
  try {
    run_until(&count_reached, &reached);
  } catch (...) {
    executor_.wake_at(UINT64_MAX);
    throw;
  }
  executor_.wake_at(UINT64_MAX);
  finished_seen_ = submitted_;
  pool_.collect();
  free_orphans(false);
}

void RuntimeCore::close_reductions() {
  while (!open_reductions_.empty()) {
    Handle* handle = open_reductions_.back();
    open_reductions_.pop_back();
    flow_.close_reduction(*handle);
  }
  settle_submission();
}

FailureLog::Report RuntimeCore::take_failures() {
  return executor_.failures().take_report(last_id_);
}

void RuntimeCore::throw_failure(const FailureLog::Report& report) {
  log().error("{}; {} tasks failed in all, {} that depend on them were cancelled", report.failure->description, report.failed,
              report.cancelled);
  std::rethrow_exception(report.failure->exception);
}

ApplicationAccess& RuntimeCore::begin_access(ApplicationAccess& access, Handle* handle, AccessMode mode, const SourceLine& where,
                                             const TaskRef* after) {
  Task& task = take(kNoValues, handle != nullptr ? 1 : 0);
  task.kind = TaskKind::application;
  task.where = where;
  TaskExtra& extra = pool_.extra_of(task);
  extra.context = &access;
  extra.on_ready = [](Task& ready, void* context) {
    auto& granted = *static_cast<ApplicationAccess*>(context);
    static_cast<void>(ready);
    RuntimeCore& runtime = *granted.runtime;  // once granted, the access may be gone
    granted.granted.store(true, std::memory_order_release);
    runtime.executor_.caller().wake();
  };
  access.runtime = this;
  access.task = &task;
  access.handle = handle;
  if (handle != nullptr) {
    flow_.close_reduction(*handle);
    task.accesses()[0].set(handle, mode);
  }
  if (after != nullptr) submit_after(task, after, 1);
  else submit(task);
  ++held_;
  return access;
}

void RuntimeCore::wait_granted(ApplicationAccess& access) { run_until(&access_granted, &access); }

std::unique_ptr<ApplicationAccess> RuntimeCore::acquire(Handle& handle, AccessMode mode, const SourceLine& where) {
  check_thread("acquire data");
  if (!owns(handle)) refuse_data("acquire", handle, where);
  if (recorder_ != nullptr) throw UsageError(fmt::format("cannot acquire {} while a graph is recorded", handle.described()));
  auto access = std::make_unique<ApplicationAccess>();
  begin_access(*access, &handle, mode, where, nullptr);
  wait_granted(*access);
  FlowFailure* failure = sees_value(mode) ? handle.poison.settle() : nullptr;
  if (failure != nullptr) {
    release(*access);
    executor_.failures().tell(*failure, last_id_);
    std::rethrow_exception(failure->exception);
  }
  return access;
}

void RuntimeCore::release(ApplicationAccess& access) noexcept {
  Task& task = *access.task;
  if (access.handle != nullptr && makes_value(task.accesses()[0].mode())) {
    const bool sees = sees_value(task.accesses()[0].mode());
    if (!sees || !access.handle->poison.any()) {
      Memory::note_written(*access.handle, 0);
      access.handle->poison.clear();
    }
  }
  access.task = nullptr;
  --held_;
  executor_.complete(task);
}

void RuntimeCore::wait(Handle& handle) {
  if (!owns(handle)) refuse_data("wait for", handle, SourceLine{});
  const bool has_value = handle.flow.has_value;
  auto access = acquire(handle, has_value ? AccessMode::read_write : AccessMode::write, SourceLine{});
  // Nothing was written: only the tasks before were waited for.
  access->handle = nullptr;
  handle.flow.has_value = has_value;
  release(*access);
}

void RuntimeCore::wait(const TaskRef& task) {
  check_thread("wait");
  if (task.task == nullptr) return;
  ApplicationAccess access;
  begin_access(access, nullptr, AccessMode::read, SourceLine{}, &task);
  wait_granted(access);
  FlowFailure* failure = executor_.why_cancelled(*access.task);
  release(access);
  if (executor_.is_behind_end(task.id))
    throw FlowCancelled("a task that is waited for did not run: the flow was cancelled before it");
  if (failure == nullptr) return;
  executor_.failures().tell(*failure, last_id_);
  std::rethrow_exception(failure->exception);
}

void RuntimeCore::wait_quietly(const TaskRef& task) noexcept {
  // A kernel's failure is left for a wait that can throw it.
  try {
    ApplicationAccess access;
    begin_access(access, nullptr, AccessMode::read, SourceLine{}, &task);
    wait_granted(access);
    release(access);
  } catch (const std::exception& error) {
    log().error("while a recorded graph was let go: {}", error.what());
  }
}

}  // namespace tandem::runtime
