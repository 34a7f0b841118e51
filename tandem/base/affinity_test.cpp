// tandem/base/affinity_test.cpp: a thread is bound, and its affinity restored.
#include "tandem/base/affinity.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace tandem::base::affinity_test {
namespace {

TEST(Affinity, AThreadIsBoundAndRestored) {
  std::thread([] {
    const std::vector<unsigned> before = affinity_of_this_thread();
    ASSERT_FALSE(before.empty());
    {
      const std::vector<unsigned> last{before.back()};
      const ScopedAffinity bound(last);
      ASSERT_TRUE(bound.result().ok()) << bound.result().error().message;
      EXPECT_EQ(affinity_of_this_thread(), last);
    }
    EXPECT_EQ(affinity_of_this_thread(), before);
  }).join();
}

TEST(Affinity, NoSuchHardwareThreadIsAnError) {
  std::thread([] {
    const std::vector<unsigned> before = affinity_of_this_thread();
    EXPECT_EQ(set_affinity_of_this_thread(std::vector<unsigned>{100'000}).error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(set_affinity_of_this_thread({}).ok());
    EXPECT_EQ(affinity_of_this_thread(), before);
  }).join();
}

}  // namespace
}  // namespace tandem::base::affinity_test
