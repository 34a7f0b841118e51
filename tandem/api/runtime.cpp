// tandem/api/runtime.cpp: waits, the end of a flow, and what is known of a runtime.
#include "tandem/api/runtime.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem {

void Runtime::wait() {
  core_->submission().thread().check("wait");
  if (is_paused()) throw UsageError("wait() is for tasks that run, and the workers are paused: call resume() first");
  say_once_that_nobody_owns_data();
  flow_->wait();
  if (company_ == nullptr) return;
  constexpr std::int64_t look_every_ns = 200'000'000;
  const int strangers = company_->busy_others(resources_->clock->now_ns(), look_every_ns);
  if (strangers == 0) return;
  resources_->log->warn(
      "{} threads that do not belong to Tandem compute beside its workers; if they belong to the BLAS, start the "
      "program with "
      "OMP_NUM_THREADS=1, or set the library to one thread per call",
      strangers);
  company_.reset();
}

void Runtime::wait(const TaskRef& task) {
  check_not_recording("wait for a task");
  core_->accesses().wait(task);
}

void Runtime::wait_for_data(runtime::Handle* handle) {
  check_not_recording("wait for data");
  internal::about_to_use(handle, false);
  check_divided_behind_end(named(handle, "wait for"), AccessMode::read);
  core_->accesses().wait(*handle);
}

/// Warns once that no data has an owner. Such data is a copy for each rank; a program with no other data either forgot
/// the owners, or sends values itself.
void Runtime::say_once_that_nobody_owns_data() {
  if (!std::exchange(ownerless_warning_due_, false)) return;
  if (rank() != 0 || owned_data_ > 0 || data_count_ == 0 || flow_statistics().tasks == 0) return;
  resources_->log->warn(
      "no data has an owner, so each of the {} ranks has its own copy of all data and runs every task; to share the "
      "work, register "
      "data with DataOptions{{.owner = rank}}",
      size());
}

unsigned Runtime::worker_count() const noexcept { return static_cast<unsigned>(core_->world().machine.workers.size()); }

bool Runtime::is_simulated() const noexcept {
  const runtime::VirtualPlace* const place = runtime::VirtualPlace::current();
  return place != nullptr && !place->computes();
}

std::string Runtime::option(std::string_view name) const {
  for (const base::ConfigEntry& entry : config_->entries())
    if (entry.option->name == name) return entry.value_text();
  throw UsageError("there is no option '" + std::string(name) + "'; `tandem config` lists them");
}

StatisticsReport Runtime::statistics() { return core_->statistics(); }
std::vector<TimelineEvent> Runtime::timeline() const { return core_->workers().timeline(); }
void Runtime::pause() { core_->pause(); }
void Runtime::resume() { core_->resume(); }
bool Runtime::is_paused() const noexcept { return core_->workers().are_paused(); }

void Runtime::wait_for(const std::vector<TaskRef>& tasks) {
  std::exception_ptr failure;
  for (const TaskRef& task : tasks) {
    try {
      core_->accesses().wait(task);
    } catch (const StuckError&) {
      throw;  // the others would not end either
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  const bool ignored = std::any_of(tasks.begin(), tasks.end(),
                                   [](const TaskRef& task) { return task.task == nullptr; });
  if (failure == nullptr && ignored && is_over())
    throw FlowCancelled("tasks that are waited for did not run: the flow was cancelled before them");
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace tandem
