// tandem/base/driver.hpp: objects with a `step` function, and their callers: threads, or one event loop.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace tandem::base {

class Attendance;  // attendance.hpp

/// Returned by a `step` that needs no further step until it is woken.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Something that advances in steps and never blocks: a worker, a progress engine, a flusher.
class Steppable {
 public:
  virtual ~Steppable() = default;
  /// Does some work. Returns the time of the next step: not after `now_ns` means at once, `kNever` means when woken. A
  /// step that returns `kNever` has already arranged that the thread that brings work wakes it.
  virtual std::int64_t step(std::int64_t now_ns) = 0;
  /// The attendance of the network that its thread polls, where the thread sleeps between steps; null: it sleeps in its
  /// own parker.
  virtual Attendance* attends() noexcept { return nullptr; }
  /// After a step that names a time for the next one: whether its thread stays awake until then, or until it is woken.
  virtual bool waits_awake() const noexcept { return false; }
};

/// Wakes a steppable. `wake` may be called from any thread, at any time; early wake-ups are not lost.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() noexcept = 0;
};

/// Why `run_until` returned.
enum class RunEnd {
  done,       ///< the condition holds
  timed_out,  ///< the deadline came first
  stuck,      ///< event loop only: all sleep, so the condition can never hold
};

/// Drives steppables. The one added by `add_caller` is stepped inside `run_until` only, on the thread that calls it;
/// those added by `add` are stepped by the driver. One thread owns a driver and calls everything but wakers, which live
/// as long as the driver.
class Driver {
 public:
  struct Placement {
    int core = -1;     ///< index of the core to be bound to; -1: anywhere
    std::string name;  ///< of the thread
  };

  virtual ~Driver() = default;
  virtual Waker& add(Steppable& steppable, const Placement& placement) = 0;
  virtual Waker& add_caller(Steppable& steppable) = 0;
  /// Stops stepping everything, and returns when no step runs any more.
  virtual void stop() = 0;
  /// Steps the caller's steppable until `done(context)`. The thread that makes it true must then wake the caller.
  virtual RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) = 0;
  virtual std::int64_t now_ns() = 0;
};

}  // namespace tandem::base
