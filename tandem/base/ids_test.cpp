// tandem/base/ids_test.cpp: ids of different meanings do not mix.
#include "tandem/base/ids.hpp"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace tandem::base::ids_test {
namespace {

static_assert(!std::is_convertible_v<WorkerId, NodeId>);
static_assert(!std::is_constructible_v<WorkerId, NodeId>);
static_assert(!std::is_convertible_v<std::uint32_t, WorkerId>);
static_assert(!std::is_convertible_v<WorkerId, std::uint32_t>);

TEST(Ids, CompareAndHashByValue) {
  EXPECT_EQ(WorkerId(3), WorkerId(3));
  EXPECT_LT(WorkerId(2), WorkerId(3));
  EXPECT_EQ(WorkerId().value(), 0U);
  const std::unordered_set<Rank> ranks{Rank(1), Rank(2), Rank(1)};
  EXPECT_EQ(ranks.size(), 2U);
}

}  // namespace
}  // namespace tandem::base::ids_test
