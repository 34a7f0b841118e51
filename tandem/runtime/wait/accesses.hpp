// tandem/runtime/wait/accesses.hpp: the application's own accesses to data, between tasks.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/submit/submission.hpp"
#include "tandem/runtime/wait/caller_loop.hpp"
#include "tandem/runtime/wait/held_accesses.hpp"

namespace tandem::runtime {

class Accesses;

/// An access of the application, while it lasts.
///
/// `state` decides between the thread that grants the access and the submitting thread, which may have left it (its
/// wait has thrown): both exchange it, and the second one frees the access. Both sides use acquire-release.
struct ApplicationAccess {
  enum class State : std::uint8_t { waiting, granted, left };
  Accesses* accesses = nullptr;
  Task* task = nullptr;
  Handle* handle = nullptr;  ///< null: the access only waits for its predecessors
  SourceLine where;          ///< line of `acquire`
  std::atomic<State> state{State::waiting};
};

/// Accesses of the application. Each is a node of the graph: it is granted when its predecessors have ended, and its
/// successors wait until it is released. So a wait for data or one task is an access that is released at once.
///
/// Threads: the submitting thread. The thread that ends the last predecessor grants an access.
class Accesses final : public DataUsers {
 public:
  Accesses(Submission& submission, CallerLoop& loop, Executor& executor, DataRegistry& data)
      : submission_(submission), loop_(loop), executor_(executor), data_(data) {}

  /// Waits until the application may use `handle`, whose value is then on `node`. Throws UsageError, also when the
  /// access would wait for another one that the application holds; StuckError; and the failure that made the value
  /// missing. `release` ends the access.
  std::unique_ptr<ApplicationAccess> acquire(Handle& handle, AccessMode mode, const SourceLine& where,
                                             NodeIndex node = 0);
  void release(ApplicationAccess& access) noexcept;

  /// A hint that brings the present value of `handle` to `node` once it exists. It reads the data, so the next writer
  /// waits for the copy. Nothing happens if there is no room or no value, or if the hint would change which tasks may
  /// run concurrently. Throws UsageError.
  void prefetch(Handle& handle, NodeIndex node, const SourceLine& where);

  /// Waits for the tasks submitted so far that use `handle`. Throws as `acquire`.
  void wait(Handle& handle);
  /// Waits for one task. Throws its failure, or FlowCancelled if it did not run for that reason.
  void wait(const TaskRef& task);
  /// Waits for `node`, and throws as `wait` for the task at `position` of the flow, which is the node or ends before
  /// it.
  void wait(const TaskRef& node, TaskId position);
  /// As `wait`, for destructors: a failure is left to a wait that can throw it. `what` completes "at the end of ..." in
  /// the log.
  void wait_quietly(const TaskRef& task, const char* what) noexcept;

  /// The accesses that the application holds now.
  const HeldAccesses& held() const noexcept { return held_; }

 private:
  // DataUsers
  void wait_for_users(Handle& handle, bool wanted) override;
  void forget(Handle& handle) noexcept override { submission_.forget(handle); }
  void note_dropped() noexcept override { submission_.note_passing_data(); }

  using Begun = std::unique_ptr<ApplicationAccess>;
  /// Submits an access to `handle`, if given, after `after`, if given, and waits until it is granted. If that throws,
  /// the access ends by itself once it is granted, and has written nothing.
  Begun begin(Handle* handle, AccessMode mode, const SourceLine& where, const TaskRef* after, NodeIndex node = 0);
  void submit(ApplicationAccess& access, AccessMode mode, const TaskRef* after, NodeIndex node);
  void wait_granted(ApplicationAccess& access, const TaskRef* after);
  void wait_beside_held(ApplicationAccess& access, const std::string& what);
  void leave(Begun access) noexcept;
  static void grant(Task& task, void* context);
  static void end_unused(ApplicationAccess* access) noexcept;
  void refuse_while_recording(const char* what) const;
  [[noreturn]] void throw_failure(FlowFailure& failure);

  Submission& submission_;
  CallerLoop& loop_;
  Executor& executor_;
  DataRegistry& data_;
  HeldAccesses held_;
};

}  // namespace tandem::runtime
