// tests/dist_flow/reduce_test.cpp: tasks that add to sums run where their inputs are, and contributions travel once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "tandem/base/cost_test_support.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/flow.hpp"

namespace tandem::dist_test::reduce_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using Word = std::uint64_t;
using Words = std::vector<Word>;

void run_everywhere(const JobSetup& setup, const std::function<void(Runtime&)>& program) {
  const std::vector<Ending> endings = run_job(setup, program);
  for (std::size_t rank = 0; rank < endings.size(); ++rank) EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
}

void add_up(Data<Vector<Word>>& data) {
  data.reduction([](std::span<Word> sum) { std::ranges::fill(sum, Word{0}); },
                 [](std::span<Word> into, std::span<const Word> from) {
                   for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                 });
}

/// Adds the words of `from` to those of `sum`, in turn.
const Codelet fold("fold", [](std::span<const Word> from, std::span<Word> sum) {
  for (std::size_t i = 0; i < from.size(); ++i) sum[i % sum.size()] += from[i];
});
const Codelet twice("twice", [](std::span<Word> words) {
  for (Word& word : words) word *= 2;
});

/// Blocks that go round the ranks, and a sum.
struct Blocks {
  Blocks(Runtime& rt, std::size_t count, std::size_t length, std::uint32_t owner_of_sum, std::size_t of_sum = 32)
      : memory(count) {
    for (std::size_t i = 0; i < count; ++i) {
      memory[i].resize(length);
      std::iota(memory[i].begin(), memory[i].end(), i * 1'000);
      blocks.push_back(rt.data("block", memory[i], {.owner = static_cast<std::uint32_t>(i % rt.size())}));
    }
    total.assign(of_sum, 7);
    sum = rt.data("sum", total, {.owner = owner_of_sum});
    add_up(sum);
  }
  Words folded(Word initial, Word times = 1) const {
    Words expected(total.size(), initial);
    for (const Words& block : memory)
      for (std::size_t i = 0; i < block.size(); ++i) expected[i % expected.size()] += times * block[i];
    return expected;
  }
  std::vector<Words> memory;
  std::vector<Data<Vector<Word>>> blocks;
  Words total;
  Data<Vector<Word>> sum;
};

/// Bytes that all ranks have received in `program`.
std::uint64_t received(const JobSetup& setup, const std::function<void(Runtime&)>& program) {
  std::vector<std::uint64_t> bytes(setup.ranks);
  run_everywhere(setup, [&](Runtime& rt) {
    program(rt);
    bytes[rt.rank()] = rt.flow_statistics().received_bytes;
  });
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

// --- what travels

TEST(DistReduce, ContributionsTravelInsteadOfInputs) {
  constexpr std::size_t blocks = 20, length = 50'000, of_sum = 32;
  for (const std::uint32_t ranks : {2U, 3U, 5U}) {
    const std::uint64_t bytes = received({.ranks = ranks}, [](Runtime& rt) {
      Blocks all(rt, blocks, length, 1, of_sum);
      for (const auto& block : all.blocks) rt.submit(fold, read(block), reduce(all.sum));
      rt.wait();
      if (rt.rank() == 1) { EXPECT_EQ(all.total, all.folded(7)); }
    });
    EXPECT_EQ(bytes, (ranks - 1) * of_sum * sizeof(Word))
        << "one share of each other rank; the inputs are " << blocks * length * sizeof(Word);
  }
}

TEST(DistReduce, ReplaysSendContributionsToo) {
  constexpr std::size_t blocks = 12, length = 10'000, of_sum = 16, replays = 5;
  for (const std::uint32_t ranks : {2U, 4U, 5U}) {
    const std::uint64_t bytes = received({.ranks = ranks}, [&](Runtime& rt) {
      Blocks all(rt, blocks, length, 0, of_sum);
      Graph graph = rt.record([&] {
        for (const auto& block : all.blocks) rt.submit(fold, read(block), reduce(all.sum));
      });
      EXPECT_EQ(graph.task_count(), blocks) << "what starts and gathers shares does not count";
      for (std::size_t replay = 0; replay < replays; ++replay) rt.replay(graph);
      rt.wait();
      if (rt.rank() == 0) { EXPECT_EQ(all.total, all.folded(7, replays)); }
      std::uint64_t mine = 0;
      for (std::size_t i = 0; i < blocks; ++i) mine += i % rt.size() == rt.rank() ? 1 : 0;
      EXPECT_EQ(rt.flow_statistics().tasks, mine * replays);
    });
    EXPECT_EQ(bytes, replays * (ranks - 1) * of_sum * sizeof(Word));
  }
}

/// Conjugate gradients on a tridiagonal matrix: what a rank reads of others are the neighbouring blocks of `p` alone.
TEST(DistReduce, ConjugateGradientsSendBordersAndScalars) {
  constexpr std::size_t blocks = 8, length = 1'000, iterations = 6;
  constexpr std::uint32_t ranks = 4;
  using Vectors = std::vector<Data<Vector<double>>>;
  std::vector<double> sequential, parallel;
  const auto program = [&](Runtime& rt, std::vector<double>& residuals) {
    const auto vectors = [&](const char* name) {
      Vectors all;
      for (std::size_t i = 0; i < blocks; ++i)
        all.push_back(rt.vector<double>(name, length, {.owner = static_cast<std::uint32_t>(i * rt.size() / blocks)}));
      return all;
    };
    const Vectors x = vectors("x"), r = vectors("r"), p = vectors("p"), q = vectors("q");
    const auto scalar = [&](const char* name) {
      auto data = rt.scalar<double>(name, {.owner = 0});
      data.reduction([](double& share) { share = 0; }, [](double& into, double from) { into += from; });
      return data;
    };
    const auto rr = scalar("rr"), before = scalar("rr before"), pq = scalar("pq");
    const auto dot = [&](const Vectors& a, const Vectors& b, const Data<double>& into) {
      rt.submit("zero", [](double& value) { value = 0; }, write(into));
      for (std::size_t i = 0; i < blocks; ++i)
        rt.submit("dot", [](std::span<const double> u, std::span<const double> v, double& sum) {
          sum = std::inner_product(u.begin(), u.end(), v.begin(), sum);
        }, read(a[i]), read(b[i]), reduce(into));
    };
    for (std::size_t i = 0; i < blocks; ++i)
      rt.submit(
          "start",
          [](std::size_t block, std::span<double> one, std::span<double> two, std::span<double> three) {
            for (std::size_t k = 0; k < one.size(); ++k)
              one[k] = 0, two[k] = three[k] = static_cast<double>((block * 7 + k) % 11);
          },
          i, write(x[i]), write(r[i]), write(p[i]));
    rt.submit("zero", [](double& value) { value = 1; }, write(before));
    for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
      for (std::size_t i = 0; i < blocks; ++i)
        rt.submit(
            "multiply",
            [](bool first, bool last, std::span<const double> left, std::span<const double> own,
               std::span<const double> right, std::span<double> out) {
              for (std::size_t k = 0; k < out.size(); ++k) {
                const double a = k > 0 ? own[k - 1] : first ? 0 : left.back();
                const double b = k + 1 < out.size() ? own[k + 1] : last ? 0 : right.front();
                out[k] = 2.5 * own[k] - a - b;
              }
            },
            i == 0, i + 1 == blocks, read(p[i == 0 ? 0 : i - 1]), read(p[i]), read(p[i + 1 == blocks ? i : i + 1]),
            write(q[i]));
      dot(r, r, rr);
      dot(p, q, pq);
      for (std::size_t i = 0; i < blocks; ++i)
        rt.submit("step", [](double above, double below, std::span<const double> from, std::span<const double> image,
                             std::span<double> to, std::span<double> rest) {
          const double alpha = above / below;
          for (std::size_t k = 0; k < to.size(); ++k) to[k] += alpha * from[k], rest[k] -= alpha * image[k];
        }, read(rr), read(pq), read(p[i]), read(q[i]), read_write(x[i]), read_write(r[i]));
      rt.submit("keep", [](double now, double& kept) { kept = now; }, read(rr), write(before));
      dot(r, r, rr);
      for (std::size_t i = 0; i < blocks; ++i)
        rt.submit("direction", [](double now, double then, std::span<const double> rest, std::span<double> to) {
          for (std::size_t k = 0; k < to.size(); ++k) to[k] = rest[k] + now / then * to[k];
        }, read(rr), read(before), read(r[i]), read_write(p[i]));
      const double seen = *rt.acquire(read(rr));
      if (rt.rank() == 0) residuals.push_back(seen);
    }
  };
  const std::uint64_t bytes = received({.ranks = ranks}, [&](Runtime& rt) { program(rt, parallel); });
  run_everywhere({.ranks = 1}, [&](Runtime& rt) { program(rt, sequential); });
  ASSERT_EQ(parallel.size(), sequential.size());
  for (std::size_t i = 0; i < parallel.size(); ++i) EXPECT_NEAR(parallel[i] / sequential[i], 1, 1e-9) << i;
  const std::uint64_t borders = iterations * 2 * (ranks - 1) * length * sizeof(double);
  EXPECT_GE(bytes, borders);
  EXPECT_LE(bytes, borders + iterations * 8 * (ranks - 1) * sizeof(double))
      << "three sums, and four scalars that all ranks read";
}

// --- where a task runs

/// Whether the one task that `submit` submits runs here.
bool runs_here(Runtime& rt, const std::function<void()>& submit) {
  const std::uint64_t before = rt.flow_statistics().tasks;
  submit();
  return rt.flow_statistics().tasks != before;
}

TEST(DistReduce, ATaskThatOnlyAddsRunsWhereMostOfItsInputIs) {
  run_everywhere({.ranks = 4}, [](Runtime& rt) {
    Words memory(100, 1), bins(10, 0), more(10, 0);
    const auto on = [&](std::uint32_t owner, std::size_t words) {
      return rt.data("d", std::span(memory).first(words), {.owner = owner});
    };
    auto sum = rt.data("sum", bins, {.owner = 0}), other = rt.data("other", more, {.owner = 3});
    add_up(sum), add_up(other);
    const auto runs_on = [&](std::uint32_t rank, const auto&... submitted) {
      EXPECT_EQ(runs_here(rt, [&] { rt.submit(submitted...); }), rt.rank() == rank);
    };
    const auto add1 = [](std::span<const Word>, std::span<Word>) {};
    const auto add2 = [](std::span<const Word>, std::span<const Word>, std::span<Word>) {};
    const auto add3 = [](std::span<const Word>, std::span<const Word>, std::span<const Word>, std::span<Word>) {};
    {
      const auto a = on(1, 10);
      runs_on(1, "one input", add1, read(a), reduce(sum));
      runs_on(2, TaskOptions{.on = 2}, "as the program says", add1, read(a), reduce(sum));
      runs_on(0, "nothing else", [](std::span<Word>) {}, reduce(sum));
      runs_on(1, "and two sums", [](std::span<const Word>, std::span<Word>, std::span<Word>) {}, read(a), reduce(sum),
              reduce(other));
    }
    rt.wait();
    Words first(10, 1), second(30, 1), third(25, 1), own(50, 1), empty;
    const auto of1 = rt.data("first", first, {.owner = 1}), of2 = rt.data("second", second, {.owner = 2}),
               again = rt.data("third", third, {.owner = 1}), own_data = rt.data("own", own),
               none = rt.data("empty", empty, {.owner = 2});
    runs_on(2, "the larger one", add2, read(of1), read(of2), reduce(sum));
    runs_on(1, "two together are larger", add3, read(of1), read(of2), read(again), reduce(sum));
    runs_on(0, "what each rank has does not count", add1, read(own_data), reduce(sum));
    runs_on(0, "nothing moves: where the sum is", add1, read(none), reduce(sum));
    Words alike(30, 1), at_sum(30, 1), result(1, 0);
    const auto of3 = rt.data("alike", alike, {.owner = 3}), of0 = rt.data("at sum", at_sum, {.owner = 0});
    auto out = rt.data("out", result, {.owner = 1});
    runs_on(0, "as many bytes: where the sum is", add2, read(of3), read(of0), reduce(sum));
    runs_on(3, "as many bytes: where the last sum is", add2, read(of2), read(of3), reduce(other));
    runs_on(1, "where it writes something else", [](std::span<const Word>, std::span<Word>, std::span<Word>) {},
            read(of2), reduce(sum), write(out));
    rt.wait();
  });
}

TEST(DistReduce, ThePolicyOfTheProgramIsAskedForSumsOfSeveralOwners) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Blocks all(rt, 3, 10, 0);
    Words more(10, 0);
    auto other = rt.data("other", more, {.owner = 1});
    add_up(other);
    rt.set_placement([](std::span<const dist::PlacementUse>) { return 2U; });
    EXPECT_EQ(runs_here(rt,
                        [&] {
                          rt.submit(
                              "both", [](std::span<Word>, std::span<Word>) {}, reduce(all.sum), reduce(other));
                        }),
              rt.rank() == 2);
    EXPECT_EQ(runs_here(rt, [&] { rt.submit(fold, read(all.blocks[1]), reduce(all.sum)); }), rt.rank() == 1);
    rt.wait();
  });
}

TEST(DistReduce, DataWithoutOwnerIsSummedOnEveryRank) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Blocks all(rt, 6, 40, 0);
    Words own(5, 0);
    auto sum = rt.data("own", own);
    add_up(sum);
    for (const auto& block : all.blocks) rt.submit(fold, read(block), reduce(sum));
    rt.wait();
    Words expected(5, 0);
    for (const Words& block : all.memory)
      for (std::size_t i = 0; i < block.size(); ++i) expected[i % 5] += block[i];
    EXPECT_EQ(own, expected);
  });
}

// --- groups, graphs, loops

TEST(DistReduce, ARecordingGathersBeforeOtherUsesAndServesManyGroups) {
  constexpr int replays = 3, groups = 3;
  for (const bool with_budget : {false, true}) {
    JobSetup setup{.ranks = 4};
    if (with_budget) setup.flow.copy_bytes = 4'096;
    run_everywhere(setup, [&](Runtime& rt) {
      Blocks all(rt, 8, 64, 2);
      const std::size_t data_before = rt.flow()->data_table().count();
      Graph graph = rt.record([&] {
        for (int group = 0; group < groups; ++group) {
          for (const auto& block : all.blocks) rt.submit(fold, read(block), reduce(all.sum));
          if (group == 0) rt.migrate(all.sum, 3);
          rt.submit(twice, read_write(all.sum));
        }
        for (const auto& block : all.blocks) rt.submit(fold, read(block), reduce(all.sum));
        rt.migrate(all.sum, 2);
      });
      EXPECT_LE(rt.flow()->data_table().count() - data_before, std::size_t{rt.size()}) << "shares serve again";
      Words expected(32, 7);
      const Words once = all.folded(0);
      for (int replay = 0; replay < replays; ++replay) {
        rt.submit(fold, read(all.blocks[1]), reduce(all.sum));  // an open sum of the flow itself
        for (std::size_t i = 0; i < 64; ++i) expected[i % 32] += all.memory[1][i];
        rt.replay(graph);
        for (int group = 0; group < groups; ++group)
          for (std::size_t i = 0; i < 32; ++i) expected[i] = (expected[i] + once[i]) * 2;
        for (std::size_t i = 0; i < 32; ++i) expected[i] += once[i];
      }
      rt.wait();
      EXPECT_TRUE(rt.flow()->check_invariants());
      if (rt.rank() == 2) { EXPECT_EQ(all.total, expected); }
    });
  }
}

TEST(DistReduce, AnotherSumTakesThePlaceOfARecordedOne) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Blocks all(rt, 6, 40, 0);
    Words second(32, 1), plain(32, 1);
    auto other = rt.data("other", second, {.owner = 0}), without = rt.data("without", plain, {.owner = 0});
    add_up(other);
    Graph graph = rt.record([&] {
      for (const auto& block : all.blocks) rt.submit(fold, read(block), reduce(all.sum));
    });
    rt.replay(graph);
    std::string refused;
    try {
      graph.rebind(all.sum, without);
    } catch (const UsageError& error) {
      refused = error.what();
    }
    EXPECT_THAT(refused, AllOf(HasSubstr("'without'"), HasSubstr("has no reduction")));
    graph.rebind(all.sum, other);
    for (int replay = 0; replay < 2; ++replay) rt.replay(graph);
    rt.wait();
    if (rt.rank() != 0) return;
    EXPECT_EQ(all.total, all.folded(7));
    EXPECT_EQ(second, all.folded(1, 2));
  });
}

TEST(DistReduce, ARecordedSumWithoutAValueIsRefusedOnEveryRank) {
  const auto endings = run_job({.ranks = 3}, [](Runtime& rt) {
    Blocks all(rt, 3, 10, 0);
    auto empty = rt.vector<Word>("empty", 4, {.owner = 0});
    add_up(empty);
    Graph graph = rt.record([&] { rt.submit(fold, read(all.blocks[1]), reduce(empty)); });
    rt.replay(graph);
    rt.wait();
  });
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.error,
                AllOf(HasSubstr("'empty'"), HasSubstr("nobody has written it"), HasSubstr("reduce_test.cpp")));
}

// Only replays write. While it recorded, a rank that had skipped tasks took the data for written, and a replay then
// waited for a value that no rank had.
TEST(DistReduce, RecordingASumWritesNothing) {
  run_everywhere({.ranks = 2}, [](Runtime& rt) {
    Blocks all(rt, 2, 40, 0);
    for_tasks_of(rt, 0, 1, [&](std::size_t) { return rt.rank() == 1; },
                 [&](std::size_t) { rt.submit(twice, read_write(all.blocks[1])); });
    auto late = rt.vector<Word>("late", 32, {.owner = 1});
    add_up(late);
    Graph graph = rt.record([&] {
      rt.migrate(late, 0);
      rt.submit("clear", [](std::span<Word> words) { std::ranges::fill(words, Word{1}); }, write(late));
      rt.submit(fold, read(all.blocks[1]), reduce(late));
      rt.migrate(late, 1);
    });
    Words seen;
    rt.replay(graph);
    rt.submit("look", [&seen](std::span<const Word> words) { seen.assign(words.begin(), words.end()); }, read(late));
    rt.wait();
    if (rt.rank() == 0) return;
    Words expected(32, 1);
    for (std::size_t i = 0; i < all.memory[1].size(); ++i) expected[i % 32] += all.memory[1][i];
    EXPECT_EQ(seen, expected);
  });
}

TEST(DistReduce, ALoopMayNotSkipTasksThatAdd) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Blocks all(rt, 6, 40, 0);
    Words expected = all.folded(7, 3);  // of the blocks, and of twice the blocks
    EXPECT_TRUE(rt.concerned_by(read(all.blocks[1]), reduce(all.sum)));
    for_tasks_of(rt, 0, 6, [&](std::size_t i) { return rt.concerned_by(read(all.blocks[i]), reduce(all.sum)); },
                 [&](std::size_t i) { rt.submit(fold, read(all.blocks[i]), reduce(all.sum)); });
    for_tasks_of(rt, 0, 6, [&](std::size_t i) { return rt.concerned_by(read_write(all.blocks[i])); },
                 [&](std::size_t i) { rt.submit(twice, read_write(all.blocks[i])); });
    for_tasks_of(rt, 0, 6, [&](std::size_t i) { return rt.concerned_by(read(all.blocks[i]), reduce(all.sum)); },
                 [&](std::size_t i) { rt.submit(fold, read(all.blocks[i]), reduce(all.sum)); });
    rt.wait();
    if (rt.rank() == 0) { EXPECT_EQ(all.total, expected); }
  });
  for (const bool recorded : {false, true}) {
    const auto endings = run_job({.ranks = 3, .flow = {.check_pruning = true}}, [&](Runtime& rt) {
      Blocks all(rt, 3, 10, 0);
      const auto loop = [&] {
        for_tasks_of(rt, 0, 3, [&](std::size_t i) { return i == rt.rank(); },
                     [&](std::size_t i) { rt.submit(fold, read(all.blocks[i]), reduce(all.sum)); });
      };
      if (recorded) {
        Graph graph = rt.record(loop);
        rt.replay(graph);
      } else {
        loop();
      }
      rt.wait();
    });
    for (const Ending& ending : endings) EXPECT_NE(ending.error, "");
    EXPECT_THAT(endings[1].error, AllOf(HasSubstr("reduce access"), HasSubstr("'sum'")));
  }
}

TEST(DistReduce, ASumThatATaskNamesTwiceIsRefusedOnEveryRank) {
  for (const bool recorded : {false, true}) {
    const auto endings = run_job({.ranks = 3}, [&](Runtime& rt) {
      Blocks all(rt, 3, 100, 0);
      const auto submit = [&] {
        rt.submit("both", [](std::span<const Word>, std::span<const Word>, std::span<Word>) {}, read(all.blocks[1]),
                  read(all.sum), reduce(all.sum));
      };
      if (recorded) static_cast<void>(rt.record(submit));
      else submit();
    });
    // A rank that is slow hears first that another one, which was refused, has left.
    const auto refused = AllOf(HasSubstr("'sum'"), HasSubstr("twice"));
    unsigned own = 0;
    for (const Ending& ending : endings) {
      own += testing::Value(ending.error, refused);
      EXPECT_THAT(ending.error, AnyOf(refused, HasSubstr("left in the middle of the flow")));
    }
    EXPECT_GE(own, 1U);
  }
}

TEST(DistReduce, ManyOpenSumsCostNoMoreEach) {
  for (const std::uint32_t ranks : {1U, 2U})
    run_everywhere({.ranks = ranks}, [&](Runtime& rt) {
      const auto use = [&](std::size_t count) {
        std::vector<Word> memory(count, 1);
        std::vector<Data<Word>> sums;
        for (Word& word : memory) {
          sums.push_back(rt.data("sum", word, {.owner = 0}));
          sums.back().reduction([](Word& share) { share = 0; }, [](Word& into, const Word& from) { into += from; });
        }
        for (const auto& sum : sums)
          rt.submit(
              {.on = rt.size() - 1}, "add", [](Word& share) { share += 2; }, reduce(sum));
        rt.wait();
        if (rt.rank() == 0) { EXPECT_THAT(memory, Each(Word{3})); }
      };
      const double growth = test::growth_of_cost(1'000, 16'000, use);
      if (rt.rank() == rt.size() - 1) { EXPECT_LT(growth, 5) << "16 when it is quadratic"; }
    });
}

// --- failures

TEST(DistReduce, AContributionThatFailsTakesTheSumWithIt) {
  for (const bool recorded : {false, true})
    run_everywhere({.ranks = 4}, [&](Runtime& rt) {
      Blocks all(rt, 8, 40, 0);
      Words copy(32, 0);
      auto seen = rt.data("seen", copy, {.owner = 2});
      bool fails = true;
      const auto flow = [&] {
        for (std::size_t i = 0; i < all.blocks.size(); ++i)
          rt.submit("add", [&fails, i](std::span<const Word> from, std::span<Word> sum) {
            if (fails && i == 5) throw std::runtime_error("block 5");
            for (std::size_t k = 0; k < from.size(); ++k) sum[k % sum.size()] += from[k];
          }, read(all.blocks[i]), reduce(all.sum));
        rt.submit("copy", [](std::span<const Word> from, std::span<Word> to) { std::ranges::copy(from, to.begin()); },
                  read(all.sum), write(seen));
      };
      Graph graph;
      if (recorded) graph = rt.record(flow);
      const auto play = [&] { recorded ? static_cast<void>(rt.replay(graph)) : flow(); };
      play();
      try {
        rt.wait();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("block 5"));
      }
      EXPECT_EQ(copy, Words(32, 0)) << "the copy was cancelled";
      fails = false;
      rt.submit("fresh", [](std::span<Word> to) { std::ranges::fill(to, Word{7}); }, write(all.sum));
      play();
      rt.wait();
      EXPECT_TRUE(rt.flow()->check_invariants());
      if (rt.rank() == 0) { EXPECT_EQ(all.total, all.folded(7)); }
      if (rt.rank() == 2) { EXPECT_EQ(copy, all.folded(7)); }
    });
}

/// Random sums over data of random owners, in random groups, live or recorded; against the sequential program.
TEST(DistReduce, RandomSumsAreThoseOfTheSequentialProgram) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto ranks = static_cast<std::uint32_t>(1 + seed % 6);
    run_everywhere({.ranks = ranks, .workers = 1 + static_cast<unsigned>(seed % 2)}, [&](Runtime& rt) {
      std::mt19937_64 draw(seed * 31 + 7);
      const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(draw() % n); };
      std::vector<Words> memory, sums, expected, expected_sums;
      std::vector<Data<Vector<Word>>> data, totals;
      for (std::size_t i = 0; i < 6; ++i) {
        memory.emplace_back(1 + below(60), i + 1);
        sums.emplace_back(1 + below(9), i);
      }
      expected = memory, expected_sums = sums;
      for (std::size_t i = 0; i < 6; ++i) {
        data.push_back(rt.data("d", memory[i], {.owner = static_cast<std::uint32_t>(below(ranks))}));
        totals.push_back(rt.data("s", sums[i], {.owner = static_cast<std::uint32_t>(below(ranks))}));
        add_up(totals.back());
      }
      const auto add = [&](std::size_t from, std::size_t to, bool submits) {
        if (submits) rt.submit(fold, read(data[from]), reduce(totals[to]));
        else
          for (std::size_t k = 0; k < expected[from].size(); ++k)
            expected_sums[to][k % expected_sums[to].size()] += expected[from][k];
      };
      const auto spread = [&](std::size_t from, std::size_t to, bool submits) {  // of a sum into data
        if (submits) rt.submit(fold, read(totals[from]), read_write(data[to]));
        else
          for (std::size_t k = 0; k < expected_sums[from].size(); ++k)
            expected[to][k % expected[to].size()] += expected_sums[from][k];
      };
      for (int phase = 0; phase < 4; ++phase) {
        const std::uint64_t of_phase = draw();
        const bool recorded = below(2) == 0;
        const auto flow = [&](bool submits) {
          std::mt19937_64 choose(of_phase);
          for (int task = 0; task < 25; ++task) {
            const std::size_t from = choose() % 6, to = choose() % 6;
            if (choose() % 4 != 0) add(from, to, submits);
            else spread(from, to, submits);
          }
        };
        if (recorded) {
          Graph graph = rt.record([&] { flow(true); });
          for (int replay = 0; replay < 3; ++replay) rt.replay(graph), flow(false);
        } else {
          flow(true), flow(false);
        }
      }
      rt.wait();
      EXPECT_TRUE(rt.flow()->check_invariants());
      for (std::size_t i = 0; i < 6; ++i) {
        if (rt.owner_of(data[i]) == rt.rank()) { EXPECT_EQ(memory[i], expected[i]) << seed; }
        if (rt.owner_of(totals[i]) == rt.rank()) { EXPECT_EQ(sums[i], expected_sums[i]) << seed; }
      }
    });
  }
}

}  // namespace
}  // namespace tandem::dist_test::reduce_test
