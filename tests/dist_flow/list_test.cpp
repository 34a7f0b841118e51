// tests/dist_flow/list_test.cpp: tasks that name lists of data of several ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::dist_test::list_test {
namespace {

using Word = std::uint64_t;

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

const Codelet mix("mix", [](Each<const Word&> from, Word& to) {
  for (const Word& value : from) to = to * 5 + value;
});
const Codelet shift("shift", [](Each<Word&> list, Word by) {
  for (std::size_t i = 0; i < list.size(); ++i) list[i] += by + i;
});

/// Random tasks with random lists, against the sequential program.
void play(Runtime& rt, std::uint64_t seed, bool recorded) {
  constexpr std::size_t kData = 12;
  std::mt19937_64 random(seed);
  std::vector<Word> values(kData), expected(kData);
  std::vector<Data<Word>> data;
  for (std::size_t i = 0; i < kData; ++i) {
    values[i] = expected[i] = i;
    data.push_back(rt.data("d" + std::to_string(i), values[i], {.owner = static_cast<std::uint32_t>(i % rt.size())}));
  }
  std::vector<Word> sum(rt.size(), 1), expected_sum(rt.size(), 1);
  std::vector<Data<Word>> sums;
  for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
    sums.push_back(rt.data("sum", sum[rank], {.owner = rank}));
    sums.back().reduction([](Word& value) { value = 0; }, [](Word& into, const Word& from) { into += from; });
  }
  const auto flow = [&](bool submits, bool computes) {
    std::mt19937_64 draw(seed + 1);
    for (int task = 0; task < 60; ++task) {
      std::vector<Data<Word>> list;
      std::vector<std::size_t> places;
      const std::size_t target = draw() % kData;
      const auto on = static_cast<std::uint32_t>(draw() % rt.size());
      for (std::size_t i = 0; i < kData; ++i)
        if (draw() % 3 != 0 && i != target) list.push_back(data[i]), places.push_back(i);
      switch (draw() % 3) {
        case 0:
          if (submits) rt.submit(mix, read(list), read_write(data[target]));
          for (std::size_t i = 0; computes && i < places.size(); ++i)
            expected[target] = expected[target] * 5 + expected[places[i]];
          break;
        case 1:  // data of several owners, on one rank
          if (submits) rt.submit({.on = on}, shift, read_write(list), Word{3});
          for (std::size_t i = 0; computes && i < places.size(); ++i) expected[places[i]] += 3 + i;
          break;
        default:
          if (submits)
            rt.submit({.on = on}, "add", [](Each<const Word&> from, Each<Word&> to) {
              for (const Word& value : from)
                for (Word& one : to) one += value;
            }, read(list), reduce(sums));
          for (std::size_t i = 0; computes && i < places.size(); ++i)
            for (Word& one : expected_sum) one += expected[places[i]];
      }
    }
  };
  if (recorded) {
    Graph graph = rt.record([&] { flow(true, false); });
    for (int round = 0; round < 3; ++round) {
      rt.replay(graph);
      flow(false, true);
    }
    rt.wait();
  } else {
    flow(true, true);
    rt.wait();
  }
  for (std::size_t i = rt.rank(); i < kData; i += rt.size())
    EXPECT_EQ(values[i], expected[i]) << "seed " << seed << ", datum " << i;
  EXPECT_EQ(sum[rt.rank()], expected_sum[rt.rank()]) << "seed " << seed;
}

TEST(DistList, RandomFlowsGiveWhatTheSequentialProgramGives) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const std::uint32_t ranks : {1U, 2U, 3U})
      expect_well(run_job({.ranks = ranks}, [&](Runtime& rt) { play(rt, seed, false); }));
}

TEST(DistList, ReplaysDoWhatTheFlowDoes) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (const std::uint32_t ranks : {1U, 3U})
      expect_well(run_job({.ranks = ranks}, [&](Runtime& rt) { play(rt, seed, true); }));
}

TEST(DistList, HundredsOfDataOfAllRanks) {
  expect_well(run_job({.ranks = 3}, [&](Runtime& rt) {
    constexpr std::size_t kData = 400;
    std::vector<Data<Word>> data;
    for (std::size_t i = 0; i < kData; ++i) {
      data.push_back(rt.scalar<Word>("d" + std::to_string(i), {.owner = static_cast<std::uint32_t>(i % 3)}));
      rt.submit("fill", [i](Word& value) { value = i; }, write(data.back()));
    }
    Word total = 0;
    const auto to = rt.data("total", total, {.owner = 1});
    rt.submit("sum", [](Each<const Word&> list, Word& sum) {
      for (const Word& value : list) sum += value;
    }, read(data), read_write(to));
    rt.wait();
    if (rt.rank() == 1) {
      EXPECT_EQ(total, kData * (kData - 1) / 2);
    }
  }));
}

}  // namespace
}  // namespace tandem::dist_test::list_test
