// tandem/base/thread_test.cpp: the name and stack of a thread, and the error when there is none.
#include "tandem/base/thread.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/base/exceptions.hpp"
#include "tandem/base/stack_test_support.hpp"

namespace tandem::base::thread_test {
namespace {

constexpr std::size_t kMiB = 1 << 20;

std::size_t stack_of_a_thread(std::size_t asked) {
  std::size_t bytes = 0;
  Thread thread({.name = "test", .stack_bytes = asked}, [&] { bytes = own_stack_bytes(); });
  thread.join();
  return bytes;
}

/// Runs `check` in a process of its own, whose limits it may change: 0 when it returns true.
int in_a_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

bool limit_stack(rlim_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return false;
  limit.rlim_cur = bytes;
  return setrlimit(RLIMIT_STACK, &limit) == 0;
}

TEST(Thread, HasTheStackThatItAskedFor) {
  // perhaps more: that of a thread that has ended
  for (const std::size_t bytes : {kLeastStackBytes, 3 * kMiB, 20 * kMiB, 80 * kMiB})
    EXPECT_GE(stack_of_a_thread(bytes), bytes);
  EXPECT_GE(stack_of_a_thread(1), kLeastStackBytes) << "a stack that works";
}

TEST(Thread, HasTheProgramsLimitOtherwise) {
  const auto has_stack = [](rlim_t limit, std::size_t bytes) {
    return limit_stack(limit) && usual_stack_bytes() == bytes && stack_of_a_thread(0) >= bytes;
  };
  EXPECT_EQ(in_a_child([&] { return has_stack(5 * kMiB, 5 * kMiB); }), 0);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
  if (limit.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "`unlimited` is more than this process may have";
  EXPECT_EQ(in_a_child([&] { return has_stack(RLIM_INFINITY, 64 * kMiB); }), 0);
}

TEST(Thread, HasItsName) {
  std::string name;
  Thread thread({.name = "tandem-with-a-long-name"}, [&] {
    char text[16] = {};
    prctl(PR_GET_NAME, text);
    name = text;
  });
  thread.join();
  EXPECT_EQ(name, "tandem-with-a-l");
  EXPECT_FALSE(thread.joinable());
}

TEST(Thread, ThatCannotBeMadeSaysWhy) {
  std::string said;
  try {
    Thread thread({.name = "too large", .stack_bytes = std::size_t{1} << 60}, [] {});
    thread.join();
  } catch (const StartError& error) {
    said = error.what();
  }
  EXPECT_THAT(said,
              testing::AllOf(testing::HasSubstr("cannot make thread 'too large'"), testing::HasSubstr("option stack")));
}

TEST(Thread, BeyondTheLimitOfProcessesIsAStartError) {
  if (geteuid() != 0) GTEST_SKIP() << "another user's limit, which counts no other process, needs root";
  const int status = in_a_child([] {
    const rlimit one{1, 1};
    constexpr uid_t kNobodyElse = 2'000'123'456;  // a user without other processes
    if (setrlimit(RLIMIT_NPROC, &one) != 0 || setuid(kNobodyElse) != 0) return false;
    try {
      Thread thread({.name = "one too many"}, [] {});
      thread.join();
    } catch (const StartError& error) {
      return std::string(error.what()).find("ulimit -u") != std::string::npos;
    }
    return false;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tandem::base::thread_test
