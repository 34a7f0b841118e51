// tests/dist_flow/memory_test.cpp: ranks whose data is larger than their main memory may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deterministic_job.hpp"
#include "distributed_matrix.hpp"
#include "ranks.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/linalg.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist_test::memory_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Le;

constexpr std::size_t kWords = 512;  // 4 KiB
constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);

const Codelet fill("fill", [](std::uint64_t first, std::span<std::uint64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = first + i;
});
const Codelet add("add", [](std::span<const std::uint64_t> from, std::span<std::uint64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
});

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

/// Each rank owns `count` vectors; each of them gets, again and again, one of each other rank added: all data travels,
/// in both directions.
void exchange(Runtime& rt, std::size_t count, unsigned rounds, bool waits = true) {
  std::vector<Data<Vector<std::uint64_t>>> data;
  std::vector<std::uint64_t>
      first;  // of the sequential program: each vector's first element, and how often i is in its element i
  std::vector<std::uint64_t> times;
  const std::size_t all = count * rt.size();
  for (std::size_t i = 0; i < all; ++i) {
    data.push_back(rt.vector<std::uint64_t>("v" + std::to_string(i), kWords,
                                            {.owner = static_cast<std::uint32_t>(i % rt.size())}));
    rt.submit(fill, std::uint64_t{i}, write(data.back()));
    first.push_back(i);
    times.push_back(1);
  }
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all; ++i) {
      const std::size_t from = (i * 7 + 3 * round + 1) % all;
      if (from == i) continue;
      rt.submit(add, read(data[from]), read_write(data[i]));
      first[i] += first[from];
      times[i] += times[from];
    }
  }
  for (std::size_t i = 0; i < all; ++i) {
    auto view = rt.acquire_at_owner(read(data[i]));
    for (std::size_t k = 0; view && k < kWords; ++k) ASSERT_EQ((**view)[k], first[i] + times[i] * k) << i << "," << k;
  }
  if (waits) rt.wait();
}

std::size_t most_beside(Runtime& rt) { return rt.core().memory().room().most_beside(0); }

TEST(DistMemory, WhatHasLeftIsSentAndWhatHasArrivedMayLeave) {
  for (const std::uint32_t ranks : {2U, 3U}) {
    std::vector<std::size_t> beside(ranks);
    expect_well(run_job({.ranks = ranks, .main_bytes = 4 * kBytes}, [&](Runtime& rt) {
      exchange(rt, 16, 3);
      beside[rt.rank()] = most_beside(rt);
    }));
    EXPECT_THAT(beside, Each(kBytes))
        << "messages take as much as the largest datum beside a budget of less than eight of them";
  }
}

TEST(DistMemory, EachRankHasRoomForOneTaskAlone) {
  for (const unsigned window : {4U, 100'000U}) {
    JobSetup setup{.ranks = 3, .main_bytes = 2 * kBytes};
    setup.core.window = window;
    expect_well(run_job(setup, [](Runtime& rt) { exchange(rt, 10, 4); }));
  }
}

TEST(DistMemory, CopiesAreDroppedWhichHaveLeft) {
  JobSetup setup{.ranks = 2, .main_bytes = 3 * kBytes};
  setup.flow.copy_bytes = 4 * kBytes;
  expect_well(run_job(setup, [](Runtime& rt) { exchange(rt, 10, 4); }));
}

TEST(DistMemory, OneRankMayHaveLessThanTheOthers) {
  expect_well(run_job({.ranks = 3, .main_bytes_of = {2 * kBytes, 0, 20 * kBytes}},
                      [](Runtime& rt) { exchange(rt, 10, 3); }));
}

TEST(DistMemory, MessagesTakeAnEighthBesideTheBudget) {
  constexpr std::size_t kBudget = 32;
  std::vector<std::size_t> beside(2);
  DeterministicJob job(7);
  const auto outcome = job.run({.ranks = 2, .main_bytes = kBudget * kBytes}, [&](Runtime& rt, DeterministicJob&) {
    std::vector<Data<Vector<std::uint64_t>>> data;
    for (std::size_t i = 0; i < 4 * kBudget; ++i) {
      data.push_back(rt.vector<std::uint64_t>("v" + std::to_string(i), kWords, {.owner = 0}));
      rt.submit(fill, std::uint64_t{i}, write(data.back()));
    }
    const auto sum = rt.vector<std::uint64_t>("sum", kWords, {.owner = 1});
    rt.submit(fill, std::uint64_t{0}, write(sum));
    for (const auto& each : data) rt.submit(add, read(each), read_write(sum));
    rt.wait();
    beside[rt.rank()] = most_beside(rt);
  });
  ASSERT_FALSE(outcome.stuck) << outcome.why;
  expect_well(outcome.endings);
  EXPECT_EQ(beside[0], 0U);
  EXPECT_THAT(beside[1], AllOf(testing::Gt(kBytes), Le(kBudget / 8 * kBytes)));
}

TEST(DistMemory, ATaskThatNeedsMoreNamesItsRankAndTheNumbers) {
  const auto endings = run_job({.ranks = 2, .main_bytes = 2 * kBytes}, [](Runtime& rt) {
    const auto large = rt.vector<std::uint64_t>("large", 3 * kWords, {.owner = 1});
    rt.submit("touch", [](std::span<std::uint64_t>) {}, write(large));
    rt.wait();
  });
  EXPECT_THAT(
      endings[1].error,
      AllOf(HasSubstr("'touch'"), HasSubstr("takes 12288 bytes in main memory of rank 1, whose budget is 8192 bytes"),
            HasSubstr("option memory")));
  EXPECT_THAT(endings[0].error, HasSubstr("rank 1"));
}

TEST(DistMemory, AMessageThatFitsNowhereNamesItsRankAndTheNumbers) {
  const auto endings = run_job({.ranks = 2, .main_bytes_of = {0, 2 * kBytes}}, [](Runtime& rt) {
    const auto large = rt.vector<std::uint64_t>("large", 3 * kWords, {.owner = 0});
    rt.submit(fill, std::uint64_t{0}, write(large));
    rt.fetch(large, 1);
    rt.wait();
  });
  EXPECT_THAT(endings[1].error,
              AllOf(HasSubstr("receive large"),
                    HasSubstr("takes 12288 bytes in main memory of rank 1, whose budget is 8192 bytes")));
  EXPECT_THAT(endings[0].error, HasSubstr("rank 1"));
}

TEST(DistMemory, AnEventKeepsItsDataInPlaceWhileItsValueTravels) {
  expect_well(run_job({.ranks = 2, .main_bytes = 4 * kBytes}, [](Runtime& rt) {
    const auto received = rt.vector<std::uint64_t>("received", kWords, {.owner = 0}),
               sum = rt.vector<std::uint64_t>("sum", kWords, {.owner = 1});
    rt.submit(fill, std::uint64_t{1}, write(sum));
    std::uint64_t* place = nullptr;
    Event event = rt.event("receive", Release::separate, [&](Event here) {
      place = static_cast<std::uint64_t*>(received.handle()->home.pointer);
      std::fill(place, place + kWords, 5);
      here.readable();
    }, write(received));
    EXPECT_EQ(event.is_here(), rt.rank() == 0);
    rt.submit(add, read(received), read_write(sum));
    exchange(rt, 8, 2, false);  // values have come and gone
    if (event.is_here()) {
      EXPECT_EQ(received.handle()->home.pointer, place);
      EXPECT_EQ(std::count(place, place + kWords, 5), static_cast<std::ptrdiff_t>(kWords));
    }
    rt.submit("twice", [](std::span<std::uint64_t> v) {
      for (std::uint64_t& x : v) x *= 2;
    }, read_write(received));
    event.released();
    if (auto view = rt.acquire_at_owner(read(received))) {
      EXPECT_EQ((**view)[3], 10U);
    }
    if (auto view = rt.acquire_at_owner(read(sum))) {
      EXPECT_EQ((**view)[3], 9U);
    }
    rt.wait();
  }));
}

TEST(DistMemory, CholeskyInAQuarterOfItsMemory) {
  const std::size_t n = base::under_sanitizer ? 192 : 512, tile = n / 16;
  const auto factorise = [&](Runtime& rt, const linalg::Distribution& distribution, std::vector<double>& values) {
    const linalg::RandomPositiveDefinite generator{.seed = 3, .order = n};
    const linalg::TileShape shape{.rows = n, .cols = n, .tile = tile, .uplo = linalg::Uplo::lower, .in_runtime = true};
    DistributedMatrix<double> factor(rt, shape, distribution, generator), a(rt, shape, distribution, generator);
    EXPECT_EQ(linalg::potrf(rt, linalg::Uplo::lower, factor.data), 0U);
    EXPECT_LE(linalg::potrf_residual(rt, linalg::Uplo::lower, a.data, factor.data), linalg::residual_limit);
    factor.keep(rt, values);
  };
  std::vector<double> alone;
  expect_well(run_job({.ranks = 1}, [&](Runtime& rt) { factorise(rt, {}, alone); }));
  for (const std::uint32_t ranks : {2U, 4U}) {
    const std::size_t share = (16 * 17 / 2) * tile * tile * sizeof(double) / ranks;
    std::vector<std::vector<double>> values(ranks);
    expect_well(run_job({.ranks = ranks, .main_bytes = share / 4}, [&](Runtime& rt) {
      factorise(rt, linalg::Distribution::block_cyclic(linalg::Distribution::squarest(ranks)), values[rt.rank()]);
    }));
    for (const std::vector<double>& found : values) EXPECT_EQ(found, alone) << ranks << " ranks";
  }
}

/// Counts blocks, of which it has so many at once, and so many in all.
class CountedMemory final : public runtime::MemoryNode {
 public:
  struct Blocks {
    std::atomic<int> now{0}, all{0};
  };
  explicit CountedMemory(Blocks& blocks) : blocks_(blocks) {}
  std::string name() const override { return "counted"; }
  void* allocate(std::size_t bytes) override {
    EXPECT_EQ(bytes, kBytes);
    ++blocks_.now;
    ++blocks_.all;
    return memory_->allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) noexcept override {
    --blocks_.now;
    memory_->release(memory, bytes);
  }

 private:
  Blocks& blocks_;
  const std::unique_ptr<runtime::MemoryNode> memory_ = runtime::make_main_memory();
};

TEST(DistMemory, DataOfOtherRanksLiesInMemoryForMessages) {
  for (const std::size_t budget : {std::size_t{0}, 4 * kBytes}) {
    constexpr int count = 8;
    std::vector<CountedMemory::Blocks> blocks(2);
    expect_well(run_job({.ranks = 2, .main_bytes = budget}, [&](Runtime& rt) {
      rt.core().memory().set_message_memory(std::make_unique<CountedMemory>(blocks[rt.rank()]));
      exchange(rt, count, 3);
      EXPECT_LE(blocks[rt.rank()].now, count) << "what it owns is elsewhere";
    }));
    for (const CountedMemory::Blocks& of_rank : blocks) {
      EXPECT_EQ(of_rank.now, 0);
      EXPECT_GE(of_rank.all, count) << "all data travels";
    }
  }
}

}  // namespace
}  // namespace tandem::dist_test::memory_test
