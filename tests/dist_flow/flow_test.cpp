// tests/dist_flow/flow_test.cpp: what programs of several ranks rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ranks.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/flow.hpp"

namespace tandem::dist_test::flow_test {
namespace {

using testing::HasSubstr;

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

/// The job ends on every rank, and each says what the difference is.
void expect_difference_named(const std::vector<Ending>& endings) {
  for (const Ending& ending : endings) {
    EXPECT_THAT(ending.error, testing::AllOf(HasSubstr("different flows"), HasSubstr("was written")));
  }
}

const Codelet add("add", [](double a, std::span<const double> x, std::span<double> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
});
const Codelet fill("fill", [](double a, std::span<double> y) {
  for (double& value : y) value = a;
});

TEST(DistFlow, ATaskRunsWhereItsDataIsWrittenAndSeesWhatOthersOwn) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(1000, 1.0 + rt.rank()), y(1000, 0.0);
    std::vector<Data<Vector<double>>> hx, hy;
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
      hx.push_back(rt.data("x", x, {.owner = rank}));
      hy.push_back(rt.data("y", y, {.owner = rank}));
    }
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank)
      for (std::uint32_t from = 0; from < rt.size(); ++from) rt.submit(add, 2.0, read(hx[from]), read_write(hy[rank]));
    rt.wait();
    for (const double value : y) ASSERT_EQ(value, 12.0);
    EXPECT_EQ(rt.flow_statistics().tasks, 3u);
    EXPECT_EQ(rt.flow_statistics().received, 2u);
  }));
}

TEST(DistFlow, ATaskThatNamesWhatItWritesTwiceCountsAlikeOnAllRanks) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    double x = 1.0, y = 0.0, z = 0.0;
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1}), hz = rt.data("z", z, {.owner = 2});
    const auto copy = [](const double& from, double& to) { to = from; };
    for (int round = 1; round <= 3; ++round) {
      // ranks 1 and 2 have no part in it
      rt.submit([](double& one, double& same) { one = same + 1.0; }, write(hx), read_write(hx));
      rt.submit(copy, read(hx), write(hy));
      rt.submit(copy, read(hx), write(hz));
    }
    rt.wait();
    EXPECT_EQ(y, rt.rank() == 1 ? 4.0 : 0.0);
    EXPECT_EQ(z, rt.rank() == 2 ? 4.0 : 0.0);
  }));
}

TEST(DistFlow, AVersionTravelsOnceHoweverManyTasksSeeIt) {
  expect_well(run_job({.ranks = 2}, [](Runtime& rt) {
    std::vector<double> x(10, 3.0), y(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
    for (int i = 0; i < 50; ++i) rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.submit(fill, 5.0, write(hx));
    for (int i = 0; i < 50; ++i) rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.wait();
    if (rt.rank() == 1) {
      EXPECT_EQ(y[9], 50 * 3.0 + 50 * 5.0);
      EXPECT_EQ(rt.flow_statistics().received, 2u);
    } else {
      EXPECT_EQ(rt.flow_statistics().plain, 2u);
    }
  }));
}

TEST(DistFlow, RecipientsOfAVersionBecomeOneBroadcast) {
  expect_well(run_job({.ranks = 8}, [](Runtime& rt) {
    std::vector<double> x(5000, 0.0), y(5000, 0.0);
    std::atomic<bool> all_submitted{false};
    const auto late = Codelet("late", [&](std::span<double> out) {
      all_submitted.wait(false);
      for (double& value : out) value = 7;
    });
    auto hx = rt.data("x", x, {.owner = 2});
    std::vector<Data<Vector<double>>> hy;
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) hy.push_back(rt.data("y", y, {.owner = rank}));
    rt.submit(late, write(hx));
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) rt.submit(add, 1.0, read(hx), read_write(hy[rank]));
    rt.submit(late, write(hx));
    all_submitted.store(true);
    all_submitted.notify_all();
    rt.wait();
    EXPECT_EQ(y[4999], 7.0);
    if (rt.rank() != 2) return;
    const dist::FlowStatistics statistics = rt.flow_statistics();
    EXPECT_EQ(statistics.broadcasts, 1u);
    EXPECT_EQ(statistics.recipients, 7u);
    EXPECT_EQ(statistics.late, 0u);
  }));
}

TEST(DistFlow, MessagesAreAnnouncedWhenTheirWritersBegin) {
  for (const bool announce : {true, false}) {
    expect_well(run_job({.ranks = 2, .flow = {.transfers = {.announce = announce}}}, [announce](Runtime& rt) {
      std::vector<double> x(5000, 0.0), y(5000, 0.0);
      std::atomic<bool> all_submitted{false};
      auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
      const auto produce = Codelet("produce", [&](std::span<double> out) {
        all_submitted.wait(false);
        for (double& value : out) ++value;
      });
      for (int version = 0; version < 4; ++version) {
        rt.submit(produce, read_write(hx));
        rt.submit(add, 1.0, read(hx), read_write(hy));
      }
      all_submitted.store(true);
      all_submitted.notify_all();
      rt.wait();
      if (rt.rank() == 1) {
        EXPECT_EQ(y[4999], 10.0);
      }
      // The first send shows that the network takes announcements, the second writer how long one takes.
      EXPECT_EQ(rt.flow()->endpoint().statistics().announcements, announce && rt.rank() == 0 ? 2u : 0u);
    }));
  }
}

TEST(DistFlow, DataOfSeveralOwnersMovesAndComesHome) {
  expect_well(run_job({.ranks = 4}, [](Runtime& rt) {
    std::vector<double> a(100, rt.rank() == 0 ? 1.0 : -1), b(100, rt.rank() == 1 ? 2.0 : -1);
    auto ha = rt.data("a", a, {.owner = 0}), hb = rt.data("b", b, {.owner = 1});
    const Codelet exchange("exchange", [](std::span<double> x, std::span<double> y) {
      for (std::size_t i = 0; i < x.size(); ++i) std::swap(x[i], y[i]);
    });
    for (int round = 0; round < 5; ++round)
      for (std::uint32_t on = 0; on < 4; ++on) rt.submit({.on = on}, exchange, read_write(ha), read_write(hb));
    rt.submit(exchange, read_write(ha), read_write(hb));
    rt.wait();
    EXPECT_EQ(a[99], rt.rank() == 0 ? 2.0 : -1.0);
    EXPECT_EQ(b[99], rt.rank() == 1 ? 1.0 : -1.0);
    rt.submit(fill, 9.0, write(ha));
    rt.wait();
    EXPECT_EQ(a[0], rt.rank() == 0 ? 9.0 : -1.0);
  }));
}

TEST(DistFlow, DataWithoutAnOwnerIsEachRanksOwn) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(10, 4.0), sum(10, rt.rank());
    auto hx = rt.data("x", x, {.owner = 1});
    auto hsum = rt.data("sum", sum);
    rt.submit(fill, 6.0, write(hx));
    rt.submit(add, 1.0, read(hx), read_write(hsum));
    rt.wait();
    EXPECT_EQ(sum[3], 6.0 + rt.rank());
    EXPECT_EQ(x[0], rt.rank() == 1 ? 6.0 : 4.0);
    auto view = rt.acquire(read(hx));
    EXPECT_EQ((*view)[5], 6.0);
  }));
}

TEST(DistFlow, AKernelThatThrowsIsReportedOnEveryRank) {
  const auto endings = run_job({.ranks = 4}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0), z(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 1}), hy = rt.data("y", y, {.owner = 2}), hz = rt.data("z", z, {.owner = 3});
    const Codelet bad("bad", [](std::span<double>) { throw std::runtime_error("no luck"); });
    const Codelet worse("worse", [](std::span<double>) { throw std::runtime_error("later"); });
    rt.submit(bad, write(hx));
    rt.submit(worse, write(hz));
    rt.submit(add, 1.0, read(hx), read_write(hy));
    try {
      rt.wait();
      FAIL() << "nothing was thrown";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("no luck"));
      EXPECT_EQ(dynamic_cast<const RemoteFailure*>(&error) == nullptr, rt.rank() == 1);
    }
    // What is written afresh exists again.
    rt.submit(fill, 2.0, write(hx));
    rt.submit(fill, 2.0, write(hy));
    rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.wait();
    EXPECT_EQ(y[0], rt.rank() == 2 ? 4.0 : 0.0);
  });
  expect_well(endings);
}

/// Rank 0 needs the data of the kernel that failed on rank 3, and passes the failure on to rank 1.
TEST(DistFlow, AFailureNamesTheRankWhereItHappened) {
  const auto endings = run_job({.ranks = 4}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0), z(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 3}), hy = rt.data("y", y, {.owner = 0}), hz = rt.data("z", z, {.owner = 1});
    rt.submit("bad", [](std::span<double>) { throw std::runtime_error("no luck"); }, write(hx));
    rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.submit(add, 1.0, read(hy), read_write(hz));
    const auto told = testing::AllOf(testing::StartsWith("on rank 3, task "), HasSubstr("'bad'"), HasSubstr("no luck"),
                                     testing::Not(HasSubstr("another rank")));
    if (rt.rank() == 1) {
      EXPECT_THAT(test::thrown_by<RemoteFailure>([&] { rt.wait(hz); }), told);
    }
    if (rt.rank() == 3) EXPECT_EQ(test::thrown_by<std::runtime_error>([&] { rt.wait(); }), "no luck");
    else EXPECT_THAT(test::thrown_by<RemoteFailure>([&] { rt.wait(); }), told);
  });
  expect_well(endings);
}

/// The kernel runs on one rank only, so nothing that it asks for may count as an operation of the flow.
TEST(DistFlow, WhatAKernelMustNotDoIsItsFailureAndNoDifference) {
  const std::vector<std::function<void(Runtime&, Data<Vector<double>>&)>> forbidden{
      [](Runtime& rt, auto& x) { rt.submit(fill, 1.0, write(x)); },
      [](Runtime& rt, auto& x) { rt.submit({.on = 0}, fill, 1.0, write(x)); },
      [](Runtime& rt, auto& x) { rt.fetch(x, 0); },
      [](Runtime& rt, auto& x) { rt.migrate(x, 0); },
      [](Runtime& rt, auto& x) { rt.flush(x); },
      [](Runtime& rt, auto& x) { static_cast<void>(rt.acquire(read(x))); },
      [](Runtime& rt, auto&) { rt.skip_tasks(1); },
      [](Runtime& rt, auto&) { rt.wait(); },
  };
  for (const auto& action : forbidden) {
    JobSetup setup{.ranks = 3};
    setup.workers = 2;
    expect_well(run_job(setup, [&](Runtime& rt) {
      std::vector<double> x(10, 1.0);
      auto hx = rt.data("x", x, {.owner = 1});
      rt.submit("wrong", [&](std::span<double>) { action(rt, hx); }, write(hx));
      if (rt.rank() == 1) EXPECT_THAT(test::thrown_by<UsageError>([&] { rt.wait(); }), HasSubstr("cannot "));
      else EXPECT_THAT(test::thrown_by<RemoteFailure>([&] { rt.wait(); }), HasSubstr("cannot "));
      rt.submit(fill, 3.0, write(hx));
      rt.wait();
      EXPECT_EQ(x[0], rt.rank() == 1 ? 3.0 : 1.0);
    }));
  }
}

TEST(DistFlow, DataThatAreDroppedLeaveNothing) {
  expect_well(run_job({.ranks = 2}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0});
    for (int round = 0; round < 20'000; ++round) {
      auto hy = rt.data("y", y, {.owner = static_cast<std::uint32_t>(round) % 2});
      if (round % 1'000 == 0) rt.submit(add, 1.0, read(hx), read_write(hy));
    }
    EXPECT_EQ(rt.flow()->data_table().count(), 20'001U);
    EXPECT_LE(rt.flow()->data_table().blocks(), 2U);
    rt.submit(fill, 2.0, write(hx));
    rt.wait();
  }));
}

/// Ranks that differ find out why, while another one has ended the job: what they compare is gone by then.
TEST(DistFlow, ADiagnosisAfterAnAbortReadsNothingThatIsGone) {
  for (int round = 0; round < 20; ++round) {
    const auto endings = run_job({.ranks = 4}, [](Runtime& rt) {
      std::vector<std::vector<double>> x(500, std::vector<double>(10, 1.0));
      std::vector<Data<Vector<double>>> data;
      for (std::vector<double>& one : x) data.push_back(rt.data("x", one, {.owner = 0}));
      for (auto& one : data) rt.submit(fill, 1.0, write(rt.rank() == 3 ? data[0] : one));
      if (rt.rank() == 1) rt.flow()->abort("enough");
      rt.wait();
    });
    for (const Ending& ending : endings)
      EXPECT_THAT(ending.error, testing::AnyOf(HasSubstr("enough"), HasSubstr("different flows")));
  }
}

TEST(DistFlow, TheWatchdogNamesRankPeerAndDatum) {
  std::vector<std::string> said(3);
  JobSetup setup{.ranks = 3};
  setup.core.watchdog_ns = 3'000'000'000;  // all ranks have begun by then
  setup.core.watchdog_throws = true;
  std::atomic<int> stuck{0};
  const auto endings = run_job(setup, [&](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
    rt.submit("slow", [&](std::span<double>) {
      for (int i = 0; i < 3'000 && stuck.load() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }, read_write(hx));
    rt.submit(add, 1.0, read(hx), read_write(hy));
    if (rt.rank() == 0) {
      rt.wait(hx);
      rt.wait();
    } else {
      const struct Counted {
        std::atomic<int>& count;
        ~Counted() { ++count; }
      } counted{stuck};
      said[rt.rank()] = test::thrown_by<StuckError>([&] { rt.wait(); });
    }
  });
  EXPECT_THAT(endings[0].error, HasSubstr("is stuck, and its watchdog has thrown"));
  // The first watchdog to throw ends the job, perhaps before the other one's time has come.
  EXPECT_FALSE(said[1].empty() && said[2].empty());
  if (said[1].empty()) EXPECT_THAT(endings[1].error, HasSubstr("rank 2 is stuck"));
  else EXPECT_THAT(said[1], HasSubstr("rank 1 waits for rank 0 to send data 'x', version 1"));
  if (said[2].empty()) EXPECT_THAT(endings[2].error, HasSubstr("rank 1 is stuck"));
  else
    EXPECT_THAT(said[2],
                testing::AllOf(HasSubstr("0 tasks have not ended"),
                               HasSubstr("rank 2 waits for rank 0, which collects what all ranks report at a wait")));
}

TEST(DistFlow, LoopsOfRanksWithDifferentNumbersOfWorkersAreTheSameFlow) {
  JobSetup setup{.ranks = 3};
  setup.workers_of = {1, 3, 2};
  expect_well(run_job(setup, [](Runtime& rt) {
    std::vector<double> x(1'000, 0.0);
    rt.parallel_for(0, x.size(), [&](std::size_t i) { x[i] = 1; });
    EXPECT_EQ(rt.map_reduce(0, x.size(), 0.0, [&](std::size_t i) { return x[i]; },
                            [](double a, double b) { return a + b; }), 1'000.0);
    rt.wait();
  }));
}

TEST(DistFlow, RanksWithDifferentFlowsAreReported) {
  const auto endings = run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
    rt.submit(add, 1.0, read(hx), read_write(hy));
    if (rt.rank() == 2) rt.submit(fill, 1.0, write(hx));
    else rt.submit(fill, 1.0, write(hy));
    rt.wait();
  });
  expect_difference_named(endings);
}

TEST(DistFlow, AReceiveThatNobodySendsIsNoHang) {
  const auto endings = run_job({.ranks = 2}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
    if (rt.rank() == 1) rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.wait();
  });
  expect_difference_named(endings);
}

TEST(DistFlow, ARankThatLeavesEndsTheJob) {
  const auto endings = run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
    if (rt.rank() == 0) throw std::runtime_error("I go");
    rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.wait();
  });
  EXPECT_EQ(endings[0].error, "I go");
  for (int rank = 1; rank < 3; ++rank)
    EXPECT_THAT(endings[rank].error, HasSubstr("rank 0 left in the middle of the flow"));
}

TEST(DistFlow, ARankThatLeavesDoesNotWaitForItsDataThatAreElsewhere) {
  const auto endings = run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 0.0), sum(1, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1}),
         hsum = rt.data("sum", sum, {.owner = 0});
    hsum.reduction([](std::span<double> none) { none[0] = 0; },
                   [](std::span<double> all, std::span<const double> more) { all[0] += more[0]; });
    rt.submit({.on = 1}, fill, 2.0, write(hx));  // it would come home to rank 0 when it is dropped
    rt.submit({.on = 2}, Codelet("sum",
                                 [](std::span<const double> in, std::span<double> out) { out[0] += in[0]; }), read(hy),
              reduce(hsum));                     // and so would the share of rank 2
    if (rt.rank() == 0) throw std::runtime_error("I go");
    rt.submit(add, 1.0, read(hx), read_write(hy));
    rt.wait();
  });
  EXPECT_EQ(endings[0].error, "I go");
  for (int rank = 1; rank < 3; ++rank)
    EXPECT_THAT(endings[rank].error, HasSubstr("rank 0 left in the middle of the flow"));
}

/// Power iteration, without the scaling: y_i := sum of x, x_i := y_i + i, on every rank a part of both.
TEST(DistFlow, ARecordedFlowIsReplayedAndItsBroadcastsAreWhole) {
  constexpr int replays = 5;
  expect_well(run_job({.ranks = 5}, [](Runtime& rt) {
    std::vector<double> x(rt.size(), 1.0), y(rt.size(), 0.0), z(rt.size(), 0.0);
    std::vector<Data<double>> hx, hy, hz;
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
      hx.push_back(rt.data("x", x[rank], {.owner = rank}));
      hy.push_back(rt.data("y", y[rank], {.owner = rank}));
      hz.push_back(rt.data("z", z[rank], {.owner = rank}));
    }
    const Codelet accumulate("accumulate", [](double scale, const double& from, double& to) { to += scale * from; });
    const Codelet assign("assign", [](double more, const double& from, double& to) { to = from + more; });
    const Codelet clear("clear", [](double& value) { value = 0; });
    std::vector<TaskRef> first;
    Graph graph = rt.record([&] {
      for (std::uint32_t i = 0; i < rt.size(); ++i) {
        rt.submit(clear, write(hy[i]));
        for (std::uint32_t j = 0; j < rt.size(); ++j) {
          const TaskRef task = rt.submit(accumulate, 1.0, read(hx[j]), read_write(hy[i]));
          if (i == 0 && j == 0) first.push_back(task);
        }
      }
      for (std::uint32_t i = 0; i < rt.size(); ++i) rt.submit(assign, 1.0 * i, read(hy[i]), write(hx[i]));
    });
    EXPECT_EQ(graph.task_count(), rt.size() * (2 + rt.size()));
    rt.wait();
    EXPECT_EQ(x[rt.rank()], 1.0) << "nothing has run";
    // Ready data: without a recording each recipient would get a message of its own.
    std::vector<double> expected(rt.size(), 1.0);
    const auto iterate = [&](double first_scale) {
      double sum = 0;
      for (const double value : expected) sum += value;
      const double x0 = expected[0];
      for (std::uint32_t i = 0; i < rt.size(); ++i) expected[i] = sum + i;
      expected[0] += (first_scale - 1) * x0;
    };
    for (int replay = 0; replay < replays; ++replay) {
      rt.replay(graph);
      iterate(1);
    }
    rt.wait();
    EXPECT_EQ(x[rt.rank()], expected[rt.rank()]);
    const dist::FlowStatistics statistics = rt.flow_statistics();
    EXPECT_EQ(statistics.broadcasts, static_cast<unsigned>(replays));
    EXPECT_EQ(statistics.recipients, replays * (rt.size() - 1));
    EXPECT_EQ(statistics.split + statistics.plain + statistics.late, 0U);
    EXPECT_EQ(rt.flow()->endpoint().statistics().plans_reused, replays - 1U) << "the tree is chosen once";

    graph.set_values(first[0], 3.0);
    rt.wait(rt.replay(graph));
    iterate(3);
    rt.wait();
    EXPECT_EQ(x[rt.rank()], expected[rt.rank()]);

    for (std::uint32_t i = 0; i < rt.size(); ++i) graph.rebind(hy[i], hz[i]);
    rt.replay(graph);
    const double before = y[rt.rank()];
    iterate(3);
    rt.wait();
    EXPECT_EQ(x[rt.rank()], expected[rt.rank()]);
    EXPECT_EQ(y[rt.rank()], before);
    EXPECT_EQ(z[rt.rank()], expected[rt.rank()] - rt.rank());
    EXPECT_EQ(rt.flow()->endpoint().statistics().plans_reused, replays + 1U);

    // Other data of the same size keep the tree, too.
    std::vector<double> u(rt.size(), 2.0);
    std::vector<Data<double>> hu;
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
      hu.push_back(rt.data("u", u[rank], {.owner = rank}));
      graph.rebind(hx[rank], hu[rank]);
    }
    graph.set_values(first[0], 1.0);
    expected.assign(rt.size(), 2.0);
    rt.replay(graph);
    iterate(1);
    rt.wait();
    EXPECT_EQ(u[rt.rank()], expected[rt.rank()]);
    EXPECT_EQ(rt.flow()->endpoint().statistics().plans_reused, replays + 2U);
  }));
}

TEST(DistFlow, ARecordedFlowKeepsOrderMigrationAndModes) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    double a = 1, b = 10;
    double own = 0;
    std::vector<int> order;
    auto ha = rt.data("a", a, {.owner = 0}), hb = rt.data("b", b, {.owner = 1});
    auto hown = rt.data("own", own);
    const Codelet add_to("add to", [](const double& from, double& to) { to += from; });
    const Codelet note("note", [&order](int which) { order.push_back(which); });
    Graph graph = rt.record([&] {
      rt.submit({.on = 2}, add_to, read(hb), read_write(ha));   // a third rank
      rt.submit(add_to, read(ha), read_write(hb));
      rt.submit(add_to, read(hb), read_write(hown));            // on every rank
      const TaskRef two = rt.submit({.on = 1}, note, 2);
      rt.submit({.after = {two}, .on = 1}, note, 3);
    });
    double ea = 1, eb = 10, eown = 0;
    for (int replay = 0; replay < 4; ++replay) {
      if (replay == 2) rt.migrate(ha, 1);
      rt.replay(graph);
      ea += eb, eb += ea, eown += eb;
    }
    rt.submit(add_to, read(ha), read_write(hown));
    rt.wait();
    EXPECT_EQ(own, eown + ea);
    EXPECT_EQ(rt.rank() == 1 ? b : eb, eb);
    EXPECT_EQ(order, rt.rank() == 1 ? (std::vector{2, 3, 2, 3, 2, 3, 2, 3}) : std::vector<int>{});
  }));
}

TEST(DistFlow, ATaskHasOneNumberInAllMessages) {
  std::atomic<std::uint64_t> position{0};
  const auto endings = run_job({.ranks = 3}, [&](Runtime& rt) {
    double a = 1, b = 2;
    auto ha = rt.data("a", a, {.owner = 0}), hb = rt.data("b", b, {.owner = 1});
    const Codelet increase("increase", [](const double& by, double& to) { to += by; });
    for (int i = 0; i < 5; ++i) rt.submit(increase, read(ha), read_write(hb));  // with receives of rank 1
    rt.submit("fail", [](double&) { throw std::runtime_error("failed"); }, read_write(hb));
    if (rt.rank() == 1) position = rt.position();
    rt.submit(increase, read(hb), read_write(ha));
    rt.wait();
  });
  EXPECT_EQ(position, 6U);
  EXPECT_THAT(endings[0].error, HasSubstr("task 6 'fail' (submitted at flow_test.cpp"));
  const auto refused = run_job({.ranks = 2}, [&](Runtime& rt) {
    double a = 1;
    auto ha = rt.data("a", a, {.owner = 0});
    rt.submit("one", [](double&) {}, read_write(ha));
    rt.submit("two", [](double&, double&) {}, read_write(ha), commute(ha));
    rt.wait();
  });
  EXPECT_THAT(refused[0].error, HasSubstr("task 2 'two'"));
}

TEST(DistFlow, RanksAddToSharesThatATreeGathers) {
  constexpr int rounds = 3, tasks = 4;
  expect_well(run_job({.ranks = 8}, [](Runtime& rt) {
    double total = 5;
    auto sum = rt.data("total", total, {.owner = 2});
    sum.reduction([](double& share) { share = 0; }, [](double& into, double more) { into += more; });
    double seen = 0;
    auto hseen = rt.data("seen", seen, {.owner = 2});
    const Codelet add_one("add one", [](double value, double& to) { to += value; });
    const Codelet copy("copy", [](const double& from, double& to) { to = from; });
    double expected = 5;
    for (int round = 0; round < rounds; ++round) {
      for (int task = 0; task < tasks; ++task)
        for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
          rt.submit({.on = rank}, add_one, 1.0 + rank, reduce(sum));
          expected += 1.0 + rank;
        }
      if (round < 2) rt.submit(copy, read(sum), write(hseen));
      if (round == 0) rt.submit(add_one, 100.0, read_write(sum));
      if (round == 0) expected += 100;
    }
    rt.wait();
    if (rt.rank() == 2) {
      EXPECT_EQ(total, expected);
    }
    const dist::FlowStatistics statistics = rt.flow_statistics();
    EXPECT_EQ(statistics.versions_sent, rt.rank() == 2 ? 0U : unsigned{rounds}) << "one share a round";
    EXPECT_LE(statistics.received, 3U * rounds) << "log2 of the ranks";
  }));
}

TEST(DistFlow, DevicesOfRanksAddToCopiesOfShares) {
  constexpr int rounds = 3, tasks = 6;
  std::atomic<int> on_devices{0};
  expect_well(run_job({.ranks = 3, .devices = 1}, [&](Runtime& rt) {
    double total = 5;
    auto sum = rt.data("total", total, {.owner = 1});
    sum.reduction([](double& share) { share = 0; }, [](double& into, double more) { into += more; });
    const auto contribute = Codelet("add", [](double value, double& to) {
                              to += value;
                            }).also(DeviceKind::user, [&](double value, double& to) {
      ++on_devices;
      to += value;
    });
    const auto on_device =
        contribute.can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::user; });
    double expected = 5;
    for (int round = 0; round < rounds; ++round) {
      for (int task = 0; task < tasks; ++task)
        for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
          rt.submit({.on = rank}, task % 2 == 0 ? on_device : contribute, 1.0 + rank + task, reduce(sum));
          expected += 1.0 + rank + task;
        }
      rt.submit(Codelet("double", [](double& v) { v *= 2; }), read_write(sum));
      expected *= 2;
    }
    Graph graph = rt.record([&] {
      for (std::uint32_t rank = 0; rank < rt.size(); ++rank) rt.submit({.on = rank}, on_device, 1.0, reduce(sum));
    });
    for (int replay = 0; replay < rounds; ++replay) rt.replay(graph);
    rt.wait();
    if (rt.rank() == 1) {
      EXPECT_EQ(total, expected + rounds * rt.size());
    }
  }));
  EXPECT_GE(on_devices, 3 * rounds * (tasks / 2 + 1));
}

TEST(DistFlow, ATaskThatNoRankCanRunSaysHowToChoose) {
  expect_well(run_job({.ranks = 2}, [](Runtime& rt) {
    double shared = 1, own = 1;
    auto of_rank_0 = rt.data("shared", shared, {.owner = 0}), of_each = rt.data("own", own);
    const auto both = [](double& a, double& b) { a += b; };
    EXPECT_THAT(test::thrown_by<UsageError>([&] { rt.submit(both, read_write(of_rank_0), read_write(of_each)); }),
                HasSubstr("say where with TaskOptions{.on = rank}"));
    rt.submit({.on = 0}, [](double&) {}, read_write(of_rank_0));
    rt.wait();
  }));
}

TEST(DistFlow, WhatCannotBeRecordedSaysSo) {
  expect_well(run_job({.ranks = 2}, [](Runtime& rt) {
    double value = 1;
    auto data = rt.data("value", value, {.owner = 0});
    const auto inside = [&](const std::function<void()>& action) {
      try {
        const Graph graph = rt.record(action);
      } catch (const UsageError& error) {
        return std::string(error.what());
      }
      return std::string("nothing was thrown");
    };
    EXPECT_THAT(inside([&] { rt.wait(); }), HasSubstr("cannot wait while a graph is recorded"));
    EXPECT_THAT(inside([&] { rt.acquire(read(data)); }), HasSubstr("send and receive can be recorded"));
    EXPECT_THAT(inside([&] { rt.acquire_at_owner(write(data)); }), HasSubstr("send and receive can be recorded"));
    EXPECT_THAT(inside([&] { rt.event("e", Release::with_readable, {}, read(data)); }), HasSubstr("can be recorded"));
    EXPECT_THAT(inside([&] { rt.fetch(data, 2); }), HasSubstr("cannot fetch"));
    EXPECT_THAT(inside([&] { rt.migrate(data, 2); }), HasSubstr("cannot migrate"));
    EXPECT_THAT(inside([&] { rt.send(data, 1 - rt.rank()); }), HasSubstr("rank 0 owns it"));
    EXPECT_THAT(inside([&] { const Graph inner = rt.record([] {}); }), HasSubstr("while another is recorded"));
    EXPECT_THAT(inside([&] { rt.submit({.after = {TaskRef{nullptr, 0}}}, Codelet("nothing", [] {})); }),
                HasSubstr("nothing was"));
    const Graph empty = rt.record([] {});
    EXPECT_EQ(empty.task_count(), 0U);
    rt.wait();
  }));
}

TEST(DistFlow, ExplicitSendsOfOneValueBecomeOneBroadcast) {
  expect_well(run_job({.ranks = 6}, [](Runtime& rt) {
    std::vector<double> x(5000, -1.0);
    double sum = 0;
    std::atomic<bool> all_submitted{false};
    auto hx = rt.data("x", x);
    auto hsum = rt.data("sum", sum);
    const Codelet late("late", [&](double value, std::span<double> out) {
      all_submitted.wait(false);
      for (double& element : out) element = value;
    });
    const Codelet look("look", [](std::span<const double> in, double& total) { total += in[0] + in[4999]; });
    for (int round = 1; round <= 3; ++round) {
      rt.submit(late, 1.0 * round, write(hx));
      for (std::uint32_t other = 1; other < rt.size(); ++other) {
        if (rt.rank() == 0) rt.send(hx, other, 7);
        if (rt.rank() == other) rt.receive(hx, 0, 7);
      }
      rt.submit(look, read(hx), read_write(hsum));
    }
    // The same value a second time to one of them is another message.
    if (rt.rank() == 0) rt.send(hx, 1, 7), rt.send(hx, 1, 7);
    if (rt.rank() == 1) rt.receive(hx, 0, 7), rt.receive(hx, 0, 7);
    rt.submit(look, read(hx), read_write(hsum));
    all_submitted.store(true);
    all_submitted.notify_all();
    rt.wait();
    EXPECT_EQ(sum, 2 * (1 + 2 + 3 + 3));
    if (rt.rank() == 0) {
      EXPECT_EQ(rt.flow()->endpoint().statistics().mcasts_started, 3U);
    }
  }));
}

TEST(DistFlow, ExplicitMessagesAreOperationsOfTheFlow) {
  expect_well(run_job({.ranks = 2}, [](Runtime& rt) {
    std::vector<double> x(100, rt.rank());
    auto hx = rt.data("x", x);
    for (int round = 0; round < 10; ++round) {
      if (rt.rank() == 0) {
        rt.submit(fill, round, write(hx));
        rt.send(hx, 1);
        rt.receive(hx, 1);
      } else {
        rt.receive(hx, 0);
        rt.submit(add, 1.0, read(hx), read_write(hx));
        rt.send(hx, 0);
      }
    }
    rt.wait();
    EXPECT_EQ(x[50], 18.0);
  }));
}

TEST(DistFlow, DataMigratesWithItsValue) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(100, 2.0);
    auto hx = rt.data("x", x, {.owner = 0});
    for (std::uint32_t round = 0; round < 7; ++round) {
      rt.submit(add, 1.0, read(hx), read_write(hx));
      rt.migrate(hx, (round + 1) % 3);
      EXPECT_EQ(rt.owner_of(hx), (round + 1) % 3);
    }
    auto view = rt.acquire(read(hx));
    EXPECT_EQ((*view)[0], 2.0 * 128);
    EXPECT_EQ(rt.flow_statistics().tasks, rt.rank() == 0 ? 3u : 2u);
  }));
}

}  // namespace
}  // namespace tandem::dist_test::flow_test
