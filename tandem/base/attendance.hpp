// tandem/base/attendance.hpp: what threads do for others while they have nothing to do themselves: a network wants to be polled.
#pragma once

#include <atomic>
#include <cstdint>

#include "tandem/base/parking.hpp"

namespace tandem::base {

/// Something that must be looked at again and again, and that knows a place to sleep where it wakes whoever looks.
///
/// One thread at a time attends to it: from `enter` until `leave` it calls `look` and `sleep`, and nobody else does. All else may
/// be called by any thread.
class IdleWork {
 public:
  enum class Found {
    something,
    nothing,
    nothing_for_long,  ///< it does not pay to go on looking: sleep
  };

  virtual ~IdleWork() = default;
  virtual void enter() = 0;
  /// Looks once, and does what there is to do.
  virtual Found look() = 0;
  /// Until there may be something to do, or `done(context)`, which whoever makes it true follows by `wake`, or `until_ns`. May
  /// return early.
  virtual void sleep(bool (*done)(void*), void* context, std::int64_t until_ns) = 0;
  /// The attendant has something else to do, perhaps for long.
  virtual void leave() = 0;
  virtual void wake() noexcept = 0;
  /// Does what was left to the calling thread (`left_to_this_thread`), or sees to it that somebody does.
  virtual void tend() = 0;

  /// Something is to be done for this, and the calling thread has promised to `tend` to it soon: then nobody need be woken.
  bool left_to_this_thread() const noexcept {
    if (promised_.to != this) return false;
    promised_.owes = true;
    return true;
  }

  /// While it lives, what the calling thread gives `work` to do is left to this thread; who `owes` something then calls `tend`.
  class Promise {
   public:
    explicit Promise(const IdleWork* work) noexcept { promised_ = {work, false}; }
    ~Promise() { promised_.to = nullptr; }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    bool owes() const noexcept { return promised_.owes; }
  };

 private:
  struct Promised {
    const IdleWork* to = nullptr;
    bool owes = false;
  };
  static constinit thread_local Promised promised_;
};

/// Who attends: at most one of many threads, and none any more once the work is taken away.
///
/// Protocol. A thread that uses the work counts itself `inside_` first and then reads `work_`; `set` writes `work_` and then
/// waits until nobody is inside, woken by the last one that goes out and finds the work gone. All are sequentially consistent,
/// so that either the thread finds the work gone or `set` waits for it, and either `set` finds nobody inside or the last one
/// wakes it. The attendant is inside for as long as it attends; `over` tells it to leave, and it is woken for that: either its
/// last look before it sleeps finds the work gone, or `wake` comes after it, which is IdleWork's promise.
///
/// `Atomic` and `Parker` are replaced by models where every order of steps is tried (tests/interleave).
template <template <class> class Atomic, class Parker>
class BasicAttendance {
 public:
  /// `work` is attended to from now on; null: none is, and nobody looks at the one before any more. By one thread at a time,
  /// which is not the attendant.
  void set(IdleWork* work) {
    IdleWork* const before = work_.exchange(nullptr);
    if (before != nullptr) before->wake();
    while (inside_.load() != 0) emptied_.park();
    work_.store(work);
  }
  /// For a look, or a promise: it may be taken away at any time.
  const IdleWork* work() const noexcept { return work_.load(std::memory_order_relaxed); }

  /// True: the calling thread attends from now on.
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
  // By the attendant.
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

  /// After what an attendant's `sleep` waits for was made true. Any thread.
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
  Parker emptied_;  ///< of who sets
};

class Attendance final : public BasicAttendance<std::atomic, Parker> {};

}  // namespace tandem::base
