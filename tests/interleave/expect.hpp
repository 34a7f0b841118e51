// tests/interleave/expect.hpp: explorations as GoogleTest expectations.
#pragma once

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/interleave/explorer.hpp"

namespace tandem::interleave {

/// ThreadSanitizer makes fibers slowly and has nothing to say of programs that run on one thread: under it only so many
/// schedules of each program are run that the explorer itself is known to be clean.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kMostSchedules = 1000;
#else
inline constexpr std::uint64_t kMostSchedules = UINT64_MAX;
#endif

/// Expects that `P` holds under every schedule within the bounds of `options`. A failure says why, and gives the
/// schedule and its steps; set the environment variable TANDEM_INTERLEAVE_REPLAY to that schedule, and run that test
/// alone, to run only it.
template <class P>
Outcome expect_holds(Options options = {}) {
  if (const char* replay = std::getenv("TANDEM_INTERLEAVE_REPLAY")) options.replay = replay;
  const bool cut_short = kMostSchedules < options.most_schedules;
  if (cut_short) options.most_schedules = kMostSchedules;
  const Outcome outcome = explore<P>(options);
  EXPECT_FALSE(outcome.failed) << outcome.what << "\nschedule " << outcome.schedule << outcome.trace;
  EXPECT_TRUE(outcome.complete || outcome.failed || cut_short || !options.replay.empty())
      << "more than " << outcome.schedules << " schedules";
  ::testing::Test::RecordProperty("schedules", std::to_string(outcome.schedules));
  return outcome;
}

/// Expects that some schedule of `P` fails and says `what`, and that the same schedule, run again, fails in the same
/// way.
template <class P>
void expect_found(const std::string& what, Options options = {}) {
  const Outcome outcome = explore<P>(options);
  ASSERT_TRUE(outcome.failed) << "held under " << outcome.schedules << " schedules";
  EXPECT_NE(outcome.what.find(what), std::string::npos)
      << outcome.what << "\nschedule " << outcome.schedule << outcome.trace;
  options.replay = outcome.schedule;
  const Outcome again = explore<P>(options);
  EXPECT_EQ(again.what, outcome.what);
  EXPECT_EQ(again.schedule, outcome.schedule);
  EXPECT_EQ(again.trace, outcome.trace);
}

}  // namespace tandem::interleave
