// tests/dist_flow/counts_test.cpp: how many messages a factorisation sends, and how much memory it takes for what it
// receives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <set>

#include <fmt/core.h>

#include "deterministic_job.hpp"
#include "ranks.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/linalg.hpp"

namespace tandem::dist_test::counts_test {
namespace {

using namespace linalg;
using testing::AnyOf;
using testing::HasSubstr;

struct Tiles {
  Tiles(Runtime& rt, std::size_t tiles, std::size_t nb, const Distribution& distribution)
      : matrix({.rows = tiles * nb, .cols = tiles * nb, .tile = nb, .uplo = Uplo::lower, .distribution = distribution,
                .rank = rt.rank()}),
        data(rt, "A", matrix) {
    generate(rt, RandomPositiveDefinite{.seed = 1, .order = tiles * nb}, data);
  }
  TileMatrix<double> matrix;
  TiledData<double> data;
};

dist::FlowStatistics operator-(dist::FlowStatistics a, const dist::FlowStatistics& b) {
  a.plain -= b.plain;
  a.broadcasts -= b.broadcasts;
  a.split -= b.split;
  a.recipients -= b.recipients;
  a.versions_sent -= b.versions_sent;
  a.received -= b.received;
  a.received_bytes -= b.received_bytes;
  return a;
}

/// What rank counts in a Cholesky factorisation of `tiles` x `tiles` tiles.
std::vector<dist::FlowStatistics> count_cholesky(std::uint32_t ranks, std::size_t tiles,
                                                 const Distribution& distribution, const JobSetup& setup = {}) {
  JobSetup job = setup;
  job.ranks = ranks;
  std::vector<dist::FlowStatistics> counts(ranks);
  for (const Ending& ending : run_job(job, [&](Runtime& rt) {
         Tiles a(rt, tiles, 3, distribution);
         const dist::FlowStatistics before = rt.flow_statistics();
         ASSERT_EQ(potrf(rt, Uplo::lower, a.data), 0u);
         counts[rt.rank()] = rt.flow_statistics() - before;
       }))
    EXPECT_EQ(ending.error, "");
  return counts;
}

/// P. Swartvagher's report of 2019, annex A.2: with one tile per rank, numbered by columns, rank n with tile (i, j), i
/// >= j, sends one broadcast to N - j - 1 recipients.
TEST(DistCounts, OneTilePerRankSendsOneBroadcastPerTile) {
  for (const std::uint32_t order : {1U, 2U, 3U, 4U, 5U}) {
    const auto counts =
        count_cholesky(order * order, order, Distribution::block_cyclic_by_columns({.p = order, .q = order}));
    for (std::uint32_t j = 0; j < order; ++j) {
      for (std::uint32_t i = 0; i < order; ++i) {
        const dist::FlowStatistics& count = counts[i + j * order];
        const std::uint32_t recipients = i >= j ? order - j - 1 : 0;
        EXPECT_EQ(count.broadcasts, recipients > 1 ? 1u : 0u) << i << ", " << j << " of " << order;
        EXPECT_EQ(count.recipients, recipients > 1 ? recipients : 0u) << i << ", " << j << " of " << order;
        EXPECT_EQ(count.plain, recipients == 1 ? 1u : 0u) << i << ", " << j << " of " << order;
        EXPECT_EQ(count.split, 0u);
      }
    }
  }
}

/// The ranks that see tile (i, j) once it is final.
std::set<std::uint32_t> readers(std::size_t i, std::size_t j, std::size_t tiles, const Distribution& distribution) {
  std::set<std::uint32_t> result;
  if (i == j) {
    for (std::size_t m = j + 1; m < tiles; ++m) result.insert(distribution.owner(m, j));
  } else {
    for (std::size_t n = j + 1; n <= i; ++n) result.insert(distribution.owner(i, n));
    for (std::size_t m = i + 1; m < tiles; ++m) result.insert(distribution.owner(m, i));
  }
  result.erase(distribution.owner(i, j));
  return result;
}

TEST(DistCounts, MoreTilesThanRanksSendWhatTheAlgorithmSays) {
  for (const auto& [ranks, grid] :
       {std::pair<std::uint32_t, Distribution::Grid>{4, {2, 2}}, {6, {2, 3}}, {12, {4, 3}}}) {
    const std::size_t tiles = 11;
    const auto distribution = Distribution::block_cyclic(grid);
    std::vector<dist::FlowStatistics> expected(ranks);
    for (std::size_t j = 0; j < tiles; ++j) {
      for (std::size_t i = j; i < tiles; ++i) {
        const auto who = readers(i, j, tiles, distribution);
        dist::FlowStatistics& count = expected[distribution.owner(i, j)];
        if (who.size() == 1) ++count.plain;
        if (who.size() > 1) {
          ++count.broadcasts;
          count.recipients += who.size();
        }
        for (const std::uint32_t rank : who) ++expected[rank].received;
      }
    }
    const auto counts = count_cholesky(ranks, tiles, distribution);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(counts[rank].broadcasts, expected[rank].broadcasts) << "rank " << rank << " of " << ranks;
      EXPECT_EQ(counts[rank].recipients, expected[rank].recipients) << "rank " << rank << " of " << ranks;
      EXPECT_EQ(counts[rank].plain, expected[rank].plain) << "rank " << rank << " of " << ranks;
      EXPECT_EQ(counts[rank].received, expected[rank].received) << "rank " << rank << " of " << ranks;
    }
  }
}

TEST(DistCounts, NearlyAllBroadcastsAreWholeWhenSubmissionIsAhead) {
  const auto counts = count_cholesky(16, 40, Distribution::block_cyclic({4, 4}));
  std::uint64_t whole = 0, split = 0;
  for (const dist::FlowStatistics& count : counts) {
    whole += count.broadcasts;
    split += count.split;
  }
  EXPECT_GT(whole, 700u);
  EXPECT_LE(static_cast<double>(split), 0.02 * static_cast<double>(whole + split));
}

TEST(DistCounts, BroadcastsCanBeSwitchedOff) {
  JobSetup setup;
  setup.flow.transfers.broadcasts = false;
  const auto counts = count_cholesky(4, 8, Distribution::block_cyclic({2, 2}), setup);
  for (const dist::FlowStatistics& count : counts) EXPECT_GT(count.received, 0u);
}

/// Neighbours on other ranks get a block's border once per state of the grid, the first one included; blocks stay where
/// they are.
TEST(DistCounts, AJacobiStepSendsBordersAndNoBlock) {
  const std::size_t tiles = 6, nb = 64, steps = 7;
  for (const auto& [grid, distribution] :
       {std::pair{Distribution::Grid{2, 2}, Distribution::contiguous({2, 2}, {.rows = tiles, .cols = tiles})},
        std::pair{Distribution::Grid{1, 3}, Distribution::contiguous({1, 3}, {.rows = tiles, .cols = tiles})},
        std::pair{Distribution::Grid{3, 2}, Distribution::block_cyclic({3, 2})}}) {
    const std::uint32_t ranks = grid.p * grid.q;
    std::vector<std::uint64_t> expected(ranks, 0);
    for (std::size_t j = 0; j < tiles; ++j)
      for (std::size_t i = 0; i < tiles; ++i) {
        const auto meet = [&](std::size_t below, std::size_t right) {
          const std::uint32_t a = distribution.owner(i, j), b = distribution.owner(below, right);
          if (a == b) return;
          expected[a] += steps;
          expected[b] += steps;
        };
        if (i + 1 < tiles) meet(i + 1, j);
        if (j + 1 < tiles) meet(i, j + 1);
      }
    std::vector<dist::FlowStatistics> counts(ranks);
    for (const Ending& ending : run_job({.ranks = ranks}, [&](Runtime& rt) {
           const std::size_t n = tiles * nb;
           const TileShape shape{.rows = n, .cols = n, .tile = nb, .distribution = distribution, .rank = rt.rank()};
           TileMatrix<double> u(shape), work(shape);
           TiledData<double> hu(rt, "u", u), hw(rt, "work", work);
           generate(rt, RandomGeneral{.seed = 1}, hu);
           const dist::FlowStatistics before = rt.flow_statistics();
           jacobi(rt, hu, hw, {.steps = steps});
           counts[rt.rank()] = rt.flow_statistics() - before;
         }))
      EXPECT_EQ(ending.error, "");
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(counts[rank].received, expected[rank]) << "rank " << rank << " of " << ranks;
      EXPECT_EQ(counts[rank].received_bytes, expected[rank] * nb * sizeof(double))
          << "rank " << rank << " of " << ranks;
    }
  }
}

// --- memory

TEST(DistMemory, ARingGoesRoundInTheMemoryOfOneBlock) {
  const std::uint32_t ranks = 5;
  const std::size_t words = 4096;
  JobSetup setup;
  setup.ranks = ranks;
  setup.flow.copy_bytes = words * sizeof(double);
  const auto endings = run_job(setup, [&](Runtime& rt) {
    std::vector<double> block(words, rt.rank());
    std::vector<Data<Vector<double>>> blocks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) blocks.push_back(rt.data("block", block, {.owner = rank}));
    const Codelet add("add", [](std::span<const double> from, std::span<double> to) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
    });
    std::vector<double> expected(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) expected[rank] = rank;
    for (int round = 0; round < 40; ++round) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::uint32_t next = (rank + 1) % ranks;
        rt.submit(add, read(blocks[rank]), read_write(blocks[next]));
        expected[next] += expected[rank];
      }
    }
    rt.wait();
    EXPECT_EQ(block[words - 1], expected[rt.rank()]);
    EXPECT_LE(rt.flow_statistics().most_copy_bytes, words * sizeof(double));
  });
  for (const Ending& ending : endings) EXPECT_EQ(ending.error, "");
}

TEST(DistMemory, FactorisationsGiveTheSameInTheMemoryOfOneTask) {
  const std::size_t tiles = 9, nb = 8, n = tiles * nb;
  std::vector<double> alone(n * n, 0), alone_lu(n * n, 0);
  const auto program = [&](Runtime& rt, const Distribution& distribution, std::vector<double>& cholesky,
                           std::vector<double>& lu) {
    Tiles a(rt, tiles, nb, distribution);
    ASSERT_EQ(potrf(rt, Uplo::lower, a.data), 0u);
    TileMatrix<double> general(
        {.rows = n, .cols = n, .tile = nb, .distribution = distribution, .rank = rt.rank()});
    TiledData<double> b(rt, "B", general);
    generate(rt, RandomDominant{.seed = 3, .order = n}, b);
    ASSERT_EQ(getrf_nopiv(rt, b), 0u);
    gather(rt, a.data, MatrixView<double>{cholesky.data(), n, n, n});
    gather(rt, b, MatrixView<double>{lu.data(), n, n, n});
  };
  run_job({.ranks = 1}, [&](Runtime& rt) { program(rt, {}, alone, alone_lu); });
  for (const std::uint32_t ranks : {2U, 4U, 6U}) {
    // gemm sees two tiles of other ranks.
    for (const std::size_t budget : {std::size_t(2), std::size_t(5), std::size_t(20)}) {
      JobSetup setup;
      setup.ranks = ranks;
      setup.workers = 2;
      setup.flow.copy_bytes = budget * nb * nb * sizeof(double);
      const auto endings = run_job(setup, [&](Runtime& rt) {
        std::vector<double> cholesky(n * n, 0), lu(n * n, 0);
        program(rt, Distribution::block_cyclic(Distribution::squarest(ranks)), cholesky, lu);
        EXPECT_EQ(cholesky, alone);
        EXPECT_EQ(lu, alone_lu);
        EXPECT_LE(rt.flow_statistics().most_copy_bytes, budget * nb * nb * sizeof(double));
      });
      for (const Ending& ending : endings) EXPECT_EQ(ending.error, "") << ranks << " ranks, " << budget << " tiles";
    }
  }
}

/// Blocks of a ring are of different sizes.
std::size_t block_words(std::uint32_t block) { return 100 + 37 * (block * 3 % 5); }

using Values = std::vector<double>;

/// Each rank reads its neighbour's block; every third time it works on the one after that, which moves to it for the
/// purpose.
Values go_round(Runtime& rt, const Distribution&) {
  const std::uint32_t blocks = 4;
  std::vector<Values> memory(blocks);
  std::vector<Data<Vector<double>>> data;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    memory[block].assign(block_words(block), block + 1.0);
    data.push_back(rt.data("block", memory[block], {.owner = block % rt.size()}));
  }
  const Codelet mix("mix", [](std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = 0.75 * to[i] + 0.5 * from[i % from.size()];
  });
  for (std::uint32_t step = 0; step < 40 * blocks; ++step) {
    const std::uint32_t here = step % blocks, next = (here + 1) % blocks, far = (here + 2) % blocks;
    if (step % 3 == 2) rt.submit({.on = here % rt.size()}, mix, read(data[next]), read_write(data[far]));
    else rt.submit(mix, read(data[next]), read_write(data[here]));
  }
  rt.wait();
  Values result;
  for (const auto& block : data) {
    auto view = rt.acquire(read(block));
    result.insert(result.end(), (*view).begin(), (*view).end());
  }
  return result;
}

Values factor_cholesky(Runtime& rt, const Distribution& distribution) {
  const std::size_t tiles = 7, nb = 6, n = tiles * nb;
  Values whole(n * n, 0);
  Tiles a(rt, tiles, nb, distribution);
  EXPECT_EQ(potrf(rt, Uplo::lower, a.data), 0u);
  gather(rt, a.data, MatrixView<double>{whole.data(), n, n, n});
  return whole;
}

/// Tiles of two sizes: those of T are lower than those of A.
Values factor_qr(Runtime& rt, const Distribution& distribution) {
  const std::size_t m = 47, n = 33, nb = 8;
  Values whole(m * n);
  const TileShape shape{.rows = m, .cols = n, .tile = nb, .distribution = distribution, .rank = rt.rank()};
  TileMatrix<double> matrix(shape), factors(geqrf_factors_shape(shape, 3));
  TiledData<double> a(rt, "A", matrix), t(rt, "T", factors);
  generate(rt, RandomGeneral{5}, a);
  geqrf(rt, a, t);
  gather(rt, a, MatrixView<double>{whole.data(), m, n, m});
  return whole;
}

/// Which budget a refused task has named, of all ranks: the one that it needed just then, or the one that it
/// recommends.
std::size_t named_budget(const std::vector<Ending>& endings, bool recommended) {
  std::size_t budget = 0;
  for (const Ending& ending : endings) {
    std::size_t sees = 0, kept = 0, allowed = 0, better = 0;
    const std::size_t from = ending.error.find("sees ");
    if (from == std::string::npos) continue;
    if (std::sscanf(
            ending.error.c_str() + from,
            "sees %zu bytes of other ranks' data at once, %zu bytes are kept for later tasks, and option copies allows "
            "%zu bytes in all; give it %zu",
            &sees, &kept, &allowed, &better) == 4)
      budget = std::max(budget, recommended ? better : sees + kept);
  }
  return budget;
}

/// As somebody does who gives what is asked for, until nobody asks for more.
TEST(DistMemory, TheLeastBudgetThatIsAcceptedIsEnough) {
  using Program = Values (*)(Runtime&, const Distribution&);
  for (const auto& [name, program] :
       {std::pair<const char*, Program>{"ring", go_round}, {"potrf", factor_cholesky}, {"geqrf", factor_qr}}) {
    Values alone;
    run_job({.ranks = 1}, [&](Runtime& rt) { alone = program(rt, {}); });
    for (const std::uint32_t ranks : {2U, 4U}) {
      for (const bool recommended : {false, true}) {
        JobSetup setup;
        setup.ranks = ranks;
        setup.workers = 2;
        setup.flow.copy_bytes = 1;
        unsigned refused = 0;
        while (true) {
          SCOPED_TRACE(fmt::format("{} on {} ranks with {} bytes", name, ranks, setup.flow.copy_bytes));
          std::vector<Values> results(ranks);
          const auto endings = run_job(setup, [&](Runtime& rt) {
            results[rt.rank()] = program(rt, Distribution::block_cyclic(Distribution::squarest(rt.size())));
            EXPECT_LE(rt.flow_statistics().most_copy_bytes, setup.flow.copy_bytes);
          });
          if (const std::size_t more = named_budget(endings, recommended); more > 0) {
            ASSERT_GT(more, setup.flow.copy_bytes);
            setup.flow.copy_bytes = more;
            ++refused;
            continue;
          }
          for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(endings[rank].error, "") << "rank " << rank;
            EXPECT_EQ(results[rank], alone) << "rank " << rank;
          }
          break;
        }
        EXPECT_GT(refused, 0u);
      }
    }
  }
}

TEST(DistMemory, ATaskThatNeedsMoreSaysHowMuch) {
  JobSetup setup;
  setup.ranks = 2;
  setup.flow.copy_bytes = 100 * sizeof(double);
  const auto endings = run_job(setup, [](Runtime& rt) {
    std::vector<double> x(101, 1.0), y(101, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1});
    rt.submit(Codelet("copy", [](std::span<const double>, std::span<double>) {}), read(hx), write(hy));
    rt.wait();
  });
  EXPECT_THAT(endings[1].error, HasSubstr("808 bytes"));
  EXPECT_THAT(endings[0].error, HasSubstr("rank 1"));
}

// --- deaths

TEST(DistDeath, ARankKilledInTheMiddleEndsTheJobOnTheOthers) {
  unsigned reported = 0, victim_named = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    DeterministicJob the_job(seed);
    JobSetup setup;
    setup.ranks = static_cast<std::uint32_t>(2 + seed % 5);
    setup.core.watchdog_ns = 0;
    setup.network.latency_max_ns = 10'000;
    setup.network.deaths_are_seen_by_all = seed % 2 == 0;
    setup.network.copies = true;  // as sockets do: what was sent arrives though its sender has gone
    const auto victim = static_cast<std::uint32_t>(seed / 3 % setup.ranks);
    std::vector<bool> factored(setup.ranks, false);
    const auto outcome = the_job.run(setup, [&](Runtime& rt, DeterministicJob& job) {
      Tiles a(rt, 6, 4, Distribution::block_cyclic(Distribution::squarest(rt.size())));
      const auto alive = std::make_shared<Runtime*>(&rt);
      const struct Ended {
        Runtime*& shown;
        ~Ended() { shown = nullptr; }
      } ended{*alive};
      if (rt.rank() == victim)
        job.loop().at(job.loop().now_ns() + static_cast<std::int64_t>(seed * 7919 % 200'000),
                        [&job, alive, victim] {
                          if (*alive == nullptr) return;
                          job.network().kill(comm::Rank(victim));
                          (*alive)->flow()->abort("killed");  // ends the program, from which nobody hears any more
                        });
      for (int round = 0; round < 50; ++round) {
        Info info;
        submit_potrf(rt, Uplo::lower, a.data, info);
        rt.wait();
      }
      factored[rt.rank()] = true;
    });
    ASSERT_FALSE(outcome.stuck) << "seed " << seed << "\n" << outcome.why;
    for (std::uint32_t rank = 0; rank < setup.ranks; ++rank)
      if (rank != victim && !factored[rank]) {
        // Of the killed rank, or of one that heard of it earlier and gave up.
        EXPECT_THAT(outcome.endings[rank].error, AnyOf(HasSubstr("died"), HasSubstr("ended"), HasSubstr("killed")))
            << "seed " << seed;
        victim_named += outcome.endings[rank].error.find("rank " + std::to_string(victim)) != std::string::npos;
        ++reported;
      }
  }
  EXPECT_GT(reported, 50u);
  EXPECT_GE(victim_named * 10, reported * 9) << "of " << reported;
}

}  // namespace
}  // namespace tandem::dist_test::counts_test
