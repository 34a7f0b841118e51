// tests/dist_flow/incoming_test.cpp: what the network sees coming and the scheduler does about it, in the event loop's
// time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "deterministic_job.hpp"
#include "tandem/api/world.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"

namespace tandem::dist_test::incoming_test {
namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Setting {
  bool incoming = true;
  std::string sched = "lws";
  unsigned workers = 1;
  int urgency = 5;                  ///< priority of the task that waits for the message
  std::int64_t chore_ns = 8 * kMs;  ///< tasks of priority 0 that could run meanwhile
  bool chained = false;             ///< they run one after the other, however many workers there are
  bool for_all = false;             ///< the message is a broadcast to three ranks
  bool card = false;                ///< each rank has one that is slow, so that a policy places tasks
};

struct Times {
  double use_ms = 0;     ///< from the start of what makes the message, on rank 0, to that of the urgent task, on rank 1
  double chores_ms = 0;  ///< from the beginning to the end of the last chore there
  std::uint64_t holds = 0;
};

/// Rank 0 makes 1 MB in 1 ms, which takes 10 ms to come to rank 1, where a task needs it. Rank 1 has chores of its own.
Times last_round(const Setting& setting) {
  JobSetup setup{
      .ranks = setting.for_all ? 4u : 2u, .workers = setting.workers, .caller = !setting.card, .sched = setting.sched};
  setup.flow.transfers.incoming = setting.incoming;
  setup.network = {.latency_min_ns = 1000, .latency_max_ns = 1000, .bytes_per_ns = 0.1};
  setup.core.timeline = true;
  if (setting.card) setup.adjust = [](std::uint32_t, TestWorldOptions& world) { world.devices = 1; };
  setup.core.emulation = [&](const runtime::EmulatedTask& task) -> std::int64_t {
    return (task.codelet == "chore" ? setting.chore_ns : kMs) * (task.device == DeviceKind::cpu ? 1 : 300);
  };
  Times times;
  double produced_ms = 0, used_ms = 0;
  const auto program = [&](Runtime& rt, DeterministicJob& job) {
    auto x = rt.vector<unsigned char>("x", 1'000'000, {.owner = 0});
    auto y = rt.scalar<int>("y", {.owner = 1});
    std::vector<Data<int>> chores, others;
    for (int i = 0; i < 8; ++i) chores.push_back(rt.scalar<int>("c", {.owner = 1}));
    for (std::uint32_t rank = 2; rank < rt.size(); ++rank) others.push_back(rt.scalar<int>("o", {.owner = rank}));
    const Codelet produce = on_all("produce", [](std::span<unsigned char>) {});
    const Codelet chore = on_all("chore", [](int&) {});
    const Codelet use = on_all("use", [](std::span<const unsigned char>, int&) {});
    std::size_t before = 0;
    std::int64_t start_ns = 0;
    // the first ones measure the rate of the network, and tasks
    for (int round = 0; round < (setting.card ? 24 : 3); ++round) {
      before = rt.timeline().size();
      start_ns = job.loop().now_ns();
      for (const auto& one : chores) rt.submit(chore, write(setting.chained ? chores.front() : one));
      rt.submit({.priority = 9}, produce, write(x));
      rt.submit({.priority = setting.urgency}, use, read(x), write(y));
      for (const auto& other : others) rt.submit({.priority = setting.urgency}, use, read(x), write(other));
      rt.wait();
    }
    const std::vector<TimelineEvent> events = rt.timeline();
    if (rt.rank() == 0) produced_ms = static_cast<double>(events.back().start_ns) / kMs;
    if (rt.rank() != 1) return;
    for (const TimelineEvent& event : std::span(events).subspan(before)) {
      if (*event.codelet == "use") used_ms = static_cast<double>(event.start_ns) / kMs;
      else times.chores_ms = std::max(times.chores_ms, static_cast<double>(event.end_ns - start_ns) / kMs);
    }
    for (const runtime::WorkerReport& worker : rt.statistics().workers) times.holds += worker.holds;
  };
  const DeterministicJob::Outcome outcome = DeterministicJob(1).run(setup, program);
  EXPECT_FALSE(outcome.stuck) << outcome.why;
  for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "");
  times.use_ms = used_ms - produced_ms;
  return times;
}

TEST(DistIncoming, AWorkerWaitsForAnUrgentTaskInsteadOfBeginningALongOne) {
  for (const char* sched : {"lws", "prio"}) {
    const Times hinted = last_round({.sched = sched}), unhinted = last_round({.incoming = false, .sched = sched});
    // Chores end after 8 and 16 ms; the message is there after 11.
    EXPECT_GE(unhinted.use_ms, 16) << sched;
    EXPECT_LT(hinted.use_ms, 11.5) << sched;
    EXPECT_LT(hinted.chores_ms, unhinted.chores_ms + 4) << "it waited for 3 ms";
    EXPECT_EQ(unhinted.holds, 0u);
    EXPECT_GE(hinted.holds, 1u);
    EXPECT_LE(hinted.holds, 3u) << "once for each message";
  }
}

TEST(DistIncoming, SoItIsWherePoliciesPlaceTasks) {
  for (const char* sched : {"plan", "heteroprio", "darts"}) {
    const Times hinted = last_round({.sched = sched, .card = true}),
                unhinted = last_round({.incoming = false, .sched = sched, .card = true});
    EXPECT_GE(unhinted.use_ms, 16) << sched;
    EXPECT_LT(hinted.use_ms, 11.5) << sched;
    EXPECT_LT(hinted.chores_ms, unhinted.chores_ms + 4) << sched;
    EXPECT_EQ(unhinted.holds, 0u) << sched;
    EXPECT_GE(hinted.holds, 1u) << sched;
    EXPECT_EQ(last_round({.sched = sched, .urgency = 0, .card = true}).holds, 0u) << sched;
    EXPECT_EQ(last_round({.sched = sched, .chore_ns = kMs / 20, .card = true}).holds, 0u) << sched;
  }
}

TEST(DistIncoming, SoItIsWithBroadcasts) {
  const Times hinted = last_round({.for_all = true}), unhinted = last_round({.incoming = false, .for_all = true});
  EXPECT_LT(hinted.use_ms + 1, unhinted.use_ms);
  EXPECT_GE(hinted.holds, 1u);
}

TEST(DistIncoming, NobodyWaitsForWhatIsNotUrgent) {
  EXPECT_EQ(last_round({.urgency = 0}).holds, 0u);
  EXPECT_EQ(last_round({.urgency = -1}).holds, 0u);
}

TEST(DistIncoming, NobodyWaitsInsteadOfSomethingShort) {
  const Times times = last_round({.chore_ns = kMs / 20});
  EXPECT_EQ(times.holds, 0u);
  EXPECT_LT(times.use_ms, 11.5);
}

TEST(DistIncoming, NobodyWaitsWhileAnotherWorkerIsIdle) {
  const Times alone = last_round({.chained = true}), others = last_round({.workers = 3, .chained = true});
  EXPECT_GE(alone.holds, 1u);
  EXPECT_EQ(others.holds, 0u);
}

struct Observed {
  unsigned beside = 0;      ///< tasks at whose end copies to a card were expected beside messages
  unsigned meanwhile = 0;  ///< tasks that ended while a message of 10 ms that is sent after 1 ms was surely under way
};

/// Rank 0 makes `bytes`, which go to the other ranks at 0.1 bytes/ns. On one rank 20 tasks of 1 ms each run, one after
/// the other.
Observed tasks_beside_messages(std::uint32_t observer, std::size_t bytes, std::uint32_t ranks = 2,
                               std::optional<double> beside_messages = 1) {
  JobSetup setup{.ranks = ranks, .workers = 1, .sched = "dmda"};
  setup.network = {.ranks_per_host = 1, .latency_min_ns = 1000, .latency_max_ns = 1000, .bytes_per_ns = 0.1};
  setup.adjust = [&](std::uint32_t, TestWorldOptions& world) {
    world.devices = 1;
    world.link =
        runtime::MachineLink{.bytes_per_ns = 10, .latency_ns = 100, .beside_messages_bytes_per_ns = beside_messages};
  };
  setup.core.emulation = [](const runtime::EmulatedTask&) -> std::int64_t { return kMs; };
  Observed observed;
  const auto program = [&](Runtime& rt, DeterministicJob& job) {
    runtime::Placer& placer = *rt.core().executor().placer();
    auto x = rt.vector<unsigned char>("x", bytes, {.owner = 0});
    auto here = rt.scalar<int>("here", {.owner = observer});
    const Codelet produce("produce", [](std::span<unsigned char>) {});
    const Codelet chore("chore", [](int&) {});
    const Codelet use("use", [](std::span<const unsigned char>, int&) {});
    rt.submit({.priority = 9}, produce, write(x));
    for (std::uint32_t rank = 1; rank < rt.size(); ++rank) {
      auto y = rt.scalar<int>("y", {.owner = rank});
      rt.submit(use, read(x), write(y));
    }
    const auto note = [&] {
      observed.beside += placer.messages().under_way() != 0;
      observed.meanwhile += job.loop().now_ns() > 2 * kMs && job.loop().now_ns() < 10 * kMs;
    };
    for (int i = 0; i < 20; ++i) rt.submit({.callback = note}, chore, write(here));
    rt.wait();
    EXPECT_EQ(placer.messages().under_way(), 0u) << "all have ended";
  };
  const DeterministicJob::Outcome outcome = DeterministicJob(1).run(setup, program);
  EXPECT_FALSE(outcome.stuck) << outcome.why;
  for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "");
  return observed;
}

TEST(DistIncoming, CopiesAreExpectedBesideLargeMessagesOfBothSides) {
  for (const std::uint32_t observer : {0u, 1u}) {
    const Observed tasks = tasks_beside_messages(observer, 1'000'000);
    EXPECT_GE(tasks.meanwhile, 5u);
    EXPECT_GE(tasks.beside, tasks.meanwhile) << "rank " << observer;
    EXPECT_LE(tasks.beside, tasks.meanwhile + 3) << "it has ended, rank " << observer;
    EXPECT_EQ(tasks_beside_messages(observer, 100'000).beside, 0u) << "it does not last";
    EXPECT_EQ(tasks_beside_messages(observer, 1'000'000, 2, {}).beside, 0u)
        << "nothing is known of copies beside messages";
  }
}

TEST(DistIncoming, CopiesAreExpectedBesideBroadcasts) {
  for (const std::uint32_t observer : {0u, 3u}) {
    const Observed tasks = tasks_beside_messages(observer, 1'000'000, 4);
    EXPECT_GE(tasks.meanwhile, 5u);
    EXPECT_GE(tasks.beside, tasks.meanwhile) << "rank " << observer;
  }
}

TEST(DistIncoming, PoliciesWithoutPrioritiesDoNotWait) {
  EXPECT_EQ(last_round({.sched = "eager"}).holds, 0u);
}

}  // namespace
}  // namespace tandem::dist_test::incoming_test
