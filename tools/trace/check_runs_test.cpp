// tools/trace/check_runs_test.cpp: the counts of real runs balance, with all kinds of tasks.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/analysis/verdict/verdict.hpp"
#include "tandem/tandem.hpp"
#include "tandem/trace/read/test_support.hpp"
#include "tools/trace/check_test_support.hpp"

namespace tandem::tools::trace_check_runs_test {
namespace {

using test::checked;
using test::counted;
using testing::IsEmpty;

std::uint64_t events_of(const std::filesystem::path& folder, trace::Type type) {
  auto run = trace::TraceReader::open(folder);
  EXPECT_TRUE(run.ok()) << run.error().message;
  std::uint64_t count = 0;
  if (!run.ok()) return 0;
  EXPECT_TRUE(run.value()->in_order([](const trace::Event&) { return 0; }, [&](const trace::Event& event,
                                                                               std::int64_t) {
    count += event.type == type;
    return true;
  }).ok());
  return count;
}

/// A runtime that traces everything into a folder.
Options traced(const std::filesystem::path& folder, unsigned workers, const char* sched) {
  return {.workers = workers,
          .sched = sched,
          .more = {{"trace", "all"},
                   {"trace.folder", folder},
                   {"trace.live", folder.parent_path()},
                   {"trace.memory", "64MiB"},
                   {"window", "200"},
                   {"bind", "false"}}};
}

/// Tasks that read, write, commute, add up, follow each other by name, are replayed, fail, and are cancelled, and
/// events, in a random order.
void play(Runtime& rt, std::uint64_t seed) {
  const Codelet copy("copy", [](const double& from, double& to) { to = from + 1; });
  const Codelet add("add", [](double& v) { v += 1; });
  const Codelet fail("fail", [](double& v) {
    v = 0;
    throw std::runtime_error("no");
  });
  const Codelet cancel("cancel", [](Runtime* runtime, double& v) {
    v += 1;
    runtime->cancel();
  });
  std::mt19937_64 random(seed);
  std::array<double, 6> values{};
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt.data("v", value));
  double sum = 0;
  Data<double> sums = rt.data("sum", sum);
  sums.reduction([](double& part) { part = 0; }, [](double& into, const double& from) { into += from; });
  const auto some = [&]() -> Data<double>& { return data[random() % data.size()]; };
  Graph graph = rt.record([&] {
    for (int i = 0; i < 10; ++i) {
      rt.submit(copy, read(data[static_cast<std::size_t>(i) % 5]),
                read_write(data[static_cast<std::size_t>(i) % 5 + 1]));
      rt.submit(add, commute(data[0]));
    }
  });
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 200; ++i) {
      switch (random() % 13) {
        case 0: rt.replay(graph); break;
        case 1:
        case 2: rt.submit(add, reduce(sums)); break;
        case 3: rt.submit(copy, read(sums), read_write(some())); break;
        case 4:
        case 5:
        case 6: rt.submit(add, commute(some())); break;
        case 7:
          if (seed % 2 == 1 && (round == 2 || round == 5)) rt.submit(fail, read_write(some()));
          break;
        case 8:
          if (seed % 2 == 0 && round >= 3 && random() % 8 == 0) rt.submit(cancel, &rt, read_write(some()));
          break;
        case 9:
          rt.event("event", Release::separate, [](Event event) {
            event.readable();
            event.released();
          }, read_write(some()));
          break;
        default: {
          Data<double>&from = some(), &to = some();
          if (&from != &to) rt.submit(copy, read(from), read_write(to));
        }
      }
    }
    try {
      rt.wait();
    } catch (const std::exception&) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        data[i].unregister();  // memory belongs to one datum at a time
        data[i] = rt.data("v", values[i] = 0);  // of known value again
      }
      break;
    }
  }
}

/// The time of each worker is divided completely, bounds are bounds, and the realised path has no gaps.
void expect_sound_summary(const std::filesystem::path& folder) {
  auto run = trace::TraceReader::open(folder);
  ASSERT_TRUE(run.ok()) << run.error().message;
  const auto history = analysis::History::read(*run.value());
  ASSERT_TRUE(history.ok()) << history.error().message;
  const analysis::Summary summary(*history.value());
  ASSERT_GT(summary.split.makespan_ns, 0);
  for (const analysis::WorkerTimes& worker : summary.split.workers) {
    EXPECT_EQ(std::accumulate(worker.ns.begin(), worker.ns.end(), std::int64_t{0}), summary.split.makespan_ns);
    EXPECT_GE(*std::ranges::min_element(worker.ns), 0);
  }
  EXPECT_LE(summary.area.ns, summary.split.makespan_ns);
  EXPECT_LE(summary.path.length_ns, summary.split.makespan_ns);
  EXPECT_EQ(summary.path.length_ns, summary.path_with_messages.length_ns) << "there are no messages";
  std::int64_t at_ns = summary.split.begin_ns;
  for (const analysis::PathStep& step : summary.realised.steps) {
    EXPECT_EQ(step.start_ns, at_ns);
    at_ns = step.end_ns;
  }
  EXPECT_EQ(at_ns, summary.split.begin_ns + summary.split.makespan_ns);
}

TEST(TraceCheckRealRuns, AreSoundWhateverTheTasksDo) {
  const trace::test::TempFolder temporary;
  std::uint64_t failed = 0, cancelled = 0, replayed = 0, ends = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto folder = temporary.path() / ("run" + std::to_string(seed));
    {
      Runtime rt(traced(folder, static_cast<unsigned>(1 + seed % 3), seed % 2 == 0 ? "lws" : "prio"));
      play(rt, seed);
    }
    const TraceCheck result = checked(folder);
    for (const Violation& violation : result.violations)
      ADD_FAILURE() << violation.promise << ": " << violation.examples.front();
    EXPECT_THAT(result.notes, IsEmpty());
    for (const Account& account : result.accounts) EXPECT_THAT(account.skipped, IsEmpty()) << account.name;
    EXPECT_GT(counted(result, "tasks", "joins and events"), 0u);
    expect_sound_summary(folder);
    failed += counted(result, "tasks", "failed");
    ends += events_of(folder, trace::Type::flow_cancelled);
    cancelled += counted(result, "tasks", "cancelled");
    replayed += counted(result, "tasks", "replayed");
  }
  EXPECT_GT(failed, 0u);
  EXPECT_GT(cancelled, 0u);
  EXPECT_GT(ends, 0u);
  EXPECT_GT(replayed, 0u);
}

}  // namespace
}  // namespace tandem::tools::trace_check_runs_test
