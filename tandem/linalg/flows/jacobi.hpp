// tandem/linalg/flows/jacobi.hpp: Jacobi steps of the 5-point stencil on a grid in blocks; only borders are sent.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// When `jacobi` ends.
struct JacobiOptions {
  std::size_t steps = 100;    ///< at most
  double tolerance = 0;       ///< ends when no point changes by more than this in a step; 0: no test
  std::size_t interval = 10;  ///< steps between two tests, at least 1
};

/// How `jacobi` ended.
struct JacobiOutcome {
  std::size_t steps = 0;          ///< done
  std::optional<double> change;   ///< the largest of a point in the last step that was tested
  bool converged = false;         ///< that change was within the tolerance, which is above 0
};

/// Jacobi's iteration for Laplace's equation on a grid of rows x cols points: in each step every inner point becomes
/// the mean of its four neighbours; points at the edges keep their values. Submits and waits; the result is in `u`, and
/// `work`, of the same shape and distribution, is overwritten. R is float or double. The bits are those of a sequential
/// sweep in kernels::jacobi's order, for all tilings, workers and ranks.
///
/// The four borders of each block are vectors of their own, twice, so that blocks are never sent: at most 2 (rows +
/// cols) numbers per block and step are. Each step has two tasks per block: its new borders, with a high priority,
/// since the neighbours' next step needs them, and the block itself. The test runs while the next `interval` steps go
/// on, so up to that many steps are done too many; their number is the same on all ranks. Any size is allowed, also 0
/// and sizes that the tile does not divide.
///
/// UsageError: a matrix without all its tiles, shapes or distributions that differ, a tolerance that is negative or not
/// a number, an interval of 0.
template <std::floating_point R>
JacobiOutcome jacobi(Runtime& rt, TiledData<R>& u, TiledData<R>& work, const JacobiOptions& options = {});

/// A grid whose Jacobi steps are known; generates its state after `steps` steps: x y - x / 2, which a step does not
/// change, and sin(a pi x) sin(b pi y) / 2 for some whole a and b, which a step multiplies by (cos(a pi / (rows - 1)) +
/// cos(b pi / (cols
/// - 1))) / 2; with x = i / (rows - 1) and y = j / (cols - 1). Immutable; copies share tables of rows + cols sines.
class JacobiModes {
 public:
  /// Points of the grid.
  struct Grid {
    std::size_t rows = 0;  ///< at least 2
    std::size_t cols = 0;  ///< at least 2
  };
  /// The grid after `steps` steps.
  JacobiModes(Grid grid, std::size_t steps);

  /// The value of point (i, j).
  template <Scalar T>
    requires(!is_complex<T>)
  T element(std::size_t i, std::size_t j) const noexcept {
    const Line &row = tables_->rows[i], &col = tables_->cols[j];
    double value = row.at * col.at - row.at / 2;
    for (std::size_t mode = 0; mode < row.sines.size(); ++mode) value += row.sines[mode] * col.sines[mode];
    return static_cast<T>(value);
  }

 private:
  struct Line {
    double at = 0;                    ///< x or y
    std::array<double, 3> sines = {};  ///< of each mode, those of rows times its factor
  };
  struct Tables {
    std::vector<Line> rows, cols;
  };
  std::shared_ptr<const Tables> tables_;
};

/// max |u - exact| / ((steps + 1) max |exact| eps) after `steps` steps from JacobiModes in u: below 30 if correct.
/// Submits and waits; `work`, of u's shape, is overwritten.
template <std::floating_point R>
R jacobi_residual(Runtime& rt, const TiledData<R>& u, std::size_t steps, TiledData<R>& work);

}  // namespace tandem::linalg
