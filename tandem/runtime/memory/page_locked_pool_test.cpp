// tandem/runtime/memory/page_locked_pool_test.cpp: page-locked memory is allocated, used again, refused and freed.
#include "tandem/runtime/memory/page_locked_pool.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::runtime::page_locked_pool_test {
namespace {

/// Counters of a driver for a test. Outlives the driver.
struct Driver {
  std::map<void*, std::size_t> blocks;
  std::size_t bytes = 0;
  std::size_t most_bytes = std::size_t{1} << 40;
  int asked = 0;
};

class FakeLocker final : public PageLocker {
 public:
  explicit FakeLocker(Driver& driver) : driver_(driver) {}
  void* allocate(std::size_t bytes, std::string& why) override {
    ++driver_.asked;
    if (driver_.bytes + bytes > driver_.most_bytes) {
      why = "NO_MORE";
      return nullptr;
    }
    void* const memory = std::aligned_alloc(4096, bytes);
    driver_.blocks.emplace(memory, bytes);
    driver_.bytes += bytes;
    return memory;
  }
  void release(void* memory) noexcept override {
    const auto block = driver_.blocks.find(memory);
    ASSERT_NE(block, driver_.blocks.end()) << "not the driver's, or given back twice";
    driver_.bytes -= block->second;
    driver_.blocks.erase(block);
    std::free(memory);
  }

 private:
  Driver& driver_;
};

struct PageLockedPoolTest : testing::Test {
  std::unique_ptr<PageLockedPool> pool(std::size_t bound) {
    return std::make_unique<PageLockedPool>(std::make_unique<FakeLocker>(driver), bound, log);
  }
  void TearDown() override { EXPECT_TRUE(driver.blocks.empty()) << "all goes back at the end"; }
  Driver driver;
  std::vector<std::string> lines;
  base::Log log{base::LogLevel::warn, [this](base::LogLevel, std::string_view line) { lines.emplace_back(line); }};
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_F(PageLockedPoolTest, AsksNothingBeforeItIsAsked) {
  const auto all = pool(64 * kMiB);
  EXPECT_EQ(driver.asked, 0);
  EXPECT_EQ(all->report().bound, 64 * kMiB);
}

TEST_F(PageLockedPoolTest, CutsSmallBlocksFromOneChunkAndUsesThemAgain) {
  const auto all = pool(64 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000; ++i) {
    blocks.push_back(all->allocate(1'000));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back()) % 64, 0U);
    std::memset(blocks.back(), i, 1'000);
  }
  EXPECT_EQ(driver.asked, 1);
  EXPECT_EQ(all->report().used, 1'000U * 1'024);
  for (void* const block : blocks) EXPECT_TRUE(all->release(block, 1'000));
  EXPECT_EQ(all->report().used, 0U);
  for (int i = 0; i < 1'000; ++i) EXPECT_NE(all->allocate(1'000), nullptr);
  EXPECT_EQ(driver.asked, 1);
  EXPECT_EQ(all->report().most_used, 1'000U * 1'024);
  EXPECT_EQ(all->report().allocations, 2'000U);
}

TEST_F(PageLockedPoolTest, UsesLargeBlocksAgainAndFreesOthersForThem) {
  const auto all = pool(4 * kMiB);
  void* const first = all->allocate(3 * kMiB);
  EXPECT_TRUE(all->release(first, 3 * kMiB));
  EXPECT_EQ(all->allocate(3 * kMiB), first);
  EXPECT_EQ(driver.asked, 1);
  EXPECT_EQ(all->allocate(2 * kMiB), nullptr) << "beyond the bound";
  EXPECT_TRUE(all->release(first, 3 * kMiB));
  void* const second = all->allocate(2 * kMiB);
  EXPECT_NE(second, nullptr) << "the first one has left for it";
  EXPECT_EQ(driver.bytes, 2 * kMiB);
  EXPECT_EQ(all->report().locked, 2 * kMiB);
  EXPECT_EQ(all->report().refused, 1U);
  EXPECT_EQ(all->report().refused_bytes, 2 * kMiB);
  EXPECT_TRUE(lines.empty()) << "the bound is no fault of the driver's";
}

TEST_F(PageLockedPoolTest, WarnsOnceWhenTheDriverRefusesAndUsesWhatThereIs) {
  driver.most_bytes = 3 * kMiB;
  const auto all = pool(64 * kMiB);
  void* const first = all->allocate(2 * kMiB);
  ASSERT_NE(first, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all->allocate(2 * kMiB), nullptr);
  EXPECT_EQ(all->allocate(100), nullptr);
  EXPECT_EQ(driver.asked, 2);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::AllOf(testing::HasSubstr("NO_MORE"), testing::HasSubstr("cuda.page_locked")));
  EXPECT_TRUE(all->release(first, 2 * kMiB));
  EXPECT_EQ(all->allocate(2 * kMiB), first);
}

TEST_F(PageLockedPoolTest, KnowsWhatIsNotItsOwn) {
  const auto all = pool(64 * kMiB);
  EXPECT_NE(all->allocate(100), nullptr);
  std::vector<char> other(kMiB);
  EXPECT_FALSE(all->release(other.data(), 100));
  EXPECT_FALSE(all->release(other.data(), kMiB));
  EXPECT_EQ(all->report().used, 128U);
}

TEST_F(PageLockedPoolTest, HasNoMemoryForSizesThatOverflowWhenTheyAreRounded) {
  const auto small = pool(SIZE_MAX);
  const auto main_memory = make_main_memory();
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 62, SIZE_MAX - 4'094, std::size_t{1} << 63}) {
    EXPECT_EQ(small->allocate(bytes), nullptr) << bytes;
    EXPECT_EQ(main_memory->allocate(bytes), nullptr) << bytes;
  }
  EXPECT_EQ(driver.asked, 0);
  EXPECT_EQ(small->report().refused, 4U);
}

TEST_F(PageLockedPoolTest, MainMemoryGoesOnWithPlainMemory) {
  const std::shared_ptr<PageLockedPool> all = pool(2 * kMiB);
  std::mt19937_64 random(1);
  const auto memory = make_page_locked_memory(all);
  EXPECT_EQ(memory->name(), "main memory");
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (int i = 0; i < 2'000; ++i) {
    const std::size_t bytes = random() % 4 == 0 ? random() % kMiB : random() % 2'000;
    auto* const block = static_cast<char*>(memory->allocate(bytes));
    ASSERT_NE(block, nullptr);
    std::memset(block, i, bytes);
    blocks.emplace_back(block, bytes);
    if (random() % 8 != 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      memory->release(blocks.back().first, blocks.back().second);
      blocks.pop_back();
    }
    EXPECT_LE(driver.bytes, 2 * kMiB);
    EXPECT_EQ(all->report().locked, driver.bytes);
    EXPECT_LE(all->report().used, driver.bytes);
  }
  EXPECT_GT(all->report().refused, 0U);
  for (const auto& [block, bytes] : blocks) memory->release(block, bytes);
  EXPECT_EQ(all->report().used, 0U);
}

}  // namespace
}  // namespace tandem::runtime::page_locked_pool_test
