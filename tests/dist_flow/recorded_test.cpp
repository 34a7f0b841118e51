// tests/dist_flow/recorded_test.cpp: what a recording on several ranks keeps beside tasks: fetch, migrate, flush,
// messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "deterministic_job.hpp"
#include "ranks.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"

namespace tandem::dist_test::recorded_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Word = std::uint64_t;

void run_everywhere(const JobSetup& setup, const std::function<void(Runtime&)>& program) {
  const std::vector<Ending> endings = run_job(setup, program);
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

template <class Action>
std::string refused(const Action& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

const Codelet add_to("add to", [](const Word& from, Word& to) { to += from; });
const Codelet increase("increase", [](Word by, Word& value) { value += by; });

TEST(DistRecorded, ATaskThatNamesAnEmptyObjectIsRefusedOnEveryRank) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Word x = 1;
    auto hx = rt.data("x", x, {.owner = 1});
    const Data<Word> empty;
    const auto record = [&](const auto& submit) { return refused([&] { static_cast<void>(rt.record(submit)); }); };
    EXPECT_THAT(record([&] { rt.submit(add_to, read(hx), read_write(empty)); }), HasSubstr("not registered"));
    EXPECT_THAT(record([&] { rt.submit(add_to, read(empty), read_write(hx)); }), HasSubstr("not registered"));
    EXPECT_THAT(record([&] { rt.submit(add_to, read(hx), reduce(empty)); }), HasSubstr("not registered"));
    rt.wait();
  });
}

TEST(DistRecorded, AFetchIsAReaderSoThatBroadcastsAreWhole) {
  static constexpr unsigned replays = 4;
  run_everywhere({.ranks = 5}, [](Runtime& rt) {
    Word x = 1, sum = 0;
    auto hx = rt.data("x", x, {.owner = 0}), hsum = rt.data("sum", sum, {.owner = 3});
    Graph graph = rt.record([&] {
      rt.fetch(hx, 1);
      rt.fetch(hx, 2);
      rt.submit(add_to, read(hx), read_write(hsum));
      rt.fetch(hx, 4);
      rt.submit(increase, Word{1}, read_write(hx));
    });
    EXPECT_EQ(graph.task_count(), 2U) << "what is no task does not count";
    for (unsigned replay = 0; replay < replays; ++replay) rt.replay(graph);
    rt.wait();
    if (rt.rank() == 3) {
      EXPECT_EQ(sum, 1U + 2 + 3 + 4);
    }
    const dist::FlowStatistics statistics = rt.flow_statistics();
    if (rt.rank() == 0) {
      EXPECT_EQ(x, 1 + replays);
      EXPECT_EQ(statistics.broadcasts, replays);
      EXPECT_EQ(statistics.recipients, 4 * replays);
      EXPECT_EQ(statistics.split + statistics.plain + statistics.late, 0U);
      EXPECT_EQ(rt.flow()->endpoint().statistics().plans_reused, replays - 1);
    } else {
      EXPECT_EQ(statistics.received, replays);
    }
  });
}

TEST(DistRecorded, WhatAllRanksFetchTheyHaveBeforeTheyRead) {
  run_everywhere({.ranks = 4}, [](Runtime& rt) {
    Word x = 1, own = 0;
    auto hx = rt.data("x", x, {.owner = 2}), hown = rt.data("own", own);
    Graph graph = rt.record([&] {
      rt.fetch_everywhere(hx);
      rt.submit(add_to, read(hx), read_write(hown));
      rt.submit(increase, Word{1}, read_write(hx));
    });
    for (int replay = 0; replay < 4; ++replay) rt.replay(graph);
    rt.wait();
    EXPECT_EQ(own, 1U + 2 + 3 + 4);
    if (rt.rank() == 2) {
      EXPECT_EQ(rt.flow_statistics().broadcasts, 4U);
      EXPECT_EQ(rt.flow()->endpoint().statistics().plans_reused, 3U);
    } else {
      EXPECT_EQ(rt.flow_statistics().received, 4U);
    }
  });
}

TEST(DistRecorded, EventsWithAStartTakePlaceAtTheOwnerInEachReplay) {
  static constexpr unsigned replays = 10;
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Word x = 1, y = 0;
    auto hx = rt.data("x", x, {.owner = 1}), hy = rt.data("y", y, {.owner = 2});
    unsigned started = 0, released = 0;
    Event pending, recorded;
    Graph graph = rt.record([&] {
      rt.submit(increase, Word{1}, read_write(hx));
      recorded = rt.event("device", Release::separate,
                          [&](Event event) {
                            ++started;
                            x *= 2;
                            pending = event;
                            event.readable();
                          },
                          read_write(hx));
      // The next replay writes x: it waits for the release.
      rt.submit({.after = {recorded.task()}}, "release", [&](const Word&) {
        ++released;
        pending.released();
      }, read(hx));
      rt.submit(add_to, read(hx), read_write(hy));
    });
    EXPECT_EQ(graph.task_count(), 5U) << "an event with a released half counts twice";
    EXPECT_EQ(recorded.is_here(), rt.rank() == 1);
    if (rt.rank() == 1) {
      EXPECT_THAT(refused([&] { recorded.readable(); }), HasSubstr("was recorded"));
    }
    Word grown = 1, sum = 0;
    Replay last;
    for (unsigned replay = 0; replay < replays; ++replay) {
      last = rt.replay(graph);
      grown = (grown + 1) * 2;
      sum += grown;
      if (replay == 4) {
        rt.wait(last);
        EXPECT_EQ(released, rt.rank() == 1 ? 5U : 0U) << "a replay ends with its events";
      }
    }
    rt.wait();
    EXPECT_EQ(started, rt.rank() == 1 ? replays : 0U);
    EXPECT_EQ(x, rt.rank() == 1 ? grown : 1);
    EXPECT_EQ(y, rt.rank() == 2 ? sum : 0);
  });
}

TEST(DistRecorded, AnEventOfDataWithoutOwnerStartsOnEveryRankAndItsFailureIsThrown) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Word own = 0;
    auto hown = rt.data("own", own);
    unsigned started = 0;
    bool fails = false;
    Graph graph = rt.record([&] {
      rt.event("device", Release::with_readable, [&](Event event) {
        if (fails) throw std::runtime_error("no device");
        own = ++started;
        event.readable();
      }, write(hown));
    });
    for (int replay = 0; replay < 3; ++replay) rt.replay(graph);
    rt.wait();
    EXPECT_EQ(own, 3U);
    fails = true;
    rt.replay(graph);
    std::string thrown;
    try {
      rt.wait();
    } catch (const std::exception& error) {
      thrown = error.what();
    }
    EXPECT_THAT(thrown, HasSubstr("no device"));
    fails = false;
    rt.replay(graph);
    rt.wait();
    EXPECT_EQ(own, 4U);
  });
}

TEST(DistRecorded, EventsWithoutAStartAndAccessesOfTheProgramAreRefused) {
  run_everywhere({.ranks = 2}, [](Runtime& rt) {
    Word x = 0;
    auto hx = rt.data("x", x, {.owner = 0});
    const auto says = AllOf(HasSubstr("events with a start"), HasSubstr("submit a task with a lambda"));
    EXPECT_THAT(refused([&] { rt.record([&] { rt.event("nobody", Release::with_readable, {}, write(hx)); }); }), says);
    EXPECT_THAT(refused([&] { rt.record([&] { rt.acquire_at_owner(read(hx)); }); }), says);
    rt.wait();
  });
}

TEST(DistRecorded, TasksBehindAMigrationRunAtTheNextOwner) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Word x = 1;
    auto hx = rt.data("x", x, {.owner = 0});
    std::vector<std::uint32_t> ran;
    const Codelet grow("grow", [&](Word by, Word& value) {
      value = value * 10 + by;
      ran.push_back(static_cast<std::uint32_t>(by));
    });
    Graph graph = rt.record([&] {
      rt.submit(grow, Word{0}, read_write(hx));
      rt.migrate(hx, 1);
      EXPECT_EQ(rt.owner_of(hx), 1U);
      rt.submit(grow, Word{1}, read_write(hx));
      rt.migrate(hx, 2);
      rt.submit(grow, Word{2}, read_write(hx));
      rt.migrate(hx, 0);
      rt.submit(grow, Word{0}, read_write(hx));
    });
    EXPECT_EQ(rt.owner_of(hx), 0U) << "nothing has moved";
    Word expected = 1;
    for (int replay = 0; replay < 3; ++replay) {
      rt.replay(graph);
      EXPECT_EQ(rt.owner_of(hx), 0U);
      expected = expected * 10000 + 120;
      if (replay == 1) rt.wait();
    }
    rt.wait();
    for (const std::uint32_t by : ran) EXPECT_EQ(by, rt.rank());
    EXPECT_EQ(ran.size(), rt.rank() == 0 ? 6U : 3U);
    if (rt.rank() == 0) {
      EXPECT_EQ(x, expected);
    }
  });
}

TEST(DistRecorded, AReplayThatWouldBeginWithOtherOwnersSaysWhatToDo) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Word x = 1, y = 1, z = 5;
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 0}), hz = rt.data("z", z, {.owner = 0});
    Graph graph = rt.record([&] {
      rt.migrate(hy, 0);  // where it is
      rt.migrate(hx, 1);
      rt.submit(increase, Word{1}, read_write(hx));
      rt.migrate(hx, 2);
    });
    rt.replay(graph);
    EXPECT_EQ(rt.owner_of(hx), 2U);
    const std::uint64_t position = rt.position();
    for (int attempt = 0; attempt < 2; ++attempt)
      EXPECT_THAT(refused([&] { rt.replay(graph); }),
                  AllOf(HasSubstr("rank 2 owns data 'x'"), HasSubstr("but rank 0 did when the graph was recorded"),
                        HasSubstr("leaves it to rank 2"), HasSubstr("migrate it back to rank 0")));
    EXPECT_EQ(rt.position(), position) << "nothing of it was submitted";
    rt.migrate(hx, 0);
    rt.replay(graph);
    // It may be rebound to what is owned as x was at first.
    graph.rebind(hx, hz);
    rt.replay(graph);
    EXPECT_EQ(rt.owner_of(hz), 2U);
    EXPECT_THAT(refused([&] { rt.replay(graph); }), HasSubstr("rank 2 owns data 'z'"));
    EXPECT_THAT(refused([&] { graph.rebind(hz, hx); }), HasSubstr("ranks 0 and 2 own them"));
    rt.migrate(hx, 0), rt.migrate(hz, 0);
    rt.wait();
    if (rt.rank() == 0) {
      EXPECT_EQ(x, 3U);
      EXPECT_EQ(z, 6U);
    }
  });
}

TEST(DistRecorded, AFlushSendsCopiesAgain) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Word x = 3, sum = 0;
    auto hx = rt.data("x", x, {.owner = 0});
    std::vector<Data<Word>> sums;
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) sums.push_back(rt.data("sum", sum, {.owner = rank}));
    const auto read_everywhere = [&] {
      for (const auto& target : sums) rt.submit(add_to, read(hx), read_write(target));
    };
    Graph graph = rt.record([&] {
      read_everywhere();
      rt.flush(hx);
      read_everywhere();
    });
    rt.replay(graph);
    rt.replay(graph);
    rt.wait();
    EXPECT_EQ(sum, 12U);
    // The second replay begins with the copies that the first one has left.
    if (rt.rank() == 0) {
      EXPECT_EQ(rt.flow_statistics().broadcasts, 3U);
    } else {
      EXPECT_EQ(rt.flow_statistics().received, 3U);
    }
  });
}

TEST(DistRecorded, ExplicitMessagesOfOneValueAreOneBroadcast) {
  static constexpr unsigned replays = 5;
  run_everywhere({.ranks = 6}, [](Runtime& rt) {
    std::vector<Word> x(500, rt.rank()), y(500, 7);
    Word sum = 0;
    auto hx = rt.data("x", x), hy = rt.data("y", y);
    auto hsum = rt.data("sum", sum);
    const Codelet grow("grow", [](std::span<Word> values) {
      for (Word& value : values) ++value;
    });
    const Codelet look("look", [](std::span<const Word> in, Word& total) { total += in[0] + in[499]; });
    Graph graph = rt.record([&] {
      rt.submit(grow, read_write(hx));
      for (std::uint32_t other = 1; other < rt.size(); ++other) {
        if (rt.rank() == 0) rt.send(hx, other, 7);
        if (rt.rank() == other) rt.receive(hx, 0, 7);
      }
      // Back to where it came from, one after the other.
      for (std::uint32_t other = 1; other < rt.size(); ++other) {
        if (rt.rank() == 0) rt.receive(hx, other, 8);
        if (rt.rank() == other) rt.send(hx, 0, 8);
      }
      rt.submit(look, read(hx), read_write(hsum));
    });
    EXPECT_EQ(graph.task_count(), 2U);
    for (unsigned replay = 0; replay < replays; ++replay) rt.replay(graph);
    rt.wait();
    EXPECT_EQ(sum, 2U * (1 + 2 + 3 + 4 + 5));
    graph.rebind(hx, hy);
    rt.wait(rt.replay(graph));
    rt.wait();
    EXPECT_EQ(sum, 2U * (1 + 2 + 3 + 4 + 5 + 8));
    EXPECT_EQ(y[3], 8U);
    EXPECT_EQ(x[3], 5U);
    const comm::EndpointStatistics statistics = rt.flow()->endpoint().statistics();
    EXPECT_EQ(statistics.mcasts_started, rt.rank() == 0 ? replays + 1 : 0U) << "whole, though the value may be there";
    EXPECT_EQ(statistics.plans_reused, rt.rank() == 0 ? replays : 0U);
  });
}

TEST(DistRecorded, ObjectsAreFetchedAndMigratedAndSentToo) {
  using Numbers = std::vector<Word>;
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Numbers a{1}, b{2}, own{rt.rank()};
    Word length = 0;
    auto ha = rt.object("a", a, {.owner = 0}), hb = rt.object("b", b, {.owner = 0});
    auto hown = rt.object("own", own);
    auto hlength = rt.data("length", length, {.owner = 1});
    const Codelet push("push", [](Word value, Numbers& to) { to.push_back(value); });
    const Codelet count("count", [](const Numbers& from, Word& to) { to += from.size(); });
    Graph graph = rt.record([&] {
      rt.fetch_everywhere(ha);
      rt.submit(count, read(ha), read_write(hlength));
      rt.migrate(ha, 2);
      rt.submit(push, Word{2}, read_write(ha));
      rt.flush(ha);
      rt.migrate(ha, 0);
      if (rt.rank() == 1) rt.send(hown, 0), rt.send(hown, 2);
      else rt.receive(hown, 1);
      rt.submit(push, Word{9}, read_write(hown));
    });
    for (int replay = 0; replay < 3; ++replay) rt.replay(graph);
    graph.rebind(ha, hb);
    rt.replay(graph);
    rt.wait();
    EXPECT_THAT(own, ElementsAre(1, 9, 9, 9, 9));
    if (rt.rank() == 0) {
      EXPECT_THAT(a, ElementsAre(1, 2, 2, 2));
      EXPECT_THAT(b, ElementsAre(2, 2));
    }
    if (rt.rank() == 1) {
      EXPECT_EQ(length, 1U + 2 + 3 + 1);
    }
  });
}

TEST(DistRecorded, OnOneRankTheyAreNothingOrRefusedAsElsewhere) {
  Runtime rt(Options{.workers = 1});
  Word x = 1;
  auto hx = rt.data("x", x);
  Graph graph = rt.record([&] {
    rt.fetch(hx, 0);
    rt.fetch_everywhere(hx);
    rt.migrate(hx, 0);
    rt.submit(increase, Word{1}, read_write(hx));
    rt.flush(hx);
  });
  EXPECT_EQ(graph.task_count(), 1U);
  EXPECT_THAT(refused([&] { const Graph with_send = rt.record([&] { rt.send(hx, 0); }); }),
              HasSubstr("there is one rank only"));
  for (int replay = 0; replay < 3; ++replay) rt.replay(graph);
  rt.wait();
  EXPECT_EQ(x, 4U);
}

/// What a replay has begun takes place, behind the end of the flow too, so that owners are what the next one expects.
TEST(DistRecorded, ACancelledFlowEndsItsReplays) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    DeterministicJob the_job(seed);
    JobSetup setup{.ranks = 3};
    setup.core.seed = seed;
    setup.core.watchdog_ns = 0;
    setup.core.window = 50;  // the calling thread works only while it waits
    if (seed % 4 != 0) setup.core.begin_ahead_ns = 0;
    setup.network.latency_max_ns = 1 + static_cast<std::int64_t>(seed * 977 % 20'000);
    const DeterministicJob::Outcome outcome = the_job.run(setup, [&](Runtime& rt, DeterministicJob& job) {
      Word x = 0, y = 0;
      auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 2});
      const Codelet step("step", [](Runtime* runtime, Word& value) {
        if (++value == 30) runtime->cancel();
      });
      const Codelet follow("follow", [](const Word& from, Word& to) { to = from; });
      Graph graph = rt.record([&] {
        rt.submit(step, &rt, read_write(hx));
        rt.fetch(hx, 2);
        rt.migrate(hx, 1);
        rt.submit(step, &rt, read_write(hx));
        rt.migrate(hx, 0);
        rt.submit(follow, read(hx), read_write(hy));
        rt.flush(hx);
      });
      constexpr std::uint64_t kOperations = 7;
      for (int flow = 0; flow < 2; ++flow) {
        const Word before = x;
        const std::uint64_t begin = rt.position();
        while (!rt.cancelled()) {
          rt.replay(graph);
          job.maybe_yield();
        }
        rt.wait();
        EXPECT_EQ(rt.owner_of(hx), 0U);
        const std::uint64_t end = rt.cancelled_at().value() - begin;
        const Word ran = end / kOperations * 2 + (end % kOperations >= 4 ? 2 : end % kOperations >= 1 ? 1 : 0);
        if (rt.rank() == 0) {
          EXPECT_EQ(x, before + ran) << seed;
        }
        // A flow that can be cancelled again.
        rt.submit(Codelet("again", [](Word& value) { value = 0; }), read_write(hx));
        rt.wait();
      }
    });
    EXPECT_FALSE(outcome.stuck) << outcome.why;
    for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "") << seed;
  }
}

}  // namespace
}  // namespace tandem::dist_test::recorded_test
