// tandem/linalg/flows/jacobi.cpp: two tasks per block and step; borders and blocks alternate between two places.
#include "tandem/linalg/flows/jacobi.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/combine_tree.hpp"
#include "tandem/linalg/flows/generate.hpp"
#include "tandem/linalg/flows/lacpy.hpp"
#include "tandem/linalg/flows/norms.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/jacobi.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

constexpr int sweep_priority = 0, border_priority = 1, sent_border_priority = 2, change_priority = 3;

/// Which neighbours a block has.
struct Neighbours {
  bool above = false, below = false, left = false, right = false;
};

template <class R>
kernels::Halo<R> halo_of(const Neighbours& has, std::span<const R> above, std::span<const R> below,
                         std::span<const R> left, std::span<const R> right) noexcept {
  return {has.above ? above.data() : nullptr, has.below ? below.data() : nullptr, has.left ? left.data() : nullptr,
          has.right ? right.data() : nullptr};
}

template <class R>
const auto& first_borders_codelet() {
  using Out = std::span<R>;
  static const Codelet codelet("first borders", [](MatrixView<const R> u, Out top, Out bottom, Out left, Out right) {
    kernels::copy_borders<R>(u, {top, bottom, left, right});
  });
  return codelet;
}

template <class R>
const auto& borders_codelet() {
  using In = std::span<const R>;
  using Out = std::span<R>;
  static const Codelet codelet("borders", [](Neighbours has, MatrixView<const R> u, In above, In below, In before,
                                             In behind, Out top, Out bottom, Out left, Out right) {
    kernels::jacobi_borders<R>(u, halo_of<R>(has, above, below, before, behind), {top, bottom, left, right});
  });
  return codelet;
}

template <class R>
const auto& sweep_codelet() {
  using In = std::span<const R>;
  static const Codelet codelet("sweep", [](Neighbours has, MatrixView<const R> u, In above, In below, In left, In right,
                                           MatrixView<R> v) {
    kernels::jacobi<R>(u, halo_of<R>(has, above, below, left, right), v);
  });
  return codelet;
}

template <class R>
const auto& change_codelet() {
  static const Codelet codelet("change", [](MatrixView<const R> u, MatrixView<const R> v, R& change) {
    change = kernels::largest_difference(u, v);
  });
  return codelet;
}

template <class R>
const auto& larger_codelet() {
  static const Codelet codelet("larger",
                               [](const R& value, R& most) { most = most > value || std::isnan(most) ? most : value; });
  return codelet;
}

/// A grid and its borders, and the steps that are submitted for it.
template <class R>
class Grid {
 public:
  Grid(Runtime& rt, TiledData<R>& u, TiledData<R>& work) : rt_(rt), grids_{&u, &work} {
    for (std::size_t j = 0; j < cols(); ++j)
      for (std::size_t i = 0; i < rows(); ++i) {
        for (auto& borders : borders_) borders.push_back(borders_of(i, j));
        for (auto& changes : changes_) changes.push_back(rt.scalar<R>("change", rt.beside(u(i, j))));
      }
    for_each_block([&](std::size_t i, std::size_t j) {
      const Edges& to = border(0, i, j);
      rt_.submit({.priority = border_priority}, first_borders_codelet<R>(), read(u(i, j)), write(to.top),
                 write(to.bottom), write(to.left), write(to.right));
    });
  }

  void submit_step() {
    const auto iteration = rt_.iteration(steps_);
    for_each_block([&](std::size_t i, std::size_t j) { submit_borders(i, j); });
    for_each_block([&](std::size_t i, std::size_t j) { submit_sweep(i, j); });
    ++steps_;
  }

  std::size_t steps() const noexcept { return steps_; }

  /// Submits the test of the largest change in the last submitted step. Read it with `change` before the test after the
  /// next.
  void submit_change() {
    const auto& changes = changes_[looks_++ % 2];
    for_each_block([&](std::size_t i, std::size_t j) {
      rt_.submit({.priority = change_priority}, change_codelet<R>(), read(before()(i, j)), read(now()(i, j)),
                 write(changes[i + j * rows()]));
    });
    submit_combine_tree(rt_, {.priority = change_priority}, changes.size(),
                        [&](std::size_t k) -> const auto& { return changes[k]; }, larger_codelet<R>());
  }

  /// The result of test `look`, on every rank.
  double change(std::size_t look) { return static_cast<double>(*rt_.acquire(read(changes_[look % 2][0]))); }

  void submit_result() {
    if (steps_ % 2 != 0) submit_lacpy(rt_, Uplo::general, *grids_[1], *grids_[0]);
  }

 private:
  using Border = Data<Vector<R>>;
  struct Edges {
    Border top, bottom, left, right;
  };

  std::size_t rows() const noexcept { return grids_[0]->row_tiles(); }
  std::size_t cols() const noexcept { return grids_[0]->col_tiles(); }
  const TiledData<R>& now() const noexcept { return *grids_[steps_ % 2]; }
  const TiledData<R>& before() const noexcept { return *grids_[(steps_ + 1) % 2]; }
  const Edges& border(std::size_t step, std::size_t i, std::size_t j) const noexcept {
    return borders_[step % 2][i + j * rows()];
  }

  template <class Body>
  void for_each_block(const Body& body) const {
    for (std::size_t j = 0; j < cols(); ++j)
      for (std::size_t i = 0; i < rows(); ++i) body(i, j);
  }

  Edges borders_of(std::size_t i, std::size_t j) {
    const DataOptions place = rt_.beside((*grids_[0])(i, j));
    const std::size_t height = grids_[0]->matrix().tile_rows(i), width = grids_[0]->matrix().tile_cols(j);
    return {rt_.vector<R>("top", width, place), rt_.vector<R>("bottom", width, place),
            rt_.vector<R>("left", height, place), rt_.vector<R>("right", height, place)};
  }

  Neighbours neighbours(std::size_t i, std::size_t j) const noexcept {
    return {i > 0, i + 1 < rows(), j > 0, j + 1 < cols()};
  }

  /// The points around block (i, j): the neighbours' borders; where there is no neighbour the block's own, which are
  /// not read.
  struct Around {
    const Border &above, &below, &left, &right;
  };
  Around around(std::size_t i, std::size_t j) const noexcept {
    const Neighbours has = neighbours(i, j);
    const Edges& own = border(steps_, i, j);
    return {has.above ? border(steps_, i - 1, j).bottom : own.top,
            has.below ? border(steps_, i + 1, j).top : own.bottom, has.left ? border(steps_, i, j - 1).right : own.left,
            has.right ? border(steps_, i, j + 1).left : own.right};
  }

  /// Whether another rank waits for the block's borders.
  bool is_sent(std::size_t i, std::size_t j) const noexcept {
    const Distribution& owners = grids_[0]->matrix().distribution();
    if (!owners.several()) return false;
    const Neighbours has = neighbours(i, j);
    const std::uint32_t own = owners.owner(i, j);
    return (has.above && owners.owner(i - 1, j) != own) || (has.below && owners.owner(i + 1, j) != own) ||
           (has.left && owners.owner(i, j - 1) != own) || (has.right && owners.owner(i, j + 1) != own);
  }

  void submit_borders(std::size_t i, std::size_t j) {
    const Around from = around(i, j);
    const Edges& to = border(steps_ + 1, i, j);
    rt_.submit({.priority = is_sent(i, j) ? sent_border_priority : border_priority}, borders_codelet<R>(),
               neighbours(i, j), read(now()(i, j)), read(from.above), read(from.below), read(from.left),
               read(from.right), write(to.top), write(to.bottom), write(to.left), write(to.right));
  }

  void submit_sweep(std::size_t i, std::size_t j) {
    const Around from = around(i, j);
    rt_.submit({.priority = sweep_priority}, sweep_codelet<R>(), neighbours(i, j), read(now()(i, j)), read(from.above),
               read(from.below), read(from.left), read(from.right), write(before()(i, j)));
  }

  Runtime& rt_;
  std::array<TiledData<R>*, 2> grids_;              ///< of even steps, of odd ones
  std::array<std::vector<Edges>, 2> borders_;       ///< likewise; of block (i, j) at i + j rows()
  std::array<std::vector<Data<R>>, 2> changes_;     ///< of even tests, of odd ones
  std::size_t steps_ = 0;                           ///< submitted
  std::size_t looks_ = 0;
};

template <class R>
bool same_places(const TileMatrix<R>& a, const TileMatrix<R>& b) {
  if (a.distribution().several() != b.distribution().several()) return false;
  for (std::size_t j = 0; a.distribution().several() && j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i)
      if (a.distribution().owner(i, j) != b.distribution().owner(i, j)) return false;
  return true;
}

template <class R>
void require_grids(const TiledData<R>& u, const TiledData<R>& work) {
  const TileMatrix<R>&mu = u.matrix(), &mw = work.matrix();
  require(mu.uplo() == Uplo::general && mw.uplo() == Uplo::general, "jacobi: the grids have to store all their tiles");
  require(mu.rows() == mw.rows() && mu.cols() == mw.cols() && mu.tile_size() == mw.tile_size() &&
              mu.tile_height() == mw.tile_height(),
          "jacobi: the shapes of the two grids differ");
  require(same_places(mu, mw), "jacobi: the distributions of the two grids differ");
}

}  // namespace

template <std::floating_point R>
JacobiOutcome jacobi(Runtime& rt, TiledData<R>& u, TiledData<R>& work, const JacobiOptions& options) {
  require_grids(u, work);
  require(options.tolerance >= 0, "jacobi: the tolerance has to be a number that is not negative");
  require(options.interval > 0, "jacobi: there has to be at least one step between two looks at the change");
  JacobiOutcome outcome;
  if (u.row_tiles() == 0 || u.col_tiles() == 0) {
    outcome.converged = options.tolerance > 0;
    return outcome;
  }
  Grid<R> grid(rt, u, work);
  const bool looks = options.tolerance > 0;
  std::size_t submitted = 0, seen = 0;
  const auto look = [&] {
    outcome.change = grid.change(seen++);
    outcome.converged = outcome.converged || (*outcome.change <= options.tolerance && !rt.is_simulated());
  };
  while (grid.steps() < options.steps && !outcome.converged) {
    const std::size_t until = looks ? std::min(options.steps, grid.steps() + options.interval) : options.steps;
    while (grid.steps() < until) grid.submit_step();
    if (!looks) break;
    grid.submit_change();
    // These steps run while the change before them is tested.
    if (++submitted > 1) look();
  }
  if (seen < submitted) look();
  outcome.converged = outcome.converged || (looks && rt.is_simulated());
  grid.submit_result();
  rt.wait();
  outcome.steps = grid.steps();
  return outcome;
}

JacobiModes::JacobiModes(Grid grid, std::size_t steps) {
  constexpr double pi = 3.14159265358979323846;
  struct Mode {
    double a, b;
  };
  constexpr std::array<Mode, 3> modes{{{1, 2}, {5, 3}, {23, 31}}};
  const auto part = [](std::size_t index, std::size_t size) {
    return size > 1 ? static_cast<double>(index) / static_cast<double>(size - 1) : 0;
  };
  auto tables = std::make_shared<Tables>();
  for (std::size_t i = 0; i < grid.rows; ++i) tables->rows.push_back({.at = part(i, grid.rows)});
  for (std::size_t j = 0; j < grid.cols; ++j) tables->cols.push_back({.at = part(j, grid.cols)});
  for (std::size_t mode = 0; mode < modes.size(); ++mode) {
    const auto [a, b] = modes[mode];
    const double factor = (std::cos(a * pi * part(1, grid.rows)) + std::cos(b * pi * part(1, grid.cols))) / 2;
    const double size = std::pow(factor, static_cast<double>(steps)) / 2;
    for (Line& row : tables->rows) row.sines[mode] = size * std::sin(a * pi * row.at);
    for (Line& col : tables->cols) col.sines[mode] = std::sin(b * pi * col.at);
  }
  tables_ = std::move(tables);
}

template <std::floating_point R>
R jacobi_residual(Runtime& rt, const TiledData<R>& u, std::size_t steps, TiledData<R>& work) {
  require_grids(u, work);
  static const Codelet subtract("subtract", [](MatrixView<const R> from, MatrixView<R> to) {
    for (std::size_t j = 0; j < to.cols; ++j)
      for (std::size_t i = 0; i < to.rows; ++i) to(i, j) -= from(i, j);
  });
  submit_generate(rt, JacobiModes({.rows = u.matrix().rows(), .cols = u.matrix().cols()}, steps), work);
  const R size = norm_max(rt, work);
  for (std::size_t j = 0; j < u.col_tiles(); ++j)
    for (std::size_t i = 0; i < u.row_tiles(); ++i) rt.submit(subtract, read(u(i, j)), read_write(work(i, j)));
  return scaled_residual(norm_max(rt, work), size, steps + 1, epsilon<R>);
}

#define INSTANTIATE(R)                                                                              \
  template JacobiOutcome jacobi<R>(Runtime&, TiledData<R>&, TiledData<R>&, const JacobiOptions&);   \
  template R jacobi_residual<R>(Runtime&, const TiledData<R>&, std::size_t, TiledData<R>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace tandem::linalg
