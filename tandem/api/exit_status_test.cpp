// tandem/api/exit_status_test.cpp: the exit of a program on one rank whose kernels throw. Each case is a process.
#include "tandem/api/exit_status.hpp"

#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tandem/tandem.hpp"

namespace tandem::exit_status_test {
namespace {

using testing::ExitedWithCode;

const Options kQuiet{.workers = 2, .more = {{"stats", "off"}}};

/// Ends the process with `status` after `flow` and the end of its runtime.
template <class Flow>
[[noreturn]] void run(const Flow& flow, int status = 0) {
  {
    Runtime rt(kQuiet);
    auto y = rt.scalar<double>("y");
    const TaskRef task = rt.submit("root", [](double&) { throw std::domain_error("negative"); }, write(y));
    flow(rt, task);
  }
  std::exit(status);
}

struct ExitStatus : testing::Test {
  ExitStatus() { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(ExitStatus, IsOneAfterAFailureThatNoWaitHasThrown) {
  EXPECT_EXIT(run([](Runtime&, const TaskRef&) {}), ExitedWithCode(1),
              "task 1 'root' .submitted at exit_status_test.cpp:[0-9]+.: negative; data: y .write.");
}

TEST_F(ExitStatus, IsOneAlsoWhenAnotherWaitHasSeenAnotherFailure) {
  EXPECT_EXIT(run([](Runtime& rt, const TaskRef&) {
                auto z = rt.scalar<double>("z");
                try {
                  rt.wait(rt.submit("other", [](double&) { throw std::runtime_error("seen"); }, write(z)));
                } catch (const std::runtime_error&) {
                }
              }),
              ExitedWithCode(1), "negative");
}

TEST_F(ExitStatus, IsTheProgramsAfterAWaitHasThrown) {
  const auto caught = [](const auto& wait) {
    return [wait](Runtime& rt, const TaskRef& task) {
      try {
        wait(rt, task);
      } catch (const std::domain_error&) {
        return;
      }
      std::exit(9);
    };
  };
  EXPECT_EXIT(run(caught([](Runtime& rt, const TaskRef&) { rt.wait(); })), ExitedWithCode(0), "");
  EXPECT_EXIT(run(caught([](Runtime& rt, const TaskRef& task) { rt.wait(task); })), ExitedWithCode(0), "");
  EXPECT_EXIT(run(caught([](Runtime& rt, const TaskRef&) { rt.wait(); }), 3), ExitedWithCode(3), "");
}

TEST_F(ExitStatus, OfTheProgramStaysWhenItIsAFailureAlready) {
  EXPECT_EXIT(run([](Runtime&, const TaskRef&) {}, 3), ExitedWithCode(3), "negative");
}

TEST_F(ExitStatus, IsZeroWhenNothingHasFailed) {
  const auto works = [] {
    {
      Runtime rt(kQuiet);
      auto y = rt.scalar<double>("y");
      rt.submit([](double& value) { value = 1; }, write(y));
    }
    std::exit(0);
  };
  EXPECT_EXIT(works(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tandem::exit_status_test
