// tandem/comm/wait_events_test.cpp: waits in a process in which the kernel denies epoll_pwait2.
#include "tandem/comm/wait_events.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>

#include <gtest/gtest.h>

#include "tandem/base/file_descriptor.hpp"

namespace tandem::comm::internal::wait_events_test {
namespace {

using std::chrono::steady_clock;

constexpr int no_filter = 77;

/// Makes the call fail with `error` in this process from now on.
bool deny_pwait2(int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{.len = 4, .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Runs `body` in a child under that filter (`error` 0: without one). Returns its exit code.
int in_child(int error, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(error != 0 && !deny_pwait2(error) ? no_filter : body());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Returns 0 if all promises hold, else the number of the broken one.
int waits_and_wakes() {
  const base::FileDescriptor epoll(epoll_create1(0)), event(eventfd(0, EFD_NONBLOCK));
  epoll_event wanted{.events = EPOLLIN | EPOLLET, .data = {.fd = event.get()}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &wanted) != 0) return 1;
  epoll_event events[8];
  // with nothing ready, the whole time passes: no spinning
  for (const std::int64_t wait_ns : {1'000, 300'000, 30'000'000}) {
    const auto begun = steady_clock::now();
    if (wait_events(epoll.get(), events, wait_ns) != 0) return 2;
    if (steady_clock::now() - begun < std::chrono::nanoseconds(wait_ns)) return 3;
  }
  const std::uint64_t one = 1;
  for (const std::int64_t wait_ns : {-1, 0, 1'000'000'000}) {
    if (write(event.get(), &one, sizeof one) != sizeof one) return 4;
    if (wait_events(epoll.get(), events, wait_ns) != 1 || events[0].data.fd != event.get()) return 5;
    const auto begun = steady_clock::now();  // edge-triggered: reported once, and then slept through
    if (wait_events(epoll.get(), events, 2'000'000) != 0 || steady_clock::now() - begun < std::chrono::milliseconds(2))
      return 6;
  }
  return wait_events(-1, events, 0) == -1 ? 0 : 7;
}

class WaitEvents : public testing::TestWithParam<int> {};

TEST_P(WaitEvents, WaitsItsTimeAndWakesForEvents) {
  const int result = in_child(GetParam(), waits_and_wakes);
  if (result == no_filter) GTEST_SKIP() << "this system permits no seccomp filter";
  EXPECT_EQ(result, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, WaitEvents, testing::Values(0, ENOSYS, EPERM));

}  // namespace
}  // namespace tandem::comm::internal::wait_events_test
