// tests/interleave/idle_set_interleave_test.cpp: pushes and workers that fall asleep, under every order of their steps.
#include "tandem/runtime/sched/queues/idle_set.hpp"

#include <utility>

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::idle_set_interleave_test {
namespace {

constexpr bool is_set(bool value) noexcept { return value; }

/// Where a model worker sleeps: what base::Parker does, in one step each.
struct Sleeper final : base::Waker {
  ModelAtomic<bool> permit{false};
  void wake() noexcept override { permit.store(true, std::memory_order_seq_cst); }
  void sleep() noexcept {
    permit.await<is_set>();
    permit.store(false, std::memory_order_seq_cst);
  }
};

/// Workers that do what runtime::Worker does, with a counter for their queue, and threads that push tasks.
template <class Idle, unsigned Workers>
struct Flow : Program {
  Idle idle{Workers, 0};
  std::array<Sleeper, Workers> sleepers;
  ModelAtomic<int> queue{0};
  int done = 0;

  Flow() {
    for (unsigned w = 0; w < Workers; ++w) idle.set_waker(w, &sleepers[w]);
  }
  void push() {
    queue.fetch_add(1, std::memory_order_seq_cst);
    idle.wake_one();
  }
  /// May find nothing for no reason, as a worker that meets a thief at a queue.
  bool pop() {
    int seen = queue.load(std::memory_order_relaxed);
    return seen > 0 &&
           queue.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  bool looks_empty() const { return queue.load(std::memory_order_seq_cst) == 0; }

  /// `RemembersWake`: a worker that was woken, pops in vain and finds more at its last look still has to wake another.
  template <bool RemembersWake = true, class Run>
  void work(unsigned worker, int most_tasks, Run run) {
    bool woken = false;
    while (most_tasks > 0) {
      if (pop()) {
        if (std::exchange(woken, false) && idle.any() && !looks_empty()) idle.wake_one();
        --most_tasks;
        run();
        continue;
      }
      idle.announce(worker);
      if (looks_empty()) {
        woken = false;
        sleepers[worker].sleep();
      }
      woken = idle.withdraw(worker) || (RemembersWake && woken);
    }
  }
  bool may_end_asleep() const override { return true; }
};

/// `Pushers` threads push a task each, and `Workers` run them. In the end everybody may sleep, but no task may be left.
template <class Idle, unsigned Pushers, unsigned Workers, unsigned Each = 1>
struct NothingIsLeft : Flow<Idle, Workers> {
  unsigned threads() const override { return Pushers + Workers; }
  void run(unsigned thread) override {
    if (thread >= Pushers) return this->work(thread - Pushers, 100, [this] { ++this->done; });
    for (unsigned i = 0; i < Each; ++i) this->push();
  }
  void check() override { require(this->done == Pushers * Each, "a task is left and all workers sleep"); }
};

using runtime::IdleSet;

TEST(IdleSetUnderEveryOrder, APushAndASleeperDoNotMissEachOther) {
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 1, 1>>({.store_buffers = true});
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 1, 1, 2>>();
}

TEST(IdleSetUnderEveryOrder, TwoPushesAndASleeperDoNotMissEachOther) {
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 2, 1>>({.most_failures = 0});
}

TEST(IdleSetUnderEveryOrder, APushAndTwoSleepersDoNotMissEachOther) {
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 1, 2>>({.most_failures = 0});
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 1, 2>>({.most_preemptions = 3});
}

TEST(IdleSetUnderEveryOrder, TwoPushesAndTwoSleepersDoNotMissEachOther) {
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 2, 2>>({.most_preemptions = 3, .most_failures = 0});
  expect_holds<NothingIsLeft<IdleSet<ModelAtomic>, 1, 2, 2>>({.most_preemptions = 3});
}

/// Its workers wait awake.
struct NearIdleSet : IdleSet<ModelAtomic> {
  using IdleSet::IdleSet;
  void announce(unsigned worker) noexcept { IdleSet::announce(worker, true); }
};

TEST(IdleSetUnderEveryOrder, AHintWhomToWakeLosesNothing) {
  expect_holds<NothingIsLeft<NearIdleSet, 1, 1>>({.store_buffers = true});
  expect_holds<NothingIsLeft<NearIdleSet, 1, 2>>({.most_preemptions = 3});
  expect_holds<NothingIsLeft<NearIdleSet, 2, 2>>({.most_preemptions = 3, .most_failures = 0});
  expect_holds<NothingIsLeft<NearIdleSet, 1, 2, 2>>({.most_preemptions = 3, .most_failures = 0});
}

/// Two tasks that wait for each other to run: both workers must be woken, however the two pushes and the wake-ups meet.
template <unsigned Pushers, bool RemembersWake = true>
struct TwoTasksRunAtOnce : Flow<IdleSet<ModelAtomic>, 2> {
  ModelAtomic<int> started{0};
  static constexpr bool both(int count) noexcept { return count == 2; }
  unsigned threads() const override { return 2 + Pushers; }
  void run(unsigned thread) override {
    if (thread >= 2) {
      push();
      if (Pushers == 1) push();
      return;
    }
    work<RemembersWake>(thread, 1, [this] {
      started.fetch_add(1, std::memory_order_relaxed);
      started.await<both>();
      ++done;
    });
  }
  bool may_end_asleep() const override { return false; }
  void check() override { require(done == 2, "not both tasks ran"); }
};

TEST(IdleSetUnderEveryOrder, WakeUpsCascadeUntilAllTasksRun) {
  expect_holds<TwoTasksRunAtOnce<1>>({.most_preemptions = 4, .most_failures = 0});
  expect_holds<TwoTasksRunAtOnce<1>>({.most_preemptions = 3});
  expect_holds<TwoTasksRunAtOnce<2>>({.most_preemptions = 3, .most_failures = 0});
  expect_found<TwoTasksRunAtOnce<1, false>>("deadlock", {.most_preemptions = 4});
}

/// The last worker is the caller's: when it is woken it leaves, its wait being over, and passes the wake-up on or does
/// not.
template <bool PassesOn>
struct WokenWorkerLeaves : Flow<IdleSet<ModelAtomic>, 2> {
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 2) return push();
    if (thread == 0) return work(0, 100, [this] { ++done; });
    idle.announce(1);
    if (looks_empty()) sleepers[1].sleep();
    if (idle.withdraw(1) && PassesOn && !looks_empty()) idle.wake_one();
  }
  void check() override { require(done == 1, "a task is left and all workers sleep"); }
};

TEST(IdleSetUnderEveryOrder, AWokenWorkerThatLeavesPassesTheWakeUpOn) {
  expect_holds<WokenWorkerLeaves<true>>({.most_preemptions = 4});
  expect_found<WokenWorkerLeaves<false>>("a task is left");
}

/// What the worker that polls the network does about the wake-ups of what it receives (runtime::ReadyQueues::Promise).
enum class Promise {
  looks_itself,  ///< it wakes nobody, and counts as woken
  hands_on,      ///< and wakes another one at once, that polls meanwhile
  forgets,       ///< it wakes nobody, and goes on as before
  cannot_take,   ///< it wakes nobody, though it takes no such task itself
};

/// Worker 0 receives two tasks in one look at the network, and puts them one by one, when it has found nothing else.
/// Without pushers they wait for each other to run: the other worker must be woken, however that meets its falling
/// asleep. With pushers, of a task each, none may be left.
template <Promise What, unsigned Pushers>
struct ReceivedTasksRun : Flow<IdleSet<ModelAtomic>, 2> {
  ModelAtomic<int> started{0};
  static constexpr bool both(int count) noexcept { return count >= 2; }
  unsigned threads() const override { return 2 + Pushers; }
  void run_one() {
    if constexpr (Pushers == 0) {
      started.fetch_add(1, std::memory_order_relaxed);
      started.await<both>();
    }
    ++done;
  }
  void attend() {
    bool woken = false, received = false;
    for (;;) {
      if (What != Promise::cannot_take && pop()) {
        if (std::exchange(woken, false) && idle.any() && !looks_empty()) idle.wake_one();
        run_one();
        continue;
      }
      if (!std::exchange(received, true)) {
        for (int message = 0; message < 2; ++message) queue.fetch_add(1, std::memory_order_seq_cst);
        woken = What != Promise::forgets;
        if (What == Promise::hands_on && !looks_empty()) idle.wake_one();
        continue;
      }
      idle.announce(0);
      if (What == Promise::cannot_take || looks_empty()) {
        woken = false;
        sleepers[0].sleep();
      }
      woken = idle.withdraw(0) || woken;
    }
  }
  void run(unsigned thread) override {
    if (thread == 0) attend();
    else if (thread == 1) work(1, 100, [this] { run_one(); });
    else push();
  }
  void check() override { require(done == 2 + static_cast<int>(Pushers), "a task is left and all workers sleep"); }
};

TEST(IdleSetUnderEveryOrder, WhatAWorkerReceivesItselfRunsAndWakesTheNext) {
  expect_holds<ReceivedTasksRun<Promise::looks_itself, 0>>({.most_preemptions = 4});
  expect_holds<ReceivedTasksRun<Promise::looks_itself, 0>>({.most_preemptions = 3, .store_buffers = true});
  expect_holds<ReceivedTasksRun<Promise::looks_itself, 1>>({.most_preemptions = 3, .most_failures = 0});
  expect_holds<ReceivedTasksRun<Promise::hands_on, 0>>({.most_preemptions = 4});
  expect_holds<ReceivedTasksRun<Promise::hands_on, 1>>({.most_preemptions = 3, .most_failures = 0});
  expect_found<ReceivedTasksRun<Promise::forgets, 0>>("a task is left", {.most_preemptions = 1, .most_failures = 0});
  expect_found<ReceivedTasksRun<Promise::cannot_take, 0>>("a task is left",
                                                          {.most_preemptions = 1, .most_failures = 0});
}

/// A worker that runs pinned tasks only is woken for these, and wake_one does not choose it.
struct PinnedOnly : Program {
  IdleSet<ModelAtomic> idle{1, 1};
  std::array<Sleeper, 2> sleepers;
  std::array<ModelAtomic<int>, 2> queues;
  std::array<int, 2> done{};
  PinnedOnly() {
    for (unsigned w = 0; w < 2; ++w) idle.set_waker(w, &sleepers[w]);
  }
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 2) {
      queues[1].fetch_add(1);
      idle.wake(1);
      queues[0].fetch_add(1);
      idle.wake_one();
      return;
    }
    for (;;) {
      if (queues[thread].exchange(0) != 0) ++done[thread];
      idle.announce(thread);
      if (queues[thread].load() == 0) sleepers[thread].sleep();
      idle.withdraw(thread);
    }
  }
  bool may_end_asleep() const override { return true; }
  void check() override { require(done[0] == 1 && done[1] == 1, "a task is left and its worker sleeps"); }
};

TEST(IdleSetUnderEveryOrder, PinnedOnlyWorkersAreWokenForTheirOwn) {
  expect_holds<PinnedOnly>({.most_preemptions = 4});
}

/// As IdleSet, with one mistake.
enum class Mistake {
  none,
  looks_once,        ///< lowers the mark when it found no sleeper, and does not look again
  keeps_the_mark,    ///< does not lower the mark then
  announces_weakly,  ///< raises the flag and the count by stores that a processor may delay
};
template <Mistake What>
class WrongIdleSet {
 public:
  WrongIdleSet(unsigned sharing, unsigned) : sharing_(sharing) {}
  void set_waker(unsigned worker, base::Waker* waker) { wakers_[worker] = waker; }
  void announce(unsigned worker) noexcept {
    if constexpr (What == Mistake::announces_weakly) {
      idle_[worker].store(true, std::memory_order_release);
    } else {
      idle_[worker].store(true, std::memory_order_seq_cst);
      idle_count_.fetch_add(1, std::memory_order_seq_cst);
    }
  }
  bool withdraw(unsigned worker) noexcept {
    if (lower(worker)) return false;
    waking_.store(false, std::memory_order_seq_cst);
    return true;
  }
  void wake_one() noexcept {
    do {
      if (!any()) return;
      if (waking_.exchange(true, std::memory_order_seq_cst)) return;
      for (unsigned worker = sharing_; worker-- > 0;) {
        if (!idle_[worker].load(std::memory_order_seq_cst) || !lower(worker)) continue;
        return wakers_[worker]->wake();
      }
      if (What != Mistake::keeps_the_mark) waking_.store(false, std::memory_order_seq_cst);
      if (What == Mistake::looks_once) return;
    } while (any_flag());
  }
  bool any() const noexcept {
    if (What == Mistake::announces_weakly) return any_flag();
    return idle_count_.load(std::memory_order_seq_cst) != 0;
  }

 private:
  bool any_flag() const noexcept {
    for (unsigned worker = sharing_; worker-- > 0;)
      if (idle_[worker].load(std::memory_order_seq_cst)) return true;
    return false;
  }
  bool lower(unsigned worker) noexcept {
    if (!idle_[worker].exchange(false, std::memory_order_seq_cst)) return false;
    if (What != Mistake::announces_weakly) idle_count_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }
  unsigned sharing_;
  std::array<base::Waker*, 4> wakers_{};
  std::array<ModelAtomic<bool>, 4> idle_;
  ModelAtomic<bool> waking_{false};
  ModelAtomic<std::uint32_t> idle_count_{0};
};

TEST(IdleSetUnderEveryOrder, MistakesAreFound) {
  expect_holds<NothingIsLeft<WrongIdleSet<Mistake::none>, 1, 1>>({.store_buffers = true});
  expect_found<NothingIsLeft<WrongIdleSet<Mistake::keeps_the_mark>, 1, 1, 2>>("a task is left");
  expect_found<NothingIsLeft<WrongIdleSet<Mistake::announces_weakly>, 1, 1>>("a task is left", {.store_buffers = true});
  expect_found<NothingIsLeft<WrongIdleSet<Mistake::looks_once>, 2, 1>>("a task is left", {.most_failures = 0});
}

}  // namespace
}  // namespace tandem::interleave::idle_set_interleave_test
