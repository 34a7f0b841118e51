// tandem/base/fork_test.cpp: a forked child is recognised, and has none of the descriptors that are kept from it.
#include "tandem/base/fork.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace tandem::base::fork_test {
namespace {

/// Runs `act` in a child, and returns its exit code.
template <class Act>
int in_child(Act act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Connection {
  FileDescriptor ours, theirs;
};

Connection connected() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

TEST(ProcessMark, IsOfTheProcessThatMadeItAndOfNoChild) {
  const ProcessMark mark;
  EXPECT_TRUE(mark.is_of_this_process());
  EXPECT_EQ(in_child([&] {
    const ProcessMark own;
    if (mark.is_of_this_process() || !own.is_of_this_process()) return 1;
    return in_child([&] { return mark.is_of_this_process() || own.is_of_this_process() ? 1 : 7; });
  }), 7);
  EXPECT_TRUE(mark.is_of_this_process());
}

TEST(KeptFromChildren, AChildKeepsNoConnectionOpenAndWritesIntoNone) {
  Connection connection = connected();
  connection.ours = kept_from_children(connection.ours.release());
  const int number = connection.ours.get();
  int ready[2] = {-1, -1}, end[2] = {-1, -1};
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(end), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    const bool sent = send(number, "x", 1, MSG_NOSIGNAL) == 1;
    const bool is_open = fcntl(number, F_GETFD) >= 0;
    FileDescriptor again(number);
    again.close();
    (void)!write(ready[1], sent ? "!" : is_open ? "." : "?", 1);
    char byte;
    (void)!read(end[0], &byte, 1);  // lives on after the parent has closed
    _exit(0);
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, '.') << "the number stays taken, and is no socket";
  connection.ours.close();
  char byte;
  EXPECT_EQ(recv(connection.theirs.get(), &byte, 1, 0), 0) << "the other side learns of the end though the child lives";
  for (const int number_of : {ready[0], ready[1], end[0], end[1]}) close(number_of);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(KeptFromChildren, ANumberThatIsUsedAgainIsTheChildsToo) {
  Connection connection = connected();
  connection.ours = kept_from_children(connection.ours.release());
  const int number = connection.ours.get();
  connection.ours.close();
  Connection other = connected();
  ASSERT_EQ(other.ours.get(), number);
  EXPECT_EQ(in_child([&] { return send(number, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : 1; }), 0);
}

TEST(KeptFromChildren, ForksWhileOtherThreadsOpenAndCloseLeaveTheParentsDescriptorsAlone) {
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    while (!stop) {
      Connection connection = connected();
      connection.ours = kept_from_children(connection.ours.release());
      EXPECT_EQ(send(connection.ours.get(), "x", 1, MSG_NOSIGNAL), 1);
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(in_child([] { return 3; }), 3);
  stop = true;
  worker.join();
}

}  // namespace
}  // namespace tandem::base::fork_test
