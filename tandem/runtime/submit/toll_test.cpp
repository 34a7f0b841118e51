// tandem/runtime/submit/toll_test.cpp: the virtual time of submission.
#include "tandem/runtime/submit/toll.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace tandem::runtime::toll_test {
namespace {

TEST(Toll, PassesTimeForSeveralTasksAtOnceAndLosesNone) {
  std::int64_t passed_ns = 0;
  unsigned calls = 0;
  Toll toll(300, [&](std::int64_t ns) { passed_ns += ns, ++calls; });
  for (int task = 0; task < 700; ++task) toll.pay();
  EXPECT_EQ(passed_ns, 210'000);
  EXPECT_EQ(calls, 100U);
}

TEST(Toll, OfNothingNeverPasses) {
  Toll toll(0, [](std::int64_t) { FAIL(); });
  for (int task = 0; task < 700; ++task) toll.pay();
}

}  // namespace
}  // namespace tandem::runtime::toll_test
