// tandem/api/prefetch_test.cpp: data comes to a memory before tasks need it there, and the application uses it there.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/copies_seen.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::prefetch_test {
namespace {

using test::CopiesSeen;
using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

bool on_device(const WorkerDescription& worker) { return worker.device == DeviceKind::user; }

constexpr std::size_t kWords = 16;  // 64 bytes of words
using Vec = VectorData<int>;

const auto kTouch = [](std::span<int> v) {
  for (int& value : v) value = value * 3 + 1;
};
const auto kSee = [](std::span<const int> v, int& sum) {
  sum = 0;
  for (const int value : v) sum += value;
};
const auto touch_there = Codelet("touch", kTouch).also(DeviceKind::user, kTouch).can_run(on_device);
const auto see_there = Codelet("see", kSee).also(DeviceKind::user, kSee).can_run(on_device);
const Codelet fill("fill", [](int with, std::span<int> v) {
  for (int& value : v) value = with;
});

Vec filled(Runtime& rt, const std::string& name, int with) {
  auto data = rt.vector<int>(name, kWords);
  rt.submit(fill, with, write(data));
  return data;
}

TEST(Prefetch, TheCopyIsMadeBeforeTheTaskAndOnlyOnce) {
  CopiesSeen seen({.devices = 2});
  Runtime& rt = seen.runtime();
  const auto x = filled(rt, "x", 5);
  rt.prefetch(x, 2);
  rt.wait();
  EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 2)));
  EXPECT_TRUE(x.handle()->valid_on(2));
  rt.prefetch(x, 2);
  const auto there = see_there.can_run([](const WorkerDescription& worker) { return worker.worker == 3; });
  const auto sum = rt.scalar<int>("sum");
  rt.submit(there, read(x), write(sum));
  rt.wait();
  EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 2)));
  EXPECT_EQ(*rt.acquire(read(sum)), 80);
  const PrefetchReport report = rt.statistics().prefetches;
  EXPECT_EQ(report.hints, 2U);
  EXPECT_EQ(report.copied, 1U);
  EXPECT_EQ(report.present, 1U);
  EXPECT_EQ(report.lost, 0U);
  EXPECT_THAT(rt.statistics().table(), HasSubstr("2 prefetches: 1 copied, 1 present, 0 lost"));
}

TEST(Prefetch, ToMainMemoryBehindATaskWritesThrough) {
  CopiesSeen seen({.devices = 1});
  Runtime& rt = seen.runtime();
  std::vector<int> own(kWords, 1);
  const auto x = rt.data("x", own);
  for (int i = 0; i < 3; ++i) {
    rt.submit(touch_there, read_write(x));
    rt.prefetch(x, 0);
  }
  rt.wait();
  EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 1), Pair(1, 0), Pair(1, 0), Pair(1, 0)))
      << "each value comes home, and stays where it was made";
  EXPECT_EQ(own[0], 40) << "without acquire";
  EXPECT_TRUE(x.handle()->valid_on(1));
}

TEST(Prefetch, ATaskJoinsTheCopyThatIsUnderWay) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CopiesSeen seen({.seed = seed, .devices = 1});
    Runtime& rt = seen.runtime();
    const auto x = filled(rt, "x", 5);
    rt.prefetch(x, 1);
    const auto sum = rt.scalar<int>("sum");
    rt.submit(see_there, read(x), write(sum));
    rt.submit(fill, 7, write(x));
    EXPECT_EQ(*rt.acquire(read(sum)), 80) << seed;
    EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 1), Pair(1, 0))) << "x there, and the sum back; seed " << seed;
    EXPECT_EQ((*rt.acquire(read(x)))[3], 7);
    rt.wait();
  }
}

TEST(Prefetch, WaitsForTheValueAndTheNextWriterWaitsForTheCopy) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CopiesSeen seen({.seed = seed, .workers = 3, .devices = 2});
    Runtime& rt = seen.runtime();
    const auto x = filled(rt, "x", 5);
    rt.submit(fill, 6, write(x));
    rt.prefetch(x, 1);
    // 19, on the device.
    rt.submit(touch_there.can_run([](const WorkerDescription& worker) { return worker.worker == 3; }), read_write(x));
    rt.prefetch(x, 2);
    rt.submit(fill, 8, write(x));  // in main memory: the device's copy is out of date
    rt.prefetch(x, 1);
    rt.wait();
    EXPECT_TRUE(x.handle()->valid_on(1));
    EXPECT_FALSE(x.handle()->valid_on(2));
    EXPECT_EQ(static_cast<const int*>(x.handle()->replica(1).pointer)[kWords - 1], 8) << "seed " << seed;
    EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 1), Pair(1, 2), Pair(0, 1))) << "seed " << seed;
  }
}

TEST(Prefetch, TakesMemoryThatNobodyNeedsAndNoOther) {
  CopiesSeen seen({.devices = 1, .device_bytes = 2 * kWords * sizeof(int)});
  Runtime& rt = seen.runtime();
  const auto a = filled(rt, "a", 1), b = filled(rt, "b", 2), c = filled(rt, "c", 3);
  rt.submit(touch_there, read_write(a));
  rt.submit(touch_there, read_write(b));
  rt.wait();
  seen.copies.clear();
  // The only values of a and b are on the device: nothing is moved for a hint.
  rt.prefetch(c, 1);
  rt.wait();
  EXPECT_THAT(seen.copies, IsEmpty());
  EXPECT_EQ(rt.statistics().prefetches.lost, 1U);
  // A submitted task will use a on the device, and none uses b: b leaves, without a copy.
  static_cast<void>(rt.acquire(read(a)));
  static_cast<void>(rt.acquire(read(b)));
  seen.copies.clear();
  int lock = 0;
  const auto held = rt.data("lock", lock);
  {
    auto access = rt.acquire(read_write(held));
    rt.submit("see", [](std::span<const int>, int&) {}, read(a), read_write(held));
    rt.prefetch(c, 1);
    rt.prefetch(b, 1);  // c was asked for before
    rt.wait(c);
    EXPECT_TRUE(a.handle()->valid_on(1));
    EXPECT_FALSE(b.handle()->valid_on(1));
    EXPECT_TRUE(c.handle()->valid_on(1));
    EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 1)));
  }
  rt.wait();
  EXPECT_EQ(rt.statistics().prefetches.copied, 1U);
  EXPECT_EQ(rt.statistics().prefetches.lost, 2U);
  EXPECT_TRUE(rt.core().memory().room().check_invariants(1));
}

TEST(Prefetch, IsNoReasonForATaskToWait) {
  // The hints fill the memory; tasks still get it, one after the other.
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CopiesSeen seen({.seed = seed, .devices = 1, .device_bytes = 3 * kWords * sizeof(int)});
    Runtime& rt = seen.runtime();
    std::vector<Vec> data;
    for (int i = 0; i < 9; ++i) data.push_back(filled(rt, "v" + std::to_string(i), i));
    for (const Vec& one : data) rt.prefetch(one, 1);
    for (std::size_t i = 0; i + 1 < data.size(); ++i) rt.submit(touch_there, read_write(data[data.size() - 1 - i]));
    for (const Vec& one : data) rt.prefetch(one, 1);
    for (std::size_t i = 0; i < data.size(); ++i)
      EXPECT_EQ((*rt.acquire(read(data[i])))[0], static_cast<int>(i == 0 ? 0 : 3 * i + 1)) << "seed " << seed;
    rt.wait();
    EXPECT_TRUE(rt.core().memory().room().check_invariants(1));
  }
}

TEST(Prefetch, AnswersNothingWhereThereIsNoValue) {
  CopiesSeen seen({.devices = 1});
  Runtime& rt = seen.runtime();
  const auto none = rt.vector<int>("none", kWords);
  rt.prefetch(none, 1);
  rt.submit("fails", [](std::span<int>) { throw std::runtime_error("no value"); }, write(none));
  rt.prefetch(none, 1);
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt.wait(); }), HasSubstr("no value"));
  EXPECT_THAT(seen.copies, IsEmpty());
  rt.wait();
}

TEST(Prefetch, LeavesCommutingTasksAlone) {
  CopiesSeen seen({.devices = 1});
  Runtime& rt = seen.runtime();
  int memory = 0;
  const auto x = rt.data("x", memory);
  const auto two = rt.scalar<int>("two");
  for (int i = 0; i < 3; ++i) {
    rt.submit("add", [](int& value) { ++value; }, commute(x));
    rt.prefetch(x, 1);
  }
  rt.wait();
  EXPECT_EQ(memory, 3);
  EXPECT_EQ(rt.statistics().prefetches.lost, 3U);
  EXPECT_THAT(seen.copies, IsEmpty());
}

TEST(Prefetch, ACopyThatFailsHurtsNobody) {
  CopiesSeen seen({.devices = 1});
  Runtime& rt = seen.runtime();
  const auto x = filled(rt, "x", 5);
  seen.fail_next = 1;
  rt.prefetch(x, 1);
  rt.wait();
  EXPECT_EQ(rt.statistics().prefetches.lost, 1U);
  EXPECT_FALSE(x.handle()->valid_on(1));
  const auto sum = rt.scalar<int>("sum");
  rt.submit(see_there, read(x), write(sum));
  EXPECT_EQ(*rt.acquire(read(sum)), 80);
  rt.wait();
}

TEST(Prefetch, MistakesAreTold) {
  CopiesSeen seen({.devices = 1, .device_bytes = 1'000, .main_bytes = 100'000});
  Runtime& rt = seen.runtime();
  const auto nodes = rt.memory_nodes();
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].budget, 100'000U);
  EXPECT_THAT(nodes[0].workers, ElementsAre(0, 1));
  EXPECT_EQ(nodes[1].budget, 1'000U);
  EXPECT_THAT(nodes[1].workers, ElementsAre(2));
  EXPECT_TRUE(nodes[2].is_storage);
  const auto x = filled(rt, "x", 5);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.prefetch(x, 3); }), HasSubstr("memory node 3: there are 3, from 0"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.prefetch(x, 2); }), HasSubstr("which is a file"));
  EXPECT_THAT(thrown_by<UsageError>([&] { static_cast<void>(rt.acquire(read(x), 7)); }),
              HasSubstr("cannot acquire data on memory node 7"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.prefetch(Vec(), 1); }), HasSubstr("prefetch"));
  EXPECT_THAT(thrown_by<UsageError>([&] { auto graph = rt.record([&] { rt.prefetch(x, 1); }); }),
              AllOf(HasSubstr("cannot prefetch data 'x'"), HasSubstr("recorded")));
  const auto large = rt.vector<int>("large", 1'000);
  rt.submit(fill, 1, write(large));
  EXPECT_THAT(thrown_by<OutOfMemory>([&] { static_cast<void>(rt.acquire(read(large), 1)); }),
              HasSubstr("budget is 1000 bytes"));
  rt.prefetch(large, 1);
  rt.wait();
  EXPECT_EQ(rt.statistics().prefetches.lost, 1U);
}

TEST(AcquireOnANode, GivesTheValueThatIsThere) {
  CopiesSeen seen({.devices = 1});
  Runtime& rt = seen.runtime();
  const auto x = filled(rt, "x", 5);
  rt.submit(touch_there, read_write(x));  // 16
  rt.wait();
  seen.copies.clear();
  {
    auto view = rt.acquire(read_write(x), 1);
    EXPECT_EQ((*view).data(), x.handle()->replica(1).pointer);
    EXPECT_EQ((*view)[2], 16);
    (*view)[2] = 1;
  }
  rt.submit(touch_there, read_write(x));
  rt.wait();
  EXPECT_THAT(seen.copies, IsEmpty()) << "it never left";
  EXPECT_EQ((*rt.acquire(read(x)))[2], 4);
  { (*rt.acquire(write(x), 1))[0] = 9; }
  EXPECT_EQ((*rt.acquire(read(x)))[0], 9);
  EXPECT_THAT(seen.copies, ElementsAre(Pair(1, 0), Pair(1, 0)));
}

/// Tests random tasks and hints, in memories for a few data, against the sequential program.
TEST(Prefetch, RandomFlowsGiveWhatTheyGiveWithoutHints) {
  const auto add = [](std::span<const int> from, std::span<int> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] * 3 + from[i];
  };
  const auto anywhere = Codelet("add", add).also(DeviceKind::user, add);
  const auto there = anywhere.can_run(on_device);
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t below) { return static_cast<std::size_t>(random() % below); };
    const bool spills = draw(3) == 0;
    CopiesSeen seen({.seed = seed,
                     .workers = 2,
                     .devices = 2,
                     .copy_ns = 3'000,
                     .device_bytes = (2 + draw(3)) * kWords * sizeof(int),
                     .main_bytes = spills ? (4 + draw(3)) * kWords * sizeof(int) : 0});
    Runtime& rt = seen.runtime();
    std::vector<Vec> data;
    std::vector<unsigned> expected;
    for (int i = 0; i < 7; ++i) {
      data.push_back(filled(rt, "v" + std::to_string(i), i));
      expected.push_back(static_cast<unsigned>(i));
    }
    for (int step = 0; step < 60; ++step) {
      const std::size_t from = draw(7), to = draw(7);
      switch (draw(6)) {
        case 0:
        case 1:
          if (from == to) break;
          rt.submit(draw(2) == 0 ? there : anywhere, read(data[from]), read_write(data[to]));
          expected[to] = expected[to] * 3 + expected[from];
          break;
        case 2:
        case 3: rt.prefetch(data[from], static_cast<unsigned>(draw(3))); break;
        case 4:
          if (draw(4) == 0) rt.evict(data[from]);
          if (draw(4) == 0) rt.wont_use(data[to]);
          break;
        default:
          if (draw(3) == 0) {
            auto view = rt.acquire(read_write(data[to]), static_cast<unsigned>(draw(3)));
            for (int& value : *view) value += 1;
            expected[to] += 1;
          }
      }
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
      auto view = rt.acquire(read(data[i]));
      for (const int value : *view)
        ASSERT_EQ(static_cast<unsigned>(value), expected[i]) << "seed " << seed << ", datum " << i;
    }
    rt.wait();
    for (runtime::NodeIndex node = 0; node < 3; ++node)
      ASSERT_TRUE(rt.core().memory().room().check_invariants(node)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::prefetch_test
