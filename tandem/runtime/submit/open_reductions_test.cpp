// tandem/runtime/submit/open_reductions_test.cpp: the set of open sums keeps its order, and no call visits all of them.
#include "tandem/runtime/submit/open_reductions.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tandem/base/cost_test_support.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime::open_reductions_test {
namespace {

TEST(OpenReductions, TheLastOneIsTheOneThatWasAddedLast) {
  std::vector<Handle> handles(4);
  OpenReductions open;
  EXPECT_TRUE(open.empty());
  open.remove(handles[0]);  // it was never in the set
  for (Handle& handle : handles) open.add(handle);
  open.add(handles[0]);  // it is in the set
  EXPECT_EQ(open.size(), 4U);
  EXPECT_EQ(&open.last(), &handles[3]);
  open.remove(handles[3]);
  EXPECT_EQ(&open.last(), &handles[2]);
  open.remove(handles[0]);  // the last one takes its place
  EXPECT_EQ(&open.last(), &handles[1]);
  open.remove(handles[1]);
  open.remove(handles[1]);
  EXPECT_EQ(&open.last(), &handles[2]);
  open.remove(handles[2]);
  EXPECT_TRUE(open.empty());
}

TEST(OpenReductions, NoCallGoesThroughAllOfThem) {
  std::vector<Handle> handles(32'000);
  const auto use = [&](std::size_t count) {
    OpenReductions open;
    for (std::size_t i = 0; i < count; ++i) open.add(handles[i]);
    for (std::size_t i = 0; i < count; ++i) open.remove(handles[i * 7 % count]);
    EXPECT_TRUE(open.empty());
  };
  EXPECT_LT(test::growth_of_cost(2'000, 32'000, use), 6) << "16 when it is quadratic";
}

}  // namespace
}  // namespace tandem::runtime::open_reductions_test
