// tandem/runtime/task/pool_test.cpp: tasks and links are used again, and keep their content meanwhile.
#include "tandem/runtime/task/pool.hpp"

#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace tandem::runtime::pool_test {
namespace {

TEST(TaskPool, ATaskIsAlignedSealedAndLargeEnough) {
  TaskPool pool;
  for (const std::size_t bytes : {sizeof(Task), std::size_t{200}, kMaxTaskBytes}) {
    Task* task = pool.take(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(task) % 64, 0U);
    EXPECT_GE(task->size_class * TaskPool::kClassBytes, bytes);
    EXPECT_TRUE(task->successors.sealed()) << "to those who hold an old reference it has ended";
    pool.recycle(task);
  }
}

TEST(TaskPool, TheSteadyStateAllocatesNothing) {
  TaskPool pool;
  const auto round = [&] {
    std::vector<Task*> tasks;
    for (int i = 0; i < 1'000; ++i) tasks.push_back(pool.take(sizeof(Task) + 48));
    for (Task* task : tasks)
      for (unsigned link = 0; link < 20; ++link) pool.extra_link(*task);
    for (Task* task : tasks) pool.recycle(task);
  };
  round();
  const std::size_t bytes = pool.bytes();
  for (int i = 0; i < 20; ++i) round();
  EXPECT_EQ(pool.bytes(), bytes);
}

TEST(TaskPool, WhatOtherThreadsHandBackIsCollected) {
  TaskPool pool;
  std::vector<Task*> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(pool.take(sizeof(Task)));
  std::thread other([&] {
    for (std::size_t i = 0; i + 1 < tasks.size(); ++i) tasks[i]->next = tasks[i + 1];
    pool.take_back(tasks.front(), tasks.back());
  });
  other.join();
  EXPECT_EQ(pool.collect(), 10U);
  EXPECT_EQ(pool.collect(), 0U);
  const std::set<Task*> known(tasks.begin(), tasks.end());
  EXPECT_EQ(known.count(pool.take(sizeof(Task))), 1U);
}

TEST(TaskPool, ExtraLinksOfATaskAreDifferentAndComeBackWithIt) {
  TaskPool pool;
  Task* task = pool.take(sizeof(Task));
  std::set<Link*> links;
  for (unsigned i = 0; i < 5 * LinkChunk::kLinks; ++i) links.insert(pool.extra_link(*task));
  EXPECT_EQ(links.size(), 5U * LinkChunk::kLinks);
  pool.recycle(task);
  Task* next = pool.take(sizeof(Task));
  for (unsigned i = 0; i < 5 * LinkChunk::kLinks; ++i) EXPECT_EQ(links.count(pool.extra_link(*next)), 1U);
}

TEST(TaskPool, WhatATaskRarelyHasIsClearedWhenItIsRecycled) {
  TaskPool pool;
  Task* task = pool.take(sizeof(Task));
  TaskExtra& extra = pool.extra_of(*task);
  extra.name = "a name";
  extra.callback = [] {};
  pool.recycle(task);
  ASSERT_EQ(pool.take(sizeof(Task)), task);
  EXPECT_TRUE(pool.extra_of(*task).name.empty());
  EXPECT_FALSE(pool.extra_of(*task).callback);
  EXPECT_EQ(pool.extra_of(*task).links, nullptr);
}

TEST(TaskPool, EveryTaskEverMadeCanBeVisited) {
  TaskPool pool;
  std::set<Task*> taken;
  for (int i = 0; i < 5'000; ++i) taken.insert(pool.take(sizeof(Task) + 64 * (i % 3)));
  std::size_t visited = 0;
  pool.for_each([&](Task& task) { visited += taken.count(&task); });
  EXPECT_EQ(visited, taken.size());
}

TEST(Task, ThreeAccessesFitTheBudget) {
  // The limit is 320 bytes for a submitted task with three accesses.
  EXPECT_LE((Task::value_offset(3, 8) + 63) / 64 * 64, 192U);
}

TEST(TaskPool, ItsCheckFindsATaskThatWasRecycledTooEarly) {
  TaskPool pool;
  EXPECT_TRUE(pool.check_invariants());
  Task* const task = pool.take(sizeof(Task));
  EXPECT_TRUE(pool.check_invariants());
  task->successors.reset();
  pool.recycle(task);
  EXPECT_FALSE(pool.check_invariants()) << "it has not ended";
  task->successors.seal();
  EXPECT_TRUE(pool.check_invariants());
  Task* const next = task->next;
  task->next = task;
  EXPECT_FALSE(pool.check_invariants()) << "a cycle";
  task->next = next;
  EXPECT_TRUE(pool.check_invariants());
}

TEST(TaskPool, ExtraPartsAreUsedAgain) {
  TaskPool pool;
  Task one;
  pool.extra_of(one).name = "one";
  pool.extra_link(one);
  pool.release_extra(one);
  EXPECT_EQ(one.extra, nullptr);
  EXPECT_TRUE(pool.check_invariants());
  Task two;
  EXPECT_EQ(pool.extra_of(two).name, "");
  EXPECT_EQ(pool.extra_count(), 1U);
}

}  // namespace
}  // namespace tandem::runtime::pool_test
