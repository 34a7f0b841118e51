// tests/dist_flow/prune_linalg_test.cpp: linear algebra whose loops are pruned to a rank does what it does when all
// ranks submit everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "distributed_matrix.hpp"
#include "ranks.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/linalg.hpp"

namespace tandem::dist_test::prune_linalg_test {
namespace {

using namespace linalg;
using T = double;

/// What one rank has at the end, and what it has counted.
struct Outcome {
  std::vector<T> values;
  std::uint64_t skipped = 0;
  std::vector<std::uint64_t> counts;
};

std::vector<std::uint64_t> counts_of(Runtime& rt) {
  const dist::FlowStatistics counted = rt.flow_statistics();
  // Which of several recipients came too late is a matter of time; how many there were is not.
  return {counted.positions,  counted.tasks,   counted.versions_sent, counted.plain, counted.broadcasts + counted.split,
          counted.recipients + counted.late, counted.received, counted.received_bytes};
}

using Tiled = DistributedMatrix<T>;

/// Each tile is moved by a task to another rank than its owner, or copied there, or neither.
void scatter(Runtime& rt, const TiledData<T>& a) {
  const Codelet change("change", [](MatrixView<T> tile) { tile(0, 0) *= T(1.5); });
  for (std::uint32_t j = 0, tile = 0; j < a.col_tiles(); ++j) {
    for (std::uint32_t i = 0; i < a.row_tiles(); ++i, ++tile) {
      if (!a.stores(i, j)) continue;
      if (tile % 3 == 0) rt.submit({.on = (tile / 3) % rt.size()}, change, read_write(a(i, j)));
      else if (tile % 3 == 1) rt.fetch(a(i, j), (tile / 3) % rt.size());
    }
  }
}

using Places = std::vector<Distribution>;
using Program = std::function<void(Runtime&, const Places&, Outcome&)>;

std::vector<Outcome> outcomes_of(std::uint32_t ranks, const std::vector<Distribution>& distributions,
                                 const dist::FlowOptions& options, const Program& program) {
  std::vector<Outcome> outcomes(ranks);
  const auto endings = run_job({.ranks = ranks, .flow = options}, [&](Runtime& rt) {
    Outcome& outcome = outcomes[rt.rank()];
    program(rt, distributions, outcome);
    rt.wait();
    outcome.counts = counts_of(rt);
    outcome.skipped = rt.flow_statistics().skipped;
  });
  for (const Ending& ending : endings) EXPECT_EQ(ending.error, "");
  return outcomes;
}

bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Distributions for the matrices of a program: alike, each its own, and one that is not a grid.
std::vector<std::vector<Distribution>> distributions_for(std::uint32_t ranks) {
  const Distribution::Grid grid = Distribution::squarest(ranks);
  const auto square = Distribution::block_cyclic(grid),
             turned = Distribution::block_cyclic_by_columns({grid.q, grid.p});
  const auto columns = Distribution::block_cyclic({1, ranks}), rows = Distribution::block_cyclic({ranks, 1});
  std::string odd;
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (std::uint32_t j = 0; j < 5; ++j) odd += std::to_string((i * i + 3 * j) % ranks) + " ";
    odd += "\n";
  }
  const auto pattern = Distribution::parse(odd).value();
  return {{square, square, square}, {columns, columns, columns}, {rows, rows, rows}, {square, turned, pattern},
          {pattern, columns, square}};
}

/// Returns how many tasks were skipped in all.
std::uint64_t expect_same_pruned_or_not(const Program& program) {
  std::uint64_t skipped = 0;
  // A sanitizer takes ten times as long.
  for (const std::uint32_t ranks : base::under_sanitizer ? std::vector{2U, 6U} : std::vector{2U, 3U, 4U, 6U}) {
    int number = 0;
    for (const std::vector<Distribution>& distributions : distributions_for(ranks)) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, distributions " + std::to_string(number++));
      // Little memory for copies, and not too little for a task.
      const bool tight = number == 4;
      for (const std::size_t copy_bytes :
           tight ? std::vector<std::size_t>{64 * 1024, 512 * 1024} : std::vector{SIZE_MAX}) {
        const auto all = outcomes_of(ranks, distributions, {.copy_bytes = copy_bytes, .prune = false}, program);
        const auto checked =
            outcomes_of(ranks, distributions, {.copy_bytes = copy_bytes, .check_pruning = true}, program);
        const auto pruned = outcomes_of(ranks, distributions, {.copy_bytes = copy_bytes}, program);
        if (testing::Test::HasFailure()) return 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          EXPECT_TRUE(same_bits(all[rank].values, pruned[rank].values)) << "rank " << rank;
          EXPECT_EQ(all[rank].counts, pruned[rank].counts) << "rank " << rank;
          EXPECT_EQ(all[rank].counts, checked[rank].counts) << "rank " << rank;
          EXPECT_EQ(all[rank].skipped + checked[rank].skipped, 0u);
          skipped += pruned[rank].skipped;
        }
      }
    }
  }
  return skipped;
}

TEST(PrunedLinalg, CholeskyAndWhatFollows) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    const std::size_t n = 61;
    const RandomPositiveDefinite generator{.seed = 3, .order = n};
    for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
      const TileShape square{.rows = n, .cols = n, .tile = 8, .uplo = uplo}, tall{.rows = n, .cols = 21, .tile = 8};
      Tiled factor(rt, square, places[0], generator), a(rt, square, places[1], generator);
      Tiled x(rt, tall, places[1], RandomGeneral{4}), b(rt, tall, places[2], RandomGeneral{4});
      Info info;
      submit_posv(rt, uplo, factor.data, x.data, info);
      // Copies of what is written again, without a wait between.
      submit_generate(rt, generator, factor.data);
      submit_potrf(rt, uplo, factor.data, info);
      rt.wait();
      outcome.values.push_back(posv_residual(rt, uplo, a.data, x.data, b.data));
      EXPECT_LE(outcome.values.back(), residual_limit);
      outcome.values.push_back(potrf_residual(rt, uplo, a.data, factor.data));
      EXPECT_LE(outcome.values.back(), residual_limit);
      factor.keep(rt, outcome.values);
      x.keep(rt, outcome.values);
      // The factor is written anew from where its copies are.
      submit_potrf(rt, uplo, factor.data, info);
      rt.wait();
    }
  });
  EXPECT_GT(skipped, 0u);
}

TEST(PrunedLinalg, ProductsThatReadProducts) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    const std::size_t m = 33, n = 21, k = 27, nb = 6;
    Tiled a(rt, {.rows = m, .cols = k, .tile = nb}, places[0], RandomGeneral{1}),
        b(rt, {.rows = n, .cols = k, .tile = nb}, places[1], RandomGeneral{2}),
        c(rt, {.rows = m, .cols = n, .tile = nb}, places[2], RandomGeneral{3}),
        d(rt, {.rows = k, .cols = n, .tile = nb}, places[0], RandomGeneral{4}),
        e(rt, {.rows = m, .cols = n, .tile = nb}, places[0], RandomGeneral{5});
    submit_gemm(rt, Op::no_trans, Op::trans, 2, a.data, b.data, -1, c.data);
    submit_gemm(rt, Op::trans, Op::no_trans, 1, a.data, c.data, 1, d.data);
    for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
      Tiled s(rt, {.rows = m, .cols = m, .tile = nb, .uplo = uplo}, places[1], Kms{.rho = 0.5});
      submit_syrk(rt, uplo, Op::no_trans, 1, c.data, 1, s.data);
      submit_hemm(rt, uplo, 1, s.data, c.data, 0.5, e.data);
      Tiled g(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, places[2], Kms{.rho = 0.3});
      submit_herk(rt, uplo, Op::conj_trans, 1, d.data, 2, g.data);
      s.keep(rt, outcome.values);
      g.keep(rt, outcome.values);
    }
    c.keep(rt, outcome.values);
    d.keep(rt, outcome.values);
    e.keep(rt, outcome.values);
  });
  EXPECT_GT(skipped, 0u);
}

TEST(PrunedLinalg, Solves) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    const std::size_t m = 33, n = 27, nb = 6;
    Tiled b(rt, {.rows = m, .cols = n, .tile = nb}, places[2], RandomGeneral{3});
    for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
      Tiled left(rt, {.rows = m, .cols = m, .tile = nb, .uplo = uplo}, places[0], Kms{.rho = 0.3}),
          right(rt, {.rows = n, .cols = n, .tile = nb, .uplo = uplo}, places[1], Kms{.rho = 0.4});
      for (const Op op : {Op::no_trans, Op::trans}) {
        submit_trsm(rt, Side::left, uplo, op, Diag::non_unit, 3, left.data, b.data);
        submit_trsm(rt, Side::right, uplo, op, Diag::unit, 1, right.data, b.data);
      }
    }
    b.keep(rt, outcome.values);
  });
  EXPECT_GT(skipped, 0u);
}

TEST(PrunedLinalg, LuAndItsSolves) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{53, 53}, {61, 30}, {30, 61}}) {
      Tiled a(rt, {.rows = rows, .cols = cols, .tile = 7}, places[0], RandomDominant{.seed = 7, .order = 61});
      Info info;
      submit_getrf_nopiv(rt, a.data, info);
      if (rows == cols) {
        Tiled b(rt, {.rows = rows, .cols = 16, .tile = 7}, places[1], RandomGeneral{6});
        submit_trsm(rt, Side::left, Uplo::lower, Op::no_trans, Diag::unit, 1, a.data, b.data);
        submit_trsm(rt, Side::left, Uplo::upper, Op::no_trans, Diag::non_unit, 1, a.data, b.data);
        b.keep(rt, outcome.values);
      }
      a.keep(rt, outcome.values);
      rt.wait();  // `info` must live until then
    }
  });
  EXPECT_GT(skipped, 0u);
}

TEST(PrunedLinalg, QrWhoseTilesMove) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{53, 29}, {29, 53}, {41, 41}, {49, 25}}) {
      const TileShape shape{.rows = rows, .cols = cols, .tile = 8}, side{.rows = rows, .cols = 19, .tile = 8};
      Tiled a(rt, shape, places[0], RandomGeneral{1}), b(rt, side, places[1], RandomGeneral{2});
      TileShape factors = geqrf_factors_shape(shape, 4);
      Tiled t(rt, factors, places[2]);
      submit_geqrf(rt, a.data, t.data);
      submit_unmqr(rt, Op::conj_trans, a.data, t.data, b.data);
      submit_unmqr(rt, Op::no_trans, a.data, t.data, b.data);
      if (rows >= cols) {
        Tiled x(rt, side, places[0], RandomGeneral{3}), again(rt, shape, places[2], RandomGeneral{1});
        gels(rt, Op::no_trans, again.data, t.data, x.data);
        x.keep(rt, outcome.values);
      }
      b.keep(rt, outcome.values);
      a.keep(rt, outcome.values);
    }
  });
  EXPECT_GT(skipped, 0u);
}

TEST(PrunedLinalg, TilesThatWereMovedAndCopiedBefore) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    const std::size_t n = 41, nb = 6;
    const TileShape square{.rows = n, .cols = n, .tile = nb},
        lower{.rows = n, .cols = n, .tile = nb, .uplo = Uplo::lower};
    Tiled a(rt, square, places[0], RandomDominant{.seed = 5, .order = n}), b(rt, square, places[1], RandomGeneral{6}),
        c(rt, square, places[2], RandomGeneral{7}),
        s(rt, lower, places[0], RandomPositiveDefinite{.seed = 3, .order = n});
    Tiled t(rt, geqrf_factors_shape(square, 4), places[1]);
    Info info;
    scatter(rt, s.data);
    submit_potrf(rt, Uplo::lower, s.data, info);
    for (const TiledData<T>* matrix : {&a.data, &b.data, &c.data}) scatter(rt, *matrix);
    submit_gemm(rt, Op::no_trans, Op::no_trans, 1, a.data, b.data, 1, c.data);
    scatter(rt, a.data);
    submit_getrf_nopiv(rt, a.data, info);
    scatter(rt, s.data);
    scatter(rt, c.data);
    submit_trsm(rt, Side::left, Uplo::lower, Op::no_trans, Diag::non_unit, 1, s.data, c.data);
    scatter(rt, b.data);
    submit_geqrf(rt, b.data, t.data);
    scatter(rt, b.data);
    scatter(rt, c.data);
    submit_unmqr(rt, Op::conj_trans, b.data, t.data, c.data);
    for (const Tiled* matrix : {&a, &b, &c, &s}) matrix->keep(rt, outcome.values);
    rt.wait();  // `info` must live until then
  });
  EXPECT_GT(skipped, 0u);
}

TEST(PrunedLinalg, APlacementOfTheProgramsOwn) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    rt.set_placement([ranks = rt.size()](std::span<const dist::PlacementUse> uses) {
      std::uint32_t sum = 1;
      for (const dist::PlacementUse& use : uses) sum += use.owner;
      return sum % ranks;
    });
    const TileShape shape{.rows = 29, .cols = 29, .tile = 8};
    Tiled a(rt, shape, places[0], RandomGeneral{1}), b(rt, shape, places[1], RandomGeneral{2});
    Tiled t(rt, geqrf_factors_shape(shape, 4), places[0]);
    submit_geqrf(rt, a.data, t.data);
    submit_unmqr(rt, Op::conj_trans, a.data, t.data, b.data);
    a.keep(rt, outcome.values);
    b.keep(rt, outcome.values);
  });
  EXPECT_EQ(skipped, 0u);
}

TEST(PrunedLinalg, BesideRecordedFlows) {
  const std::uint64_t skipped = expect_same_pruned_or_not([](Runtime& rt, const Places& places, Outcome& outcome) {
    const std::size_t n = 29, nb = 5;
    const TileShape square{.rows = n, .cols = n, .tile = nb};
    Tiled a(rt, square, places[0], RandomGeneral{1}), b(rt, square, places[1], RandomGeneral{2}),
        c(rt, square, places[2], RandomGeneral{3});
    Graph graph = rt.record([&] { submit_gemm(rt, Op::no_trans, Op::no_trans, 1, a.data, b.data, 0.1, c.data); });
    for (int replay = 0; replay < 3; ++replay) {
      rt.replay(graph);
      submit_gemm(rt, Op::no_trans, Op::no_trans, 0.1, c.data, b.data, 1, a.data);
    }
    a.keep(rt, outcome.values);
    c.keep(rt, outcome.values);
  });
  EXPECT_GT(skipped, 0u);
}

}  // namespace
}  // namespace tandem::dist_test::prune_linalg_test
