// tandem/api/worker_stack_test.cpp: the stack of a kernel, and errors when the system has no thread.
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/start_error.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/base/stack_test_support.hpp"
#include "tandem/base/thread.hpp"

namespace tandem::worker_stack_test {
namespace {

using test::thread_runtime;

constexpr std::size_t kMiB = 1 << 20;

std::size_t stack_of_a_worker(const std::string& option) {
  auto rt = thread_runtime({.workers = 1, .more = {{"caller", "false"}, {"stack", option}}});
  std::size_t bytes = 0;
  auto data = rt->data("bytes", bytes);
  rt->submit("look", [](std::size_t& to) { to = base::own_stack_bytes(); }, write(data));
  rt->wait();
  return bytes;
}

TEST(WorkerStack, IsThatOfTheOption) {
  for (const std::size_t mib : {1U, 20U, 80U})  // it may be larger: the stack of a thread that has ended
    EXPECT_GE(stack_of_a_worker(std::to_string(mib) + "MiB"), mib * kMiB);
}

TEST(WorkerStack, IsTheProgramsLimitWithoutTheOption) {
  EXPECT_GE(stack_of_a_worker("0"), base::usual_stack_bytes());
}

/// Makes this process belong to another user, which may have no further thread.
bool forbid_threads() {
  const rlimit one{1, 1};
  constexpr uid_t kNobodyElse = 2'000'123'457;  // a user without other processes
  return setrlimit(RLIMIT_NPROC, &one) == 0 && setuid(kNobodyElse) == 0;
}

TEST(WorkerStackDeathTest, AProgramWithoutThreadsEndsWithStatus2) {
  if (geteuid() != 0 || base::under_sanitizer) GTEST_SKIP() << "needs root, and no sanitizer's threads";
  const auto start = []() noexcept {  // so that no handler catches the error
    internal::end_cleanly_on_start_errors();
    if (!forbid_threads()) _exit(1);
    auto rt = thread_runtime({.workers = 4});
    _exit(0);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(2), "tandem: cannot make thread .*ulimit -u");
}

TEST(WorkerStackDeathTest, AWaitWithoutAThreadForItsWatchdogGoesOn) {
  if (geteuid() != 0 || base::under_sanitizer) GTEST_SKIP() << "needs root, and no sanitizer's threads";
  const auto start = [] {
    if (!forbid_threads()) _exit(1);
    test::LogLines lines;
    auto rt = thread_runtime({.workers = 1}, &lines);
    double value = 1;
    auto data = rt->data("value", value);
    for (int i = 0; i < 3; ++i) {
      rt->submit("add", [](double& to) { to += 1; }, read_write(data));
      rt->wait();
    }
    const std::string said = lines.all();
    std::fputs(said.c_str(), stderr);
    _exit(value == 4 && said.find("does not watch") == said.rfind("does not watch") ? 0 : 1);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(0),
              "the watchdog does not watch kernels of the waiting thread: cannot make thread");
}

}  // namespace
}  // namespace tandem::worker_stack_test
