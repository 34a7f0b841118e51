// tandem/linalg/flows/cg.cpp: an iteration as tasks; products and sums as trees; scalars as data that one rank computes
// for all.
#include "tandem/linalg/flows/cg.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/combine_tree.hpp"
#include "tandem/linalg/flows/hemm.hpp"
#include "tandem/linalg/flows/norms.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemv.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

/// The state of the iteration: data on the rank of x's first block, and a copy per iteration that every rank reads.
struct State {
  double rho = 0;    ///< r^H r
  double beta = 0;   ///< of the next p
  double limit = 0;  ///< converged when rho is not above
  double norm = 0;   ///< ||b||
  std::uint64_t iterations = 0;
  std::uint64_t info = 0;
  std::uint64_t converged = 0;
  std::uint64_t stopped = 0;
};

/// The step along p.
struct Advance {
  double alpha = 0;
  std::uint64_t info = 0;
  std::uint64_t stopped = 0;
};

// Tasks that others wait for come first: the scalars, for which all ranks wait, then r, then x, which only the next p
// needs.
constexpr int product_priority = 0, x_priority = 1, sum_priority = 2, vector_priority = 3, scalar_priority = 4;

/// Number of iterations that are submitted before the end of one is tested.
constexpr std::size_t ahead = 2;

void converge(State& state) noexcept {
  if (state.rho <= state.limit) state.converged = state.stopped = 1;
}

const auto& reset_codelet() {
  static const Codelet codelet("reset", [](State& state) { state = State{}; });
  return codelet;
}

const auto& begin_codelet() {
  static const Codelet codelet("begin", [](double tolerance, const double& rho, const double& squares, State& state,
                                           State& seen) {
    state.rho = rho;
    state.norm = std::sqrt(squares);
    state.limit = tolerance * tolerance * squares;
    converge(state);
    seen = state;
  });
  return codelet;
}

const auto& advance_codelet() {
  static const Codelet codelet("advance", [](const double& sigma, const State& state, Advance& advance) {
    advance = {.stopped = state.stopped};
    if (state.stopped != 0) return;
    advance.alpha = state.rho / sigma;
    if (!(sigma > 0) || !std::isfinite(sigma) || !std::isfinite(advance.alpha)) {
      advance.info = state.iterations + 1;
      advance.stopped = 1;
    }
  });
  return codelet;
}

const auto& turn_codelet() {
  static const Codelet codelet("turn", [](const double& rho, const Advance& advance, State& state, State& seen) {
    if (state.stopped == 0 && advance.stopped != 0) {
      state.info = advance.info;
      state.stopped = 1;
    } else if (state.stopped == 0) {
      state.beta = rho / state.rho;
      state.rho = rho;
      ++state.iterations;
      converge(state);
    }
    seen = state;
  });
  return codelet;
}

const auto& add_number_codelet() {
  static const Codelet codelet("add", [](const double& from, double& to) { to += from; });
  return codelet;
}

template <Scalar T>
using In = std::span<const T>;
template <Scalar T>
using Out = std::span<T>;

/// A block of a vector in a matrix of one column.
template <class T>
std::span<T> column(MatrixView<T> tile) noexcept {
  return {tile.data, tile.rows};
}

template <Scalar T>
const auto& add_codelet() {
  static const Codelet codelet("add", [](In<T> from, Out<T> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  });
  return codelet;
}

/// y := A(i,i) p(i)
template <Scalar T>
const auto& diagonal_product_codelet() {
  static const Codelet codelet("hemv", [](Uplo uplo, const State& state, MatrixView<const T> a, In<T> p, Out<T> y) {
    if (state.stopped == 0) kernels::hemv(uplo, a, p, y);
  });
  return codelet;
}

/// y := op(A) p and z := op(A)^H r: one stored tile gives two products.
template <Scalar T>
const auto& product_codelet() {
  static const Codelet codelet("gemv", [](Op op, const State& state, MatrixView<const T> a, In<T> p, Out<T> y, In<T> r,
                                          Out<T> z) {
    if (state.stopped != 0) return;
    kernels::gemv(op, a, p, y);
    kernels::gemv(op == Op::no_trans ? Op::conj_trans : Op::no_trans, a, r, z);
  });
  return codelet;
}

template <Scalar T>
const auto& guess_codelet() {
  static const Codelet codelet("guess", [](MatrixView<const T> x, Out<T> p) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = x(i, 0);
  });
  return codelet;
}

/// r := p := b - q, and the squares of b and r
template <Scalar T>
const auto& residual_codelet() {
  static const Codelet codelet("residual", [](MatrixView<const T> b, In<T> q, Out<T> r, Out<T> p, double& of_b,
                                              double& of_r) {
    for (std::size_t i = 0; i < r.size(); ++i) p[i] = r[i] = b(i, 0) - q[i];
    of_b = kernels::real_dot(column(b), column(b));
    of_r = kernels::real_dot(In<T>(r), r);
  });
  return codelet;
}

template <Scalar T>
const auto& dot_codelet() {
  static const Codelet codelet("dot", [](const State& state, In<T> p, In<T> q, double& sigma) {
    sigma = state.stopped == 0 ? kernels::real_dot(p, q) : 0;
  });
  return codelet;
}

template <Scalar T>
void axpy(double alpha, std::span<const T> x, std::span<T> y) noexcept {
  const auto factor = static_cast<Real<T>>(alpha);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

/// r := r - alpha q, and its square
template <Scalar T>
const auto& advance_r_codelet() {
  static const Codelet codelet("advance r", [](const Advance& advance, In<T> q, Out<T> r, double& square) {
    if (advance.stopped == 0) axpy(-advance.alpha, q, r);
    square = kernels::real_dot(In<T>(r), r);
  });
  return codelet;
}

/// x := x + alpha p
template <Scalar T>
const auto& advance_x_codelet() {
  static const Codelet codelet("advance x", [](const Advance& advance, In<T> p, MatrixView<T> x) {
    if (advance.stopped == 0) axpy(advance.alpha, p, column(x));
  });
  return codelet;
}

/// p := r + beta p
template <Scalar T>
const auto& turn_p_codelet() {
  static const Codelet codelet("turn p", [](const State& state, In<T> r, Out<T> p) {
    if (state.stopped != 0) return;
    const auto beta = static_cast<Real<T>>(state.beta);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + beta * p[i];
  });
  return codelet;
}

/// The data of a solution, and the tasks of its iterations.
template <Scalar T>
class Solution {
 public:
  Solution(Runtime& rt, Uplo uplo, const TiledData<T>& a, TiledData<T>& x) : rt_(rt), uplo_(uplo), a_(a), x_(x) {
    for (std::size_t i = 0; i < tiles(); ++i) {
      const std::size_t rows = a.matrix().tile_rows(i);
      const DataOptions place = rt.beside(x(i, 0));
      p_.push_back(rt.vector<T>("p", rows, place));
      r_.push_back(rt.vector<T>("r", rows, place));
      sigma_.push_back(rt.scalar<double>("p^H A p", place));
      rho_.push_back(rt.scalar<double>("r^H r", place));
      for (std::size_t j = 0; j < tiles(); ++j)
        parts_.push_back(rt.vector<T>("part of A p", rows, rt.beside(tile(i, j))));
    }
    const DataOptions place = rt.beside(x(0, 0));
    state_ = rt.scalar<State>("state", place);
    advance_ = rt.scalar<Advance>("advance", place);
    for (auto& seen : seen_) seen = rt.scalar<State>("state of an iteration", place);
  }

  void submit_begin(const TiledData<T>& b, double tolerance) {
    rt_.submit(reset_codelet(), write(state_));
    for (std::size_t i = 0; i < tiles(); ++i) rt_.submit(guess_codelet<T>(), read(x_(i, 0)), write(p_[i]));
    submit_product();
    // sigma: here the squares of b
    for (std::size_t i = 0; i < tiles(); ++i)
      rt_.submit({.priority = vector_priority}, residual_codelet<T>(), read(b(i, 0)), read(q(i)), write(r_[i]),
                 write(p_[i]), write(sigma_[i]), write(rho_[i]));
    submit_sum(sigma_);
    submit_sum(rho_);
    rt_.submit({.priority = scalar_priority}, begin_codelet(), tolerance, read(rho_[0]), read(sigma_[0]),
               read_write(state_), write(seen_[0]));
  }

  /// Iteration k = 1, 2, ....
  void submit_iteration(std::size_t k) {
    const auto iteration = rt_.iteration(k);
    submit_product();
    for (std::size_t i = 0; i < tiles(); ++i)
      rt_.submit({.priority = vector_priority}, dot_codelet<T>(), read(state_), read(p_[i]), read(q(i)),
                 write(sigma_[i]));
    submit_sum(sigma_);
    rt_.submit({.priority = scalar_priority}, advance_codelet(), read(sigma_[0]), read(state_), write(advance_));
    for (std::size_t i = 0; i < tiles(); ++i)
      rt_.submit({.priority = vector_priority}, advance_r_codelet<T>(), read(advance_), read(q(i)), read_write(r_[i]),
                 write(rho_[i]));
    for (std::size_t i = 0; i < tiles(); ++i)
      rt_.submit({.priority = x_priority}, advance_x_codelet<T>(), read(advance_), read(p_[i]), read_write(x_(i, 0)));
    submit_sum(rho_);
    rt_.submit({.priority = scalar_priority}, turn_codelet(), read(rho_[0]), read(advance_), read_write(state_),
               write(seen(k)));
    for (std::size_t i = 0; i < tiles(); ++i)
      rt_.submit({.priority = vector_priority}, turn_p_codelet<T>(), read(state_), read(r_[i]), read_write(p_[i]));
  }

  /// The state after iteration k, one of the last ahead + 1 that were submitted; on every rank. Waits for it.
  State state(std::size_t k) { return *rt_.acquire(read(seen(k))); }

 private:
  using Block = Data<Vector<T>>;

  std::size_t tiles() const noexcept { return a_.row_tiles(); }
  /// The stored tile of (i, j) and (j, i).
  const Data<Matrix<T>>& tile(std::size_t i, std::size_t j) const noexcept {
    return (i > j) == (uplo_ == Uplo::lower) ? a_(i, j) : a_(j, i);
  }
  /// A(i,j) p(j), beside the stored tile.
  const Block& part(std::size_t i, std::size_t j) const noexcept { return parts_[i * tiles() + j]; }
  /// Block i of A p, once its parts are summed up.
  const Block& q(std::size_t i) const noexcept { return part(i, 0); }
  const Data<State>& seen(std::size_t k) const noexcept { return seen_[k % seen_.size()]; }

  /// q := A p
  void submit_product() {
    const Op op = uplo_ == Uplo::lower ? Op::no_trans : Op::conj_trans;
    for (std::size_t j = 0; j < tiles(); ++j) {
      rt_.submit({.priority = product_priority}, diagonal_product_codelet<T>(), uplo_, read(state_), read(a_(j, j)),
                 read(p_[j]), write(part(j, j)));
      for (std::size_t i = j + 1; i < tiles(); ++i)
        rt_.submit({.priority = product_priority}, product_codelet<T>(), op, read(state_), read(tile(i, j)),
                   read(p_[j]), write(part(i, j)), read(p_[i]), write(part(j, i)));
    }
    for (std::size_t i = 0; i < tiles(); ++i)
      submit_combine_tree(rt_, {.priority = sum_priority}, tiles(),
                          [&](std::size_t j) -> const Block& { return part(i, j); }, add_codelet<T>());
  }

  /// numbers[0] := their sum
  void submit_sum(const std::vector<Data<double>>& numbers) {
    submit_combine_tree(rt_, {.priority = scalar_priority}, tiles(),
                        [&](std::size_t i) -> const Data<double>& { return numbers[i]; }, add_number_codelet());
  }

  Runtime& rt_;
  Uplo uplo_;
  const TiledData<T>& a_;
  TiledData<T>& x_;
  std::vector<Block> p_, r_, parts_;
  std::vector<Data<double>> sigma_, rho_;  ///< of blocks, and in the first one of all
  Data<State> state_;
  Data<Advance> advance_;
  std::array<Data<State>, ahead + 1> seen_;
};

template <Scalar T>
void require_vectors(const TiledData<T>& a, Uplo uplo, const TiledData<T>& b, const TiledData<T>& x) {
  const TileMatrix<T>& ma = a.matrix();
  require(has_triangle(a, uplo), "cg: A has to be square and store its triangle");
  for (const TiledData<T>* vector : {&b, &x}) {
    const TileMatrix<T>& m = vector->matrix();
    require(is_general(*vector), "cg: B and X have to store all their tiles");
    require(m.rows() == ma.rows() && m.cols() == 1, "cg: B and X have to be single columns with A's rows");
    require(m.tile_size() == ma.tile_size(), "cg: the tile sizes of A, B and X differ");
  }
}

}  // namespace

template <Scalar T>
CgOutcome cg(Runtime& rt, Uplo uplo, const TiledData<T>& a, const TiledData<T>& b, TiledData<T>& x,
             const CgOptions& options) {
  require_vectors(a, uplo, b, x);
  const double tolerance = options.tolerance.value_or(10 * static_cast<double>(epsilon<T>));
  require(tolerance >= 0, "cg: the tolerance has to be a number that is not negative");
  if (a.matrix().rows() == 0) return {.converged = true};
  const std::size_t most = options.iterations.value_or(a.matrix().rows());
  Solution<T> solution(rt, uplo, a, x);
  solution.submit_begin(b, tolerance);
  std::size_t submitted = 0;
  while (submitted < most) {
    const bool has_stopped = submitted >= ahead && solution.state(submitted - ahead).stopped != 0;
    if (has_stopped && !rt.is_simulated()) break;  // a simulated state has no values
    solution.submit_iteration(++submitted);
  }
  const State end = solution.state(submitted);
  rt.wait();
  if (rt.is_simulated()) return {.iterations = submitted, .converged = true};
  const double size = std::sqrt(end.rho);
  return {.iterations = end.iterations,
          .residual = end.norm > 0 ? size / end.norm : size,
          .converged = end.converged != 0,
          .info = end.info};
}

template <Scalar T>
Real<T> cg_residual(Runtime& rt, Uplo uplo, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b,
                    double reached) {
  require_vectors(a, uplo, b, x);
  const Real<T> of_b = norm_one(rt, b), of_product = norm_one_hermitian(rt, uplo, a) * norm_one(rt, x);
  submit_hemm(rt, uplo, T(-1), a, x, T(1), b);  // B := B - A X
  const Real<T> size = static_cast<Real<T>>(reached) / epsilon<T> * of_b + of_product;
  return scaled_residual(norm_one(rt, b), size, a.matrix().rows(), epsilon<T>);
}

#define INSTANTIATE(T)                                                                                                 \
  template CgOutcome cg<T>(Runtime&, Uplo, const TiledData<T>&, const TiledData<T>&, TiledData<T>&, const CgOptions&); \
  template Real<T> cg_residual<T>(Runtime&, Uplo, const TiledData<T>&, const TiledData<T>&, TiledData<T>&, double);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
