// tandem/runtime/wait/waits.cpp: waits for the whole flow.
#include "tandem/runtime/wait/waits.hpp"

#include <algorithm>
#include <exception>

#include "tandem/base/assert.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

void Waits::wait_all() {
  drain();
  end_flow();
  if (const FailureLog::Report report = take_failures(); report.failure != nullptr) throw_failure(report);
}

void Waits::end_flow() {
  cancelled_at_.reset();
  const TaskId end = executor_.freeze_end();
  if (executor_.is_behind_end(UINT64_MAX)) cancelled_at_ = std::min(end, submission_.last_id());
  executor_.reopen();
}

void Waits::drain() {
  submission_.thread().check("wait");
  if (submission_.recorder() != nullptr)
    throw UsageError("cannot wait while a graph is recorded: nothing runs; wait after its replay");
  submission_.close_reductions();
  const std::uint64_t submitted = submission_.submitted();
  if (held_.any()) [[unlikely]] {
    wait_for_others(submitted);
    throw StuckError("cannot wait for all tasks: only this thread can release an access that the application holds; " +
                     loop_.explain_stuck());
  }
  loop_.wait_until_ended(submitted);
  submission_.window().note_finished(submitted);
  submission_.pool().collect();
  data_.free_unused();
  executor_.failures().forget_unnamed(data_.count(), [&](const auto& visit) {
    data_.for_each([&](const Handle& handle) { visit(handle.poison.named()); });
  });
  TANDEM_AUDIT_ASSERT(submission_.check_invariants());
  TANDEM_AUDIT_ASSERT(data_.check_invariants(submission_.last_id()));
  TANDEM_AUDIT_ASSERT(executor_.check_invariants());
}

/// Waits until all of `submitted` tasks have ended, except those that wait for held accesses or memory that these keep.
void Waits::wait_for_others(std::uint64_t submitted) {
  Room& room = executor_.memory().room();
  std::uint64_t seen = 0;
  do {
    seen = room.blocks().load(std::memory_order_acquire);
    loop_.wait_until_ended_unless(submitted - held_.blocked_count(room.blocked()), room.blocks(), seen);
  } while (room.blocks().load(std::memory_order_acquire) != seen);
}

void Waits::throw_failure(const FailureLog::Report& report) {
  log_.error("{}", report.text());
  std::rethrow_exception(report.failure->exception);
}

}  // namespace tandem::runtime
