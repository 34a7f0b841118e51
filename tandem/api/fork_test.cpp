// tandem/api/fork_test.cpp: a forked child has a copy of its parent's runtime that does nothing.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tandem/tandem.hpp"

namespace tandem::fork_test {
namespace {

TEST(Fork, AChildMayEndWithARuntimeAndCannotUseIt) {
  auto rt = std::make_unique<Runtime>(Options{.workers = 2});
  double sum = 0;
  auto total = rt->data("total", sum);
  rt->submit("add", [](double& t) { t += 1; }, read_write(total));
  rt->wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int told = 0;
    try {
      rt->wait();
    } catch (const UsageError& error) {
      told = std::string(error.what()).find("fork()") != std::string::npos ? 7 : 1;
    }
    rt.reset();  // waits for no worker
    _exit(told);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  rt->submit("add", [](double& t) { t += 1; }, read_write(total));
  rt->wait();
  EXPECT_EQ(sum, 2);
}

}  // namespace
}  // namespace tandem::fork_test
