// tandem/runtime/memory/memory_test.cpp: replicas: where the value is, and which copies are made.
#include "tandem/runtime/memory/memory.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/runtime/task/pool.hpp"

namespace tandem::runtime::memory_test {
namespace {

struct LimitedMemory final : MemoryNode {
  int left = 100;
  int alive = 0;
  std::string name() const override { return "limited"; }
  void* allocate(std::size_t bytes) override {
    if (left == 0) return nullptr;
    --left;
    ++alive;
    return std::malloc(bytes + 1);
  }
  void release(void* memory, std::size_t) noexcept override {
    --alive;
    std::free(memory);
  }
};

struct SlowCopier final : Copier {
  std::deque<std::function<void()>> under_way;
  std::vector<std::pair<NodeIndex, NodeIndex>> copies;
  std::vector<CopyRequest> requests;
  bool throws = false;
  CopyState start(const CopyRequest& request, CopyEnded ended) override {
    if (throws) throw std::runtime_error("no link");
    copies.emplace_back(request.from_node, request.to_node);
    requests.push_back(request);
    under_way.push_back([request, ended] {
      copy_matrix(request);
      ended(nullptr);
    });
    return CopyState::posted;
  }
  void deliver() {
    while (!under_way.empty()) {
      auto action = std::move(under_way.front());
      under_way.pop_front();
      action();
    }
  }
};

struct Fixture : StagingListener {
  Memory memory{*this};
  LimitedMemory* limited = nullptr;
  SlowCopier* copier = nullptr;
  TaskPool pool;
  std::vector<Task*> staged_tasks;
  std::vector<Task*> failed_tasks;
  std::deque<Handle> handles;

  Fixture() {
    auto node = std::make_unique<LimitedMemory>();
    auto slow = std::make_unique<SlowCopier>();
    limited = node.get();
    copier = slow.get();
    memory.add_node(std::move(node), std::move(slow));
  }
  ~Fixture() override {
    for (Handle& handle : handles) memory.free_replicas(handle);
    EXPECT_EQ(limited->alive, 0) << "every replica is freed";
  }
  void staged(Task& task) override { staged_tasks.push_back(&task); }
  void staging_failed(Task& task, const std::exception_ptr&) override { failed_tasks.push_back(&task); }

  Handle& over(std::vector<double>& values) {
    Handle& handle = handles.emplace_back();
    handle.shape = {values.size(), 1, sizeof(double)};
    handle.home = {values.data(), values.size(), false};
    handle.valid.store(1);
    handle.elsewhere = std::make_unique<Handle::Place[]>(1);
    return handle;
  }
  Handle& owned(std::size_t rows, std::size_t cols = 1) {
    Handle& handle = handles.emplace_back();
    handle.shape = {rows, cols, sizeof(double)};
    handle.elsewhere = std::make_unique<Handle::Place[]>(1);
    return handle;
  }
  Task& task(std::initializer_list<std::pair<Handle*, AccessMode>> uses) {
    Task& result = *pool.take(Task::value_offset(uses.size(), 1));
    result.access_count = static_cast<std::uint8_t>(uses.size());
    unsigned i = 0;
    for (const auto& [handle, mode] : uses) result.accesses()[i++].set(handle, mode);
    return result;
  }
};

TEST(Memory, AReaderElsewhereGetsACopyAndBothShareTheValue) {
  Fixture f;
  std::vector<double> values{1, 2, 3};
  Handle& x = f.over(values);
  Task& reader = f.task({{&x, AccessMode::read}});
  EXPECT_EQ(f.memory.acquire(reader, 1), Memory::Staging::pending);
  EXPECT_TRUE(f.staged_tasks.empty());
  EXPECT_FALSE(x.valid_on(1));
  f.copier->deliver();
  EXPECT_EQ(f.staged_tasks, (std::vector<Task*>{&reader}));
  EXPECT_EQ(x.valid.load(), 3U) << "shared";
  EXPECT_EQ(std::memcmp(x.replica(1).pointer, values.data(), sizeof(double) * 3), 0);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read}}), 1), Memory::Staging::ready) << "it is there now";
}

/// Node 2 is the memory of a NUMA node, node 1 that of a device.
struct NumaFixture : Fixture {
  NumaFixture() {
    memory.set_numa([](const void*, std::size_t bytes) -> std::optional<std::size_t> { return bytes == 8 ? 1 : 0; });
    memory.add_node(make_main_memory(), make_processor_copier());
    memory.set_numa_place(2, 1);
  }
  Handle& settled(std::vector<double>& values) {
    Handle& handle = over(values);
    handle.user_memory = true;
    handle.elsewhere = std::make_unique<Handle::Place[]>(2);
    memory.settle_home(handle);
    return handle;
  }
};

TEST(Memory, WhatLiesOnANumaNodeIsUsedThereWithoutACopy) {
  NumaFixture f;
  std::vector<double> values{1};
  Handle& x = f.settled(values);
  EXPECT_EQ(x.node_at(2), 0U);
  EXPECT_EQ(x.node_at(1), 1U);
  EXPECT_EQ(x.seen_valid(), 5U);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read_write}}), 2), Memory::Staging::ready);
  EXPECT_EQ(x.replica(2).pointer, values.data());
  Memory::note_written(x, 2);
  EXPECT_EQ(x.valid.load(), 1U);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read_write}}), 1), Memory::Staging::pending);
  f.copier->deliver();
  Memory::note_written(x, 1);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read}}), 2), Memory::Staging::pending);
  f.copier->deliver();
  EXPECT_EQ(x.valid.load(), 3U) << "it came to main memory";
}

TEST(Memory, ANumaNodeIsMainMemoryForDevices) {
  NumaFixture f;
  std::vector<double> values{1, 2};
  Handle& x = f.settled(values);
  EXPECT_EQ(x.node_at(2), 2U) << "it lies elsewhere";
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read_write}}), 2), Memory::Staging::ready)
      << "copied by the processor";
  EXPECT_NE(x.replica(2).pointer, values.data());
  static_cast<double*>(x.replica(2).pointer)[0] = 7;
  Memory::note_written(x, 2);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read_write}}), 1), Memory::Staging::pending);
  f.copier->deliver();
  EXPECT_EQ(static_cast<double*>(x.replica(1).pointer)[0], 7);
  Memory::note_written(x, 1);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read}}), 2), Memory::Staging::pending);
  f.copier->deliver();
  EXPECT_EQ(f.copier->copies, (std::vector<std::pair<NodeIndex, NodeIndex>>{{0, 1}, {1, 0}}))
      << "at once, and its copier sees main memory";
}

TEST(Memory, AnEventReadsInADevicesMemoryWhatMainMemoryHasNot) {
  Fixture f;  // only copies reach its node 1
  f.memory.add_node(make_main_memory(), make_processor_copier());
  EXPECT_EQ(f.memory.message_nodes(MessageMemory::host), 4U) << "but main memory, which is no device's";
  EXPECT_EQ(f.memory.message_nodes(MessageMemory::cuda), 0U);
  Handle& x = f.owned(3);
  x.elsewhere = std::make_unique<Handle::Place[]>(2);
  Task& event = f.task({{&x, AccessMode::read}});
  f.pool.extra_of(event).sources = f.memory.message_nodes(MessageMemory::host);
  const auto source = [&](std::uint32_t valid) {
    x.valid.store(valid);
    return f.memory.source_of(event);
  };
  EXPECT_EQ(source(4), 2U);
  EXPECT_EQ(source(4 | Handle::kMoving), 2U) << "it is still there";
  EXPECT_EQ(source(4 | 2), 2U);
  EXPECT_EQ(source(4 | 1), 0U) << "main memory comes first";
  EXPECT_EQ(source(2), 0U) << "it is brought";
  EXPECT_EQ(source(0), 0U);
  event.extra->sources = 0;
  EXPECT_EQ(source(4), 0U);
  event.extra->sources = 4;
  f.memory.end_messages_from(2);
  EXPECT_EQ(source(4), 0U) << "its device is lost";
  EXPECT_EQ(f.memory.message_nodes(MessageMemory::host), 0U);
  x.valid.store(0);
}

TEST(Memory, MessagesAreNotReadInMemoriesOfNumaNodes) {
  EXPECT_EQ(NumaFixture().memory.message_nodes(MessageMemory::host), 0U);
}

TEST(Memory, ManyReadersCostOneTransfer) {
  Fixture f;
  std::vector<double> values{1};
  Handle& x = f.over(values);
  std::vector<Task*> readers;
  for (int i = 0; i < 5; ++i) {
    readers.push_back(&f.task({{&x, AccessMode::read}}));
    EXPECT_EQ(f.memory.acquire(*readers.back(), 1), Memory::Staging::pending);
  }
  EXPECT_EQ(f.copier->copies.size(), 1U);
  f.copier->deliver();
  EXPECT_EQ(f.staged_tasks.size(), 5U);
}

TEST(Memory, ACopyThatThrowsFailsTheTaskAndLeavesNoTransfer) {
  Fixture f;
  std::vector<double> values{1};
  Handle& x = f.over(values);
  Task& reader = f.task({{&x, AccessMode::read}});
  f.copier->throws = true;
  EXPECT_EQ(f.memory.acquire(reader, 1), Memory::Staging::ready) << "it goes on, and is found to have failed";
  EXPECT_EQ(f.failed_tasks, (std::vector<Task*>{&reader}));
  EXPECT_FALSE(x.valid_on(1));
  f.copier->throws = false;
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read}}), 1), Memory::Staging::pending);
  f.copier->deliver();
  EXPECT_TRUE(x.valid_on(1));
}

TEST(Memory, AWriterMakesTheOthersInvalidAndFetchesNothing) {
  Fixture f;
  std::vector<double> values{1};
  Handle& x = f.over(values);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::write}}), 1), Memory::Staging::ready);
  EXPECT_TRUE(f.copier->copies.empty());
  *static_cast<double*>(x.replica(1).pointer) = 9;
  Memory::note_written(x, 1);
  EXPECT_EQ(x.valid.load(), 2U) << "modified there, invalid at home";
  Task& reader = f.task({{&x, AccessMode::read}});
  EXPECT_EQ(f.memory.acquire(reader, 0), Memory::Staging::pending);
  f.copier->deliver();
  EXPECT_EQ(f.copier->copies, (std::vector<std::pair<NodeIndex, NodeIndex>>{{1, 0}}));
  EXPECT_EQ(values[0], 9) << "into the user's own memory";
}

TEST(Memory, ATaskWaitsForAllItsTransfers) {
  Fixture f;
  std::vector<double> a{1};
  std::vector<double> b{2};
  Handle& x = f.over(a);
  Handle& y = f.over(b);
  Task& task = f.task({{&x, AccessMode::read}, {&y, AccessMode::read_write}, {&f.owned(4), AccessMode::write}});
  EXPECT_EQ(f.memory.acquire(task, 1), Memory::Staging::pending);
  auto first = std::move(f.copier->under_way.front());
  f.copier->under_way.pop_front();
  first();
  EXPECT_TRUE(f.staged_tasks.empty());
  f.copier->deliver();
  EXPECT_EQ(f.staged_tasks.size(), 1U);
}

TEST(Memory, WhenANodeIsFullNoTransferKnowsTheTask) {
  Fixture f;
  std::vector<double> a{1};
  std::vector<double> b{2};
  Handle& x = f.over(a);
  Handle& y = f.over(b);
  f.limited->left = 1;
  Task& task = f.task({{&x, AccessMode::read}, {&y, AccessMode::read}});
  EXPECT_THROW(static_cast<void>(f.memory.acquire(task, 1)), std::bad_alloc);
  EXPECT_TRUE(f.copier->copies.empty());
  f.copier->deliver();
  EXPECT_TRUE(f.staged_tasks.empty());
}

TEST(Memory, AMatrixKeepsItsColumnsApart) {
  double source[12];
  double target[20];
  for (int i = 0; i < 12; ++i) source[i] = i;
  for (double& value : target) value = -1;
  copy_matrix({0, 1, source, target, 4, 5, {3, 3, sizeof(double)}});
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_EQ(target[i + 5 * j], i < 3 && j < 3 ? source[i + 4 * j] : -1.0) << i << "," << j;
  copy_matrix({0, 1, nullptr, nullptr, 0, 0, {0, 3, sizeof(double)}});  // nothing to copy
}

/// Copies at once; its class differs from that of the other copier.
struct QuickCopier final : Copier {
  std::vector<CopyRequest> requests;
  CopyState start(const CopyRequest& request, CopyEnded) override {
    requests.push_back(request);
    copy_matrix(request);
    return CopyState::done;
  }
};

TEST(Memory, AnArrayWithGapsHasNoneOnItsWayBetweenTwoKindsOfDevices) {
  Fixture f;
  auto made = std::make_unique<QuickCopier>();
  QuickCopier& quick = *made;
  f.memory.add_node(std::make_unique<LimitedMemory>(), std::move(made));
  std::vector<double> values(9, -1.0);
  Handle& x = f.over(values);
  x.elsewhere = std::make_unique<Handle::Place[]>(2);
  x.shape = {3, 1, sizeof(double)};
  x.layout = std::make_unique<const Layout>(std::vector<std::size_t>{3}, std::vector<std::size_t>{4}, sizeof(double));
  ASSERT_EQ(f.memory.acquire(f.task({{&x, AccessMode::write}}), 1), Memory::Staging::ready);
  const double written[] = {1, 2, 3};
  std::memcpy(x.replica(1).pointer, written, sizeof written);
  Memory::note_written(x, 1);
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read}}), 2), Memory::Staging::pending);
  f.copier->deliver();
  ASSERT_TRUE(x.valid_on(2));
  EXPECT_EQ(std::memcmp(x.replica(2).pointer, written, sizeof written), 0);
  ASSERT_EQ(quick.requests.size(), 1U);
  EXPECT_EQ(quick.requests[0].from, f.copier->requests.at(0).to)
      << "the memory between is not strided: there is no room for gaps";
  EXPECT_EQ(f.memory.acquire(f.task({{&x, AccessMode::read}}), 0), Memory::Staging::pending);
  f.copier->deliver();
  EXPECT_EQ(values, (std::vector<double>{1, -1, -1, -1, 2, -1, -1, -1, 3}));
}

TEST(Memory, PartialResultsAreStartedOnceAndCombinedOnce) {
  Fixture f;
  std::vector<double> values{10};
  Handle& x = f.over(values);
  unsigned started = 0;
  x.reduction = std::make_unique<Reduction>();
  x.reduction->init = [&](void* memory, std::size_t, const Shape&) {
    ++started;
    *static_cast<double*>(memory) = 0;
  };
  x.reduction->combine = [](void* into, std::size_t, const void* from, std::size_t, const Shape&) {
    *static_cast<double*>(into) += *static_cast<const double*>(from);
  };
  auto* a = static_cast<double*>(f.memory.take_partial(x));
  auto* b = static_cast<double*>(f.memory.take_partial(x));
  EXPECT_NE(a, b) << "two tasks at a time";
  *a += 1;
  *b += 2;
  Memory::return_partial(x, a, true);
  Memory::return_partial(x, b, true);
  auto* again = static_cast<double*>(f.memory.take_partial(x));
  EXPECT_EQ(started, 2U) << "a third task adds to what is there";
  *again += 4;
  Memory::return_partial(x, again, true);
  Memory::combine_partials(x, values.data(), 1);
  EXPECT_EQ(values[0], 17);
  Memory::combine_partials(x, values.data(), 1);
  EXPECT_EQ(values[0], 17);
}

TEST(Memory, DiscardedPartialResultsDoNotReachTheNextGroup) {
  Fixture f;
  std::vector<double> values{10};
  Handle& x = f.over(values);
  x.reduction = std::make_unique<Reduction>();
  x.reduction->init = [](void* memory, std::size_t, const Shape&) { *static_cast<double*>(memory) = 0; };
  x.reduction->combine = [](void* into, std::size_t, const void* from, std::size_t, const Shape&) {
    *static_cast<double*>(into) += *static_cast<const double*>(from);
  };
  auto* partial = static_cast<double*>(f.memory.take_partial(x));
  *partial = 1'000;
  Memory::return_partial(x, partial, true);
  Memory::discard_partials(x);
  partial = static_cast<double*>(f.memory.take_partial(x));
  *partial += 1;
  Memory::return_partial(x, partial, true);
  Memory::combine_partials(x, values.data(), 1);
  EXPECT_EQ(values[0], 11);
}

TEST(Memory, ACombinationThatThrowsLeavesNothingBehind) {
  Fixture f;
  std::vector<double> values{10};
  Handle& x = f.over(values);
  bool throws = true;
  x.reduction = std::make_unique<Reduction>();
  x.reduction->init = [](void* memory, std::size_t, const Shape&) { *static_cast<double*>(memory) = 5; };
  x.reduction->combine = [&](void* into, std::size_t, const void* from, std::size_t, const Shape&) {
    if (throws) throw std::runtime_error("no");
    *static_cast<double*>(into) += *static_cast<const double*>(from);
  };
  void* a = f.memory.take_partial(x);
  void* b = f.memory.take_partial(x);
  Memory::return_partial(x, a, true);
  Memory::return_partial(x, b, true);
  EXPECT_THROW(Memory::combine_partials(x, values.data(), 1), std::runtime_error);
  throws = false;
  Memory::combine_partials(x, values.data(), 1);
  EXPECT_EQ(values[0], 10);
}

}  // namespace
}  // namespace tandem::runtime::memory_test
