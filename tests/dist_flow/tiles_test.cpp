// tests/dist_flow/tiles_test.cpp: tiles that each rank registers when it uses them are the same data on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranks.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/flow.hpp"

namespace tandem::dist_test::tiles_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Codelet set_to("set to", [](double value, MatrixView<double> tile) { tile.data[0] = value; });
const Codelet add("add", [](MatrixView<const double> from, MatrixView<double> to) { to.data[0] += from.data[0]; });

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

TileGrid grid_of(std::uint32_t ranks, std::size_t tiles) {
  return {.rows = tiles, .cols = tiles, .tile_rows = 1, .tile_cols = 1, .owner = [ranks](std::size_t i, std::size_t j) {
            return static_cast<std::uint32_t>((i + 2 * j) % ranks);
          }};
}

/// Each diagonal tile gets what its left neighbours have, and the first row what the diagonal has.
TEST(DistTiles, WhoeverUsesATileFirstItIsTheSame) {
  for (const std::uint32_t ranks : {1U, 2U, 5U})
    expect_well(run_job({.ranks = ranks}, [&](Runtime& rt) {
      constexpr std::size_t n = 12;
      double before = 0;
      auto b = rt.data("before", before, {.owner = 0});
      auto a = rt.tiles<double>("A", grid_of(ranks, n));
      double after = 0;
      auto c = rt.data("after", after, {.owner = ranks - 1});
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j <= i; ++j) rt.submit(set_to, static_cast<double>(i * n + j), write(a(i, j)));
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j) rt.submit(add, read(a(i, j)), read_write(a(i, i)));
      rt.submit("sum", [](MatrixView<const double> tile, double& sum) { sum += tile.data[0]; }, read(a(n - 1, n - 1)),
                read_write(c));
      rt.submit("one", [](double& value) { value = 1; }, write(b));
      rt.wait();
      EXPECT_EQ(a.registered(), n * (n + 1) / 2);
      double expected = 0;
      for (std::size_t j = 0; j < n; ++j) expected += static_cast<double>((n - 1) * n + j);
      EXPECT_EQ(rt.rank() == ranks - 1 ? after : expected, expected);
      EXPECT_EQ(rt.rank() == 0 ? before : 1, 1);
    }));
}

constexpr std::uint32_t kRanks = 4;
constexpr std::size_t kTiles = 4'000;

/// A ring of tiles: each gets its successor's value; a rank submits the tasks of its tiles and of their neighbours.
TEST(DistTiles, ARankThatSkipsTasksRegistersWhatItUses) {
  expect_well(run_job({.ranks = kRanks}, [&](Runtime& rt) {
    auto a = rt.tiles<double>(
        "A", {.rows = kTiles, .cols = 1'000, .tile_rows = 1, .tile_cols = 1, .owner = [](std::size_t i, std::size_t) {
                return static_cast<std::uint32_t>(i / (kTiles / kRanks));
              }});
    const auto owner = [](std::size_t i) { return static_cast<std::uint32_t>(i % kTiles / (kTiles / kRanks)); };
    const auto mine = [&](std::size_t i) {
      return owner(i) == rt.rank() || owner(i + 1) == rt.rank() || owner(i + kTiles - 1) == rt.rank();
    };
    for (int round = 0; round < 3; ++round) {
      for_tasks_of(rt, 0, kTiles, mine,
                   [&](std::size_t i) { rt.submit(set_to, static_cast<double>(i), write(a(i, 0))); });
      for_tasks_of(rt, 0, kTiles, mine,
                   [&](std::size_t i) { rt.submit(add, read(a((i + 1) % kTiles, 0)), read_write(a(i, 0))); });
      rt.wait();
    }
    for (std::size_t i = 0; i < kTiles; ++i) {
      if (owner(i) != rt.rank()) continue;
      auto value = rt.acquire_at_owner(read(a(i, 0)));
      const double next = i + 1 < kTiles ? static_cast<double>(i + 1) : 0.0 + 1.0;  // the first one has changed by then
      EXPECT_EQ((*value)->data[0], static_cast<double>(i) + next) << i;
    }
    EXPECT_LE(a.registered(), kTiles / kRanks + 4) << "of " << kTiles * 1'000 << " tiles";
    EXPECT_EQ(rt.flow()->data_table().count(), kTiles * 1'000);
    EXPECT_LE(rt.flow()->data_table().blocks(), 4U);
  }));
}

TEST(DistTiles, RanksThatDifferAboutOwnersAreTold) {
  const auto endings = run_job({.ranks = 2}, [](Runtime& rt) {
    auto a = rt.tiles<double>("A", {.rows = 4, .cols = 4, .tile_rows = 1, .tile_cols = 1, .owner = [&](std::size_t i,
                                                                                                       std::size_t) {
                                      return i == 3 && rt.rank() == 1 ? 1U : 0U;
                                    }});
    rt.wait();
  });
  for (const Ending& ending : endings) EXPECT_THAT(ending.error, HasSubstr("different"));
}

TEST(DistTiles, AnOwnerThatDoesNotExistIsNamed) {
  const auto endings = run_job({.ranks = 2}, [](Runtime& rt) {
    EXPECT_THAT(
        test::thrown_by<UsageError>([&] { rt.tiles<double>("A", grid_of(3, 4)); }),
        AllOf(HasSubstr("tile (2,0) of 'A'"), HasSubstr("tiles_test.cpp"), HasSubstr("rank 2, but there are 2 ranks")));
  });
  expect_well(endings);
}

}  // namespace
}  // namespace tandem::dist_test::tiles_test
