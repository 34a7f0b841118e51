// tandem/analysis/verdict/polling_neighbours_test.cpp: tasks beside threads that poll are compared with others of their
// worker and codelet.
#include "tandem/analysis/verdict/polling_neighbours.hpp"

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::polling_neighbours_test {
namespace {

using test::at;
using test::TasksInARow;
using trace::ProgressState;
using trace::Type;
using trace::WorkerState;

/// Two ranks of one host. `tasks` of rank 0 run on its worker 0, one after the other from 0 on; the second half of the
/// time something polls.
class PollingRun : public TasksInARow<PollingRun> {
 public:
  PollingRun() : TasksInARow(2, 0) {}

  /// Sets a worker's state from now on.
  PollingRun& worker(std::uint32_t rank, WorkerState state) {
    stream(rank, 3).add(Type::worker_state, at(now_ns()), {static_cast<std::uint8_t>(state)});
    return *this;
  }
  PollingRun& engine(std::uint32_t rank, ProgressState state) {
    stream(rank, 4).add(Type::progress_state, at(now_ns()), {static_cast<std::uint8_t>(state)});
    return *this;
  }
  PollingNeighbours find() {
    worker(1, WorkerState::sleeping).engine(1, ProgressState::sleeping);  // ends the last states here
    worker(0, WorkerState::sleeping);
    return polling_neighbours(*read());
  }
};

TEST(PollingNeighbours, TasksBesideAPollingWorkerAreCompared) {
  const PollingNeighbours found = PollingRun()
                                      .worker(0, WorkerState::sleeping)
                                      .tasks(20, 1'000)
                                      .worker(0, WorkerState::polling)
                                      .tasks(20, 1'500)
                                      .find();
  EXPECT_EQ(found.tasks, 20u);
  EXPECT_DOUBLE_EQ(found.slowness, 1.5);
  EXPECT_EQ(found.excess_ns, 20 * 500);
  EXPECT_EQ(found.slowed.size(), 20u);
  EXPECT_TRUE(found.do_harm());
}

TEST(PollingNeighbours, AnotherRankOfTheHostIsANeighbour) {
  PollingRun run;
  run.tasks(20, 1'000).engine(1, ProgressState::polling).tasks(20, 2'000);
  EXPECT_TRUE(run.find().do_harm());
}

TEST(PollingNeighbours, ThoseWhoSleepAreNone) {
  PollingRun run;
  run.worker(0, WorkerState::polling).worker(0, WorkerState::sleeping).tasks(20, 1'000).tasks(20, 2'000);
  const PollingNeighbours found = run.find();
  EXPECT_EQ(found.tasks, 0u);
  EXPECT_FALSE(found.do_harm());
}

TEST(PollingNeighbours, CodeletsAreComparedWithThemselves) {
  // While a worker polls there are longer tasks of another codelet; and those of the first one are as long as before.
  const PollingNeighbours found = PollingRun()
                                      .tasks(20, 1'000)
                                      .tasks(20, 3'000, 0)
                                      .worker(0, WorkerState::polling)
                                      .tasks(20, 3'000, 0)
                                      .tasks(10, 1'000)
                                      .find();
  EXPECT_EQ(found.tasks, 30u);
  EXPECT_DOUBLE_EQ(found.slowness, 1);
  EXPECT_TRUE(found.slowed.empty());
  EXPECT_FALSE(found.do_harm());
}

TEST(PollingNeighbours, FewTasksSayNothing) {
  EXPECT_FALSE(PollingRun().tasks(20, 1'000).worker(0, WorkerState::polling).tasks(10, 2'000).find().do_harm());
  EXPECT_EQ(PollingRun().tasks(3, 1'000).worker(0, WorkerState::polling).tasks(20, 2'000).find().tasks, 0u);
}

}  // namespace
}  // namespace tandem::analysis::polling_neighbours_test
