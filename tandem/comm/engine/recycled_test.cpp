// tandem/comm/engine/recycled_test.cpp: memory that is freed is used again, whichever thread freed it, and returned
// when asked.
#include "tandem/comm/engine/recycled.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tandem::comm::internal::recycled_test {
namespace {

constexpr bool keeps = !base::under_sanitizer;

struct Thing final : Recycled<Thing> {
  std::uint64_t content[5] = {1, 2, 3, 4, 5};
};
using Things = std::vector<std::unique_ptr<Thing>>;

Things make(std::size_t count) {
  Things things(count);
  for (auto& thing : things) thing = std::make_unique<Thing>();
  return things;
}

TEST(Recycled, ABurstFindsTheMemoryThatAnotherThreadFreed) {
  Things burst = make(10'000);
  std::set<const Thing*> before;
  for (const auto& thing : burst) before.insert(thing.get());
  std::thread([&burst] { burst.clear(); }).join();
  if (!keeps) {
    EXPECT_EQ(Thing::spare_bytes(), 0u);
    return;
  }
  // The thread's shelf, of up to two batches, went with it.
  EXPECT_GE(Thing::spare_bytes(), 9'800 * sizeof(Thing));
  burst = make(9'800);
  std::size_t again = 0;
  for (const auto& thing : burst) again += before.count(thing.get());
  EXPECT_GE(again, 9'700u);
  for (const auto& thing : burst) EXPECT_EQ(thing->content[4], 5u);
  burst.clear();
  EXPECT_GT(Thing::spare_bytes(), 0u);
  Thing::trim();
  EXPECT_EQ(Thing::spare_bytes(), 0u);
}

TEST(Recycled, ThreadsThatAllocateAndFreeForEachOtherShareNothingTwice) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (unsigned round = 0; round < 50; ++round) {
        Things mine = make(300 + 50 * t);
        for (auto& thing : mine) thing->content[0] = t;
        for (auto& thing : mine) EXPECT_EQ(thing->content[0], t);  // no other thread has it
        if (round % 10 == t) Thing::trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tandem::comm::internal::recycled_test
