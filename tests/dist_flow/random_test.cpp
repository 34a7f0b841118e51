// tests/dist_flow/random_test.cpp: random flows on random owners give what their sequential execution gives, on every
// rank.
//
// DIST_FLOW_SEED=n plays the flow of that seed alone; DIST_FLOW_COUNT=n plays n flows per test; DIST_FLOW_FRESH=1 draws
// seeds that no run has used. DIST_FLOW_VERBOSE=1 prints each flow.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "deterministic_job.hpp"
#include "random_plan.hpp"
#include "random_program.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tests/environment.hpp"

namespace tandem::dist_test::random_test {
namespace {

using testing::HasSubstr;

/// How many messages were read, and written, in the memory of devices.
struct OfDevices {
  std::uint64_t sent = 0, received = 0;
};

OfDevices play(const Plan& plan) {
  const std::uint64_t seed = plan.seed;
  if (test::number_of("DIST_FLOW_VERBOSE", 0) != 0) {
    print(plan);
    std::fflush(stdout);
  }
  DeterministicJob the_job(seed);
  OfDevices of_devices;
  const DeterministicJob::Outcome outcome = the_job.run(plan.setup, [&](Runtime& rt, DeterministicJob& job) {
    play_program(plan, rt, job);
    of_devices.sent += rt.flow_statistics().sent_from_devices;
    of_devices.received += rt.flow_statistics().received_in_devices;
  });
  if (outcome.stuck) {
    std::fprintf(stderr, "DIST_FLOW_SEED=%llu: nothing goes on\n%s", static_cast<unsigned long long>(seed),
                 outcome.why.c_str());
    std::abort();
  }
  bool refused = false;
  for (const Ending& ending : outcome.endings)
    refused |= ending.error.find("option copies allows") != std::string::npos;
  if (plan.may_be_refused && refused) return of_devices;
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank)
    EXPECT_EQ(outcome.endings[rank].error, "")
        << "DIST_FLOW_SEED=" << seed << ", rank " << rank << " of " << plan.ranks;
  return of_devices;
}

/// How many ranks did not play the whole flow, and how many of them know which rank died.
struct Interrupted {
  unsigned ranks = 0;
  unsigned by_name = 0;
};

/// One rank is killed at some moment. The others reach the end with the right values, or throw an error that says why.
void play_with_a_death(std::uint64_t seed, Interrupted& interrupted) {
  Plan plan = seed % 3 == 0 ? draw_with_cancels(seed) : draw(seed);
  std::mt19937_64 random(seed * 131 + 7);
  plan.ranks = plan.setup.ranks = std::max(plan.ranks, 2U);
  if (plan.may_be_refused) plan.setup.flow.copy_bytes = SIZE_MAX;
  // As sockets do: what was sent arrives though its sender has gone, and nobody reads a dead rank's memory.
  plan.setup.network.copies = true;
  plan.setup.network.remote_copy = false;
  plan.setup.network.deaths_are_seen_by_all = random() % 2 == 0;
  const auto victim = static_cast<std::uint32_t>(random() % plan.ranks);
  const auto after_ns = static_cast<std::int64_t>(random() % (std::uint64_t{1} << (8 + random() % 14)));
  if (test::number_of("DIST_FLOW_VERBOSE", 0) != 0) {
    print(plan);
    std::printf("rank %u dies after %lld ns\n", victim, static_cast<long long>(after_ns));
    std::fflush(stdout);
  }
  DeterministicJob the_job(seed);
  std::vector<bool> played(plan.ranks, false);
  const DeterministicJob::Outcome outcome = the_job.run(plan.setup, [&](Runtime& rt, DeterministicJob& job) {
    std::optional<Killer> killer;
    if (rt.rank() == victim) killer.emplace(rt, job, after_ns);
    play_program(plan, rt, job);
    played[rt.rank()] = true;
  });
  if (outcome.stuck) {
    std::fprintf(stderr, "DIST_FLOW_SEED=%llu, rank %u dies: nothing goes on\n%s",
                 static_cast<unsigned long long>(seed), victim, outcome.why.c_str());
    std::abort();
  }
  for (std::uint32_t rank = 0; rank < plan.ranks; ++rank) {
    const std::string& error = outcome.endings[rank].error;
    if (rank == victim || (played[rank] && error.empty())) continue;
    ++interrupted.ranks;
    if (error.find(fmt::format("rank {}", victim)) != std::string::npos) ++interrupted.by_name;
    EXPECT_THAT(error, testing::AnyOf(HasSubstr("died"), HasSubstr("ended"), HasSubstr("killed")))
        << "DIST_FLOW_SEED=" << seed << ", rank " << rank << " of " << plan.ranks << " when rank " << victim << " dies";
  }
}

class RandomDistFlow : public testing::TestWithParam<unsigned> {
 protected:
  /// Plays the seeds of this chunk, or the one that was asked for.
  static void play_seeds(std::uint64_t usual, const std::function<void(std::uint64_t)>& one) {
    if (base::under_sanitizer) usual /= 10;
    const std::uint64_t count = test::number_of("DIST_FLOW_COUNT", usual);
    std::uint64_t first = GetParam() * count + 1;
    if (test::number_of("DIST_FLOW_FRESH", 0) != 0) {
      first = (std::uint64_t{std::random_device()()} << 20) + GetParam() * count;
      std::printf("seeds from %llu on\n", static_cast<unsigned long long>(first));
    }
    if (const std::uint64_t only = test::number_of("DIST_FLOW_SEED", 0); only != 0) return one(only);
    for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) one(seed);
  }
};

TEST_P(RandomDistFlow, GivesWhatSequentialExecutionGives) {
  play_seeds(400, [](std::uint64_t seed) { play(draw(seed)); });
}

/// The flows above would else say nothing of such messages. However few of them a slow build plays: here are those that
/// may have some.
TEST(RandomDistFlows, HaveMessagesFromAndIntoTheMemoryOfDevices) {
  OfDevices all;
  unsigned flows = 0;
  for (std::uint64_t seed = 1; seed <= 2'000 && (all.sent == 0 || all.received == 0); ++seed) {
    const Plan plan = draw(seed);
    if (plan.ranks == 1 || plan.setup.devices == 0 || plan.setup.device_messages == runtime::MessageMemory::none)
      continue;
    const OfDevices of_devices = play(plan);
    all.sent += of_devices.sent;
    all.received += of_devices.received;
    ++flows;
  }
  EXPECT_GT(all.sent, 0U) << "in " << flows << " flows";
  EXPECT_GT(all.received, 0U) << "in " << flows << " flows";
}

TEST_P(RandomDistFlow, ThatIsCancelledEndsAtOnePositionWithItsValues) {
  play_seeds(200, [](std::uint64_t seed) { play(draw_with_cancels(seed)); });
}

TEST_P(RandomDistFlow, WhoseRanksPassOverWhatTheyMayGivesTheSame) {
  play_seeds(300, [](std::uint64_t seed) { play(with_skips(draw(seed))); });
}

TEST_P(RandomDistFlow, ThatIsPrunedAndCancelledEndsAtOnePosition) {
  play_seeds(100, [](std::uint64_t seed) { play(with_skips(draw_with_cancels(seed))); });
}

TEST_P(RandomDistFlow, ARankThatDiesEndsTheFlowOfTheOthers) {
  Interrupted interrupted;
  play_seeds(200, [&](std::uint64_t seed) { play_with_a_death(seed, interrupted); });
  EXPECT_GE(interrupted.by_name * 10, interrupted.ranks * 9) << "of " << interrupted.ranks;
}
INSTANTIATE_TEST_SUITE_P(Chunk, RandomDistFlow, testing::Range(0U, 5U));

// A task brought a copy that another one's copy had to make room for, and was refused; the other one was never dropped.
TEST(RandomDistFlowOfSeed, ATaskThatIsRefusedLeavesNoCopyBehind) {
  play(draw_with_cancels(2316236442570078));
  play(draw_with_cancels(4012647969195482));
  play(with_skips(draw_with_cancels(4211956511679669)));
  play(draw_with_cancels(3580373312215531));  // one that is too large to be kept
}

// Of a task that was refused for its copies one receive waited for ever, and so did a later one, which waited for its
// bytes beside the budget of main memory, and the program, which gave up its data.
TEST(RandomDistFlowOfSeed, ATaskThatIsRefusedLeavesNoReceiveBehindThatOthersWaitFor) {
  play(draw(3129852539437260));
}

// A rank that had skipped tasks took data for written when a sum of it was recorded.
TEST(RandomDistFlowOfSeed, ARecordedSumOfDataThatNobodyHasWritten) { play(with_skips(draw(292120986387010))); }

}  // namespace
}  // namespace tandem::dist_test::random_test
