// tests/dist_flow/array_test.cpp: arrays with gaps in the memory of one rank, used by tasks on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranks.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::dist_test::array_test {
namespace {

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

using Block = ArrayView<int, 3>;
const std::array<std::size_t, 3> kSize{2, 3, 2};

const Codelet add("add", [](ArrayView<const int, 3> from, Block to) {
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t i = 0; i < 2; ++i) to(i, j, k) = to(i, j, k) * 2 + from(1 - i, j, k);
});

/// Each rank has a block of a field of its own; each adds its neighbour's, three times.
TEST(DistArray, BlocksGoFromRankToRank) {
  for (const std::uint32_t ranks : {1U, 2U, 4U})
    expect_well(run_job({.ranks = ranks}, [&](Runtime& rt) {
      const std::array<std::size_t, 3> n{4, 5, 3}, strides{1, 4, 20};
      std::vector<std::vector<int>> fields(ranks, std::vector<int>(60, -1)), expected = fields;
      const auto block_of = [&](std::vector<int>& field) {
        return Block{field.data(), n, strides}.block({1, 1, 1}, kSize);
      };
      std::vector<ArrayData<int, 3>> data;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::vector<std::vector<int>>* all : {&fields, &expected})
          for (std::size_t at = 0; at < 12; ++at)
            block_of((*all)[rank])(at % 2, at / 2 % 3, at / 6) = static_cast<int>(rank * 100 + at);
        data.push_back(rt.data("block", block_of(fields[rank]), {.owner = rank}));
      }
      const auto add_up = rt.array<int>("sum", {2, 3, 2}, {.owner = ranks - 1});
      rt.submit("begin", [](Block to) { std::fill_n(to.data, to.size(), 0); }, write(add_up));
      std::vector<int> sum(12);
      for (int round = 0; round < 3; ++round)
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          rt.submit(add, read(data[(rank + 1) % ranks]), read_write(add_up));
          const Block from = block_of(expected[(rank + 1) % ranks]);
          for (std::size_t at = 0; at < 12; ++at) sum[at] = sum[at] * 2 + from(1 - at % 2, at / 2 % 3, at / 6);
          if (ranks == 1) continue;
          rt.submit(add, read(data[(rank + 1) % ranks]), read_write(data[rank]));
          const Block to = block_of(expected[rank]);
          for (std::size_t at = 0; at < 12; ++at) {
            int& value = to(at % 2, at / 2 % 3, at / 6);
            value = value * 2 + from(1 - at % 2, at / 2 % 3, at / 6);
          }
        }
      auto view = rt.acquire(read(add_up));
      for (std::size_t at = 0; at < 12; ++at) EXPECT_EQ((*view).data[at], sum[at]) << at;
      view.release();
      rt.wait();
      EXPECT_EQ(fields[rt.rank()], expected[rt.rank()]) << "what is around the block is as it was";
    }));
}

TEST(DistArray, SharesOfAReductionHaveItsDimensions) {
  expect_well(run_job({.ranks = 3}, [&](Runtime& rt) {
    std::vector<int> memory(24, 1);
    auto block = rt.data("block", Block{memory.data(), kSize, {1, 2, 12}}, {.owner = 1});
    block.reduction([](Block to) { std::fill_n(to.data, to.size(), 0); }, [](Block into, ArrayView<const int, 3> from) {
      for (std::size_t k = 0; k < 2; ++k)
        for (std::size_t j = 0; j < 3; ++j)
          for (std::size_t i = 0; i < 2; ++i) into(i, j, k) += from(i, j, k);
    });
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      for (int task = 0; task < 4; ++task)
        rt.submit({.on = rank}, "count", [](Block to) { to(1, 2, 1) += 1; to(0, 0, 0) += 10; }, reduce(block));
    rt.wait();
    if (rt.rank() != 1) return;
    for (std::size_t at = 0; at < memory.size(); ++at)
      EXPECT_EQ(memory[at], 1 + (at == 0 ? 120 : 0) + (at == 1 + 2 * 2 + 12 ? 12 : 0)) << at;
  }));
}

}  // namespace
}  // namespace tandem::dist_test::array_test
