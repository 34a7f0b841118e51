// tandem/linalg/flows/trsm.cpp: substitution by tiles: solve one tile row (or column) of B, then subtract it from the
// remaining ones.
#include "tandem/linalg/flows/trsm.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

/// What does not change during one solve.
template <Scalar T>
struct Solve {
  Side side;
  Uplo uplo;
  Op op;
  Diag diag;
  const TiledData<T>& a;
  TiledData<T>& b;
  const Info* after;

  /// Data of op(A)(i, k), as stored.
  const Data<Matrix<T>>& a_tile(std::size_t i, std::size_t k) const { return op == Op::no_trans ? a(i, k) : a(k, i); }
  bool op_is_lower() const { return (uplo == Uplo::lower) == (op == Op::no_trans); }
  /// Unknown 0 comes first: op(A) X = B goes down a lower triangle, X op(A) = B goes right along an upper one.
  bool forward() const { return op_is_lower() == (side == Side::left); }
};

// The longest path from step s of n goes through a solve (3) and an update (6) per step, in units of nb^3 / 3
// operations.
int solve_level(std::size_t step, std::size_t steps) { return 9 * static_cast<int>(steps - 1 - step) + 3; }
int update_level(std::size_t step, std::size_t target, std::size_t steps) {
  return 6 * static_cast<int>(target - step) + solve_level(target, steps);
}

/// Steps k = 0, 1, ... in the order of elimination; `at(k)` is the unknown of step k. All ranks submit the solves,
/// which write each tile last, and each rank the updates that use one of its tiles.
template <Scalar T>
void submit_left(Runtime& rt, const Solve<T>& s, T alpha) {
  const std::size_t steps = s.b.row_tiles();
  const OwnTiles own_a(rt, s.a, OwnTiles::Use::read), own_b(rt, s.b, OwnTiles::Use::written);
  const bool all = own_a.everything() || own_b.everything();
  const auto at = [&](std::size_t step) { return s.forward() ? step : steps - 1 - step; };
  for (std::size_t step = 0; step < steps; ++step) {
    const auto iteration = rt.iteration(step);
    const std::size_t k = at(step);
    const T once = step == 0 ? alpha : T(1);
    for (std::size_t j = 0; j < s.b.col_tiles(); ++j) {
      // op(A)(k,k) X(k,j) = B(k,j)
      rt.submit({.priority = solve_level(step, steps)}, trsm_codelet<T>(), s.side, s.uplo, s.op, s.diag, once,
                read(s.a(k, k)), read_write(s.b(k, j)), s.after);
    }
    for (std::size_t later = step + 1; later < steps; ++later) {
      const std::size_t i = at(later);
      const bool sees_all = all || (s.op == Op::no_trans ? own_a.has(i, k) : own_a.has(k, i));
      const TaskIndices updates = sees_all ? TaskIndices::all() : TaskIndices{own_b.row(i), own_b.row(k)};
      for_tasks_of(rt, 0, s.b.col_tiles(), updates, [&](std::size_t j) {
        // B(i,j) := B(i,j) - op(A)(i,k) X(k,j)
        rt.submit({.priority = update_level(step, later, steps)}, gemm_codelet<T>(), s.op, Op::no_trans, T(-1),
                  read(s.a_tile(i, k)), read(s.b(k, j)), once, read_write(s.b(i, j)), s.after);
      });
    }
  }
}

template <Scalar T>
void submit_right(Runtime& rt, const Solve<T>& s, T alpha) {
  const std::size_t steps = s.b.col_tiles();
  const OwnTiles own_a(rt, s.a, OwnTiles::Use::read), own_b(rt, s.b, OwnTiles::Use::written);
  const bool all = own_a.everything() || own_b.everything();
  const auto at = [&](std::size_t step) { return s.forward() ? step : steps - 1 - step; };
  for (std::size_t step = 0; step < steps; ++step) {
    const auto iteration = rt.iteration(step);
    const std::size_t k = at(step);
    const T once = step == 0 ? alpha : T(1);
    for (std::size_t i = 0; i < s.b.row_tiles(); ++i) {
      // X(i,k) op(A)(k,k) = B(i,k)
      rt.submit({.priority = solve_level(step, steps)}, trsm_codelet<T>(), s.side, s.uplo, s.op, s.diag, once,
                read(s.a(k, k)), read_write(s.b(i, k)), s.after);
    }
    for (std::size_t later = step + 1; later < steps; ++later) {
      const std::size_t j = at(later);
      const bool sees_all = all || (s.op == Op::no_trans ? own_a.has(k, j) : own_a.has(j, k));
      const TaskIndices updates = sees_all ? TaskIndices::all() : TaskIndices{own_b.col(j), own_b.col(k)};
      for_tasks_of(rt, 0, s.b.row_tiles(), updates, [&](std::size_t i) {
        // B(i,j) := B(i,j) - X(i,k) op(A)(k,j)
        rt.submit({.priority = update_level(step, later, steps)}, gemm_codelet<T>(), Op::no_trans, s.op, T(-1),
                  read(s.b(i, k)), read(s.a_tile(k, j)), once, read_write(s.b(i, j)), s.after);
      });
    }
  }
}

}  // namespace

template <Scalar T>
void submit_trsm(Runtime& rt, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha,
                 const TiledData<T>& a, TiledData<T>& b, const Info* after) {
  require(has_triangle(a, uplo), "trsm: A has to be square and store its triangle");
  require(is_general(b), "trsm: B has to store all its tiles");
  require(a.matrix().tile_size() == b.matrix().tile_size(), "trsm: the tile sizes differ");
  require(a.matrix().rows() == (side == Side::left ? b.matrix().rows() : b.matrix().cols()),
          "trsm: the dimensions of A and B do not fit");
  const Solve<T> solve{side, uplo, op, diag, a, b, after};
  if (side == Side::left) {
    submit_left(rt, solve, alpha);
  } else {
    submit_right(rt, solve, alpha);
  }
}

#define INSTANTIATE(T) \
  template void submit_trsm<T>(Runtime&, Side, Uplo, Op, Diag, T, const TiledData<T>&, TiledData<T>&, const Info*);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
