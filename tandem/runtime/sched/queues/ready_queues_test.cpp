// tandem/runtime/sched/queues/ready_queues_test.cpp: queues do what the policy says, and no task waits while a worker
// sleeps.
#include "tandem/runtime/sched/queues/ready_queues.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::ready_queues_test {
namespace {

struct CountingWaker final : base::Waker {
  unsigned woken = 0;
  void wake() noexcept override { ++woken; }
};

struct Fixture {
  std::unique_ptr<Policy> policy;
  std::deque<CountingWaker> wakers;
  ReadyQueues queues;
  std::deque<Task> tasks;

  Fixture(std::unique_ptr<Policy> the_policy, unsigned sharing, unsigned pinned_only = 0)
      : policy(std::move(the_policy)),
        wakers(sharing + pinned_only),
        queues(*policy, std::vector<std::vector<unsigned>>(sharing, std::vector<unsigned>(sharing, 1)), pinned_only,
               1) {
    for (unsigned i = 0; i < wakers.size(); ++i) queues.set_waker(i, &wakers[i]);
  }
  Task* make(TaskId id, std::int32_t priority = 0) {
    Task& task = tasks.emplace_back();
    task.id = id;
    task.priority = priority;
    return &task;
  }
  TaskId pop(unsigned worker) {
    Task* task = queues.pop(worker);
    return task != nullptr ? task->id : 0;
  }
  /// Announces `worker` and looks once more, as before its sleep. True: it sleeps.
  bool sleep(unsigned worker) {
    queues.announce_idle(worker);
    return queues.looks_empty(worker);
  }
};

TEST(ReadyQueues, EagerServesInTheOrderOfArrivalWhateverThePriority) {
  Fixture f(make_eager(), 2);
  f.queues.push_submitted(f.make(1, 0));
  f.queues.push_submitted(f.make(2, 9));
  f.queues.push_released(1, f.make(3, 5));
  EXPECT_EQ(f.pop(0), 1U);
  EXPECT_EQ(f.pop(1), 2U);
  EXPECT_EQ(f.pop(0), 3U);
  EXPECT_EQ(f.pop(0), 0U);
}

TEST(ReadyQueues, PrioGivesTheMostUrgentToAnyWorker) {
  Fixture f(make_prio(), 2);
  f.queues.push_submitted(f.make(1, 0));
  f.queues.push_from_outside(f.make(2, 9));
  f.queues.push_released(0, f.make(3, 5));
  EXPECT_EQ(f.pop(1), 2U);
  EXPECT_EQ(f.pop(1), 3U);
  EXPECT_EQ(f.pop(0), 1U);
}

/// One worker gets, between submissions and releases of tasks with few priorities, the most urgent task each time, the
/// first one among equals, though it does not read the pipe at each pop.
TEST(ReadyQueues, AWorkerGetsTheMostUrgentTaskWheneverItWasSubmitted) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    Fixture f(make_prio(), 1);
    std::minstd_rand random(seed);
    const auto priorities = static_cast<std::uint32_t>(1 + random() % 3);
    std::vector<Task*> waiting;  // in the order of their arrival
    TaskId id = 0;
    for (int step = 0; step < 300; ++step) {
      const auto what = random() % 5;
      if (what < 2) {
        f.queues.push_submitted(waiting.emplace_back(f.make(++id, static_cast<std::int32_t>(random() % priorities))));
      } else if (what == 2) {
        f.queues.push_released(0, waiting.emplace_back(f.make(++id, static_cast<std::int32_t>(random() % priorities))));
      } else {
        const auto most_urgent = std::max_element(
            waiting.begin(), waiting.end(), [](const Task* a, const Task* b) { return a->priority < b->priority; });
        const TaskId expected = most_urgent != waiting.end() ? (*most_urgent)->id : 0;
        ASSERT_EQ(f.pop(0), expected) << "seed " << seed << ", step " << step;
        if (expected != 0) waiting.erase(most_urgent);
      }
    }
  }
}

TEST(ReadyQueues, LwsRunsWhatItReleasedLastFirstAndStealsTheRest) {
  Fixture f(make_lws(), 2);
  f.queues.push_released(0, f.make(1));
  f.queues.push_released(0, f.make(2));
  f.queues.push_released(0, f.make(3, 4));
  EXPECT_EQ(f.queues.size(), 3U);
  EXPECT_EQ(f.pop(0), 3U);
  EXPECT_EQ(f.pop(1), 2U);
  EXPECT_EQ(f.queues.steals(1), 1U);
  EXPECT_EQ(f.pop(0), 1U);
  EXPECT_EQ(f.queues.steals(0), 0U);
}

TEST(ReadyQueues, AThiefTakesAShareOfALongQueueAndLosesNone) {
  Fixture f(make_lws(), 2);
  for (TaskId id = 1; id <= 40; ++id) f.queues.push_released(0, f.make(id));
  std::vector<bool> seen(41, false);
  for (int i = 0; i < 40; ++i) {
    const TaskId id = f.pop(1);
    ASSERT_NE(id, 0U);
    ASSERT_FALSE(seen[id]);
    seen[id] = true;
  }
  EXPECT_EQ(f.pop(0), 0U);
  EXPECT_LT(f.queues.steals(1), 40U);
}

TEST(ReadyQueues, PinnedTasksAreForOneWorkerOnlyAndComeFirst) {
  Fixture f(make_prio(), 2, 1);
  f.queues.push_submitted(f.make(1, 100));
  f.queues.push_pinned(0, f.make(2));
  f.queues.push_pinned(2, f.make(3));
  EXPECT_EQ(f.pop(2), 3U);
  EXPECT_EQ(f.pop(2), 0U) << "a device takes nothing that was not meant for it";
  EXPECT_EQ(f.pop(1), 1U);
  EXPECT_EQ(f.pop(1), 0U);
  EXPECT_EQ(f.pop(0), 2U);
}

TEST(ReadyQueues, ATaskMayRunAtOnceUnlessSomethingWaitsThatIsMoreUrgent) {
  Fixture f(make_lws(), 1);
  EXPECT_TRUE(f.queues.may_run_at_once(0, *f.make(1)));
  f.queues.push_released(0, f.make(2, 3));
  EXPECT_FALSE(f.queues.may_run_at_once(0, *f.make(3, 2)));
  EXPECT_TRUE(f.queues.may_run_at_once(0, *f.make(4, 3)));
  f.queues.push_pinned(0, f.make(5));
  EXPECT_FALSE(f.queues.may_run_at_once(0, *f.make(6, 3)));
  Fixture eager(make_eager(), 1);
  EXPECT_FALSE(eager.queues.may_run_at_once(0, *eager.make(1)));
}

TEST(ReadyQueues, APushWakesOneSleeperAndOnlyOneAtATime) {
  Fixture f(make_prio(), 3);
  ASSERT_TRUE(f.sleep(1));
  ASSERT_TRUE(f.sleep(2));
  f.queues.push_submitted(f.make(1));
  f.queues.push_submitted(f.make(2));
  EXPECT_EQ(f.wakers[1].woken + f.wakers[2].woken, 1U);
  const unsigned first = f.wakers[1].woken != 0 ? 1 : 2;
  const unsigned second = 3 - first;
  EXPECT_TRUE(f.queues.withdraw_idle(first)) << "it was chosen";
  ASSERT_NE(f.pop(first), 0U);
  f.queues.wake_next_if_work(first);
  EXPECT_EQ(f.wakers[second].woken, 1U);
}

TEST(ReadyQueues, APushWakesAWorkerThatWaitsAwakeBeforeOneThatSleeps) {
  Fixture f(make_prio(), 3);
  f.queues.announce_idle(1, true);
  ASSERT_TRUE(f.sleep(0));
  ASSERT_TRUE(f.sleep(2));
  f.queues.push_submitted(f.make(1));
  EXPECT_EQ(f.wakers[1].woken, 1U);
  ASSERT_TRUE(f.queues.withdraw_idle(1));
  f.queues.push_submitted(f.make(2));
  EXPECT_EQ(f.wakers[0].woken + f.wakers[2].woken, 1U) << "it is awake already";
  EXPECT_EQ(f.wakers[1].woken, 1U);
}

TEST(ReadyQueues, NobodyIsWokenWhenNobodySleeps) {
  Fixture f(make_lws(), 2);
  f.queues.push_submitted(f.make(1));
  EXPECT_EQ(f.wakers[0].woken + f.wakers[1].woken, 0U);
}

TEST(ReadyQueues, AWorkerThatAnnouncesItselfSeesWhatWasPushedBefore) {
  Fixture f(make_lws(), 2);
  f.queues.push_released(0, f.make(1));
  EXPECT_FALSE(f.sleep(1)) << "a neighbour has work";
  EXPECT_FALSE(f.queues.withdraw_idle(1));
}

TEST(ReadyQueues, APinnedTaskWakesItsWorkerEvenIfOthersSleep) {
  Fixture f(make_prio(), 2, 1);
  ASSERT_TRUE(f.sleep(0));
  ASSERT_TRUE(f.sleep(2));
  f.queues.push_pinned(2, f.make(1));
  EXPECT_EQ(f.wakers[2].woken, 1U);
  EXPECT_EQ(f.wakers[0].woken, 0U);
  f.queues.push_submitted(f.make(2));
  EXPECT_EQ(f.wakers[0].woken, 1U);
}

TEST(ReadyQueues, OneThatLeavesPassesItsWakeUpOn) {
  Fixture f(make_prio(), 2);
  ASSERT_TRUE(f.sleep(0));
  f.queues.push_submitted(f.make(1));
  ASSERT_EQ(f.wakers[0].woken, 1U);
  ASSERT_TRUE(f.queues.withdraw_idle(0));
  f.queues.announce_idle(1);
  f.queues.pass_on_wake(0);
  EXPECT_EQ(f.wakers[1].woken, 1U);
}

TEST(ReadyQueues, AWorkerThatPromisesToLookWakesNobodyForWhatItPushes) {
  Fixture f(make_lws(), 2);
  ASSERT_TRUE(f.sleep(1));
  {
    const ReadyQueues::Promise promise(f.queues);
    EXPECT_FALSE(promise.pending());
    f.queues.push_from_outside(f.make(1));
    f.queues.push_from_outside(f.make(2));
    EXPECT_TRUE(promise.pending());
  }
  EXPECT_EQ(f.wakers[1].woken, 0U);
  ASSERT_NE(f.pop(0), 0U);
  f.queues.wake_next_if_work(0);
  EXPECT_EQ(f.wakers[1].woken, 1U) << "for the other task";
  ASSERT_NE(f.pop(1), 0U) << "wherever it is";
}

TEST(ReadyQueues, APromiseEndsAndHoldsForItsQueuesAndItsThreadAlone) {
  Fixture f(make_prio(), 2), others(make_prio(), 2);
  ASSERT_TRUE(f.sleep(0));
  ASSERT_TRUE(f.sleep(1));
  ASSERT_TRUE(others.sleep(1));
  {
    const ReadyQueues::Promise promise(f.queues);
    others.queues.push_from_outside(others.make(1));
    EXPECT_EQ(others.wakers[1].woken, 1U);
    f.queues.push_pinned(0, f.make(2));
    EXPECT_EQ(f.wakers[0].woken, 1U) << "nobody else can run it";
    std::thread([&] { f.queues.push_from_outside(f.make(3)); }).join();
    EXPECT_EQ(f.wakers[1].woken, 1U);
    EXPECT_FALSE(promise.pending());
  }
  ASSERT_TRUE(f.queues.withdraw_idle(1));
  ASSERT_EQ(f.pop(1), 3U);
  ASSERT_TRUE(f.sleep(1));
  f.queues.push_from_outside(f.make(4));
  EXPECT_EQ(f.wakers[1].woken, 2U) << "it has ended";
}

TEST(ReadyQueues, WhatIsMoreUrgentIsFoundWhereverItIs) {
  Fixture f(make_lws(), 2, 1);
  f.queues.push_released(1, f.make(1, 3));
  f.queues.push_released(0, f.make(2, 3));
  EXPECT_EQ(f.queues.pop_above(1, 3), nullptr);
  EXPECT_TRUE(f.queues.looks_empty_above(1, 3));
  EXPECT_FALSE(f.queues.looks_empty(1));
  f.queues.push_submitted(f.make(3, 4));  // to worker 1, still in its inbox
  EXPECT_FALSE(f.queues.looks_empty_above(0, 3));
  EXPECT_EQ(f.queues.pop_above(0, 3)->id, 3U) << "from the neighbour";
  f.queues.push_pinned(1, f.make(4, 0));
  EXPECT_FALSE(f.queues.looks_empty_above(1, 3));
  EXPECT_EQ(f.queues.pop_above(1, 3)->id, 4U) << "nobody else may run it";
  EXPECT_EQ(f.queues.pop_above(2, 3), nullptr);
  EXPECT_EQ(f.queues.size(), 2U);
}

TEST(ReadyQueues, WhatIsPutBackComesNextAndIsOfferedToWhoIsIdle) {
  Fixture f(make_prio(), 2);
  for (const TaskId id : {1, 2}) f.queues.push_submitted(f.make(id, 3));
  Task* const first = f.queues.pop(0);
  ASSERT_TRUE(first != nullptr && !f.queues.somebody_idle());
  f.queues.announce_idle(1);
  EXPECT_TRUE(f.queues.somebody_idle());
  f.queues.put_back(0, first);
  EXPECT_EQ(f.wakers[1].woken, 1U);
  EXPECT_EQ(f.pop(1), 1U);
}

TEST(WorkerGroup, ItsTasksGoByPriorityToAnyMember) {
  Fixture f(make_lws(), 2, 2);
  WorkerGroup& devices = f.queues.group_of({2, 3});
  EXPECT_EQ(&f.queues.group_of({2, 3}), &devices);
  f.queues.push_to(devices, f.make(1, 0));
  f.queues.push_to(devices, f.make(2, 5));
  f.queues.push_to(devices, f.make(3, 5));
  EXPECT_EQ(f.pop(0), 0U) << "no member";
  EXPECT_EQ(f.pop(2), 2U);
  EXPECT_EQ(f.pop(3), 3U);
  EXPECT_EQ(f.pop(2), 1U);
  EXPECT_EQ(f.pop(3), 0U);
}

TEST(WorkerGroup, AMemberTakesTheMoreUrgentOfItsQueuesAndTheGroupsFirstAmongEquals) {
  Fixture f(make_lws(), 1);
  WorkerGroup& group = f.queues.group_of({0});
  f.queues.push_to(group, f.make(1, 3));
  f.queues.push_submitted(f.make(2, 4));
  f.queues.push_submitted(f.make(3, 3));
  EXPECT_FALSE(f.queues.may_run_at_once(0, *f.make(9, 3)));
  EXPECT_EQ(f.queues.pop_above(0, 4), nullptr);
  EXPECT_EQ(f.pop(0), 2U);
  EXPECT_EQ(f.pop(0), 1U);
  EXPECT_EQ(f.pop(0), 3U);
}

TEST(WorkerGroup, APushWakesOneIdleMember) {
  Fixture f(make_lws(), 3);
  WorkerGroup& group = f.queues.group_of({1, 2});
  ASSERT_TRUE(f.sleep(0));
  ASSERT_TRUE(f.sleep(1));
  ASSERT_TRUE(f.sleep(2));
  f.queues.push_to(group, f.make(1));
  f.queues.push_to(group, f.make(2));
  f.queues.push_to(group, f.make(3));
  EXPECT_EQ(f.wakers[0].woken, 0U);
  EXPECT_EQ(f.wakers[1].woken, 1U);
  EXPECT_EQ(f.wakers[2].woken, 1U);
  ASSERT_TRUE(f.queues.withdraw_idle(1));
  EXPECT_EQ(f.pop(1), 1U);
  EXPECT_FALSE(f.sleep(1)) << "two tasks are left";
}

TEST(WorkerGroup, AMemberWithEnoughDataUnderWayLeavesTheRestToOthers) {
  Fixture f(make_lws(), 1, 2);
  WorkerGroup& devices = f.queues.group_of({1, 2});
  for (TaskId id = 1; id <= 4; ++id) f.queues.push_to(devices, f.make(id));
  EXPECT_EQ(f.pop(1), 1U);
  f.queues.note_staging(1);
  EXPECT_EQ(f.pop(1), 2U);
  f.queues.note_staging(1);
  EXPECT_EQ(f.pop(1), 0U);
  EXPECT_TRUE(f.sleep(1)) << "it is woken when its data has come";
  f.queues.push_to(devices, f.make(5));
  EXPECT_EQ(f.wakers[1].woken, 0U);
  f.queues.push_pinned(1, f.make(6));
  EXPECT_EQ(f.wakers[1].woken, 1U);
  EXPECT_EQ(f.pop(1), 6U);
  EXPECT_EQ(f.pop(1), 3U);
  EXPECT_EQ(f.pop(2), 4U);
}

TEST(StagedTasks, GoToAnyWorkerOfTheirNodeBeforeOthers) {
  Fixture f(make_lws(), 3, 1);
  f.queues.stage_together({0, 1});
  Task* const task = f.make(1);
  EXPECT_FALSE(f.queues.comes_back(0, *task));
  EXPECT_TRUE(f.queues.comes_back(2, *task)) << "its node has no budget";
  f.queues.push_submitted(f.make(2, 9));
  f.queues.push_staged(0, task);
  f.queues.push_staged(0, f.make(3));
  EXPECT_FALSE(f.queues.may_run_at_once(1, *f.make(4, 9)));
  EXPECT_EQ(f.pop(2), 2U) << "it belongs to another node";
  EXPECT_EQ(f.pop(1), 1U);
  EXPECT_EQ(f.queues.pop_above(1, 5)->id, 3U) << "whatever its priority: it holds memory";
  EXPECT_EQ(f.pop(0), 0U);
}

TEST(StagedTasks, OneThatFewWorkersCanRunComesBackToTheWorkerThatAsked) {
  Fixture f(make_lws(), 2);
  f.queues.stage_together({0, 1});
  Task* const task = f.make(1);
  task->restricted = true;
  EXPECT_TRUE(f.queues.comes_back(1, *task));
  f.queues.push_staged(1, task);
  EXPECT_EQ(f.pop(0), 0U);
  EXPECT_EQ(f.pop(1), 1U);
}

TEST(StagedTasks, WakeAnIdleWorkerOfTheNode) {
  Fixture f(make_lws(), 3);
  f.queues.stage_together({1, 2});
  ASSERT_TRUE(f.sleep(0));
  ASSERT_TRUE(f.sleep(2));
  f.queues.push_staged(1, f.make(1));
  EXPECT_EQ(f.wakers[0].woken, 0U);
  EXPECT_EQ(f.wakers[2].woken, 1U);
  EXPECT_FALSE(f.sleep(1)) << "a task is there";
  f.queues.withdraw_idle(1);
  f.queues.push_staged(1, f.make(2));
  ASSERT_TRUE(f.queues.withdraw_idle(2));
  EXPECT_EQ(f.pop(2), 1U);
  ASSERT_FALSE(f.sleep(1));
  f.queues.wake_next_if_work(2);
  EXPECT_EQ(f.wakers[1].woken, 1U) << "who was woken passes it on";
}

}  // namespace
}  // namespace tandem::runtime::ready_queues_test
