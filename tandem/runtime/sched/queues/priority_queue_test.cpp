// tandem/runtime/sched/queues/priority_queue_test.cpp: the most urgent first, in the order of arrival among equals.
#include "tandem/runtime/sched/queues/priority_queue.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::priority_queue_test {
namespace {

struct Tasks {
  std::deque<Task> tasks;
  Task* make(TaskId id, std::int32_t priority) {
    Task& task = tasks.emplace_back();
    task.id = id;
    task.priority = priority;
    return &task;
  }
};

std::vector<TaskId> drain(PriorityQueue& queue) {
  std::vector<TaskId> ids;
  while (Task* task = queue.pop()) ids.push_back(task->id);
  return ids;
}

TEST(PriorityQueue, AnEmptyOneGivesNothing) {
  PriorityQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.top_priority(), PriorityQueue::kNoPriority);
}

TEST(PriorityQueue, HigherPriorityFirstThenFirstComeFirstServed) {
  Tasks tasks;
  PriorityQueue queue;
  queue.push_back(tasks.make(1, 0));
  queue.push_back(tasks.make(2, 5));
  queue.push_back(tasks.make(3, -2));
  queue.push_back(tasks.make(4, 5));
  queue.push_back(tasks.make(5, 0));
  EXPECT_EQ(queue.size(), 5U);
  EXPECT_EQ(queue.top_priority(), 5);
  EXPECT_EQ(drain(queue), (std::vector<TaskId>{2, 4, 1, 5, 3}));
  EXPECT_TRUE(queue.empty());
}

TEST(PriorityQueue, TheLeastOfTheMostUrgentIsTakenFromAnywhere) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Tasks tasks;
    PriorityQueue queue(round % 2 == 0);
    std::vector<Task*> expected;  // in the order of the queue
    for (TaskId id = 1; id <= 20; ++id) {
      Task* const task = tasks.make(id, static_cast<std::int32_t>(random() % 3));
      queue.push_back(task);
      expected.push_back(task);
    }
    if (round % 2 == 0) std::ranges::stable_sort(expected, std::ranges::greater{}, &Task::priority);
    const auto key = [&](const Task& task) { return task.id * 7 % 5; };
    const std::size_t most = 1 + random() % 6;
    while (!expected.empty()) {
      auto end = expected.begin() + static_cast<std::ptrdiff_t>(std::min(most, expected.size()));
      if (round % 2 == 0)
        end = std::find_if(expected.begin(), end,
                           [&](const Task* task) { return task->priority != expected.front()->priority; });
      const auto least = std::min_element(expected.begin(), end,
                                          [&](const Task* a, const Task* b) { return key(*a) < key(*b); });
      ASSERT_EQ(queue.pop_least(most, key), *least);
      expected.erase(least);
      ASSERT_TRUE(queue.check_invariants());
    }
    EXPECT_EQ(queue.pop_least(most, key), nullptr);
  }
}

TEST(PriorityQueue, PushFrontGoesBeforeEqualsOnly) {
  Tasks tasks;
  PriorityQueue queue;
  queue.push_back(tasks.make(1, 0));
  queue.push_back(tasks.make(2, 1));
  queue.push_front(tasks.make(3, 0));
  queue.push_front(tasks.make(4, -1));
  EXPECT_EQ(drain(queue), (std::vector<TaskId>{2, 3, 1, 4}));
}

TEST(PriorityQueue, WithoutPrioritiesItIsAPlainQueue) {
  Tasks tasks;
  PriorityQueue queue(false);
  queue.push_back(tasks.make(1, 0));
  queue.push_back(tasks.make(2, 9));
  queue.push_front(tasks.make(3, -9));
  EXPECT_EQ(drain(queue), (std::vector<TaskId>{3, 1, 2}));
}

TEST(PriorityQueue, ExtremePrioritiesAreOrdinary) {
  Tasks tasks;
  PriorityQueue queue;
  constexpr auto kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  queue.push_back(tasks.make(1, kLeast));
  queue.push_back(tasks.make(2, kMost));
  EXPECT_EQ(drain(queue), (std::vector<TaskId>{2, 1}));
}

TEST(PriorityQueue, DoesWhatASortedListDoes) {
  std::mt19937 random(1);
  Tasks tasks;
  PriorityQueue queue;
  std::vector<Task*> reference;
  for (TaskId id = 1; id <= 5'000; ++id) {
    if (random() % 5 < 3) {
      Task* task = tasks.make(id, static_cast<std::int32_t>(random() % 9) - 4);
      const bool front = random() % 3 == 0;
      if (front) queue.push_front(task);
      else queue.push_back(task);
      const auto at = std::find_if(reference.begin(), reference.end(), [&](const Task* other) {
        return front ? other->priority <= task->priority : other->priority < task->priority;
      });
      reference.insert(at, task);
    } else {
      Task* expected = reference.empty() ? nullptr : reference.front();
      if (expected != nullptr) reference.erase(reference.begin());
      ASSERT_EQ(queue.pop(), expected);
    }
    ASSERT_EQ(queue.size(), reference.size());
    ASSERT_EQ(queue.top_priority(), reference.empty() ? PriorityQueue::kNoPriority : reference.front()->priority);
  }
}

TEST(PriorityQueue, ItsCheckFindsADamagedList) {
  Tasks tasks;
  PriorityQueue queue;
  EXPECT_TRUE(queue.check_invariants());
  Task* const first = tasks.make(1, 3);
  Task* const second = tasks.make(2, 3);
  Task* const third = tasks.make(3, 5);
  for (Task* task : {first, second, third}) queue.push_back(task);
  EXPECT_TRUE(queue.check_invariants());
  first->next = nullptr;
  EXPECT_FALSE(queue.check_invariants()) << "a task is lost";
  first->next = first;
  EXPECT_FALSE(queue.check_invariants()) << "a cycle";
  first->next = second;
  second->priority = 4;
  EXPECT_FALSE(queue.check_invariants()) << "a priority that has changed";
  second->priority = 3;
  EXPECT_TRUE(queue.check_invariants());
}

}  // namespace
}  // namespace tandem::runtime::priority_queue_test
