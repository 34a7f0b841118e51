// tests/dist_flow/prune_test.cpp: ranks that skip tasks which do not concern them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deterministic_job.hpp"
#include "ranks.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::dist_test::prune_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Word = std::uint64_t;

const Codelet set_to("set to", [](Word value, Word& datum) { datum = value; });
const Codelet add("add", [](const Word& from, Word& to) { to = to * 3 + from; });
const Codelet fail("fail", [](int number, Word&) { throw std::runtime_error("failure " + std::to_string(number)); });

void expect_well(const std::vector<Ending>& endings) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

/// One word of each rank's, which all know.
struct Words {
  explicit Words(Runtime& rt) : memory(rt.size()) {
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
      memory[rank] = 10 + rank;
      data.push_back(rt.data(std::string("w").append(std::to_string(rank)), memory[rank], {.owner = rank}));
    }
  }
  std::vector<Word> memory;
  std::vector<Data<Word>> data;
};

/// Of steps in which rank i changes its word by that of the next one, whether one concerns a rank: it runs it, holds
/// what it sees, or will see what it writes.
bool step_concerns(std::uint32_t rank, std::uint32_t ranks, std::size_t i) {
  return i % ranks == rank || (i + 1) % ranks == rank || i % ranks == (rank + 1) % ranks;
}

void go_around(Runtime& rt, Words& words, std::size_t steps) {
  const auto of = [&](std::size_t i) -> Data<Word>& { return words.data[i % rt.size()]; };
  for_tasks_of(rt, 0, steps, [&](std::size_t i) { return step_concerns(rt.rank(), rt.size(), i); },
               [&](std::size_t i) { rt.submit(add, read(of(i + 1)), read_write(of(i))); });
}
Word after_going_around(std::uint32_t rank, std::uint32_t ranks, std::size_t steps) {
  std::vector<Word> words(ranks);
  for (std::uint32_t i = 0; i < ranks; ++i) words[i] = 10 + i;
  for (std::size_t i = 0; i < steps; ++i) words[i % ranks] = words[i % ranks] * 3 + words[(i + 1) % ranks];
  return words[rank];
}

TEST(DistPrune, PositionsAreThoseOfTheWholeFlow) {
  for (const bool prune : {true, false}) {
    expect_well(run_job({.ranks = 5, .flow = {.prune = prune}}, [&](Runtime& rt) {
      Words words(rt);
      go_around(rt, words, 200);
      EXPECT_EQ(rt.position(), 200u);
      rt.wait();
      const std::uint64_t after = rt.position();
      go_around(rt, words, 40);
      EXPECT_EQ(rt.position(), after + 40);
      rt.wait();
      EXPECT_EQ(words.memory[rt.rank()], after_going_around(rt.rank(), 5, 240));
      EXPECT_EQ(rt.flow_statistics().tasks, 48u);
      EXPECT_EQ(rt.flow_statistics().skipped, prune ? 96u : 0u);
    }));
  }
}

TEST(DistPrune, OneRankPassesOverNothing) {
  expect_well(run_job({.ranks = 1}, [](Runtime& rt) {
    Words words(rt);
    go_around(rt, words, 7);
    rt.wait();
    EXPECT_EQ(words.memory[0], after_going_around(0, 1, 7));
  }));
  auto rt = test::thread_runtime();
  EXPECT_FALSE(rt->prunes());
  Word value = 1;
  auto data = rt->data("value", value);
  EXPECT_TRUE(rt->concerned_by(read(data)));
  std::vector<std::size_t> submitted;
  for_tasks_of(*rt, 2, 5, [](std::size_t) { return false; }, [&](std::size_t i) { submitted.push_back(i); });
  EXPECT_THAT(submitted, testing::ElementsAre(2, 3, 4));
  rt->skip_tasks(0);
  EXPECT_THAT(test::thrown_by<UsageError>([&] { rt->skip_tasks(1); }), HasSubstr("one rank only"));
}

TEST(DistPrune, TheFailureThatIsEarliestIsThrown) {
  std::atomic<int> reported{0};
  expect_well(run_job({.ranks = 4}, [&](Runtime& rt) {
    Words words(rt);
    for (const bool late_one_first : {true, false}) {
      // Tasks of ranks 1 and 2; ranks 0 and 3 have no part in them, and read in the end.
      const auto submit = [&](std::uint32_t rank, int number) {
        if (rt.rank() == rank || (number == 20 && rt.rank() == 0))
          rt.submit(fail, number, read_write(words.data[rank]));
        else
          rt.skip_tasks(1);
      };
      submit(late_one_first ? 2 : 1, 10);
      rt.skip_tasks(3);
      submit(late_one_first ? 1 : 2, 20);
      try {
        rt.wait();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("failure 10"));
        ++reported;
      }
      for (std::uint32_t rank = 0; rank < 4; ++rank) rt.submit(set_to, Word{1}, write(words.data[rank]));
      rt.wait();
    }
  }));
  EXPECT_EQ(reported.load(), 8);
}

TEST(DistPrune, AWrongNumberIsReported) {
  const auto endings = run_job({.ranks = 3}, [](Runtime& rt) {
    Words words(rt);
    rt.submit(set_to, Word{1}, write(words.data[0]));
    rt.skip_tasks(rt.rank() == 2 ? 4 : 5);
    rt.wait();
  });
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.error, AllOf(HasSubstr("different flows"), HasSubstr("skipped")));
}

TEST(DistPrune, FlowsAfterOneThatWasPrunedAreComparedAgain) {
  const auto endings = run_job({.ranks = 5}, [](Runtime& rt) {
    Words words(rt);
    for (int flow = 0; flow < 3; ++flow) {
      go_around(rt, words, 60);
      rt.wait();
      for (std::uint32_t rank = 0; rank < 3; ++rank) rt.submit(set_to, Word{1}, write(words.data[rank]));
      rt.wait();
    }
    const std::uint32_t changed = rt.rank() == 2 ? 0 : 1;
    rt.submit(set_to, Word{1}, write(words.data[changed]));
    rt.wait();
  });
  // Which datum differs, no rank knows any more.
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.error,
                AllOf(HasSubstr("as many operations, but not the same"), testing::Not(HasSubstr("was written"))));
}

TEST(DistPrune, RanksThatSkippedNothingAreStillCompared) {
  const auto endings = run_job({.ranks = 2}, [](Runtime& rt) {
    Words words(rt);
    rt.submit(add, read(words.data[0]), read_write(words.data[1]));
    if (rt.rank() == 1) rt.submit(set_to, Word{1}, write(words.data[1]));
    else rt.submit(set_to, Word{1}, write(words.data[0]));
    rt.wait();
  });
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.error, AllOf(HasSubstr("not the same"), HasSubstr("was written")));
}

/// Versions are known as lower bounds to senders and receivers alike.
TEST(DistPrune, WhoHoldsDataNeedNotHaveSeenAllItsVersions) {
  expect_well(run_job({.ranks = 4}, [](Runtime& rt) {
    Words words(rt);
    for (int round = 0; round < 3; ++round) {
      // Rank 0 writes its word five times; only rank 3 goes through it all.
      for (int i = 0; i < 5; ++i) {
        if (rt.rank() == 0 || rt.rank() == 3) rt.submit(add, read(words.data[0]), read_write(words.data[0]));
        else rt.skip_tasks(1);
      }
      // Rank 1 writes it afresh, and sends it to ranks 2 and 3.
      rt.submit({.on = 1}, set_to, Word(7 + round), write(words.data[0]));
      rt.submit(add, read(words.data[0]), read_write(words.data[2]));
      rt.submit(add, read(words.data[0]), read_write(words.data[3]));
      // It comes home at the end, of which rank 3 need not know.
      if (rt.rank() != 3) rt.submit({.on = 1}, set_to, Word(8 + round), write(words.data[0]));
      else rt.skip_tasks(1);
      rt.wait();
      if (rt.rank() == 0) { EXPECT_EQ(words.memory[0], 8u + static_cast<unsigned>(round)); }
    }
    Word expected = 10 + rt.rank();
    for (Word round = 0; round < 3; ++round) expected = expected * 3 + 7 + round;
    if (rt.rank() >= 2) { EXPECT_EQ(words.memory[rt.rank()], expected); }
    rt.submit(set_to, Word{4}, write(words.data[3]));
    rt.wait();
  }));
}

TEST(DistPrune, ConcernedByKnowsOwnersHoldersAndCopies) {
  expect_well(run_job({.ranks = 4}, [](Runtime& rt) {
    Words words(rt);
    Word own = 1;
    auto hown = rt.data("own", own);
    const auto concerned = [&](std::initializer_list<std::uint32_t> ranks) {
      return std::find(ranks.begin(), ranks.end(), rt.rank()) != ranks.end();
    };
    auto& w = words.data;
    EXPECT_EQ(rt.concerned_by(read(w[0]), read_write(w[1])), concerned({0, 1}));
    EXPECT_EQ(rt.concerned_by(read(w[2])), concerned({2}));
    EXPECT_EQ(rt.concerned_by(reduce(w[0])), true);
    EXPECT_EQ(rt.concerned_by(read(hown)), true);
    EXPECT_EQ(rt.concerned_by(read(hown), write(w[3])), concerned({3}));
    EXPECT_EQ(rt.concerned_by(read(w[3]), write(hown)), true);
    rt.submit({.on = 2}, set_to, Word{1}, write(w[0]));
    rt.fetch(w[0], 3);
    EXPECT_EQ(rt.concerned_by(read(w[0]), write(w[1])), concerned({0, 1, 2}));
    EXPECT_EQ(rt.concerned_by(write(w[0])), concerned({0, 2, 3}));
    EXPECT_EQ(rt.concerned_by(write(w[1]), write(w[2])), concerned({1, 2}));
    rt.set_placement([](std::span<const dist::PlacementUse>) { return 0U; });
    EXPECT_EQ(rt.concerned_by(write(w[1]), write(w[2])), true);
    EXPECT_EQ(rt.concerned_by(write(w[1])), concerned({1}));
    rt.wait();
  }));
}

TEST(DistPrune, DataThatIsDroppedWhileAwayComesHome) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    Words words(rt);
    Word value = 5;
    auto dropped = rt.data("dropped", value, {.owner = 0});
    if (rt.rank() != 2) rt.submit({.on = 1}, set_to, Word{6}, write(dropped));
    else rt.skip_tasks(1);
    dropped = {};
    rt.submit(add, read(words.data[0]), read_write(words.data[1]));
    EXPECT_EQ(rt.position(), 2u);
    rt.wait();
    if (rt.rank() == 0) { EXPECT_EQ(value, 6u); }
    go_around(rt, words, 30);
    rt.wait();
  }));
}

TEST(DistPrune, DataWhoseFirstWriterWasSkipped) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    Words words(rt);
    auto made = rt.scalar<Word>("made", {.owner = 0});
    if (rt.rank() != 2) rt.submit(set_to, Word{6}, write(made));
    else rt.skip_tasks(1);
    rt.submit(add, read(made), read_write(words.data[1]));  // rank 2 may submit it, too
    rt.wait();
    if (rt.rank() == 1) { EXPECT_EQ(words.memory[1], 39u); }
  }));
}

TEST(DistPrune, RecordedFlows) {
  for (const std::size_t copy_bytes : {SIZE_MAX, std::size_t{256}}) {
    expect_well(run_job({.ranks = 4, .flow = {.copy_bytes = copy_bytes}}, [](Runtime& rt) {
      Words words(rt);
      Graph graph = rt.record([&] { go_around(rt, words, 9); });
      EXPECT_EQ(graph.task_count(), 9u);
      EXPECT_EQ(rt.position(), 0u);
      for (int replay = 0; replay < 5; ++replay) rt.replay(graph);
      EXPECT_EQ(rt.position(), 45u);
      EXPECT_GT(rt.flow_statistics().skipped, 0u);
      rt.wait();
      std::vector<Word> expected{10, 11, 12, 13};
      for (int replay = 0; replay < 5; ++replay)
        for (std::size_t i = 0; i < 9; ++i) expected[i % 4] = expected[i % 4] * 3 + expected[(i + 1) % 4];
      EXPECT_EQ(words.memory[rt.rank()], expected[rt.rank()]);
    }));
  }
}

TEST(DistPrune, CancelledFlowsEndAtOnePosition) {
  std::size_t behind = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto ranks = static_cast<std::uint32_t>(2 + seed % 5);
    JobSetup setup{.ranks = ranks, .workers = 1 + static_cast<unsigned>(seed % 2)};
    setup.core.seed = seed;
    setup.core.watchdog_ns = 0;
    setup.core.window = 50 + seed % 100;
    if (seed % 3 != 0) setup.core.begin_ahead_ns = 0;
    setup.network.latency_max_ns = 1 + static_cast<std::int64_t>(seed * 977 % 20'000);
    std::vector<std::uint64_t> ends(ranks), positions(ranks);
    DeterministicJob the_job(seed);
    const DeterministicJob::Outcome outcome = the_job.run(setup, [&](Runtime& rt, DeterministicJob& job) {
      Words words(rt);
      std::vector<Word> model;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) model.push_back(10 + rank);
      const auto of = [&](std::size_t i) -> Data<Word>& { return words.data[i % ranks]; };
      const std::size_t stop_at = 40 + seed % 100;
      for (int flow = 0; flow < 2; ++flow) {
        const std::uint64_t first = rt.position();
        for (std::size_t from = 0; from < 600 && !rt.cancelled(); from += 60) {
          for_tasks_of(rt, from, from + 60, [&](std::size_t i) { return step_concerns(rt.rank(), ranks, i); },
                       [&](std::size_t i) {
                         const Codelet step("step", [i, stop_at](Runtime* runtime, const Word& seen, Word& word) {
                           word = word * 3 + seen;
                           if (i == stop_at) runtime->cancel();
                         });
                         rt.submit(step, &rt, read(of(i + 1)), read_write(of(i)));
                       });
          job.maybe_yield();
        }
        rt.wait();
        ASSERT_TRUE(rt.cancelled_at().has_value());
        const std::uint64_t end = *rt.cancelled_at();
        for (std::size_t i = 0; first + i + 1 <= end; ++i)
          model[i % ranks] = model[i % ranks] * 3 + model[(i + 1) % ranks];
        EXPECT_EQ(words.memory[rt.rank()], model[rt.rank()]) << seed;
        EXPECT_LE(end - first, 600u);
        behind += 600 - (end - first);
        ends[rt.rank()] = end;
        positions[rt.rank()] = rt.position();
      }
    });
    if (outcome.stuck) {
      std::fprintf(stderr, "seed %llu: nothing goes on\n%s", static_cast<unsigned long long>(seed),
                   outcome.why.c_str());
      std::abort();
    }
    expect_well(outcome.endings);
    EXPECT_THAT(ends, testing::Each(ends[0])) << seed;
    EXPECT_THAT(positions, testing::Each(positions[0])) << seed;
  }
  EXPECT_GT(behind, 0u);
}

/// What the ranks of a job with `check_pruning` say of `program`, one of them by itself.
void expect_found(std::uint32_t rank, const std::string& what, const std::string& datum,
                  const std::function<void(Runtime&)>& program) {
  const auto endings = run_job({.ranks = 3, .flow = {.check_pruning = true}}, [&](Runtime& rt) {
    program(rt);
    rt.wait();
  });
  EXPECT_THAT(endings[rank].error, AllOf(HasSubstr(what), HasSubstr("'" + datum + "'"), HasSubstr("prune_test.cpp")));
  for (const Ending& ending : endings) EXPECT_NE(ending.error, "");
}

/// A loop of one task, which rank `but` would skip.
void one_task(Runtime& rt, std::uint32_t but, const std::function<void()>& submit) {
  for_tasks_of(rt, 0, 1, [&](std::size_t) { return rt.rank() != but; }, [&](std::size_t) { submit(); });
}

TEST(DistPrune, CheckPruningFindsATaskThatRunsHere) {
  expect_found(1, "runs here", "w1", [](Runtime& rt) {
    Words words(rt);
    one_task(rt, 1, [&] { rt.submit(add, read(words.data[0]), read_write(words.data[1])); });
  });
}

TEST(DistPrune, CheckPruningFindsATaskThatSeesWhatIsHeldHere) {
  expect_found(0, "uses what this rank holds", "w0", [](Runtime& rt) {
    Words words(rt);
    one_task(rt, 0, [&] { rt.submit(add, read(words.data[0]), read_write(words.data[1])); });
  });
  expect_found(2, "uses what this rank holds", "w0", [](Runtime& rt) {
    Words words(rt);
    rt.submit({.on = 2}, set_to, Word{1}, write(words.data[0]));
    one_task(rt, 2, [&] { rt.submit(add, read(words.data[0]), read_write(words.data[1])); });
  });
}

TEST(DistPrune, CheckPruningFindsATaskThatWritesWhatIsOwnedOrCopiedHere) {
  expect_found(0, "writes what this rank owns", "w0", [](Runtime& rt) {
    Words words(rt);
    one_task(rt, 0, [&] { rt.submit({.on = 1}, set_to, Word{1}, write(words.data[0])); });
  });
  expect_found(2, "writes what this rank has a copy of", "w0", [](Runtime& rt) {
    Words words(rt);
    rt.submit(add, read(words.data[0]), read_write(words.data[2]));
    one_task(rt, 2, [&] { rt.submit(set_to, Word{1}, write(words.data[0])); });
  });
}

TEST(DistPrune, CheckPruningFindsWhatIsSeenWithoutItsLastWriter) {
  const auto skip = [](Runtime& rt, Words& words) {
    one_task(rt, 2, [&] { rt.submit(set_to, Word{1}, write(words.data[0])); });
  };
  expect_found(2, "the last task that wrote it", "w0", [&](Runtime& rt) {
    Words words(rt);
    skip(rt, words);
    rt.submit(add, read(words.data[0]), read_write(words.data[2]));
  });
  expect_found(2, "the last task that wrote it", "w0", [&](Runtime& rt) {
    Words words(rt);
    skip(rt, words);
    rt.wait();
    rt.fetch(words.data[0], 2);
  });
  expect_found(2, "the last task that wrote it", "w0", [&](Runtime& rt) {
    Words words(rt);
    skip(rt, words);
    rt.migrate(words.data[0], 2);
  });
  // All is well when the next writer is submitted.
  expect_well(run_job({.ranks = 3, .flow = {.check_pruning = true}}, [&](Runtime& rt) {
    Words words(rt);
    skip(rt, words);
    rt.submit(set_to, Word{3}, write(words.data[0]));
    rt.submit(add, read(words.data[0]), read_write(words.data[2]));
    rt.wait();
    if (rt.rank() == 2) { EXPECT_EQ(words.memory[2], 39u); }
  }));
}

TEST(DistPrune, CheckPruningFindsReductions) {
  const auto prepare = [](Words& words) {
    words.data[0].reduction([](Word& share) { share = 0; }, [](Word& into, const Word& more) { into += more; });
  };
  expect_found(2, "reduce access", "w0", [&](Runtime& rt) {
    Words words(rt);
    prepare(words);
    one_task(rt, 2, [&] { rt.submit({.on = 1}, set_to, Word{1}, reduce(words.data[0])); });
  });
  const auto endings = run_job({.ranks = 3, .flow = {.check_pruning = true}}, [&](Runtime& rt) {
    Words words(rt);
    prepare(words);
    rt.submit({.on = 1}, set_to, Word{1}, reduce(words.data[0]));
    one_task(rt, 2, [&] { rt.submit(add, read(words.data[0]), read_write(words.data[1])); });
    rt.wait();
  });
  EXPECT_THAT(endings[2].error, AllOf(HasSubstr("first one after tasks with reduce"), HasSubstr("'w0'")));
}

TEST(DistPrune, CheckPruningFindsLoopsWithSeveralTasksPerIndex) {
  const auto endings = run_job({.ranks = 2, .flow = {.check_pruning = true}}, [](Runtime& rt) {
    Words words(rt);
    for_tasks_of(rt, 3, 4, [&](std::size_t) { return rt.rank() == 0; }, [&](std::size_t) {
      rt.submit(set_to, Word{1}, write(words.data[0]));
      rt.submit(set_to, Word{2}, write(words.data[0]));
    });
    rt.wait();
  });
  EXPECT_THAT(endings[1].error, HasSubstr("index 3 has submitted 2"));
}

TEST(DistPrune, CheckPruningLooksAtReplaysToo) {
  expect_found(1, "runs here", "w1", [](Runtime& rt) {
    Words words(rt);
    Graph graph = rt.record([&] { one_task(rt, 1, [&] { rt.submit(set_to, Word{1}, write(words.data[1])); }); });
    rt.replay(graph);
  });
}

TEST(DistPrune, CheckPruningAgreesWithWhatIsRight) {
  expect_well(run_job({.ranks = 4, .flow = {.check_pruning = true}}, [](Runtime& rt) {
    Words words(rt);
    go_around(rt, words, 50);
    EXPECT_EQ(rt.flow_statistics().skipped, 0u);
    Graph graph = rt.record([&] { go_around(rt, words, 9); });
    rt.wait();
    EXPECT_EQ(words.memory[rt.rank()], after_going_around(rt.rank(), 4, 50));
    rt.replay(graph);
    rt.wait();
  }));
}

}  // namespace
}  // namespace tandem::dist_test::prune_test
