// tandem/api/held_memory_test.cpp: accesses of the application that keep memory for which tasks wait.
#include <memory>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::held_memory_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kBytes = 600 * 1024;

/// Tests on threads and on one event loop, with room for one of the data.
class HeldMemory : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Runtime> owner =
      GetParam() ? thread_runtime(
                       {.workers = 2, .more = {{"memory", "1MiB"}, {"spill", testing::TempDir()}, {"bind", "false"}}})
                 : loop_runtime({.main_bytes = 1 << 20});
  Runtime& rt = *owner;
  Data<Vector<char>> x = rt.vector<char>("x", kBytes), y = rt.vector<char>("y", kBytes),
                     small = rt.vector<char>("small", 1'000);
};

TEST_P(HeldMemory, IsNotWaitedForByTheThreadThatHoldsIt) {
  auto held = rt.acquire(write(x));
  const std::string line = TANDEM_HERE, said = thrown_by<StuckError>([&] { rt.acquire(write(y)); });
  EXPECT_THAT(said, AllOf(HasSubstr("cannot wait for data 'y'"), HasSubstr("614400 bytes in main memory"),
                          HasSubstr("1048576 bytes"), HasSubstr("the application holds data 'x'"),
                          HasSubstr("held_memory_test.cpp")));
  held.release();
  auto second = rt.acquire(write(y));
  (*second)[0] = 1;
  second.release();
  rt.wait();
}

TEST_P(HeldMemory, EndsAWaitForTasksThatNeedIt) {
  auto held = rt.acquire(write(x));
  bool ran = false, other_ran = false;
  rt.submit("fill", [&ran](std::span<char> v) { v[0] = 1, ran = true; }, write(y));
  rt.submit("after", [](std::span<const char>) {}, read(y));
  rt.submit("other", [&other_ran] { other_ran = true; });
  EXPECT_THAT(thrown_by<StuckError>([&] { rt.wait(); }), AllOf(HasSubstr("'fill'"), HasSubstr("it waits for memory"),
                                                               HasSubstr("accesses of the application hold")));
  EXPECT_TRUE(other_ran) << "it needs no memory";
  EXPECT_FALSE(ran);
  EXPECT_THAT(thrown_by<StuckError>([&] { rt.acquire(read(y)); }),
              AllOf(HasSubstr("cannot wait for data 'y'"), HasSubstr("data 'x'")));
  held.release();
  rt.wait();
  EXPECT_TRUE(ran);
}

TEST_P(HeldMemory, LeavesRoomForFurtherAccesses) {
  auto held = rt.acquire(write(x));
  rt.submit("fill", [](std::span<char> v) { v[0] = 1; }, write(y));
  // The task waits for memory before the access does, but only the program can release that memory.
  auto second = rt.acquire(write(small));
  (*second)[0] = 3;
  second.release();
  held.release();
  rt.wait();
  EXPECT_EQ((*rt.acquire(read(y)))[0], 1);
  EXPECT_EQ((*rt.acquire(read(small)))[0], 3);
}

TEST_P(HeldMemory, IsNotBlamedForTasksThatWaitForSomethingElse) {
  auto held = rt.acquire(write(small));
  rt.submit("fill", [](std::span<char> v) { v[0] = 1; }, write(x));
  rt.submit("fill", [](std::span<char> v) { v[0] = 2; }, write(y));
  EXPECT_EQ((*rt.acquire(read(y)))[0], 2);
  EXPECT_THAT(thrown_by<StuckError>([&] { rt.wait(); }), Not(HasSubstr("waits for memory")));
  held.release();
  rt.wait();
}

INSTANTIATE_TEST_SUITE_P(OnThreadsAndALoop, HeldMemory, testing::Bool());

}  // namespace
}  // namespace tandem::held_memory_test
