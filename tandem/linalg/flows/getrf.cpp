// tandem/linalg/flows/getrf.cpp: for each panel a tournament chooses the pivot rows, and tasks exchange them to the
// top; the rest is LU without pivoting.
#include "tandem/linalg/flows/getrf.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/laswp.hpp"
#include "tandem/linalg/flows/lu_codelets.hpp"
#include "tandem/linalg/flows/lu_priorities.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

template <Scalar T>
class Factorisation {
 public:
  Factorisation(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, Info* info)
      : rt_(rt), a_(a), pivots_(pivots), info_(info), level_({.rows = a.row_tiles(), .cols = a.col_tiles()}) {
    const std::size_t nb = a.matrix().tile_size();
    match_values_ = rt.matrix<T>("tournament", 2 * nb + match_padding, nb);
    match_numbers_ = rt.vector<std::size_t>("tournament", 3 * nb);
  }

  void submit() {
    for (std::size_t k = 0; k < pivots_.panels(); ++k) {
      const auto iteration = rt_.iteration(k);
      submit_tournament(k);
      submit_exchanges(k);
      submit_panel(k);
      submit_rest(k);
    }
  }

 private:
  struct Winners {
    Data<Matrix<T>> values;
    Data<Vector<std::size_t>> rows;
  };

  std::size_t row_tiles() const { return a_.row_tiles(); }
  std::size_t col_tiles() const { return a_.col_tiles(); }

  /// The pivot rows of panel k: matches of neighbouring tiles, then of their winners, until one set of winners is left.
  void submit_tournament(std::size_t k) {
    std::vector<Winners> winners;
    for (std::size_t i = k; i < row_tiles(); i += 2) winners.push_back(submit_first_match(k, i));
    for (std::size_t distance = 1; distance < winners.size(); distance *= 2) {
      const int priority = level_.match(k, 1 + played(distance));
      for (std::size_t i = 0; i + distance < winners.size(); i += 2 * distance) {
        const Winners &a = winners[i], &b = winners[i + distance];
        rt_.submit({.priority = priority}, match_codelet<T>(), read_write(a.values), read_write(a.rows), read(b.values),
                   read(b.rows), scratch(match_values_), scratch(match_numbers_), info_);
      }
    }
    rt_.submit({.priority = level_.getrf(k)}, pivots_codelet(), read(winners[0].rows), write(pivots_.interchanges(k)),
               write(pivots_.exchanges(k)));
  }

  Winners submit_first_match(std::size_t k, std::size_t i) {
    const TileMatrix<T>& m = a_.matrix();
    const bool lone = i + 1 == row_tiles();
    const std::size_t candidates = m.tile_rows(i) + (lone ? 0 : m.tile_rows(i + 1));
    const std::size_t count = std::min(candidates, pivots_.interchanges(k).rows());
    const std::size_t first = (i - k) * m.tile_size();
    const Winners winners{rt_.matrix<T>("pivot rows", count, m.tile_cols(k), rt_.beside(a_(i, k))),
                          rt_.vector<std::size_t>("pivot rows", count, rt_.beside(a_(i, k)))};
    const TaskOptions options{.priority = level_.match(k, 0)};
    if (lone)
      rt_.submit(options, lone_match_codelet<T>(), first, read(a_(i, k)), write(winners.values), write(winners.rows),
                 scratch(match_values_), scratch(match_numbers_), info_);
    else
      rt_.submit(options, first_match_codelet<T>(), first, read(a_(i, k)), read(a_(i + 1, k)), write(winners.values),
                 write(winners.rows), scratch(match_values_), scratch(match_numbers_), info_);
    return winners;
  }

  /// A := P A. Columns that other tasks wait for come first, finished columns of L last.
  void submit_exchanges(std::size_t k) {
    const auto in_column = [&](std::size_t j) {
      submit_interchanges(rt_, pivots_, {.panel = k, .column = j, .priority = level_.exchange(k, j)}, a_, info_);
    };
    for (std::size_t j = k; j < col_tiles(); ++j) in_column(j);
    for (std::size_t j = 0; j < k; ++j) in_column(j);
  }

  void submit_panel(std::size_t k) {
    // A(k,k) = L(k,k) U(k,k): its rows are in the order in which the tournament eliminated them.
    rt_.submit({.priority = level_.getrf(k)}, getrf_nopiv_codelet<T>(), k * a_.matrix().tile_size(),
               read_write(a_(k, k)), info_);
    for (std::size_t i = k + 1; i < row_tiles(); ++i) {
      // L(i,k) := A(i,k) U(k,k)^-1
      rt_.submit({.priority = level_.column(k)}, trsm_codelet<T>(), Side::right, Uplo::upper, Op::no_trans,
                 Diag::non_unit, T(1), read(a_(k, k)), read_write(a_(i, k)), info_);
    }
  }

  void submit_rest(std::size_t k) {
    for (std::size_t j = k + 1; j < col_tiles(); ++j) {
      // U(k,j) := L(k,k)^-1 A(k,j)
      rt_.submit({.priority = level_.row(k, j)}, trsm_codelet<T>(), Side::left, Uplo::lower, Op::no_trans, Diag::unit,
                 T(1), read(a_(k, k)), read_write(a_(k, j)), info_);
      for (std::size_t i = k + 1; i < row_tiles(); ++i) {
        // A(i,j) := A(i,j) - L(i,k) U(k,j)
        rt_.submit({.priority = level_.gemm(k, j)}, gemm_codelet<T>(), Op::no_trans, Op::no_trans, T(-1),
                   read(a_(i, k)), read(a_(k, j)), T(1), read_write(a_(i, j)), info_);
      }
    }
  }

  /// Rounds between winners before the one of that distance.
  static std::size_t played(std::size_t distance) { return static_cast<std::size_t>(std::countr_zero(distance)); }

  Runtime& rt_;
  TiledData<T>& a_;
  TiledPivots& pivots_;
  Info* info_;
  TournamentPriorities level_;
  Data<Matrix<T>> match_values_;  ///< never has a value: the shapes of the scratch memory of matches
  Data<Vector<std::size_t>> match_numbers_;
};

}  // namespace

template <Scalar T>
void submit_getrf(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, Info& info) {
  const TileMatrix<T>& m = a.matrix();
  require(is_general(a), "getrf: the matrix has to store all its tiles");
  require(pivots.shape().rows == m.rows() && pivots.shape().cols == m.cols() && pivots.shape().tile == m.tile_size(),
          "getrf: the pivots are for a matrix of another shape");
  rt.agree_on_least(info.word());
  Factorisation<T>(rt, a, pivots, &info).submit();
}

template <Scalar T>
std::size_t getrf(Runtime& rt, TiledData<T>& a, TiledPivots& pivots) {
  Info info;
  submit_getrf(rt, a, pivots, info);
  rt.wait();
  return info.value();
}

#define INSTANTIATE(T)                                                           \
  template void submit_getrf<T>(Runtime&, TiledData<T>&, TiledPivots&, Info&);   \
  template std::size_t getrf<T>(Runtime&, TiledData<T>&, TiledPivots&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
