// tandem/base/attendance.hpp: which of several idle threads polls the network.
#pragma once

#include <atomic>
#include <cstdint>

#include "tandem/base/parking.hpp"

namespace tandem::base {

class FiberLocal;

/// Work to be polled, such as a network, with a place to sleep that wakes the polling thread.
///
/// One thread at a time, the attendant, polls it: only this thread calls `look` and `sleep`, between `enter` and
/// `leave`. Any thread may call the other functions.
class IdleWork {
 public:
  enum class Found {
    something,
    nothing,
    nothing_for_long,  ///< further polling does not pay: sleep
  };

  virtual ~IdleWork() = default;
  virtual void enter() = 0;
  /// Polls once, and does the available work.
  virtual Found look() = 0;
  /// Sleeps until there may be something to do, until `done(context)`, or until `until_ns`. A thread that makes `done`
  /// true then calls `wake`. May return early.
  virtual void sleep(bool (*done)(void*), void* context, std::int64_t until_ns) = 0;
  /// Called when the attendant has other work, perhaps for long.
  virtual void leave() = 0;
  virtual void wake() noexcept = 0;
  /// Does work that was left to the calling thread (`left_to_this_thread`), or makes another thread do it.
  virtual void tend() = 0;

  /// Called when there is work. True: the calling thread has promised to call `tend` soon, so no thread need be woken.
  bool left_to_this_thread() const noexcept {
    if (promised_.to != this) return false;
    promised_.pending = true;
    return true;
  }

  /// While it lives, work that the calling thread gives to `work` is left to this thread. If there was some
  /// (`pending`), the thread calls `tend` afterwards.
  class Promise {
   public:
    explicit Promise(const IdleWork* work) noexcept { promised_ = {work, false}; }
    ~Promise() { promised_.to = nullptr; }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    bool pending() const noexcept { return promised_.pending; }
  };

 private:
  struct Promised {
    const IdleWork* to = nullptr;
    bool pending = false;
  };
  static constinit thread_local Promised promised_;
  static const FiberLocal own_promise_;
};

/// Decides which thread is the attendant: at most one of many, and none once the work is removed.
///
/// Protocol. A thread that uses the work first adds itself to `inside_`, then reads `work_`. `set` writes `work_`, then
/// waits until no thread is inside; the last thread that leaves and finds the work removed wakes it. All are
/// sequentially consistent: either the thread finds the work removed or `set` waits for it, and either `set` finds no
/// thread inside or the last one wakes it. The attendant is inside for as long as it polls. `over` says that it must
/// leave, and it is woken for that: either its last check before it sleeps finds the work removed, or `wake` comes
/// after that check, which `IdleWork` guarantees.
///
/// `Atomic` and `Parker` are replaced by models where every order of steps is tried (tests/interleave).
template <template <class> class Atomic, class Parker>
class BasicAttendance {
 public:
  /// Makes `work` the polled work from now on; null: none. No thread uses the former work after this call. Called by
  /// one thread at a time, which is not the attendant.
  void set(IdleWork* work) {
    IdleWork* const before = work_.exchange(nullptr);
    if (before != nullptr) before->wake();
    while (inside_.load() != 0) emptied_.park();
    work_.store(work);
  }
  /// For a promise: the work may be removed at any time.
  const IdleWork* work() const noexcept { return work_.load(std::memory_order_relaxed); }

  /// Enters. True: the calling thread is the attendant from now on.
  bool enter() {
    if (work() == nullptr || taken_.load(std::memory_order_relaxed)) return false;
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    IdleWork* const work = come_in();
    if (work == nullptr) {
      taken_.store(false, std::memory_order_release);
      return false;
    }
    attended_ = work;
    work->enter();
    return true;
  }
  // The functions down to `leave` are called by the attendant. `over`: it must leave.
  bool over() const noexcept { return work() == nullptr; }
  IdleWork::Found look() { return attended_->look(); }
  void sleep(bool (*done)(void*), void* context, std::int64_t until_ns) {
    struct Ends {
      const BasicAttendance& attendance;
      bool (*done)(void*);
      void* context;
    } ends{*this, done, context};
    attended_->sleep(
        [](void* what) {
          const auto& either = *static_cast<Ends*>(what);
          return either.done(either.context) || either.attendance.work_.load() == nullptr;
        },
        &ends, until_ns);
  }
  void leave() {
    attended_->leave();
    attended_ = nullptr;
    taken_.store(false, std::memory_order_release);
    go_out();
  }

  /// Called after the `done` of an attendant's `sleep` was made true. Any thread.
  void wake() noexcept {
    IdleWork* const work = come_in();
    if (work == nullptr) return;  // `set` wakes the sleeper
    work->wake();
    go_out();
  }
  void tend() {
    IdleWork* const work = come_in();
    if (work == nullptr) return;
    work->tend();
    go_out();
  }

 private:
  IdleWork* come_in() noexcept {
    inside_.fetch_add(1);
    IdleWork* const work = work_.load();
    if (work == nullptr) go_out();
    return work;
  }
  void go_out() noexcept {
    if (inside_.fetch_sub(1) == 1 && work_.load() == nullptr) emptied_.unpark();
  }

  Atomic<IdleWork*> work_{nullptr};
  IdleWork* attended_ = nullptr;  ///< the attendant's
  Atomic<bool> taken_{false};
  Atomic<std::uint32_t> inside_{0};
  Parker emptied_;  ///< where `set` waits
};

class Attendance final : public BasicAttendance<std::atomic, Parker> {};

}  // namespace tandem::base
