// tandem/analysis/verdict/quality_test.cpp: a whole trace has no defects, and each defect is counted.
#include "tandem/analysis/verdict/quality.hpp"

#include "tandem/analysis/history/random_run.hpp"

namespace tandem::analysis::quality_test {
namespace {

using test::at;
using test::RandomRun;
using test::SmallRun;
using trace::Type;

TEST(Quality, AWholeTraceIsComplete) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto history = RandomRun(seed, 1).read();
    EXPECT_TRUE(quality(*history).is_complete()) << "seed " << seed;
  }
}

TEST(Quality, TasksThatNeverEndedAreCounted) {
  SmallRun run;
  run.usual();
  run.catalogue().add(Type::site, at(0), {2, 1, "(join)", "app.cpp"});
  run.submit(0, 0, 1, 0).submit(0, 0, 2, 0).submit(0, 0, 3, 0).submit(0, 0, 4, 2).submit(0, 0, 5, 0).submit(0, 0, 6, 0);
  run.execute(0, 2, 1, 10, 20);
  run.stream(0, 2)
      .add(Type::task_started, at(30), {5})
      .add(Type::task_failed, at(35), {5})
      .add(Type::task_ended, at(40), {5});
  run.stream(0, 2).add(Type::task_cancelled, at(40), {6}).add(Type::task_started, at(50), {2});
  const Quality result = quality(*run.read());
  EXPECT_EQ(result.running_tasks, 1u);
  EXPECT_EQ(result.waiting_tasks, 1u) << "task 3; task 4 is a join, which does not run";
  EXPECT_EQ(result.failed_tasks, 1u);
  EXPECT_EQ(result.cancelled_tasks, 1u);
  EXPECT_FALSE(result.is_complete());
}

TEST(Quality, WithoutEventsOfExecutionNoTaskIsMissing) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0);
  EXPECT_TRUE(quality(*run.read()).is_complete());
}

TEST(Quality, LostEventsAreCountedByActor) {
  SmallRun run;
  run.usual();
  run.stream(0, 2)
      .add(Type::task_started, at(100), {1})
      .add(Type::events_lost, at(500), {9})
      .add(Type::task_ended, at(600), {1});
  const Quality result = quality(*run.read());
  EXPECT_EQ(result.lost_events, 9u);
  EXPECT_EQ(result.lossy_actors, 1u);
  EXPECT_FALSE(result.is_complete());
}

TEST(Quality, MessagesWithoutAPartnerAreCounted) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 4)
      .add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 64})
      .add(Type::send_posted, at(400), {2, 1, 0, 0, 8, 64});
  run.stream(0, 4).add(Type::send_posted, at(410), {3, 6, 0, 0, 8, 64});  // to a missing rank
  run.stream(1, 4)
      .add(Type::message_arrived, at(300), {1, 0, 0, 8, 64})
      .add(Type::message_arrived, at(310), {2, 0, 0, 9, 64});
  run.stream(1, 4).add(Type::receive_posted, at(320), {3, 0, 0, 11});
  const Quality result = quality(*run.read());
  EXPECT_EQ(result.unmatched_sends, 1u);
  EXPECT_EQ(result.unmatched_receives, 1u);
  EXPECT_EQ(result.open_receives, 1u);
  EXPECT_EQ(result.early_messages, 1u);
  EXPECT_EQ(result.earliest_ns, 100);
}

}  // namespace
}  // namespace tandem::analysis::quality_test
