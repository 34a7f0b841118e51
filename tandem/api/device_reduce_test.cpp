// tandem/api/device_reduce_test.cpp: `reduce` accesses on devices: places and number of private copies, and the sum
// after failures.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/card_device.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/device.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::device_reduce_test {
namespace {

using test::Card;
using test::CardMemory;
using test::MemoryUse;
using test::on_device;
using test::runtime_with;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

using Word = std::uint64_t;

/// A sum that begins with 5.
Data<Word> sum_of(Runtime& rt, Word& value) {
  value = 5;
  auto sum = rt.data("sum", value);
  sum.reduction([](Word& copy) { copy = 0; }, [](Word& into, const Word& from) { into += from; });
  return sum;
}

const auto kAdd = Codelet("add", [](Word v, Word& sum) { sum += v; }).also(DeviceKind::user,
                                                                           [](Word v, Word& sum) { sum += v; });
const auto kAddOnDevice = kAdd.can_run(on_device);
const auto kAddOnCore = kAdd.can_run([](const WorkerDescription& worker) { return !on_device(worker); });

/// The sum 1 + ... + count, which tasks for any worker compute.
constexpr Word up_to(Word count) { return count * (count + 1) / 2; }

TEST(ReduceOnDevices, AddsWhatCoresAndDevicesHaveAdded) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Card card{.depth = 3}, other{.depth = 1};
    auto rt = runtime_with({&card, &other}, {}, {}, 2, nullptr, seed);
    Word value = 0;
    auto sum = sum_of(*rt, value);
    for (int round = 1; round <= 3; ++round) {
      for (Word v = 1; v <= 60; ++v)
        rt->submit(v % 3 == 0 ? kAddOnCore : v % 3 == 1 ? kAddOnDevice : kAdd, v, reduce(sum));
      rt->submit(Codelet("double", [](Word& v) { v *= 2; }), read_write(sum));
    }
    rt->wait();
    Word expected = 5;
    for (int round = 1; round <= 3; ++round) expected = (expected + up_to(60)) * 2;
    EXPECT_EQ(value, expected) << "seed " << seed;
    EXPECT_GE(card.launches + other.launches, 60U);
  }
}

TEST(ReduceOnDevices, AddsToCopiesInTheDevicesMemoryOneForEachTaskInFlight) {
  MemoryUse use;
  Card card{.depth = 3};
  std::map<unsigned, const void*> in_flight;  // by place
  std::set<const void*> seen;
  std::size_t most_blocks = 0;
  {
    auto rt = runtime_with({&card}, {.use = &use});
    card.at_launch = [&](const DeviceTask& task) {
      EXPECT_EQ(task.mode(0), AccessMode::reduce);
      const void* const copy = task.memory(0).pointer;
      EXPECT_TRUE(use.blocks.contains(copy));
      for (const auto& [place, taken] : in_flight) EXPECT_NE(taken, copy);
      in_flight[task.place()] = copy;
      seen.insert(copy);
    };
    card.at_end = [&](const DeviceTask& task) { in_flight.erase(task.place()); };
    Word value = 0;
    auto sum = sum_of(*rt, value);
    for (int round = 0; round < 4; ++round) {
      for (Word v = 1; v <= 50; ++v) rt->submit(kAddOnDevice, v, reduce(sum));
      rt->wait(sum);
      most_blocks = std::max(most_blocks, use.blocks.size());
    }
    EXPECT_EQ(value, 5 + 4 * up_to(50));
    EXPECT_EQ(card.most_in_flight, 3U) << "tasks of one sum run beside each other";
    EXPECT_GE(seen.size(), 3U);
    EXPECT_LE(most_blocks, 3U + 5U)
        << "those in flight, and those whose data is fetched meanwhile: also in later rounds";
  }
  EXPECT_EQ(use.bytes, 0U) << "all memory is given back";
}

TEST(ReduceOnDevices, AlsoOnThoseThatWorkInMainMemory) {
  Card card{.depth = 4};
  auto rt = runtime_with({&card}, {.own = false});
  std::set<const void*> at_once;
  card.at_launch = [&](const DeviceTask& task) {
    EXPECT_TRUE(at_once.insert(task.memory(0).pointer).second) << "one copy for two tasks";
  };
  card.at_end = [&](const DeviceTask& task) { at_once.erase(task.memory(0).pointer); };
  Word value = 0;
  auto sum = sum_of(*rt, value);
  for (Word v = 1; v <= 80; ++v) rt->submit(v % 2 == 0 ? kAddOnDevice : kAdd, v, reduce(sum));
  rt->wait();
  EXPECT_EQ(value, 5 + up_to(80));
  EXPECT_EQ(card.most_in_flight, 4U);
}

TEST(ReduceOnDevices, OfMatricesWithGapsAndArraysBesideScratchMemory) {
  Card card{.depth = 2};
  auto rt = runtime_with({&card});
  std::vector<Word> words(7 * 3, 1);
  auto matrix = rt->data("m", MatrixView<Word>{words.data(), 5, 3, 7});
  const auto add = [](MatrixView<Word> into, MatrixView<const Word> from) {
    for (std::size_t j = 0; j < into.cols; ++j)
      for (std::size_t i = 0; i < into.rows; ++i) into(i, j) += from(i, j);
  };
  matrix.reduction([](MatrixView<Word> copy) {
    for (std::size_t j = 0; j < copy.cols; ++j)
      for (std::size_t i = 0; i < copy.rows; ++i) copy(i, j) = 0;
  }, add);
  Word value = 0;
  auto sum = sum_of(*rt, value);
  auto workspace = rt->vector<Word>("workspace", 10);
  const auto kernel = [](Word v, MatrixView<Word> m, std::span<Word> work, Word& total) {
    std::fill(work.begin(), work.end(), v);
    for (std::size_t j = 0; j < m.cols; ++j)
      for (std::size_t i = 0; i < m.rows; ++i) m(i, j) += v * (i + 10 * j);
    total += std::accumulate(work.begin(), work.end(), Word{0});
  };
  const auto spread = Codelet("spread", kernel).also(DeviceKind::user, kernel);
  for (Word v = 1; v <= 30; ++v)
    rt->submit(v % 2 == 0 ? spread.can_run(on_device) : spread, v, reduce(matrix), scratch(workspace), reduce(sum));
  rt->wait();
  EXPECT_GE(card.launches, 15U);
  EXPECT_EQ(value, 5 + 10 * up_to(30));
  for (std::size_t j = 0; j < 3; ++j)
    for (std::size_t i = 0; i < 7; ++i)
      EXPECT_EQ(words[i + 7 * j], i < 5 ? 1 + up_to(30) * (i + 10 * j) : 1) << i << " " << j;
}

TEST(ReduceOnDevices, ARecordedGraphAddsInEachReplay) {
  Card card{.depth = 2};
  auto rt = runtime_with({&card});
  Word value = 0, second = 0;
  auto sum = sum_of(*rt, value), other = sum_of(*rt, second);
  const Codelet twice("twice", [](Word& v) { v *= 2; });
  Graph graph = rt->record([&] {
    for (Word v = 1; v <= 20; ++v) rt->submit(v % 2 == 0 ? kAddOnDevice : kAdd, v, reduce(sum));
    rt->submit(twice, read_write(sum));
    for (Word v = 1; v <= 4; ++v) rt->submit(kAddOnDevice, v, reduce(sum));
  });
  Word expected = 5;
  for (int replay = 0; replay < 5; ++replay) {
    rt->replay(graph);
    rt->submit(kAddOnDevice, Word{1}, reduce(sum));
    expected = (expected + up_to(20)) * 2 + up_to(4) + 1;
  }
  rt->wait();
  EXPECT_EQ(value, expected);
  graph.rebind(sum, other);
  rt->replay(graph);
  rt->wait();
  EXPECT_EQ(value, expected);
  EXPECT_EQ(second, (5 + up_to(20)) * 2 + up_to(4));
}

/// Sums of vectors that do not fit on a device with little memory at once.
struct Histograms {
  static constexpr std::size_t kWords = 50;
  static constexpr std::size_t kBytes = kWords * sizeof(Word);

  Histograms(Runtime& runtime, std::size_t count) : rt(runtime), memory(count, std::vector<Word>(kWords, 7)) {
    for (auto& one : memory) {
      data.push_back(rt.data("histogram", one));
      data.back().reduction([](std::span<Word> copy) { std::fill(copy.begin(), copy.end(), 0); },
                            [](std::span<Word> into, std::span<const Word> from) {
                              for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                            });
    }
  }
  void expect_each(Word value) {
    for (const auto& one : memory) EXPECT_EQ(one, std::vector<Word>(kWords, value));
  }
  Runtime& rt;
  std::vector<std::vector<Word>> memory;
  std::vector<Data<Vector<Word>>> data;
};

const auto kCount = [] {
  const auto kernel = [](Word v, std::span<Word> counts) {
    for (Word& count : counts) count += v;
  };
  return Codelet("count", kernel).also(DeviceKind::user, kernel);
}();

TEST(ReduceOnDevices, CopiesLeaveALittleMemoryForOthers) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MemoryUse use;
    Card card{.depth = 3};
    auto rt = runtime_with({&card}, {.budget = 2 * Histograms::kBytes + 8, .use = &use}, {}, 2, nullptr, seed);
    Histograms histograms(*rt, 12);
    for (Word v = 1; v <= 10; ++v)
      for (const auto& one : histograms.data)
        rt->submit(v % 4 == 0 ? kCount : kCount.can_run(on_device), v, reduce(one));
    rt->wait();
    histograms.expect_each(7 + up_to(10));
    EXPECT_LE(use.most_bytes, 2 * Histograms::kBytes + 8);
    EXPECT_GE(card.launches, 8 * 12U);
  }
}

TEST(ReduceOnDevices, TasksThatDoNotFitGoToCoresOrAreRefused) {
  Card card;
  auto rt = runtime_with({&card}, {.budget = Histograms::kBytes - 8});
  Histograms histograms(*rt, 2);
  for (Word v = 1; v <= 10; ++v)
    for (const auto& one : histograms.data) rt->submit(kCount, v, reduce(one));
  rt->wait();
  histograms.expect_each(7 + up_to(10));
  EXPECT_EQ(card.launches, 0U);
  EXPECT_THAT(
      thrown_by<OutOfMemory>([&] { rt->submit(kCount.can_run(on_device), Word{1}, reduce(histograms.data[0])); }),
      AllOf(HasSubstr("can never run"), HasSubstr("400 bytes in card memory")));
}

TEST(ReduceOnDevices, WithoutMemoryCoresAdd) {
  Card card;
  auto rt = runtime_with({&card}, {.most_bytes = 16});
  Histograms histograms(*rt, 2);
  for (Word v = 1; v <= 10; ++v)
    for (const auto& one : histograms.data) rt->submit(kCount, v, reduce(one));
  rt->wait();
  histograms.expect_each(7 + up_to(10));
  EXPECT_GT(rt->statistics().workers[2].fallbacks, 0U);
  EXPECT_EQ(card.launches, 0U);
}

TEST(ReduceOnDevices, WhatADeviceRefusesCoresAdd) {
  for (const bool own : {true, false})
    for (const bool later : {false, true}) {
      Card card;
      unsigned asked = 0;
      (later ? card.at_end : card.at_launch) = [&](const DeviceTask&) {
        if (++asked % 3 != 0) throw DeviceError(DeviceEffect::refused, "queue full");
      };
      auto rt = runtime_with({&card}, {.own = own});
      Word value = 0;
      auto sum = sum_of(*rt, value);
      for (Word v = 1; v <= 60; ++v) rt->submit(kAdd.prefer_devices(), v, reduce(sum));
      rt->wait();
      EXPECT_EQ(value, 5 + up_to(60));
      EXPECT_EQ(rt->statistics().workers[2].fallbacks, 40U);
      EXPECT_EQ(card.launches, 60U);
    }
}

void damage(const DeviceTask& task) {
  *static_cast<Word*>(task.memory(0).pointer) = 0xDEAD;
  throw DeviceError(DeviceEffect::broken, "bit flip");
}

TEST(ReduceOnDevices, ACopyThatATaskHasBrokenIsForgottenWhenItHeldNothing) {
  for (const bool own : {true, false}) {
    Card card{.depth = 1};
    card.at_end = damage;
    auto rt = runtime_with({&card}, {.own = own});
    Word value = 0;
    auto sum = sum_of(*rt, value);
    for (Word v = 1; v <= 30; ++v) rt->submit(kAdd, v, reduce(sum));
    rt->wait();
    EXPECT_EQ(value, 5 + up_to(30));
    EXPECT_GT(card.launches, 0U);
  }
}

TEST(ReduceOnDevices, ABrokenTaskFailsWhenTheCopyHeldWhatOthersHadAdded) {
  for (const bool own : {true, false}) {
    Card card{.depth = 1};
    auto rt = runtime_with({&card}, {.own = own});
    Word value = 0;
    auto sum = sum_of(*rt, value);
    rt->wait(rt->submit(kAddOnDevice, Word{1}, reduce(sum)));
    card.at_end = damage;
    const auto add = kAdd.prefer_devices();
    rt->submit(add, Word{2}, reduce(sum));
    EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), AllOf(HasSubstr("'add'"), HasSubstr("on card: bit flip")));
    card.at_end = [](const DeviceTask&) {};
    rt->submit(Codelet("set", [](Word& v) { v = 100; }), write(sum));
    for (Word v = 1; v <= 9; ++v) rt->submit(kAddOnDevice, v, reduce(sum));
    rt->wait();
    EXPECT_EQ(value, 100 + up_to(9)) << "a new value has a sum of its own";
  }
}

TEST(ReduceOnDevices, AKernelThatThrowsFailsTheSum) {
  Card card;
  auto rt = runtime_with({&card});
  Word value = 0;
  auto sum = sum_of(*rt, value);
  const auto kernel = [](Word v, Word& into) {
    into += 1'000;
    if (v == 3) throw std::runtime_error("three");
  };
  const auto bad = Codelet("bad", kernel).also(DeviceKind::user, kernel).can_run(on_device);
  for (Word v = 1; v <= 6; ++v) rt->submit(bad, v, reduce(sum));
  bool has_run = false;
  rt->submit(Codelet("look", [&](const Word&) { has_run = true; }), read(sum));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "three");
  EXPECT_FALSE(has_run);
  rt->submit(Codelet("set", [](Word& v) { v = 0; }), write(sum));
  for (Word v = 1; v <= 20; ++v) rt->submit(kAddOnDevice, v, reduce(sum));
  rt->wait();
  EXPECT_EQ(value, up_to(20)) << "nothing of the failed sum is left";
}

TEST(ReduceOnDevices, ANeutralElementThatThrowsFailsTheSum) {
  Card card;
  auto rt = runtime_with({&card});
  Word value = 1;
  auto sum = rt->data("sum", value);
  bool throws = true;
  sum.reduction([&](Word& copy) {
    if (throws) throw std::runtime_error("no neutral element");
    copy = 0;
  }, [](Word& into, const Word& from) { into += from; });
  for (Word v = 1; v <= 3; ++v) rt->submit(kAddOnDevice, v, reduce(sum));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "no neutral element");
  throws = false;
  rt->submit(Codelet("set", [](Word& v) { v = 0; }), write(sum));
  for (Word v = 1; v <= 3; ++v) rt->submit(kAddOnDevice, v, reduce(sum));
  rt->wait();
  EXPECT_EQ(value, up_to(3));
}

/// Copies at once, until `fails` is set.
struct FailingCopier final : Copier {
  explicit FailingCopier(bool& says) : fails(says) {}
  runtime::CopyState start(const CopyRequest& request, runtime::CopyEnded) override {
    if (fails) throw DeviceError(DeviceEffect::refused, "the bus is gone");
    runtime::copy_matrix(request);
    return runtime::CopyState::done;
  }
  bool& fails;
};

TEST(ReduceOnDevices, WhatALostDeviceHasAddedCountsIfItCanBeCopied) {
  for (const bool is_gone : {false, true}) {
    Card card{.depth = 1};
    bool fails = false;
    auto rt = runtime_with({&card}, {.copier = [&] { return std::make_unique<FailingCopier>(fails); }});
    Word value = 0;
    auto sum = sum_of(*rt, value);
    TaskRef last;
    for (Word v = 1; v <= 9; ++v) last = rt->submit(kAddOnDevice, v, reduce(sum));
    while (card.launches < 9 || card.in_flight != 0) rt->resources().loop->step_some(1);
    rt->wait(last);
    card.at_launch = [&](const DeviceTask&) { throw DeviceError(DeviceEffect::lost, "fell off the bus"); };
    fails = is_gone;
    for (Word v = 10; v <= 20; ++v) rt->submit(kAddOnCore, v, reduce(sum));
    if (!is_gone) {
      rt->wait();
      EXPECT_EQ(value, 5 + up_to(20));
      continue;
    }
    EXPECT_THAT(thrown_by<DeviceError>([&] { rt->wait(); }), HasSubstr("the bus is gone"));
    rt->submit(Codelet("set", [](Word& v) { v = 0; }), write(sum));
    for (Word v = 1; v <= 20; ++v) rt->submit(kAddOnCore, v, reduce(sum));
    rt->wait();
    EXPECT_EQ(value, up_to(20));
  }
}

TEST(ReduceOnDevices, ALostDeviceLeavesTheSumToOthers) {
  Card first{.depth = 2}, second{.depth = 2};
  first.at_launch = [&](const DeviceTask&) { throw DeviceError(DeviceEffect::lost, "fell off the bus"); };
  auto rt = runtime_with({&first, &second});
  Word value = 0;
  auto sum = sum_of(*rt, value);
  for (Word v = 1; v <= 40; ++v) rt->submit(v % 2 == 0 ? kAddOnDevice : kAdd, v, reduce(sum));
  rt->wait();
  EXPECT_EQ(value, 5 + up_to(40));
  EXPECT_EQ(first.launches, 1U);
  EXPECT_GE(second.launches, 19U);
}

TEST(ReduceOnDevices, ACancelledFlowHasWhatItsTasksHaveAdded) {
  unsigned cut = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Card card{.depth = 2};
    runtime::CoreOptions options;
    options.begin_ahead_ns = 0;
    auto rt = runtime_with({&card}, {}, options, 2, nullptr, seed);
    Word value = 0;
    auto sum = sum_of(*rt, value);
    int calls = 0;
    const auto kernel = [&](Word v, Word& into) {
      into += v;
      if (++calls == 9) rt->cancel();
    };
    const auto add = Codelet("add", kernel).also(DeviceKind::user, kernel);
    std::vector<TaskRef> tasks;
    for (Word v = 1; v <= 40; ++v)
      tasks.push_back(rt->submit(v % 2 == 0 ? add.can_run(on_device) : add, v, reduce(sum)));
    rt->wait();
    Word expected = 5;
    for (Word v = 1; v <= 40; ++v)
      if (tasks[v - 1].id <= *rt->cancelled_at()) expected += v;
    EXPECT_EQ(value, expected) << "seed " << seed;
    cut += expected < 5 + up_to(40) ? 1 : 0;
  }
  EXPECT_GT(cut, 0U);
}

}  // namespace
}  // namespace tandem::device_reduce_test
