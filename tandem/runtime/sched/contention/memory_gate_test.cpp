// tandem/runtime/sched/contention/memory_gate_test.cpp: tasks that enter beside urgent messages, tasks that wait, and
// that all go on.
#include "tandem/runtime/sched/contention/memory_gate.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::memory_gate_test {
namespace {

struct Tasks {
  std::deque<Task> tasks;
  Task* make(std::int32_t priority) {
    Task& task = tasks.emplace_back();
    task.priority = priority;
    return &task;
  }
};

/// Two tasks at once, one beside an urgent message.
constexpr MemoryGateRule kRule{.most = 2, .most_beside_messages = 1, .network_bytes_per_ns = 1};

TEST(MemoryGate, WithRoomAllGoIn) {
  Tasks tasks;
  MemoryGate gate;
  gate.set(kRule);
  EXPECT_TRUE(gate.rule().limits(2));
  EXPECT_FALSE(gate.rule().limits(1));
  EXPECT_TRUE(gate.rule().is_long(100'000));
  EXPECT_FALSE(gate.rule().is_long(99'999));
  EXPECT_FALSE(MemoryGateRule().limits(1'000));
  EXPECT_FALSE(MemoryGateRule().is_long(SIZE_MAX)) << "messages do not matter";
  bool first = false, second = false;
  Task* const a = tasks.make(0);
  EXPECT_EQ(gate.ask(a, true, first).run, a);
  EXPECT_EQ(gate.ask(a, true, second).run, a);
  EXPECT_TRUE(first && second);
  EXPECT_EQ(gate.ask(a, false, second).run, a);
  EXPECT_FALSE(second);
  EXPECT_EQ(gate.leave(first), nullptr);
  EXPECT_EQ(gate.delayed(), 0U);
  EXPECT_TRUE(gate.check_invariants());
}

TEST(MemoryGate, WithoutRoomTheMostUrgentGoesFirst) {
  Tasks tasks;
  MemoryGate gate;
  gate.set(kRule);
  bool first = false, second = false, third = false;
  EXPECT_NE(gate.ask(tasks.make(0), true, first).run, nullptr);
  EXPECT_NE(gate.ask(tasks.make(0), true, second).run, nullptr);
  Task *const waits = tasks.make(0), *const urgent = tasks.make(3), *const computes = tasks.make(0);
  EXPECT_TRUE(gate.ask(waits, true, third).waits);
  EXPECT_TRUE(gate.ask(urgent, true, third).waits) << "a slot is soon free, and it is the next one";
  EXPECT_EQ(gate.ask(computes, false, third).run, computes) << "it needs no memory";
  Task* const later = tasks.make(0);
  EXPECT_EQ(gate.ask(later, true, first).run, urgent);
  EXPECT_EQ(gate.ask(nullptr, false, first).run, waits);
  EXPECT_EQ(gate.ask(nullptr, false, first).run, later);
  EXPECT_EQ(gate.ask(nullptr, false, first).run, nullptr);
  EXPECT_EQ(gate.leave(second), nullptr);
  EXPECT_EQ(gate.delayed(), 3U);
  EXPECT_TRUE(gate.check_invariants());
}

TEST(MemoryGate, BesideAnUrgentMessageFewerRun) {
  Tasks tasks;
  MemoryGate gate;
  gate.set(kRule);
  bool first = false, second = false;
  EXPECT_NE(gate.ask(tasks.make(0), true, first).run, nullptr);
  EXPECT_NE(gate.ask(tasks.make(0), true, second).run, nullptr);
  gate.message_begins(5);
  Task *const waits = tasks.make(0), *const also = tasks.make(5), *const above = tasks.make(6);
  EXPECT_TRUE(gate.ask(waits, true, second).waits) << "two are inside, and one may be";
  EXPECT_FALSE(second);
  EXPECT_TRUE(gate.ask(also, true, second).waits) << "no more urgent than the message";
  EXPECT_EQ(gate.ask(above, true, second).run, above) << "more urgent than the message";
  EXPECT_EQ(gate.leave(second), nullptr);
  Task* const free = gate.message_ends(5);
  EXPECT_EQ(free, also) << "there is room for one";
  EXPECT_EQ(free->next, nullptr);
  EXPECT_EQ(gate.ask(free, true, second).run, also);
  EXPECT_FALSE(gate.check_invariants());
  EXPECT_EQ(gate.leave(second), waits) << "it rests, so another one goes on";
  EXPECT_EQ(gate.ask(waits, true, second).run, waits);
  EXPECT_EQ(gate.leave(first), nullptr);
  EXPECT_EQ(gate.leave(second), nullptr);
  EXPECT_TRUE(gate.check_invariants());
}

TEST(MemoryGate, TheBusIsKeptFull) {
  Tasks tasks;
  MemoryGate gate;
  gate.set({.most = 1, .most_beside_messages = 1});
  bool first = false, second = false;
  EXPECT_NE(gate.ask(tasks.make(0), true, first).run, nullptr);
  Task *const waits = tasks.make(0), *const computes = tasks.make(0), *const urgent = tasks.make(2);
  EXPECT_TRUE(gate.ask(waits, true, second).waits);
  MemoryGate::Answer answer = gate.ask(computes, false, first);
  EXPECT_EQ(answer.run, waits);
  EXPECT_EQ(answer.hand_on, computes) << "it can run anywhere";
  EXPECT_TRUE(gate.ask(waits, true, second).waits);
  answer = gate.ask(urgent, false, first);
  EXPECT_EQ(answer.run, urgent) << "more urgent than what waits";
  EXPECT_EQ(answer.hand_on, waits);
  EXPECT_FALSE(first);
  EXPECT_TRUE(gate.check_invariants());
}

TEST(MemoryGate, ATaskThatNoOtherWorkerMayRunIsNotHandedOn) {
  Tasks tasks;
  MemoryGate gate;
  gate.set({.most = 1, .most_beside_messages = 1});
  bool first = false, second = false;
  EXPECT_NE(gate.ask(tasks.make(0), true, first).run, nullptr);
  Task *const waits = tasks.make(0), *const stays = tasks.make(0);
  EXPECT_TRUE(gate.ask(waits, true, second).waits);
  const MemoryGate::Answer answer = gate.ask(stays, false, first, true);
  EXPECT_EQ(answer.run, stays);
  EXPECT_EQ(answer.hand_on, waits) << "there is room, and another worker runs it";
  EXPECT_FALSE(first);
  EXPECT_TRUE(gate.check_invariants());
}

TEST(MemoryGate, AnEndLetsGoOfWhatIsMoreUrgentThanTheRest) {
  Tasks tasks;
  MemoryGate gate;
  gate.set({.most = 4, .most_beside_messages = 1});
  bool first = false, second = false;
  gate.message_begins(9);
  gate.message_begins(3);
  EXPECT_NE(gate.ask(tasks.make(1), true, first).run, nullptr);
  Task *const of_5 = tasks.make(5), *const of_2 = tasks.make(2), *const of_4 = tasks.make(4);
  for (Task* task : {of_5, of_2, of_4}) EXPECT_TRUE(gate.ask(task, true, second).waits);
  Task* const free = gate.message_ends(9);
  EXPECT_EQ(free, of_5);
  EXPECT_EQ(free->next, of_4);
  EXPECT_EQ(of_4->next, nullptr);
  EXPECT_FALSE(gate.check_invariants());
  EXPECT_EQ(gate.message_ends(3), of_2);
  EXPECT_EQ(gate.leave(first), nullptr);
  EXPECT_TRUE(gate.check_invariants());
}

/// Runs workers that take tasks from one queue; messages come and go, or one stays from the beginning to the end.
void run_all(std::uint64_t seed, bool is_always_closed) {
  constexpr unsigned kWorkers = 4, kTasks = 400;
  Tasks tasks;
  MemoryGate gate;
  const unsigned most = 1 + static_cast<unsigned>(seed % 3);
  gate.set({.most = most + 1, .most_beside_messages = most});
  std::mutex mutex;
  std::deque<Task*> queue;
  for (unsigned i = 0; i < kTasks; ++i) queue.push_back(tasks.make(static_cast<std::int32_t>(i * 7919 % 4)));
  const auto push = [&](Task* task) {
    const std::lock_guard guard(mutex);
    queue.push_back(task);
  };
  const auto pop = [&]() -> Task* {
    const std::lock_guard guard(mutex);
    if (queue.empty()) return nullptr;
    Task* const task = queue.front();
    queue.pop_front();
    return task;
  };
  const auto is_bound = [&](const Task* task) {
    return task != nullptr && (task - &tasks.tasks[0] + static_cast<std::ptrdiff_t>(seed)) % 3 != 0;
  };
  if (is_always_closed) gate.message_begins(9);
  std::atomic<unsigned> ended{0}, inside{0}, most_inside{0};
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < kWorkers; ++worker)
    threads.emplace_back([&, worker] {
      std::mt19937_64 random(seed * kWorkers + worker);
      bool is_inside = false;
      while (ended < kTasks) {
        Task* task = pop();
        MemoryGate::Answer answer;
        while ((answer = gate.ask(task, is_bound(task), is_inside)).waits) task = pop();
        if (answer.hand_on != nullptr) push(answer.hand_on);
        if (answer.run == nullptr) {
          std::this_thread::yield();
          continue;
        }
        if (is_bound(answer.run)) {
          const unsigned now = ++inside;
          for (unsigned known = most_inside; known < now && !most_inside.compare_exchange_weak(known, now);) {
          }
        }
        if (random() % 4 == 0) std::this_thread::yield();
        if (is_bound(answer.run)) --inside;
        ++ended;
        if (random() % 8 == 0)
          if (Task* const left = gate.leave(is_inside)) push(left);
      }
      if (Task* const left = gate.leave(is_inside)) push(left);
    });
  std::thread network([&] {
    std::mt19937_64 random(seed);
    while (ended < kTasks) {
      const auto priority = static_cast<std::int32_t>(random() % 5);
      gate.message_begins(priority);
      std::this_thread::yield();
      for (Task* task = gate.message_ends(priority); task != nullptr;) push(std::exchange(task, task->next));
    }
  });
  for (std::thread& thread : threads) thread.join();
  network.join();
  if (is_always_closed) {
    EXPECT_EQ(gate.message_ends(9), nullptr);
    EXPECT_LE(most_inside, most);
  }
  EXPECT_EQ(ended, kTasks);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(gate.check_invariants());
}

TEST(MemoryGate, AllTasksRunOnceUnderLoad) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) run_all(seed, seed % 2 == 0);
}

}  // namespace
}  // namespace tandem::runtime::memory_gate_test
