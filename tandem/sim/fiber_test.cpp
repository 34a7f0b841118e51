// tandem/sim/fiber_test.cpp: turns of fibers, and what each has for itself.
#include "tandem/sim/fiber.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cfenv>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/base/fiber_local.hpp"
#include "tandem/base/sanitizers.hpp"

namespace tandem::sim::fiber_test {
namespace {

TEST(Fiber, RunsUntilItYieldsOrEnds) {
  std::string said;
  Fiber fiber([&] {
    said += "a";
    Fiber::yield();
    said += "b";
  });
  EXPECT_EQ(said, "");
  fiber.resume();
  EXPECT_EQ(said, "a");
  EXPECT_FALSE(fiber.has_ended());
  fiber.resume();
  EXPECT_EQ(said, "ab");
  EXPECT_TRUE(fiber.has_ended());
}

TEST(Fiber, ThatNeverRanIsDestroyed) { const Fiber fiber([] { FAIL(); }); }

TEST(Fiber, ResumesOthers) {
  std::string said;
  Fiber inner([&] {
    said += "2";
    Fiber::yield();
    said += "4";
  });
  Fiber outer([&] {
    said += "1";
    inner.resume();
    said += "3";
    Fiber::yield();
    inner.resume();
  });
  outer.resume();
  EXPECT_EQ(said, "123");
  outer.resume();
  EXPECT_EQ(said, "1234");
  EXPECT_TRUE(inner.has_ended() && outer.has_ended());
}

/// Yields while an exception is handled, and while another one flies through a destructor.
struct Yields {
  ~Yields() { Fiber::yield(); }
};
void throw_twice(int number, std::string& caught) {
  try {
    throw std::runtime_error("first " + std::to_string(number));
  } catch (const std::exception& first) {
    Fiber::yield();
    try {
      const Yields on_the_way;
      throw std::runtime_error("second " + std::to_string(number));
    } catch (const std::exception& second) {
      Fiber::yield();
      caught = second.what();
    }
    try {
      throw;  // the first one is handled still
    } catch (const std::exception& again) {
      caught += std::string(", ") + again.what();
    }
    EXPECT_STREQ(first.what(), ("first " + std::to_string(number)).c_str());
  }
}

TEST(Fiber, HasItsOwnExceptions) {
  constexpr int kFibers = 5;
  std::vector<std::string> caught(kFibers);
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (int i = 0; i < kFibers; ++i)
    fibers.push_back(std::make_unique<Fiber>([i, &caught] { throw_twice(i, caught[static_cast<std::size_t>(i)]); }));
  for (int round = 0; round < 4; ++round) {
    for (auto& fiber : fibers) {
      fiber->resume();
      EXPECT_EQ(std::uncaught_exceptions(), 0);
      EXPECT_EQ(std::current_exception(), nullptr);
    }
  }
  for (int i = 0; i < kFibers; ++i) {
    EXPECT_TRUE(fibers[static_cast<std::size_t>(i)]->has_ended());
    EXPECT_EQ(caught[static_cast<std::size_t>(i)],
              "second " + std::to_string(i) + ", first " + std::to_string(i));
  }
}

constinit thread_local int mark = 0;
const base::FiberLocal own_mark([]() noexcept -> void* { return &mark; }, sizeof mark);

TEST(Fiber, HasItsOwnErrnoRoundingAndVariables) {
  const auto set = [] {
    errno = ENOENT;
    std::fesetround(FE_UPWARD);
    EXPECT_EQ(mark, 0);
    mark = 2;
    Fiber::yield();
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    EXPECT_EQ(mark, 2);
  };
  Fiber fiber(set);
  mark = 1;
  errno = EPERM;
  fiber.resume();
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(mark, 1);
  fiber.resume();
  EXPECT_EQ(errno, EPERM);
}

TEST(Fiber, ManyTakeLittleMemory) {
  constexpr std::size_t kFibers = base::under_sanitizer ? 50 : 2'000;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < kFibers; ++i)
    fibers.push_back(std::make_unique<Fiber>([&ended] {
      Fiber::yield();
      ++ended;
    }));
  for (int round = 0; round < 2; ++round)
    for (auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(ended, kFibers);
}

}  // namespace
}  // namespace tandem::sim::fiber_test
