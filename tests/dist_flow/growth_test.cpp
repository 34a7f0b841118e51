// tests/dist_flow/growth_test.cpp: what a flow on several ranks costs for each datum and each access grows with neither
// number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "ranks.hpp"
#include "tandem/base/cost_test_support.hpp"
#include "tandem/dist/need.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/placement.hpp"

namespace tandem::dist_test::growth_test {
namespace {

using dist::Need;
using dist::Use;

TEST(DistGrowth, AccessesOfOneTaskAreMergedInOneStepEach) {
  std::vector<runtime::Handle> handles(16'000);
  std::vector<Need> needs;
  const auto merge = [&](std::size_t count) {
    std::vector<Use> uses;
    for (std::size_t i = 0; i < count; ++i)
      uses.push_back({&handles[i * 7 % count], i % 2 == 0 ? AccessMode::read : AccessMode::commute});
    uses.push_back({&handles[0], AccessMode::scratch});
    uses.push_back({&handles[0], AccessMode::write});
    dist::gather_needs(uses, needs);
    ASSERT_EQ(needs.size(), count);
    EXPECT_EQ(needs[0].handle, &handles[0]);
    EXPECT_TRUE(needs[0].sees);
    EXPECT_EQ(needs[0].new_versions, 1U);
    EXPECT_FALSE(needs[2].makes());
  };
  for (const std::size_t count : {4U, 30U, 31U, 40U}) merge(count);
  EXPECT_LT(test::growth_of_cost(1'000, 16'000, merge), 6) << "16 when it is quadratic";
}

TEST(DistGrowth, TheRankOfATaskIsFoundInOneStepForEachAccess) {
  std::vector<runtime::Handle> handles(16'000);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    auto& place = *new (handles[i].above.data()) dist::Place;
    place.owner = static_cast<std::uint32_t>(i % 4);
    handles[i].shape = {1, 1, 8};
  }
  const dist::Placement placement(4);
  for (const AccessMode mode : {AccessMode::read_write, AccessMode::reduce}) {
    const auto place = [&](std::size_t count) {
      std::vector<Use> uses;
      for (std::size_t i = 0; i < count; ++i) uses.push_back({&handles[i], mode});
      for (std::size_t i = 0; i < count; ++i) uses.push_back({&handles[i], AccessMode::read});
      uses.push_back({&handles[2], AccessMode::read});  // more bytes than others have
      EXPECT_EQ(placement.executor_of(uses, {}, nullptr), 2U);
    };
    EXPECT_LT(test::growth_of_cost(1'000, 16'000, place), 6) << "16 when it is quadratic";
  }
}

TEST(DistGrowth, DataThatIsDroppedAwayFromItsOwnerIsForgottenInOneStep) {
  const std::vector<Ending> endings = run_job({.ranks = 2}, [](Runtime& rt) {
    const auto use = [&](std::size_t count) {
      std::vector<double> memory(count, 1);
      std::vector<Data<double>> data;
      for (double& word : memory) data.push_back(rt.data("d", word, {.owner = 0}));
      for (const auto& datum : data)
        rt.submit(
            {.on = 1}, "change", [](double& value) { value += 1; }, read_write(datum));
      for (std::size_t i = 0; i < count; ++i) data[i * 7 % count] = {};
      rt.wait();
      if (rt.rank() == 0) { EXPECT_THAT(memory, testing::Each(2.0)); }
    };
    const double growth = test::growth_of_cost(500, 6'000, use);
    if (rt.rank() == 1) { EXPECT_LT(growth, 5) << "12 when it is quadratic"; }
  });
  for (const Ending& ending : endings) EXPECT_EQ(ending.error, "");
}

}  // namespace
}  // namespace tandem::dist_test::growth_test
