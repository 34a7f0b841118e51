// tandem/base/log_test.cpp: one line per message, only those of the level, whole under contention.
#include "tandem/base/log.hpp"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::log_test {
namespace {

struct Lines {
  std::vector<std::string> lines;
  Log::Sink sink() {
    return [this](LogLevel level, std::string_view line) {
      lines.push_back(std::string(name_of(level)) + " " + std::string(line));
    };
  }
};

TEST(Log, WritesItsLevelAndTheGraverOnes) {
  Lines seen;
  Log log(LogLevel::warn, seen.sink());
  log.error("a {}", 1);
  log.warn("b {}", "two");
  log.info("c");
  log.debug("d");
  EXPECT_EQ(seen.lines, (std::vector<std::string>{"error a 1", "warn b two"}));
  log.set_level(LogLevel::debug);
  log.debug("d {:.2f}", 0.5);
  EXPECT_EQ(seen.lines.back(), "debug d 0.50");
}

TEST(Log, AMessageIsOneLineWhateverItHolds) {
  Lines seen;
  Log log(LogLevel::warn, seen.sink());
  log.warn("first\nsecond {}", "\x1b[31m");
  ASSERT_EQ(seen.lines.size(), 1U);
  EXPECT_EQ(seen.lines[0], "warn first\\nsecond \\x1b[31m");
}

TEST(Log, MessagesOfSeveralThreadsReachTheSinkOneAtATime) {
  Lines seen;
  Log log(LogLevel::info, seen.sink());
  constexpr int per_thread = 1000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&log, t] {
      for (int i = 0; i < per_thread; ++i) log.info("{} {}", t, i);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(seen.lines.size(), 3U * per_thread);
}

}  // namespace
}  // namespace tandem::base::log_test
