// tandem/runtime/memory/room_test.cpp: memories with budgets: evictions, waiting tasks, and every order of few tasks
// and copies.
#include "tandem/runtime/memory/room.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/memory/spill_file.hpp"
#include "tandem/runtime/task/pool.hpp"

namespace tandem::runtime::room_test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = sizeof(std::uint64_t);  // bytes of each datum

/// A memory that counts what is allocated.
struct CountingMemory final : MemoryNode {
  int alive = 0;
  int capacity = std::numeric_limits<int>::max();  ///< further pieces do not fit, whatever the budget says
  std::size_t granule = 1;                         ///< bytes of each piece are a multiple of this
  std::string name() const override { return "the device"; }
  std::size_t footprint(std::size_t bytes) const noexcept override { return (bytes + granule - 1) / granule * granule; }
  void* allocate(std::size_t bytes) override {
    if (alive >= capacity) return nullptr;
    ++alive;
    return std::malloc(bytes);
  }
  void release(void* memory, std::size_t) noexcept override {
    --alive;
    std::free(memory);
  }
};

/// A copier that ends copies when told to, in any order.
struct Copies final : Copier {
  struct Posted {
    CopyRequest request;
    CopyEnded ended;
  };
  std::vector<Posted>& posted;
  const std::function<void()>& meanwhile;
  Copies(std::vector<Posted>& all, const std::function<void()>& at_start) : posted(all), meanwhile(at_start) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override {
    posted.push_back({request, std::move(ended)});
    if (meanwhile) meanwhile();
    return CopyState::posted;
  }
};

/// Nodes 0, 1 (a device) and 2 (storage); data of one word each; tasks that add up what they read.
struct Machine final : StagingListener {
  Memory memory{*this};
  std::vector<CountingMemory*> nodes;
  std::vector<Copies::Posted> copies;
  std::function<void()> meanwhile;  ///< actions of other threads while a copy is being started
  std::vector<std::pair<NodeIndex, NodeIndex>> copied;
  TaskPool pool;
  std::vector<Task*> staged_tasks;
  std::vector<std::pair<Task*, std::string>> failed;
  std::deque<Handle*> handles;
  TaskId last = 0;

  Machine(std::size_t main_data, std::size_t device_data, unsigned kernels = Room::kNoLimit) {
    for (int i = 0; i < 2; ++i) {
      auto node = std::make_unique<CountingMemory>();
      nodes.push_back(node.get());
      memory.add_node(std::move(node), std::make_unique<Copies>(copies, meanwhile));
    }
    if (main_data != 0) {
      memory.limit(0, main_data * kBytes, kernels);
      memory.set_storage(2);
    }
    if (device_data != 0) memory.limit(1, device_data * kBytes, kernels);
  }
  ~Machine() override {
    meanwhile = nullptr;
    while (!copies.empty()) deliver(0);
    for (Handle* handle : handles) {
      memory.free_replicas(*handle);
      handle->drop_reference();
      handle->drop_reference();
    }
    for (const CountingMemory* node : nodes) EXPECT_EQ(node->alive, 0) << "every replica is freed";
  }
  void staged(Task& task) override { staged_tasks.push_back(&task); }
  void staging_failed(Task& task, const std::exception_ptr& exception) override {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      failed.emplace_back(&task, error.what());
    }
  }

  Handle& data() {
    auto* const handle = new Handle;
    handle->shape = {1, 1, kBytes};
    handle->elsewhere = std::make_unique<Handle::Place[]>(2);
    handle->residence = std::make_unique<Residence>(3);
    handles.push_back(handle);
    return *handle;
  }
  Handle& over(std::uint64_t& value) {
    Handle& handle = data();
    handle.home = {&value, 1, false};
    handle.user_memory = true;
    handle.valid.store(1);
    return handle;
  }
  Task& task(std::initializer_list<std::pair<Handle*, AccessMode>> uses, bool known = true) {
    Task& result = *pool.take(Task::value_offset(uses.size(), 1));
    result.id = ++last;
    result.access_count = static_cast<std::uint8_t>(uses.size());
    result.room = RoomState();
    unsigned i = 0;
    for (const auto& [handle, mode] : uses) result.accesses()[i++].set(handle, mode);
    if (known) memory.room().note_uses(result);
    return result;
  }
  Task& task(const std::vector<Handle*>& all, AccessMode mode) {
    Task& result = *pool.take(Task::value_offset(all.size(), 1));
    result.id = ++last;
    result.access_count = static_cast<std::uint16_t>(all.size());
    result.room = RoomState();
    for (unsigned i = 0; i < all.size(); ++i) result.accesses()[i].set(all[i], mode);
    memory.room().note_uses(result);
    return result;
  }
  /// Runs and ends a task at once, which waits for nothing.
  void run(Task& task, NodeIndex node, std::uint64_t value = 0) {
    ASSERT_EQ(memory.acquire(task, node), Memory::Staging::ready);
    finish(task, node, value);
  }
  void finish(Task& task, NodeIndex node, std::uint64_t value) {
    ASSERT_TRUE(memory.is_present(task, node));
    for (unsigned i = 0; i < task.access_count; ++i) {
      if (!makes_value(task.accesses()[i].mode())) continue;
      value_of(*task.accesses()[i].handle(), node) = value;
      Memory::note_written(*task.accesses()[i].handle(), node);
    }
    if (memory.end(task, node)) memory.go_on(node);
  }
  static std::uint64_t& value_of(Handle& handle, NodeIndex node) {
    return *static_cast<std::uint64_t*>(handle.replica(node).pointer);
  }
  void deliver(std::size_t index, bool fails = false) {
    Copies::Posted copy = std::move(copies[index]);
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(index));
    if (fails) return copy.ended(std::make_exception_ptr(std::runtime_error("no link")));
    copy_matrix(copy.request);
    copied.emplace_back(copy.request.from_node, copy.request.to_node);
    copy.ended(nullptr);
  }
  bool is_sound() { return memory.room().check_invariants(0) && memory.room().check_invariants(1); }
};

TEST(UpcomingUses, AreThoseThatHaveNotEnded) {
  std::mt19937 random(3);
  UpcomingUses uses;
  std::set<std::uint64_t> expected;
  std::uint64_t last = 0;
  EXPECT_EQ(uses.next(), UpcomingUses::kNone);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0) {
      last += expected.contains(last) ? random() % 3 : 1 + random() % 2;  // sometimes the same position again
      uses.add(last);
      expected.insert(last);
    } else if (!expected.empty()) {
      auto at = expected.begin();
      std::advance(at, random() % std::min<std::size_t>(expected.size(), 8));
      uses.end(*at);
      expected.erase(at);
    }
    uses.end(last + 7);  // this position was never added
    ASSERT_EQ(uses.next(), expected.empty() ? UpcomingUses::kNone : *expected.begin());
  }
}

TEST(UpcomingUses, TakeOneThatComesLateAtItsPlace) {
  UpcomingUses uses;
  for (const std::uint64_t position : {4U, 9U, 6U, 9U, 5U, 6U}) uses.add(position);
  EXPECT_EQ(uses.size(), 4U);
  for (const std::uint64_t next : {4U, 5U, 6U, 9U}) {
    EXPECT_EQ(uses.next(), next);
    uses.end(next);
  }
  EXPECT_EQ(uses.next(), UpcomingUses::kNone);
  EXPECT_EQ(uses.size(), 0U);
}

TEST(Room, WhatIsUsedLastLeavesFirst) {
  Machine m(0, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task &write_a = m.task({{&a, AccessMode::write}}), &write_b = m.task({{&b, AccessMode::write}}),
       &write_c = m.task({{&c, AccessMode::write}});
  m.task({{&b, AccessMode::read}});
  Task& read_a = m.task({{&a, AccessMode::read}});
  m.run(write_a, 1, 10);
  m.run(write_b, 1, 20);
  EXPECT_EQ(m.memory.acquire(write_c, 1), Memory::Staging::pending) << "it waits for the move";
  ASSERT_EQ(m.copies.size(), 1U);
  EXPECT_EQ(m.copies[0].request.from, a.replica(1).pointer) << "a is read after b";
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&write_c}));
  EXPECT_EQ(Machine::value_of(a, 0), 10U);
  EXPECT_EQ(a.replica(1).pointer, nullptr);
  m.finish(write_c, 1, 30);
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  EXPECT_TRUE(m.is_sound());
  m.run(read_a, 0);
}

/// An event that waits for something outside, and then writes `handle`.
Task& message(Machine& m, TaskExtra& extra, Handle& handle) {
  Task& event = m.task({{&handle, AccessMode::write}});
  event.kind = TaskKind::event;
  event.extra = &extra;
  extra.memory = EventMemory::counted;
  return event;
}

TEST(Room, AMessageTakesNothingOfTheBudgetUntilATaskUsesIt) {
  Machine m(2, 0);
  std::vector<std::size_t> settled;
  m.memory.on_settled([&](std::size_t bytes) { settled.push_back(bytes); });
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  TaskExtra extra;
  Task &write_a = m.task({{&a, AccessMode::write}}), &write_b = m.task({{&b, AccessMode::write}});
  Task &receive_c = message(m, extra, c), &read_c = m.task({{&c, AccessMode::read}, {&b, AccessMode::read}});
  m.run(write_a, 0, 10);
  ASSERT_EQ(m.memory.acquire(write_b, 0), Memory::Staging::ready);
  ASSERT_EQ(m.memory.acquire(receive_c, 0), Memory::Staging::ready) << "at once, though the budget is used";
  EXPECT_EQ(m.memory.room().used(0), 2 * kBytes);
  EXPECT_EQ(m.memory.room().most_beside(0), kBytes);
  EXPECT_TRUE(m.copies.empty()) << "nothing leaves for it";
  m.finish(write_b, 0, 20);
  Machine::value_of(c, 0) = 30;
  Memory::note_written(c, 0);
  EXPECT_TRUE(m.memory.end(receive_c, 0));
  EXPECT_THAT(settled, testing::IsEmpty());
  EXPECT_EQ(m.memory.acquire(read_c, 0), Memory::Staging::pending) << "it needs room within the budget";
  ASSERT_EQ(m.copies.size(), 1U);
  EXPECT_EQ(m.copies[0].request.from, a.replica(0).pointer);
  m.deliver(0);
  EXPECT_THAT(settled, testing::ElementsAre(kBytes));
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&read_c}));
  EXPECT_EQ(Machine::value_of(c, 0), 30U) << "the message's own memory";
  m.finish(read_c, 0, 0);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, WhatHasArrivedComesIntoTheBudgetThoughNoTaskUsesIt) {
  Machine m(1, 0);
  std::vector<std::size_t> settled;
  m.memory.on_settled([&](std::size_t bytes) { settled.push_back(bytes); });
  Handle &a = m.data(), &b = m.data();
  TaskExtra extra;
  Task& write_a = m.task({{&a, AccessMode::write}});
  m.run(write_a, 0, 10);
  Task& receive_b = message(m, extra, b);
  ASSERT_EQ(m.memory.acquire(receive_b, 0), Memory::Staging::ready);
  Memory::note_written(b, 0);
  EXPECT_TRUE(m.memory.end(receive_b, 0));
  m.memory.go_on(0);
  ASSERT_EQ(m.copies.size(), 1U) << "a leaves";
  m.deliver(0);
  EXPECT_THAT(settled, testing::ElementsAre(kBytes));
  EXPECT_EQ(m.memory.room().used(0), kBytes);
  EXPECT_EQ(a.replica(0).pointer, nullptr);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, AMessageTakesTheOldMemoryOfItsDataOutOfTheBudget) {
  Machine m(1, 0);
  m.memory.on_settled([](std::size_t) {});
  Handle &a = m.data(), &b = m.data();
  TaskExtra extra, again;
  m.run(m.task({{&a, AccessMode::write}}), 0, 10);
  ASSERT_EQ(m.memory.acquire(message(m, extra, a), 0), Memory::Staging::ready);
  m.run(m.task({{&b, AccessMode::write}}), 0, 20);  // replaces its value while the message is under way
  EXPECT_EQ(m.memory.room().used(0), kBytes);
  // b is on its way to storage, since c needs the room: its message waits for the end of that move.
  Handle& c = m.data();
  Task& write_c = m.task({{&c, AccessMode::write}});
  ASSERT_EQ(m.memory.acquire(write_c, 0), Memory::Staging::pending);
  ASSERT_EQ(m.copies.size(), 1U);
  Task& receive_b = message(m, again, b);
  ASSERT_EQ(m.memory.acquire(receive_b, 0), Memory::Staging::pending);
  m.deliver(0);
  ASSERT_EQ(m.staged_tasks.size(), 2U);
  EXPECT_EQ(m.memory.acquire(receive_b, 0), Memory::Staging::ready);
  m.finish(write_c, 0, 30);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, WhatNobodyWillUseLeavesBeforeAllElse) {
  Machine m(0, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task &write_a = m.task({{&a, AccessMode::write}}), &write_b = m.task({{&b, AccessMode::write}}),
       &write_c = m.task({{&c, AccessMode::write}});
  m.task({{&a, AccessMode::read}});
  m.run(write_a, 1);
  m.run(write_b, 1);
  EXPECT_EQ(m.memory.acquire(write_c, 1), Memory::Staging::pending);
  EXPECT_EQ(m.copies.at(0).request.from, b.replica(1).pointer);
  m.deliver(0);
  m.finish(write_c, 1, 0);
}

TEST(Room, WhatIsNotWantedLeavesFirst) {
  Machine m(0, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1);
  Task& last = m.task({{&b, AccessMode::write}});
  m.memory.note_unwanted(b, false);  // the task still uses it
  m.run(last, 1);
  Task& write_c = m.task({{&c, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_c, 1), Memory::Staging::pending);
  EXPECT_EQ(m.copies.at(0).request.from, b.replica(1).pointer) << "though a is unused for longer";
  m.deliver(0);
  m.finish(write_c, 1, 0);
  m.memory.note_unwanted(c, false);
  // The write to b takes that back.
  Task &read_c = m.task({{&c, AccessMode::read}}), &write_b = m.task({{&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_b, 1), Memory::Staging::pending);
  EXPECT_EQ(m.copies.at(0).request.from, a.replica(1).pointer);
  m.deliver(0);
  m.finish(write_b, 1, 0);
  m.run(read_c, 1);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, WhatIsEvictedLeavesWhenItsTasksHaveEnded) {
  Machine m(0, 4);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 7);
  m.memory.note_unwanted(a, true);
  ASSERT_EQ(m.copies.size(), 1U) << "nobody needs the memory, but it leaves";
  m.deliver(0);
  EXPECT_EQ(a.replica(1).pointer, nullptr);
  EXPECT_EQ(Machine::value_of(a, 0), 7U);
  Task& write_b = m.task({{&b, AccessMode::write}});
  m.memory.note_unwanted(b, true);
  EXPECT_TRUE(m.copies.empty());
  m.run(write_b, 1, 8);
  ASSERT_EQ(m.copies.size(), 1U);
  m.deliver(0);
  EXPECT_EQ(m.memory.room().used(1), 0U);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, WhatTheProgramHasDroppedPassesUntilItsTasksHaveEnded) {
  Machine m(2, 1);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task &write_a = m.task({{&a, AccessMode::write}}),
       &read_a = m.task({{&a, AccessMode::read}, {&b, AccessMode::write}});
  m.memory.note_abandoned(a);
  EXPECT_EQ(m.memory.room().passing_bytes(), kBytes);
  m.run(write_a, 0, 5);
  EXPECT_EQ(a.valid.load(), 1U) << "a task sees it yet";
  m.run(read_a, 0, 6);
  EXPECT_EQ(m.memory.room().passing_bytes(), 0U);
  EXPECT_EQ(a.valid.load(), 0U);
  EXPECT_EQ(a.home.pointer, nullptr) << "at once, though nobody wants the memory";
  EXPECT_EQ(m.memory.room().used(0), kBytes);
  m.run(m.task({{&c, AccessMode::write}}), 1, 7);
  m.memory.note_abandoned(c);
  EXPECT_EQ(m.memory.room().passing_bytes(), 0U) << "no task uses it";
  EXPECT_EQ(m.memory.room().used(1), 0U);
  EXPECT_TRUE(m.copies.empty()) << "nothing was moved";
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, WhatTheProgramHasDroppedWhileItMovesGoesBehindTheMove) {
  Machine m(4, 1);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 5);
  Task& write_b = m.task({{&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_b, 1), Memory::Staging::pending);
  ASSERT_EQ(m.copies.size(), 1U);
  m.memory.note_abandoned(a);
  m.deliver(0);
  EXPECT_EQ(a.valid.load(), 0U);
  EXPECT_EQ(m.memory.room().used(0), 0U);
  m.finish(write_b, 1, 6);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, AHintForWhatIsGivenUpBringsNothing) {
  Machine m(2, 0);
  Handle& a = m.data();
  TaskExtra extra;
  extra.is_hint = true;
  Task& hint = m.task({{&a, AccessMode::read}}, false);
  hint.kind = TaskKind::event;
  hint.extra = &extra;
  m.run(m.task({{&a, AccessMode::write}}), 0, 5);
  m.memory.note_abandoned(a);
  EXPECT_EQ(a.valid.load(), 0U);
  EXPECT_EQ(m.memory.prefetch(hint, 1), Memory::Staging::ready);
  EXPECT_TRUE(m.copies.empty());
}

TEST(Room, ACopyOfWhatIsElsewhereIsDroppedWithoutATransfer) {
  Machine m(0, 1);
  std::uint64_t value = 7;
  Handle &a = m.over(value), &b = m.data();
  Task &read_a = m.task({{&a, AccessMode::read}}), &write_b = m.task({{&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(read_a, 1), Memory::Staging::pending);
  m.deliver(0);
  m.finish(read_a, 1, 0);
  m.run(write_b, 1, 1);
  EXPECT_TRUE(m.copies.empty());
  EXPECT_EQ(a.valid.load(), 1U);
}

TEST(Room, ScratchMemoryCountsUntilItsTaskEnds) {
  Machine m(0, 3);
  Handle &a = m.data(), &b = m.data(), &space = m.data();
  Task &first = m.task({{&a, AccessMode::write}, {&space, AccessMode::scratch}});
  Task &second = m.task({{&b, AccessMode::write}, {&space, AccessMode::scratch}}),
       &given_back = m.task({{&a, AccessMode::read}, {&space, AccessMode::scratch}});
  ASSERT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  EXPECT_EQ(m.memory.acquire(second, 1), Memory::Staging::pending)
      << "one place is left, and each has memory of its own";
  m.finish(first, 1, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&second}));
  EXPECT_EQ(m.memory.room().used(1), 3 * kBytes);
  m.finish(second, 1, 2);
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  ASSERT_EQ(m.memory.acquire(given_back, 1), Memory::Staging::ready);
  EXPECT_EQ(m.memory.room().used(1), 3 * kBytes);
  m.memory.give_back(given_back, 1);
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  m.run(given_back, 1);
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  EXPECT_EQ(m.memory.room().bytes_of(first, 1), 2 * kBytes);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, TasksWaitInTheirOrderForOthersToEnd) {
  Machine m(0, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task& first = m.task({{&a, AccessMode::write}, {&b, AccessMode::write}});
  Task& second = m.task({{&b, AccessMode::write}, {&c, AccessMode::write}});
  Task& third = m.task({{&c, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  EXPECT_EQ(m.memory.acquire(second, 1), Memory::Staging::pending);
  EXPECT_EQ(m.memory.acquire(third, 1), Memory::Staging::pending);
  EXPECT_TRUE(m.copies.empty()) << "what is in use stays";
  m.finish(first, 1, 1);
  ASSERT_EQ(m.copies.size(), 1U);
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks.at(0), &second);
  m.finish(second, 1, 2);
  EXPECT_EQ(m.staged_tasks.at(1), &third);
  m.finish(third, 1, 3);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, TheTaskThatMissesTheFewestBytesIsNext) {
  Machine m(0, 3, 1);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task &first = m.task({{&a, AccessMode::write}}),
       &misses_two = m.task({{&b, AccessMode::write}, {&c, AccessMode::write}});
  Task &misses_one = m.task({{&a, AccessMode::write}, {&b, AccessMode::write}}),
       &misses_none = m.task({{&a, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  for (Task* const task : {&misses_two, &misses_one, &misses_none})
    EXPECT_EQ(m.memory.acquire(*task, 1), Memory::Staging::pending);
  EXPECT_TRUE(m.staged_tasks.empty()) << "one kernel at a time, though there is memory";
  m.finish(first, 1, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&misses_none}));
  EXPECT_TRUE(m.is_sound());
  m.finish(misses_none, 1, 2);
  EXPECT_EQ(m.staged_tasks.back(), &misses_one);
  m.finish(misses_one, 1, 3);
  EXPECT_EQ(m.staged_tasks.back(), &misses_two);
  m.finish(misses_two, 1, 4);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, OfTasksThatMissNothingTheMoreUrgentIsNextAndThenTheFirstOfTheFlow) {
  Machine m(0, 1, 1);
  Handle& a = m.data();
  Task &running = m.task({{&a, AccessMode::write}}), &early = m.task({{&a, AccessMode::write}}),
       &late = m.task({{&a, AccessMode::write}});
  Task& urgent = m.task({{&a, AccessMode::write}});
  urgent.priority = 1;
  EXPECT_EQ(m.memory.acquire(running, 1), Memory::Staging::ready);
  for (Task* const task : {&late, &early, &urgent}) EXPECT_EQ(m.memory.acquire(*task, 1), Memory::Staging::pending);
  for (Task* const task : {&running, &urgent, &early, &late}) m.finish(*task, 1, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&urgent, &early, &late}));
}

TEST(Room, OfTasksThatMissAsMuchTheFirstOfTheFlowIsNextHoweverUrgentAnotherIs) {
  Machine m(0, 2, 1);
  Handle &a = m.data(), &b = m.data();
  Task &running = m.task({{&a, AccessMode::write}}), &early = m.task({{&b, AccessMode::write}}),
       &urgent = m.task({{&b, AccessMode::write}});
  urgent.priority = 1;
  EXPECT_EQ(m.memory.acquire(running, 1), Memory::Staging::ready);
  for (Task* const task : {&urgent, &early}) EXPECT_EQ(m.memory.acquire(*task, 1), Memory::Staging::pending);
  for (Task* const task : {&running, &early, &urgent}) m.finish(*task, 1, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&early, &urgent}));
}

TEST(Room, WhoWaitsIsOvertakenSoManyTimesOnly) {
  Machine m(0, 2, 1);
  Handle &a = m.data(), &b = m.data();
  Task* running = &m.task({{&a, AccessMode::write}});
  ASSERT_EQ(m.memory.acquire(*running, 1), Memory::Staging::ready);
  Task& waits = m.task({{&b, AccessMode::write}});
  ASSERT_EQ(m.memory.acquire(waits, 1), Memory::Staging::pending);
  for (std::uint64_t overtaken = 0; overtaken <= Room::kPatience; ++overtaken) {
    Task& other = m.task({{&a, AccessMode::write}});
    ASSERT_EQ(m.memory.acquire(other, 1), Memory::Staging::pending);
    m.finish(*running, 1, 1);
    ASSERT_EQ(m.staged_tasks, (std::vector<Task*>{&other})) << overtaken << ": it misses nothing";
    m.staged_tasks.clear();
    running = &other;
  }
  Task& last = m.task({{&a, AccessMode::write}});
  ASSERT_EQ(m.memory.acquire(last, 1), Memory::Staging::pending);
  m.finish(*running, 1, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&waits}));
  m.finish(waits, 1, 1);
  m.finish(last, 1, 1);
}

TEST(Room, WhatNoWorkerRunsDoesNotWaitForKernels) {
  Machine m(0, 2, 1);
  Handle &a = m.data(), &b = m.data();
  Task &running = m.task({{&a, AccessMode::write}}), &waits = m.task({{&a, AccessMode::write}}),
       &access = m.task({{&b, AccessMode::write}});
  access.kind = TaskKind::application;
  EXPECT_EQ(m.memory.acquire(running, 1), Memory::Staging::ready);
  EXPECT_EQ(m.memory.acquire(waits, 1), Memory::Staging::pending);
  EXPECT_EQ(m.memory.acquire(access, 1), Memory::Staging::ready);
  m.finish(running, 1, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&waits})) << "the access does not count";
  m.finish(waits, 1, 1);
  m.finish(access, 1, 1);
}

TEST(Room, ATaskBehindAnotherTakesWhatIsFreeAndCountsAsNoKernel) {
  Machine m(0, 2, 1);
  Handle &a = m.data(), &b = m.data();
  Task &first = m.task({{&a, AccessMode::write}}), &second = m.task({{&a, AccessMode::read}, {&b, AccessMode::write}});
  Task& third = m.task({{&b, AccessMode::read_write}});
  EXPECT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  EXPECT_FALSE(m.memory.acquire_behind(third, first, 1)) << "nobody has written what it sees";
  EXPECT_TRUE(m.memory.acquire_behind(second, first, 1)) << "what it sees is written before, and there is room";
  EXPECT_TRUE(m.memory.acquire_behind(third, second, 1));
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  EXPECT_TRUE(m.is_sound());
  m.finish(first, 1, 1);
  m.finish(second, 1, 2);
  Task& fourth = m.task({{&a, AccessMode::read_write}});
  m.run(fourth, 1, 4);  // third does not count as a kernel for which it would wait
  m.finish(third, 1, 3);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, ATaskBehindAnotherMakesNothingLeaveAndOvertakesNobody) {
  Machine m(0, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  m.run(m.task({{&b, AccessMode::write}}), 1, 2);
  Task &first = m.task({{&a, AccessMode::write}}), &makes_c = m.task({{&a, AccessMode::read}, {&c, AccessMode::write}});
  Task& changes_a = m.task({{&a, AccessMode::read_write}});
  m.task({{&b, AccessMode::read}});
  EXPECT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  EXPECT_FALSE(m.memory.acquire_behind(makes_c, first, 1)) << "b would have to leave";
  EXPECT_TRUE(m.copies.empty());
  Task& waits = m.task({{&b, AccessMode::read}, {&c, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(waits, 1), Memory::Staging::pending);
  EXPECT_FALSE(m.memory.acquire_behind(changes_a, first, 1)) << "a is to leave for who waits";
  m.finish(first, 1, 1);
  ASSERT_EQ(m.copies.size(), 1U);
  EXPECT_FALSE(m.memory.acquire_behind(changes_a, waits, 1)) << "a is being moved";
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&waits}));
  m.finish(waits, 1, 3);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, ATaskBehindAnotherThatDoesNotRunGivesItsMemoryBack) {
  Machine m(0, 2, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task &first = m.task({{&a, AccessMode::write}}), &second = m.task({{&a, AccessMode::read}, {&b, AccessMode::write}});
  Task& third = m.task({{&a, AccessMode::read}, {&c, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  EXPECT_TRUE(m.memory.acquire_behind(second, first, 1));
  m.finish(first, 1, 1);
  EXPECT_EQ(m.memory.acquire(third, 1), Memory::Staging::pending);
  EXPECT_TRUE(m.staged_tasks.empty());
  m.memory.give_back(second, 1);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&third})) << "b has no value, and is dropped";
  m.finish(third, 1, 3);
  EXPECT_TRUE(m.is_sound());
  EXPECT_EQ(m.memory.acquire(second, 0), Memory::Staging::pending);
  m.deliver(0);
  m.finish(second, 0, 2);
}

TEST(Room, WhatATaskBehindAnotherReplacesIsNotMoved) {
  Machine m(1, 0);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 0, 1);
  Task &first = m.task({{&b, AccessMode::write}}), &replaces_a = m.task({{&a, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(first, 1), Memory::Staging::ready);
  EXPECT_TRUE(m.memory.acquire_behind(replaces_a, first, 1));
  Task& needs_room = m.task({{&m.data(), AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(needs_room, 0), Memory::Staging::ready) << "the old value of a is dropped";
  EXPECT_TRUE(m.copies.empty());
  m.finish(needs_room, 0, 1);
  m.finish(first, 1, 2);
  m.finish(replaces_a, 1, 3);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, BlocksNoTaskWhileAnEndedOneHasNotBeenFollowed) {
  Machine m(2, 0);
  Handle &held = m.data(), &x = m.data(), &y = m.data();
  Task& access = m.task({{&held, AccessMode::write}});
  access.kind = TaskKind::application;
  ASSERT_EQ(m.memory.acquire(access, 0), Memory::Staging::ready);
  m.memory.note_held(access, 0, true);
  Task& fill_x = m.task({{&x, AccessMode::write}});
  ASSERT_EQ(m.memory.acquire(fill_x, 0), Memory::Staging::ready);
  Task& fill_y = m.task({{&y, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(fill_y, 0), Memory::Staging::pending);
  m.task({{&x, AccessMode::read}});  // so that x is moved
  Memory::note_written(x, 0);
  ASSERT_TRUE(m.memory.end(fill_x, 0));
  EXPECT_TRUE(m.memory.room().blocked().empty()) << "only the access pins memory, but x can leave";
  m.memory.go_on(0);
  ASSERT_EQ(m.copies.size(), 1U) << "x leaves";
  EXPECT_TRUE(m.memory.room().blocked().empty());
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&fill_y}));
  m.finish(fill_y, 0, 2);
  m.memory.note_held(access, 0, false);
  if (m.memory.end(access, 0)) m.memory.go_on(0);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, WhatCannotFitIsRefusedWithTheNumbers) {
  Machine m(0, 2);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  Task& large = m.task({{&a, AccessMode::write}, {&b, AccessMode::write}, {&c, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(large, 1), Memory::Staging::pending);
  ASSERT_EQ(m.failed.size(), 1U);
  EXPECT_THAT(m.failed[0].second, HasSubstr("takes 24 bytes in the device, whose budget is 16 bytes"));
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&large})) << "it goes on, and is found to have failed";
  (void)m.memory.end(large, 0);
  m.run(m.task({{&a, AccessMode::write}}), 1, 1);
}

TEST(Room, MainMemoryGoesToStorageAndComesBack) {
  Machine m(1, 0);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 0, 5);
  Task &write_b = m.task({{&b, AccessMode::write}}), &read_a = m.task({{&a, AccessMode::read}}),
       &again = m.task({{&b, AccessMode::read}});
  EXPECT_EQ(m.memory.acquire(write_b, 0), Memory::Staging::pending);
  m.deliver(0);
  m.finish(write_b, 0, 6);
  EXPECT_EQ(m.memory.acquire(read_a, 0), Memory::Staging::pending);
  m.deliver(0);  // b leaves
  m.deliver(0);  // a arrives
  EXPECT_EQ(Machine::value_of(a, 0), 5U);
  m.finish(read_a, 0, 0);
  EXPECT_EQ(m.memory.acquire(again, 0), Memory::Staging::pending);
  m.deliver(0);
  m.finish(again, 0, 0);
  EXPECT_EQ(m.copied, (std::vector<std::pair<NodeIndex, NodeIndex>>{{0, 2}, {0, 2}, {2, 0}, {2, 0}}))
      << "a lay in storage already";
}

TEST(Room, DeviceDataSkipsAFullMainMemory) {
  Machine m(1, 1);
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 0, 1);
  m.run(m.task({{&b, AccessMode::write}}), 1, 2);
  Task &write_c = m.task({{&c, AccessMode::write}}), &read_b = m.task({{&b, AccessMode::read}});
  EXPECT_EQ(m.memory.acquire(write_c, 1), Memory::Staging::pending);
  m.deliver(0);
  m.deliver(0);
  EXPECT_EQ(b.replica(0).pointer, nullptr);
  m.finish(write_c, 1, 3);
  EXPECT_EQ(m.memory.acquire(read_b, 1), Memory::Staging::pending);
  while (!m.copies.empty()) m.deliver(0);
  // The copies pass through memory of their own, since a device and the storage do not reach each other; first b, then
  // c for it, then b again.
  EXPECT_EQ(m.copied, (std::vector<std::pair<NodeIndex, NodeIndex>>{{1, 0}, {0, 2}, {1, 0}, {0, 2}, {2, 0}, {0, 1}}));
  EXPECT_EQ(Machine::value_of(b, 1), 2U);
  m.finish(read_b, 1, 0);
}

TEST(Room, AWriterElsewhereWaitsForTheMove) {
  Machine m(0, 1);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 1);
  Task &write_b = m.task({{&b, AccessMode::write}}), &write_a = m.task({{&a, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_b, 1), Memory::Staging::pending) << "a moves";
  EXPECT_EQ(m.memory.acquire(write_a, 0), Memory::Staging::pending) << "or the move would overwrite its value";
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks.size(), 2U);
  EXPECT_EQ(m.memory.acquire(write_a, 0), Memory::Staging::ready);
  m.finish(write_a, 0, 9);
  m.finish(write_b, 1, 2);
  EXPECT_EQ(Machine::value_of(a, 0), 9U);
  EXPECT_EQ(a.valid.load(), 1U);
}

TEST(Room, AWriterWhoseMoveEndsBeforeItSleepsHasItsDataStillToBeBrought) {
  for (const AccessMode mode : {AccessMode::read_write, AccessMode::write}) {
    Machine m(1, 2);
    std::uint64_t value = 7;
    Handle &a = m.data(), &b = m.over(value), &c = m.data();
    m.run(m.task({{&a, AccessMode::write}}), 0, 5);
    Task &write_c = m.task({{&c, AccessMode::write}}), &change_a = m.task({{&a, mode}, {&b, AccessMode::read}});
    ASSERT_EQ(m.memory.acquire(write_c, 0), Memory::Staging::pending) << "a moves to storage";
    // The move ends, and then the copy of b, both before `acquire` has returned.
    unsigned copies = 0;
    m.meanwhile = [&] {
      if (++copies == 1) while (!m.copies.empty()) m.deliver(0);
    };
    EXPECT_EQ(m.memory.acquire(change_a, 1), Memory::Staging::pending);
    EXPECT_EQ(copies, 1U) << "that of b";
    EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&write_c, &change_a}));
    EXPECT_FALSE(m.memory.is_present(change_a, 1)) << "a is in storage alone";
    const bool sees_it = m.memory.acquire(change_a, 1) == Memory::Staging::pending;
    EXPECT_EQ(sees_it, mode == AccessMode::read_write);
    while (!m.copies.empty()) m.deliver(0);
    if (sees_it) {
      EXPECT_EQ(Machine::value_of(a, 1), 5U);
    }
    m.finish(change_a, 1, 6);
    EXPECT_EQ(a.valid.load(), 2U) << "what is in storage is out of date";
    m.finish(write_c, 0, 8);
    EXPECT_TRUE(m.is_sound());
  }
}

TEST(Room, WhatIsDamagedIsGivenUpOnlyWhileThereIsAnotherCopy) {
  // A task on the device has damaged its data while other data leaves main memory for the data of a task there.
  for (int round = 0; round < 300; ++round) {
    constexpr unsigned kCount = 64;
    Machine m(kCount, kCount);
    std::vector<Handle*> a, b;
    for (unsigned i = 0; i < kCount; ++i) {
      a.push_back(&m.data());
      b.push_back(&m.data());
      m.run(m.task({{a[i], AccessMode::write}}), 0, i);
    }
    Task &change_a = m.task(a, AccessMode::read_write), &write_b = m.task(b, AccessMode::write);
    ASSERT_EQ(m.memory.acquire(change_a, 1), Memory::Staging::pending);
    while (!m.copies.empty()) m.deliver(0);
    ASSERT_TRUE(m.memory.is_present(change_a, 1));
    std::atomic<int> there{0};
    const auto meet = [&] {
      ++there;
      while (there.load() != 2) std::this_thread::yield();
    };
    std::thread other([&] {
      meet();
      (void)m.memory.acquire(write_b, 0);
    });
    meet();
    for (int delay = round % 100 * 200; delay > 0; --delay) std::atomic_signal_fence(std::memory_order_seq_cst);
    const bool given_up = m.memory.drop_damaged(change_a, 1);
    other.join();
    for (const Handle* const handle : a)
      ASSERT_NE(handle->valid.load(), 0U) << (given_up ? "given up" : "kept") << ", round " << round;
    while (!m.copies.empty()) m.deliver(0);
    (void)m.memory.end(change_a, 1);
    (void)m.memory.end(write_b, 0);
  }
}

TEST(Room, AValueThatWillBeReplacedIsNotMoved) {
  Machine m(0, 1);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 1);
  Task &write_a = m.task({{&a, AccessMode::write}}), &write_b = m.task({{&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_a, 0), Memory::Staging::ready);
  m.run(write_b, 1, 2);
  EXPECT_TRUE(m.copies.empty());
  m.finish(write_a, 0, 3);
}

TEST(Room, AMoveThatFailsLeavesTheValueWhereItIs) {
  Machine m(0, 1);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 1);
  Task &write_b = m.task({{&b, AccessMode::write}}), &read_a = m.task({{&a, AccessMode::read}});
  EXPECT_EQ(m.memory.acquire(write_b, 1), Memory::Staging::pending);
  m.deliver(0, true);
  ASSERT_EQ(m.failed.size(), 1U);
  EXPECT_EQ(m.failed[0].first, &write_b);
  EXPECT_THAT(m.failed[0].second, HasSubstr("of which 8 bytes cannot be moved away"));
  EXPECT_EQ(a.valid.load(), 2U);
  (void)m.memory.end(write_b, 0);
  m.run(read_a, 1);
  EXPECT_EQ(Machine::value_of(a, 1), 1U);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, SaysWhyDataCouldNotBeMovedAway) {
  Machine m(1, 0);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 0, 1);
  Task& write_b = m.task({{&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_b, 0), Memory::Staging::pending);
  m.deliver(0, true);
  ASSERT_EQ(m.failed.size(), 1U);
  EXPECT_THAT(m.failed[0].second, HasSubstr("of which 8 bytes cannot be moved away (no link)"));
  (void)m.memory.end(write_b, 0);
}

TEST(Room, ABudgetShrinksToWhatTheNodeHasAndDataLeaves) {
  Machine m(0, 4);
  m.nodes[0]->capacity = 2;
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 10);
  m.run(m.task({{&b, AccessMode::write}}), 1, 20);
  Task& write_c = m.task({{&c, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_c, 1), Memory::Staging::pending) << "the budget has room, and the node has none";
  EXPECT_EQ(m.memory.room().budget(1), 3 * kBytes - 1);
  ASSERT_EQ(m.copies.size(), 1U) << "a leaves";
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&write_c}));
  EXPECT_TRUE(m.failed.empty());
  m.finish(write_c, 1, 30);
  EXPECT_EQ(Machine::value_of(a, 0), 10U);
  EXPECT_EQ(m.memory.room().used(1), 2 * kBytes);
  // From now on data leaves before the node is asked for more than it has.
  m.run(m.task({{&a, AccessMode::write}}), 0, 40);
  EXPECT_EQ(m.memory.acquire(m.task({{&a, AccessMode::read_write}}), 1), Memory::Staging::pending);
  EXPECT_EQ(m.memory.room().budget(1), 3 * kBytes - 1);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, ATaskThatTheNodeHasNoMemoryForFailsWithTheNumbers) {
  Machine m(0, 4);
  m.nodes[0]->capacity = 1;
  Handle &a = m.data(), &b = m.data();
  Task& both = m.task({{&a, AccessMode::write}, {&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(both, 1), Memory::Staging::pending);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&both}));
  ASSERT_EQ(m.failed.size(), 1U);
  EXPECT_THAT(m.failed[0].second, HasSubstr("its data takes 16 bytes in the device, whose budget is 15 bytes (and was "
                                            "32 bytes, but there was no memory"));
  EXPECT_FALSE(m.memory.end(both, 1));
  EXPECT_TRUE(m.is_sound());
  // Data that fits is not delayed.
  m.run(m.task({{&b, AccessMode::write}}), 1, 5);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, ATaskWaitsForHoldersWhenTheNodeHasLessThanItsBudget) {
  Machine m(0, 4);
  m.nodes[0]->capacity = 1;
  Handle &a = m.data(), &b = m.data();
  Task &write_a = m.task({{&a, AccessMode::write}}), &write_b = m.task({{&b, AccessMode::write}});
  ASSERT_EQ(m.memory.acquire(write_a, 1), Memory::Staging::ready);
  EXPECT_EQ(m.memory.acquire(write_b, 1), Memory::Staging::pending);
  EXPECT_TRUE(m.copies.empty());
  m.finish(write_a, 1, 10);
  ASSERT_EQ(m.copies.size(), 1U);
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&write_b}));
  m.finish(write_b, 1, 20);
  EXPECT_TRUE(m.failed.empty());
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, AHintForWhichTheNodeHasNoMemoryIsLost) {
  Machine m(0, 4);
  m.nodes[0]->capacity = 1;
  std::uint64_t value = 7;
  Handle &a = m.data(), &b = m.over(value);
  m.run(m.task({{&a, AccessMode::write}}), 1, 10);
  Task& hint = m.task({{&b, AccessMode::read}}, false);
  TaskExtra extra;
  extra.is_hint = true;
  hint.kind = TaskKind::event;
  hint.extra = &extra;
  EXPECT_EQ(m.memory.prefetch(hint, 1), Memory::Staging::ready);
  EXPECT_EQ(m.memory.prefetches().lost, 1U);
  EXPECT_TRUE(m.copies.empty());
  EXPECT_EQ(m.memory.room().used(1), kBytes);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, CountsWhatTheNodeTakesForAPiece) {
  Machine m(0, 4);
  m.nodes[0]->granule = 2 * kBytes;
  Handle &a = m.data(), &b = m.data(), &c = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 10);
  m.run(m.task({{&b, AccessMode::write}}), 1, 20);
  EXPECT_EQ(m.memory.room().used(1), 4 * kBytes);
  EXPECT_EQ(m.memory.room().bytes_of(m.task({{&c, AccessMode::write}}), 1), 2 * kBytes);
  EXPECT_EQ(m.memory.acquire(m.task({{&c, AccessMode::write}}), 1), Memory::Staging::pending);
  EXPECT_EQ(m.copies.size(), 1U);
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks.size(), 1U);
  EXPECT_TRUE(m.is_sound());
}

TEST(Room, DataThatIsDroppedWhileItMovesIsFreedBehindTheMove) {
  Machine m(0, 1);
  Handle &a = m.data(), &b = m.data();
  m.run(m.task({{&a, AccessMode::write}}), 1, 1);
  Task& write_b = m.task({{&b, AccessMode::write}});
  EXPECT_EQ(m.memory.acquire(write_b, 1), Memory::Staging::pending);
  std::erase(m.handles, &a);
  m.memory.free_replicas(a);
  a.drop_reference();
  a.drop_reference();
  EXPECT_EQ(m.staged_tasks.size(), 0U);
  m.deliver(0);
  EXPECT_EQ(m.staged_tasks, (std::vector<Task*>{&write_b}));
  m.finish(write_b, 1, 2);
}

// --- every order

/// A task of a small flow.
struct Step {
  NodeIndex node = 0;
  std::vector<std::pair<unsigned, AccessMode>> uses;
};

/// Plays a flow and asks `choose` which of the possible events comes next: a task becomes ready and asks for its data,
/// or it runs, or a copy ends; if copies `overlap`, also which of them end while another one is being started. Throws
/// std::logic_error if a value is wrong or nothing goes on.
class Play {
 public:
  Play(std::size_t main_data, std::size_t device_data, unsigned data_count, const std::vector<Step>& flow,
       unsigned kernels = Room::kNoLimit, bool overlap = false, int device_capacity = std::numeric_limits<int>::max())
      : machine_(main_data, device_data, kernels), flow_(flow), overlap_(overlap) {
    machine_.nodes[0]->capacity = device_capacity;
    for (unsigned i = 0; i < data_count; ++i) data_.push_back(&machine_.data());
    std::vector<std::uint64_t> values(data_count, 0);
    for (const Step& step : flow) {
      Task& task = *machine_.pool.take(Task::value_offset(step.uses.size(), 1));
      task.id = ++machine_.last;
      task.room = RoomState();
      task.access_count = static_cast<std::uint8_t>(step.uses.size());
      unsigned i = 0;
      std::uint64_t sum = task.id;
      for (const auto& [datum, mode] : step.uses) {
        task.accesses()[i++].set(data_[datum], mode);
        if (sees_value(mode)) sum = sum * 31 + values[datum];
      }
      machine_.memory.room().note_uses(task);
      for (const auto& [datum, mode] : step.uses)
        if (makes_value(mode)) values[datum] = sum + datum;
      tasks_.push_back({&task, State::waiting, sum});
    }
    expected_ = values;
  }

  template <class Choose>
  void run(const Choose& choose) {
    bool is_inside = false;
    if (overlap_) machine_.meanwhile = [&] {
      if (std::exchange(is_inside, true)) return;
      while (const std::size_t at = machine_.copies.empty() ? 0 : choose(machine_.copies.size() + 1))
        machine_.deliver(at - 1);
      is_inside = false;
    };
    for (std::size_t ended = 0; ended < flow_.size();) {
      std::vector<std::function<void()>> possible;
      for (std::size_t i = 0; i < flow_.size(); ++i) {
        if (tasks_[i].state == State::waiting && is_ready(i)) possible.push_back([this, i] { stage(i); });
        if (tasks_[i].state == State::staged) possible.push_back([this, i, &ended] { ended += try_to_run(i); });
      }
      for (std::size_t i = 0; i < machine_.copies.size(); ++i) possible.push_back([this, i] { machine_.deliver(i); });
      if (possible.empty()) throw std::logic_error("nothing goes on");
      possible[choose(possible.size())]();
      for (Task* const task : std::exchange(machine_.staged_tasks, {})) state_of(*task) = State::staged;
      if (!machine_.failed.empty()) throw std::logic_error(machine_.failed[0].second);
      if (!machine_.is_sound()) throw std::logic_error("the room's structures disagree");
    }
    machine_.meanwhile = nullptr;
    while (!machine_.copies.empty()) machine_.deliver(0);
    for (std::size_t i = 0; i < data_.size(); ++i)
      for (NodeIndex node = 0; node < 3; ++node)
        if (data_[i]->valid_on(node) && Machine::value_of(*data_[i], node) != expected_[i])
          throw std::logic_error("a replica is wrong");
  }

 private:
  enum class State : std::uint8_t { waiting, staging, staged, ended };
  struct Played {
    Task* task = nullptr;
    State state = State::waiting;
    std::uint64_t sum = 0;
  };

  State& state_of(const Task& task) {
    return std::find_if(tasks_.begin(), tasks_.end(),
                        [&](const Played& played) { return played.task == &task; })->state;
  }
  bool is_ready(std::size_t index) const {
    for (std::size_t before = 0; before < index; ++before) {
      if (tasks_[before].state == State::ended) continue;
      for (const auto& [datum, mode] : flow_[before].uses)
        for (const auto& [wanted, other] : flow_[index].uses)
          if (datum == wanted && (makes_value(mode) || makes_value(other))) return false;
    }
    return true;
  }
  void stage(std::size_t index) {
    tasks_[index].state = State::staging;
    if (machine_.memory.acquire(*tasks_[index].task, flow_[index].node) != Memory::Staging::ready) return;
    tasks_[index].state = State::staged;
    if (!machine_.memory.is_present(*tasks_[index].task, flow_[index].node))
      throw std::logic_error("a task would run before its data is there");
  }
  unsigned try_to_run(std::size_t index) {
    Task& task = *tasks_[index].task;
    const NodeIndex node = flow_[index].node;
    if (!machine_.memory.is_present(task, node)) {
      stage(index);
      return 0;
    }
    std::uint64_t sum = task.id;
    for (const auto& [datum, mode] : flow_[index].uses)
      if (sees_value(mode)) sum = sum * 31 + Machine::value_of(*data_[datum], node);
    if (sum != tasks_[index].sum) throw std::logic_error("a task sees a wrong value");
    for (const auto& [datum, mode] : flow_[index].uses) {
      if (!makes_value(mode)) continue;
      Machine::value_of(*data_[datum], node) = sum + datum;
      Memory::note_written(*data_[datum], node);
    }
    if (machine_.memory.end(task, node)) machine_.memory.go_on(node);
    tasks_[index].state = State::ended;
    return 1;
  }

  Machine machine_;
  const std::vector<Step>& flow_;
  const bool overlap_;
  std::vector<Handle*> data_;
  std::vector<Played> tasks_;
  std::vector<std::uint64_t> expected_;
};

/// Plays all orders, depth first. Returns their number.
std::size_t play_all(std::size_t main_data, std::size_t device_data, unsigned data_count, const std::vector<Step>& flow,
                     unsigned kernels = Room::kNoLimit, bool overlap = false,
                     int device_capacity = std::numeric_limits<int>::max()) {
  std::vector<std::pair<std::size_t, std::size_t>> path;  // chosen event and number of events
  std::size_t orders = 0;
  do {
    std::size_t depth = 0;
    Play play(main_data, device_data, data_count, flow, kernels, overlap, device_capacity);
    play.run([&](std::size_t count) {
      if (depth == path.size()) path.emplace_back(0, count);
      return path[depth++].first;
    });
    ++orders;
    while (!path.empty() && ++path.back().first == path.back().second) path.pop_back();
  } while (!path.empty());
  return orders;
}

constexpr AccessMode kRead = AccessMode::read, kWrite = AccessMode::write, kUpdate = AccessMode::read_write;

TEST(RoomUnderEveryOrder, WritersOnTwoNodesAndAnEviction) {
  // The device has room for one datum; x is written there, leaves for y, and is replaced or changed in main memory
  // meanwhile.
  for (const AccessMode mode : {kRead, kWrite, kUpdate}) {
    EXPECT_GT(play_all(0, 1, 2, {{1, {{0, kWrite}}}, {1, {{1, kWrite}}}, {0, {{0, mode}}}, {1, {{0, kRead}}}}), 10U);
    EXPECT_GT(
        play_all(0, 1, 2,
                 {{1, {{0, kWrite}}}, {1, {{1, kWrite}}}, {0, {{0, mode}}}, {1, {{1, kUpdate}}}, {0, {{1, kRead}}}}),
        10U);
  }
}

TEST(RoomUnderEveryOrder, MainMemoryAndStorage) {
  EXPECT_GT(play_all(1, 0, 2, {{0, {{0, kWrite}}}, {0, {{1, kWrite}}}, {0, {{0, kUpdate}}}, {0, {{1, kRead}}}}), 10U);
  EXPECT_GT(play_all(2, 0, 3, {{0, {{0, kWrite}}}, {0, {{1, kWrite}, {2, kWrite}}}, {0, {{0, kUpdate}, {1, kRead}}}}),
            3U);
}

TEST(RoomUnderEveryOrder, BothMemoriesAreFull) {
  EXPECT_GT(play_all(1, 1, 3, {{0, {{0, kWrite}}}, {1, {{1, kWrite}}}, {1, {{2, kWrite}}}, {0, {{1, kUpdate}}}}), 10U);
  EXPECT_GT(play_all(1, 1, 2, {{0, {{0, kWrite}}}, {1, {{0, kUpdate}}}, {1, {{1, kWrite}}}, {0, {{0, kRead}}}}), 10U);
}

TEST(RoomUnderEveryOrder, OneKernelAtATime) {
  EXPECT_GT(
      play_all(2, 0, 3, {{0, {{0, kWrite}}}, {0, {{1, kWrite}, {2, kWrite}}}, {0, {{0, kUpdate}, {1, kRead}}}}, 1), 3U);
  EXPECT_GT(play_all(0, 1, 2, {{1, {{0, kWrite}}}, {1, {{1, kWrite}}}, {0, {{0, kUpdate}}}, {1, {{0, kRead}}}}, 1),
            10U);
}

TEST(RoomUnderEveryOrder, CopiesEndWhileOthersBegin) {
  // The last task changes x, which may be on its way to storage, and reads y, which must be fetched.
  const std::vector<Step> flow{
      {0, {{0, kWrite}}}, {0, {{1, kWrite}}}, {0, {{2, kWrite}}}, {1, {{0, kUpdate}, {1, kRead}}}};
  EXPECT_GT(play_all(2, 2, 3, flow, Room::kNoLimit, true), 10U);
}

TEST(RoomUnderEveryOrder, TheDeviceHasLessThanItsBudget) {
  const std::vector<Step> flow{
      {1, {{0, kWrite}}}, {1, {{1, kWrite}}}, {1, {{0, kRead}, {2, kWrite}}}, {0, {{1, kUpdate}}}};
  EXPECT_GT(play_all(0, 3, 3, flow, Room::kNoLimit, false, 2), 10U);
  EXPECT_GT(play_all(0, 8, 2, {{1, {{0, kWrite}}}, {1, {{1, kWrite}}}, {0, {{0, kUpdate}}}, {1, {{0, kRead}}}},
                     Room::kNoLimit, false, 1),
            10U);
}

TEST(Room, RandomFlowsInRandomOrders) {
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
    const unsigned data_count = 3 + draw(4);
    std::vector<Step> flow;
    std::vector<bool> written(data_count, false);
    for (unsigned i = 0; i < 40; ++i) {
      Step step{draw(2), {}};
      for (unsigned datum = draw(data_count), end = std::min(data_count, datum + 1 + draw(2)); datum < end; ++datum) {
        const AccessMode mode = !written[datum] ? kWrite : std::array{kRead, kWrite, kUpdate}[draw(3)];
        step.uses.emplace_back(datum, mode);
        written[datum] = true;
      }
      flow.push_back(std::move(step));
    }
    const std::size_t main_data = draw(2) == 0 ? 0 : 2 + draw(2);
    const std::size_t device_data = draw(4) == 0 && main_data != 0 ? 0 : 2 + draw(2);
    // In some cases the device has less memory than its budget says.
    const int capacity = device_data != 0 && draw(2) == 0 ? 2 : std::numeric_limits<int>::max();
    Play play(main_data, device_data, data_count, flow, draw(2) == 0 ? Room::kNoLimit : 1 + draw(2), seed % 2 == 0,
              capacity);
    ASSERT_NO_THROW(play.run([&](std::size_t count) { return draw(static_cast<unsigned>(count)); })) << "seed " << seed;
  }
}

// --- the file

TEST(SpillFile, KeepsColumnsOfAMatrixAndReusesPlaces) {
  auto made = make_spill_file(testing::TempDir());
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto [node, copier] = std::move(made).value();
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;
  const auto copy = [&](const CopyRequest& request) {
    ASSERT_EQ(copier->start(request, [&](const std::exception_ptr& failure) {
      EXPECT_EQ(failure, nullptr);
      const std::lock_guard guard(mutex);
      ++ended;
      changed.notify_one();
    }), CopyState::posted);
  };
  const Shape shape{3, 4, sizeof(double)};
  double source[20], target[24];
  for (int i = 0; i < 20; ++i) source[i] = i;
  std::fill(std::begin(target), std::end(target), -1.0);
  void* const place = node->allocate(shape.bytes());
  void* const other = node->allocate(shape.bytes());
  EXPECT_NE(place, other);
  copy({0, 1, source, place, 5, 3, shape});
  copy({1, 0, place, target, 3, 6, shape});
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended == 2; });
  }
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 6; ++i) EXPECT_EQ(target[i + 6 * j], i < 3 ? source[i + 5 * j] : -1.0) << i << "," << j;
  node->release(place, shape.bytes());
  EXPECT_EQ(node->allocate(shape.bytes()), place);
  copier->finish();
}

/// Length and disk space of the nameless file in which this process has written last.
std::pair<std::uint64_t, std::uint64_t> size_of_nameless_file(const std::string& folder) {
  std::pair<std::uint64_t, std::uint64_t> size{0, 0};
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat found {};
    if (gone || !target.starts_with(folder) || ::stat(entry.path().c_str(), &found) != 0 || found.st_nlink != 0)
      continue;
    size = {static_cast<std::uint64_t>(found.st_size), static_cast<std::uint64_t>(found.st_blocks) * 512};
  }
  return size;
}

// Pieces of many sizes come and go; about 2 MiB are alive.
TEST(SpillFile, TakesOfTheDiskWhatIsAliveForHoweverLong) {
  const std::string folder = std::filesystem::canonical(testing::TempDir()).string();
  auto made = make_spill_file(folder);
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto [node, copier] = std::move(made).value();
  std::mt19937_64 random(7);
  std::vector<char> bytes(200'000, 'x');
  std::deque<std::pair<void*, std::size_t>> alive;
  const auto write = [&, file = copier.get()](void* place, std::size_t count) {
    std::atomic<bool> ended{false};
    const Shape shape{count, 1, 1};
    ASSERT_EQ(file->start({0, 1, bytes.data(), place, count, count, shape}, [&](const std::exception_ptr& failure) {
      EXPECT_EQ(failure, nullptr);
      ended = true;
      ended.notify_one();
    }), CopyState::posted);
    ended.wait(false);
  };
  std::vector<std::uint64_t> on_disk;
  for (const int pieces : {200, 2'000}) {
    for (int i = 0; i < pieces; ++i) {
      const std::size_t count = 1 + random() % bytes.size();
      alive.emplace_back(node->allocate(count), count);
      write(alive.back().first, count);
      if (alive.size() <= 20) continue;
      const std::size_t leaves = random() % alive.size();
      node->release(alive[leaves].first, alive[leaves].second);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(leaves));
    }
    const auto [length, disk] = size_of_nameless_file(folder);
    EXPECT_GT(length, 0U);
    EXPECT_LE(length, std::uint64_t{16} << 20) << "after " << pieces << " pieces";
    on_disk.push_back(disk);
  }
  EXPECT_LE(on_disk[1], on_disk[0] + (std::uint64_t{5} << 20)) << "ten times as many pieces";
  // All disk space returns when nothing is alive, though no further write comes.
  std::vector<std::pair<void*, std::size_t>> more;
  for (int i = 0; i < 60; ++i) {
    more.emplace_back(node->allocate(bytes.size()), bytes.size());
    write(more.back().first, bytes.size());
  }
  for (const auto& [place, count] : more) node->release(place, count);
  for (const auto& [place, count] : alive) node->release(place, count);
  copier->finish();
  EXPECT_LE(size_of_nameless_file(folder).first, std::uint64_t{4} << 20);
}

TEST(SpillFile, AFolderThatIsNotThereIsNamed) {
  const auto made = make_spill_file("/nowhere/at/all");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("/nowhere/at/all"));
  EXPECT_THAT(made.error().message, HasSubstr("option spill"));
}

}  // namespace
}  // namespace tandem::runtime::room_test
