// tandem/runtime/sched/queues/idle_set.hpp: which workers sleep, and which one a push wakes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/base/driver.hpp"

namespace tandem::runtime {

/// The workers that have announced that they will sleep. `sharing` workers take tasks from each other's queues;
/// `pinned_only` further workers run only tasks meant for them, so only `wake` wakes them and `wake_one` does not.
///
/// Sleeping. A worker that found nothing announces itself (`announce`) and then looks once more wherever tasks may be.
/// A thread that puts a task somewhere calls `wake_one` or `wake` afterwards. Both sides write, then read, and all four
/// steps are sequentially consistent: at least one sees the other, so a task and a sleeper do not miss each other. The
/// flag of a worker says that it sleeps, and the exchange that lowers it decides which thread wakes it. The count of
/// flags is a hint that spares pushes a scan. It may lag: an announcer raises its flag first and the count second, and
/// looks for tasks after both.
///
/// Waking. One sleeper is woken at a time: `waking_` says that one is on its way, or is being looked for. The chosen
/// worker lowers `waking_` in `withdraw`, whose result says so, and then looks at all queues. So it finds what was
/// pushed meanwhile by threads that saw the mark. It must wake another worker unless it has looked after an `announce`
/// and found nothing at all: when it takes a task and sees more it calls `wake_one`, and when it leaves instead it does
/// the same. A thread that finds no sleeper lowers the mark and then looks once more: a worker may have announced
/// itself after the scan passed it, and another push may have relied on the mark. A worker that `wake` called lowers
/// the mark too, though it may be meant for another: then at worst one more is woken.
///
/// Near sleepers. A worker that has announced itself may stay awake for a while (`is_near`). Waking it costs no system
/// call, so the last such worker is tried first. `nearest_` is a hint, written and read without order: whichever worker
/// it names, `wake` decides as for any other.
///
/// Cost: a push while no worker sleeps is one load.
template <template <class> class Atomic = std::atomic>
class IdleSet {
 public:
  IdleSet(unsigned sharing, unsigned pinned_only)
      : sharing_(sharing),
        wakers_(sharing + pinned_only, nullptr),
        nearest_(sharing - 1),
        idle_(std::make_unique<Atomic<bool>[]>(sharing + pinned_only)) {}

  /// Sets the waker of a worker, before any worker announces itself.
  void set_waker(unsigned worker, base::Waker* waker) noexcept { wakers_[worker] = waker; }
  base::Waker& waker(unsigned worker) const noexcept { return *wakers_[worker]; }

  /// Announces that `worker`, which calls this, looks for tasks once more and then sleeps. `is_near`: it stays awake at
  /// first; only for a worker that shares tasks.
  void announce(unsigned worker, bool is_near = false) noexcept {
    if (is_near) nearest_.store(worker, std::memory_order_relaxed);
    idle_[worker].store(true, std::memory_order_seq_cst);
    if (worker < sharing_) idle_count_.fetch_add(1, std::memory_order_seq_cst);
  }

  /// Called by `worker` after its sleep or its last look. True: another thread had chosen it, and it must look for
  /// work, or pass the wake-up on.
  bool withdraw(unsigned worker) noexcept {
    if (lower(worker)) return false;
    waking_.store(false, std::memory_order_seq_cst);
    return true;
  }

  /// Wakes `worker` if it sleeps. Any thread, after it has put a task where only `worker` looks.
  bool wake(unsigned worker) noexcept {
    if (!lower(worker)) return false;
    wakers_[worker]->wake();
    return true;
  }

  /// As `wake`, for one of several workers that look there: costs one load when it does not sleep.
  bool wake_if_idle(unsigned worker) noexcept { return idle_[worker].load(std::memory_order_seq_cst) && wake(worker); }

  /// Wakes a worker that shares tasks, unless none sleeps or one is on its way. Any thread, after it has put a task.
  void wake_one() noexcept {
    do {
      if (idle_count_.load(std::memory_order_seq_cst) == 0) return;
      if (waking_.exchange(true, std::memory_order_seq_cst)) return;
      if (const unsigned near = nearest_.load(std::memory_order_relaxed);
          idle_[near].load(std::memory_order_relaxed) && wake(near))
        return;
      for (unsigned worker = sharing_; worker-- > 0;)
        if (idle_[worker].load(std::memory_order_relaxed) && wake(worker)) return;  // a stale "no" is found below
      waking_.store(false, std::memory_order_seq_cst);
    } while (any_flag());
  }

  /// Whether some worker that shares tasks sleeps. A hint.
  bool any() const noexcept { return idle_count_.load(std::memory_order_seq_cst) != 0; }
  /// Number of sleeping workers that share tasks. A hint.
  const Atomic<std::uint32_t>& count() const noexcept { return idle_count_; }

 private:
  bool lower(unsigned worker) noexcept {
    if (!idle_[worker].exchange(false, std::memory_order_seq_cst)) return false;
    if (worker < sharing_) idle_count_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }

  bool any_flag() const noexcept {
    for (unsigned worker = sharing_; worker-- > 0;)
      if (idle_[worker].load(std::memory_order_seq_cst)) return true;
    return false;
  }

  const unsigned sharing_;
  std::vector<base::Waker*> wakers_;
  alignas(64) Atomic<bool> waking_{false};
  Atomic<std::uint32_t> idle_count_{0};
  Atomic<std::uint32_t> nearest_;  ///< a near worker that shares tasks; at first the one with which a scan begins
  std::unique_ptr<Atomic<bool>[]> idle_;  ///< flag of each worker
};

}  // namespace tandem::runtime
