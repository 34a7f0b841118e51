// tandem/analysis/verdict/shared_processors_test.cpp: workers and hardware threads are counted by host.
#include "tandem/analysis/verdict/shared_processors.hpp"

#include <gmock/gmock.h>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::shared_processors_test {
namespace {

using test::SmallRun;
using testing::FieldsAre;
using testing::Optional;

/// Three ranks of two workers.
struct SharedProcessorsOf : testing::Test {
  SharedProcessorsOf() {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      run.usual(rank).place(rank, "node1", "[0, 1]");
      for (const std::uint32_t worker : {2u, 3u}) polls(rank, worker);
    }
  }
  void polls(std::uint32_t rank, std::uint32_t actor) {
    run.stream(rank, actor)
        .add(trace::Type::worker_state, test::at(0), {static_cast<std::uint8_t>(trace::WorkerState::polling)});
  }
  std::optional<SharedProcessors> found() { return shared_processors(*run.read()); }

  SmallRun run{3};
};

TEST_F(SharedProcessorsOf, RanksOfOneHost) {
  EXPECT_THAT(found(), Optional(FieldsAre(6U, 2U)));
}

TEST_F(SharedProcessorsOf, RanksWithHardwareThreadsOfTheirOwn) {
  run.place(1, "node1", "[2, 3]").place(2, "node1", "[4, 5]");
  EXPECT_FALSE(found());
  run.place(2, "node1", "[3, 4]");
  EXPECT_THAT(found(), Optional(FieldsAre(6U, 5U)));
}

TEST_F(SharedProcessorsOf, TheHostWithTheMostWorkersForAThread) {
  run.place(0, "node2", "[0, 1]").place(1, "node3", "[0, 1]").place(2, "node4", "[0, 1]");
  EXPECT_FALSE(found()) << "numbers of other hosts";
  run.place(2, "node4", "[7]");
  EXPECT_THAT(found(), Optional(FieldsAre(2U, 1U)));
}

TEST_F(SharedProcessorsOf, DevicesComputeElsewhere) {
  run.place(1, "node2", "[0, 1]").place(2, "node3", "[0, 1]");
  run.actor(0, 5, trace::ActorKind::worker, 2, "cuda worker 2");
  polls(0, 5);
  EXPECT_FALSE(found());
}

TEST_F(SharedProcessorsOf, TracesThatDoNotSay) {
  run.place(1, "node1", "");
  EXPECT_FALSE(found());
}

}  // namespace
}  // namespace tandem::analysis::shared_processors_test
