// tandem/analysis/verdict/contention_test.cpp: tasks beside large messages, and messages beside tasks, are compared
// with undisturbed ones of their kind.
#include "tandem/analysis/verdict/contention.hpp"

#include <algorithm>
#include <string_view>

#include "tandem/analysis/history/small_run.hpp"
#include "tandem/analysis/verdict/verdict.hpp"

namespace tandem::analysis::contention_test {
namespace {

using test::at;
using test::TasksInARow;
using trace::Type;

/// Rank 0 sends to rank 1. Tasks run on worker 0 of rank 1, one after the other.
class ContendedRun : public TasksInARow<ContendedRun> {
 public:
  ContendedRun() : TasksInARow(2, 1) {}

  /// A message that is posted now, granted after `granted_ns`, and arrives after `arrived_ns`.
  ContendedRun& message(std::uint64_t bytes, std::int64_t granted_ns, std::int64_t arrived_ns) {
    ++request_;
    stream(0, 4).add(Type::send_posted, at(now_ns()), {request_, 1, 0, 0, request_, bytes});
    if (granted_ns > 0) stream(0, 4).add(Type::send_granted, at(now_ns() + granted_ns), {request_});
    stream(1, 4).add(Type::receive_posted, at(now_ns()), {request_, 0, 0, request_});
    stream(1, 4).add(Type::message_arrived, at(now_ns() + arrived_ns), {request_, 0, 0, request_, bytes});
    return *this;
  }

 private:
  std::uint32_t request_ = 0;
};

constexpr std::uint64_t kLarge = 1 << 20;

TEST(Contention, TasksBesideALargeMessageAreCompared) {
  const Contention found =
      contention(*ContendedRun().tasks(20, 1'000).message(kLarge, 0, 24'000).tasks(20, 1'200).read());
  EXPECT_EQ(found.tasks, 20u);
  EXPECT_DOUBLE_EQ(found.slowness, 1.2);
  EXPECT_EQ(found.excess_ns, 20 * 200);
  EXPECT_TRUE(found.slows_tasks());
  EXPECT_EQ(found.slowed.size(), 20u);
}

TEST(Contention, SmallMessagesDoNotCount) {
  const Contention found =
      contention(*ContendedRun().tasks(20, 1'000).message(60'000, 0, 24'000).tasks(20, 1'200).read());
  EXPECT_EQ(found.tasks, 0u);
  EXPECT_FALSE(found.slows_tasks());
}

// The message has not been granted memory yet: nothing moves.
TEST(Contention, AMessageThatWaitsIsNotUnderWay) {
  const auto history = ContendedRun().tasks(20, 1'000).message(kLarge, 24'000, 30'000).tasks(20, 1'200).read();
  EXPECT_EQ(contention(*history).tasks, 0u);
}

TEST(Contention, TasksThatAreAsLongAreNotSlowed) {
  const Contention found =
      contention(*ContendedRun().tasks(20, 1'000).message(kLarge, 0, 20'000).tasks(20, 1'000).read());
  EXPECT_EQ(found.tasks, 20u);
  EXPECT_DOUBLE_EQ(found.slowness, 1);
  EXPECT_FALSE(found.slows_tasks());
  EXPECT_TRUE(found.slowed.empty());
}

TEST(Contention, MessagesBesideTasksAreComparedWithQuietOnesOfTheirSize) {
  ContendedRun run;
  for (int i = 0; i < 20; ++i) run.message(kLarge, 0, 4'000).pause(5'000).message(2 * kLarge, 0, 8'000).pause(10'000);
  for (int i = 0; i < 20; ++i) run.message(kLarge, 0, 6'000).tasks(6, 1'000).pause(1'000);
  const Contention found = contention(*run.read());
  EXPECT_EQ(found.messages, 20u);
  EXPECT_DOUBLE_EQ(found.message_slowness, 1.5);
  EXPECT_TRUE(found.slows_messages());
  EXPECT_EQ(found.tasks, 0u) << "no task was quiet";
}

TEST(Contention, IsNothingWithoutMessages) {
  const Contention found = contention(*ContendedRun().tasks(20, 1'000).read());
  EXPECT_EQ(found.tasks + found.messages, 0u);
  EXPECT_FALSE(found.slows_tasks() || found.slows_messages());
}

TEST(Contention, IsNamedByTheVerdict) {
  const auto history = ContendedRun().tasks(40, 1'000).message(kLarge, 0, 60'000).tasks(40, 1'500).read();
  const Summary summary(*history);
  const auto findings = verdict(*history, summary);
  const auto named = std::ranges::find(findings, std::string_view("contention"), &Finding::key);
  ASSERT_NE(named, findings.end());
  EXPECT_EQ(named->what,
            "40 tasks took 1.5 times as long while messages of 64 KiB or more were under way on their host.");
  EXPECT_EQ(named->lost_ns, 40 * 500 / static_cast<std::int64_t>(summary.split.workers.size()));
  EXPECT_EQ(std::ranges::count(findings, std::string_view("slow_executions"), &Finding::key), 0);
}

}  // namespace
}  // namespace tandem::analysis::contention_test
