// tandem/analysis/verdict/verdict_test.cpp: injected faults are reported first, and a run without faults has no
// findings.
#include "tandem/analysis/verdict/verdict.hpp"

#include <gmock/gmock.h>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::verdict_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;
using trace::WorkerState;

/// Two workers that poll from the beginning on, so that all of their time is known.
class VerdictRun : public SmallRun {
 public:
  VerdictRun() {
    usual();
    for (const std::uint32_t actor : {2u, 3u})
      stream(0, actor).add(Type::worker_state, at(0), {static_cast<std::uint8_t>(WorkerState::polling)});
  }
  /// A task on worker 0 or 1, submitted at 0 and ready when it begins.
  VerdictRun& task(std::uint32_t id, unsigned worker, std::int64_t start_ns, std::int64_t end_ns,
                   std::vector<std::uint32_t> deps = {}, std::int64_t submit_ns = 0) {
    submit(0, submit_ns, id, 1, {}, std::move(deps));
    stream(0, 2 + worker).add(Type::task_ready, at(start_ns), {id});
    execute(0, 2 + worker, id, start_ns, end_ns);
    return *this;
  }
  std::vector<Finding> judge() {
    const auto history = read();
    return verdict(*history, Summary(*history));
  }
};

TEST(Verdict, ACleanRunIsNotAccused) {
  VerdictRun run;
  for (std::uint32_t i = 0; i < 20; ++i)
    run.task(2 * i, 0, 10'000 * i, 10'000 * (i + 1)).task(2 * i + 1, 1, 10'000 * i, 10'000 * (i + 1));
  EXPECT_TRUE(run.judge().empty());
}

TEST(Verdict, ARunOfNothingIsNotAccused) {
  VerdictRun run;
  EXPECT_TRUE(run.judge().empty());
}

TEST(Verdict, AChainIsNamed) {
  VerdictRun run;
  for (std::uint32_t i = 0; i < 20; ++i)
    run.task(i, 0, 10'000 * i, 10'000 * (i + 1), i > 0 ? std::vector{i - 1} : std::vector<std::uint32_t>{});
  const auto findings = run.judge();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "long_chain");
  EXPECT_EQ(findings[0].lost_ns, 100'000);
}

TEST(Verdict, SlowSubmissionIsNamed) {
  VerdictRun run;
  for (std::uint32_t i = 0; i < 10; ++i) run.task(i, i % 2, 10'000 * i, 10'000 * i + 2'000, {}, 10'000 * i);
  const auto findings = run.judge();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "slow_submission");
}

TEST(Verdict, TheWrongOrderIsNamed) {
  // Worker 0 runs tasks that no other task needs before the one that all others need.
  VerdictRun run;
  for (std::uint32_t i = 0; i < 10; ++i) run.task(i, 0, 10'000 * i, 10'000 * (i + 1));
  run.task(10, 0, 100'000, 110'000);
  for (std::uint32_t i = 11; i < 21; ++i)
    run.task(i, i % 2, 110'000 + 10'000 * ((i - 11) / 2), 120'000 + 10'000 * ((i - 11) / 2), {10});
  const auto findings = run.judge();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "order_of_tasks");
}

TEST(Verdict, TasksThatNobodyTakesAreNamed) {
  VerdictRun run;
  for (std::uint32_t i = 0; i < 10; ++i) {
    run.submit(0, 0, i, 1);
    run.stream(0, 1).add(Type::task_ready, at(0), {i});
    run.execute(0, 2, i, 10'000 * i, 10'000 * (i + 1));
  }
  const auto findings = run.judge();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "ready_tasks_not_taken");
}

/// Two cores and a device; all tasks are ready at 0 and run on the device one after the other. `on_core`: tasks of
/// their codelet that have run on a core.
std::vector<Finding> judge_work_for_a_card(std::uint32_t on_core) {
  VerdictRun run;
  run.actor(0, 5, trace::ActorKind::worker, 2, "cuda worker 2");
  run.stream(0, 5).add(Type::worker_state, at(0), {static_cast<std::uint8_t>(WorkerState::polling)});
  std::uint32_t id = 0;
  for (; id < on_core; ++id) run.task(id, 0, 0, 1'000);
  for (std::uint32_t i = 0; i < 10; ++i, ++id) {
    run.submit(0, 0, id, 1);
    run.stream(0, 1).add(Type::task_ready, at(0), {id});
    run.execute(0, 5, id, 10'000 * i, 10'000 * (i + 1));
  }
  return run.judge();
}

TEST(Verdict, WorkersWhoseKindRunsNothingOfWhatIsReadyAreNamed) {
  const auto findings = judge_work_for_a_card(0);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "kind_without_work");
  EXPECT_EQ(findings[0].lost_ns, 2 * 90'000 / 3) << "two of three workers, until the last task begins";
  EXPECT_THAT(findings[0].what, testing::HasSubstr("kind cpu"));
  for (const Finding& finding : findings) EXPECT_NE(finding.key, "ready_tasks_not_taken");
}

TEST(Verdict, WorkersThatCouldRunWhatIsReadyAreNotSaidToBeOfTheWrongKind) {
  const auto findings = judge_work_for_a_card(1);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "ready_tasks_not_taken");
  for (const Finding& finding : findings) EXPECT_NE(finding.key, "kind_without_work");
}

TEST(Verdict, ACoreIsNotSlowBesideAGpu) {
  SmallRun run;
  run.usual().actor(0, 5, trace::ActorKind::worker, 2, "cuda worker 2");
  for (const std::uint32_t actor : {2u, 3u, 5u})
    run.stream(0, actor).add(Type::worker_state, at(0), {static_cast<std::uint8_t>(WorkerState::polling)});
  std::uint32_t id = 0;
  const auto work = [&](std::uint32_t actor, std::int64_t count, std::int64_t took_ns) {
    for (std::int64_t i = 0; i < count; ++i, ++id) {
      run.submit(0, 0, id, 1);
      run.stream(0, actor).add(Type::task_ready, at(took_ns * i), {id});
      run.execute(0, actor, id, took_ns * i, took_ns * (i + 1));
    }
  };
  work(2, 10, 40'000);
  work(3, 10, 40'000);
  work(5, 40, 10'000);
  const auto history = run.read();
  for (const Finding& finding : verdict(*history, Summary(*history)))
    EXPECT_NE(finding.key, "slow_worker") << finding.what;
}

/// Each task waits for its data, for which there is room after `room_ns`, and runs afterwards.
std::vector<Finding> judge_waits_for_data(std::int64_t room_ns) {
  VerdictRun run;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::int64_t ready_ns = 10'000 * i;
    run.submit(0, 0, i, 1);
    if (room_ns > 0)
      run.stream(0, 4).add(Type::data_staging, at(ready_ns),
                           {i, static_cast<std::uint8_t>(trace::StagingState::memory)});
    run.stream(0, 4).add(Type::data_staging, at(ready_ns + room_ns),
                         {i, static_cast<std::uint8_t>(trace::StagingState::data)});
    run.stream(0, 2 + i % 2).add(Type::task_ready, at(ready_ns), {i});
    run.execute(0, 2 + i % 2, i, ready_ns + 8'000, ready_ns + 10'000);
  }
  return run.judge();
}

TEST(Verdict, CopiesToADeviceAreNoLackOfMemory) {
  const auto findings = judge_waits_for_data(0);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "copies");
  EXPECT_EQ(findings[0].remedy.find("--tandem.memory"), std::string::npos) << findings[0].remedy;
}

TEST(Verdict, ASmallBudgetOfMemoryIsNamed) {
  const auto findings = judge_waits_for_data(6'000);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].key, "memory_budget");
  EXPECT_NE(findings[0].what.find("75 % of this for room"), std::string::npos) << findings[0].what;
  EXPECT_NE(findings[0].remedy.find("--tandem.memory"), std::string::npos);
}

/// Eight of 40 tasks on two workers take much longer than the others.
Finding judge_slow_executions(const std::string& pus) {
  VerdictRun run;
  run.place(0, "node1", pus);
  std::int64_t ns[2] = {0, 0};
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::int64_t duration = i % 10 < 2 ? 100'000 : 10'000 + 2 * i;
    run.task(i, i % 2, ns[i % 2], ns[i % 2] + duration);
    ns[i % 2] += duration;
  }
  const auto findings = run.judge();
  return findings.empty() ? Finding{} : findings[0];
}

TEST(Verdict, SlowExecutionsAreNamed) {
  EXPECT_EQ(judge_slow_executions("").key, "slow_executions");
  EXPECT_EQ(judge_slow_executions("[0, 1]").key, "slow_executions");
}

TEST(Verdict, WorkersThatTakeTurnsAreNamed) {
  const Finding finding = judge_slow_executions("[3]");
  EXPECT_EQ(finding.key, "shared_cores");
  EXPECT_EQ(finding.what,
            "8 tasks took much longer than others of their codelet, most of all of 'gemm': 2 workers took turns on 1 "
            "hardware thread of a host.");
  EXPECT_EQ(finding.lost_ns, judge_slow_executions("").lost_ns);
}

}  // namespace
}  // namespace tandem::analysis::verdict_test
