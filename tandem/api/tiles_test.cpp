// tandem/api/tiles_test.cpp: tiles are registered when they are used.
#include <cstddef>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::tiles_test {
namespace {

using test::loop_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

const Codelet fill("fill", [](double value, MatrixView<double> tile) {
  for (std::size_t j = 0; j < tile.cols; ++j)
    for (std::size_t i = 0; i < tile.rows; ++i) tile.data[i + j * tile.ld] = value;
});
const Codelet add("add", [](MatrixView<const double> from, MatrixView<double> to) { to.data[0] += from.data[0]; });

TEST(Tiles, AreRegisteredWhenTheyAreUsed) {
  const auto rt = loop_runtime();
  auto a = rt->tiles<double>("A", {.rows = 1'000'000, .cols = 1'000'000, .tile_rows = 1'000, .tile_cols = 1'000});
  EXPECT_EQ(a.row_tiles() * a.col_tiles(), 1'000'000U);
  EXPECT_EQ(a.registered(), 0U);
  const auto& tile = a(3, 999);
  EXPECT_EQ(tile.name(), "A(3,999)");
  EXPECT_EQ(&a(3, 999), &tile);
  EXPECT_EQ(a.registered(), 1U);
}

TEST(Tiles, AtTheEdgesAreSmaller) {
  const auto rt = loop_runtime();
  auto a = rt->tiles<float>("A", {.rows = 10, .cols = 7, .tile_rows = 4, .tile_cols = 7});
  EXPECT_EQ(a.row_tiles(), 3U);
  EXPECT_EQ(a.col_tiles(), 1U);
  EXPECT_EQ(a(1, 0).rows(), 4U);
  EXPECT_EQ(a(2, 0).rows(), 2U);
  EXPECT_EQ(a(2, 0).cols(), 7U);
  auto none = rt->tiles<float>("none", {.rows = 0, .cols = 5});
  EXPECT_EQ(none.row_tiles(), 0U);
}

TEST(Tiles, AreDataLikeOthers) {
  const auto rt = loop_runtime();
  auto a = rt->tiles<double>("A", {.rows = 100, .cols = 100, .tile_rows = 10, .tile_cols = 10});
  rt->submit(fill, 1.0, write(a(0, 0)));
  for (std::size_t i = 1; i < 10; ++i) {
    rt->submit(fill, 0.5, write(a(i, i)));
    rt->submit(add, read(a(i - 1, i - 1)), read_write(a(i, i)));
  }
  auto last = rt->acquire(read(a(9, 9)));
  EXPECT_EQ(last->data[0], 1.0 + 9 * 0.5);
}

TEST(Tiles, MayGoBeforeTheirTasks) {
  const auto rt = loop_runtime();
  const auto sum = rt->scalar<double>("sum");
  rt->submit("zero", [](double& value) { value = 0; }, write(sum));
  {
    auto a = rt->tiles<double>("A", {.rows = 30, .cols = 10, .tile_rows = 10, .tile_cols = 10});
    for (std::size_t i = 0; i < 3; ++i) {
      rt->submit(fill, 2.0, write(a(i, 0)));
      rt->submit("add", [](MatrixView<const double> tile, double& value) { value += tile.data[0]; }, read(a(i, 0)),
                 read_write(sum));
    }
    auto moved = std::move(a);
    EXPECT_EQ(moved.registered(), 3U);
  }
  EXPECT_EQ(*rt->acquire(read(sum)), 6.0);
}

TEST(Tiles, MistakesAreNamed) {
  const auto rt = loop_runtime();
  auto a = rt->tiles<double>("A", {.rows = 100, .cols = 50, .tile_rows = 10, .tile_cols = 10});
  EXPECT_THAT(thrown_by<UsageError>([&] { a(10, 0); }),
              AllOf(HasSubstr("tiles 'A' have no tile (10,0)"), HasSubstr("10 x 5")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->tiles<double>("B", {.rows = 1, .cols = 1, .tile_rows = 0}); }),
              AllOf(HasSubstr("'B'"), HasSubstr("tiles_test.cpp"), HasSubstr("no rows or no columns")));
  auto c = rt->tiles<double>("C", {.rows = 10, .cols = 10, .owner = [](std::size_t, std::size_t) { return 1U; }});
  EXPECT_THAT(thrown_by<UsageError>([&] { c(0, 0); }), AllOf(HasSubstr("'C(0,0)'"), HasSubstr("rank 1")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit(fill, 1.0, read_write(a(0, 0))); }),
              HasSubstr("nobody has written it"));
}

}  // namespace
}  // namespace tandem::tiles_test
