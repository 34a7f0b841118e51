// examples/co2_forecast/gaussian_process.cpp: Algorithm 2.1 of Rasmussen and Williams (2006), line by line, as a flow
// of tasks.
#include "gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "tandem/linalg/flows/cholesky_priorities.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/lacpy.hpp"
#include "tandem/linalg/flows/posv.hpp"
#include "tandem/linalg/flows/potrf.hpp"
#include "tandem/linalg/flows/trsm.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/trsm.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace co2_forecast {

namespace {

namespace kernels = tandem::linalg::kernels;
using tandem::Codelet;
using tandem::MatrixView;
using tandem::read;
using tandem::read_write;
using tandem::Runtime;
using tandem::write;
using tandem::linalg::CholeskyPriorities;
using tandem::linalg::Diag;
using tandem::linalg::Info;
using tandem::linalg::Op;
using tandem::linalg::Side;
using tandem::linalg::TileMatrix;
using tandem::linalg::TileShape;
using tandem::linalg::Uplo;

/// A tiled matrix that the runtime knows. Stays where it is: the data points into the matrix.
struct Tiles {
  Tiles(Runtime& rt, const char* name, TileShape shape) : matrix(shape), data(rt, name, matrix) {}
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  TimeSlice rows_of(std::size_t i, const TimeAxis& times) const {
    return times.slice(i * matrix.tile_size(), matrix.tile_rows(i));
  }
  TimeSlice cols_of(std::size_t j, const TimeAxis& times) const {
    return times.slice(j * matrix.tile_size(), matrix.tile_cols(j));
  }

  TileMatrix<double> matrix;
  tandem::linalg::TiledData<double> data;
};

/// K := k(X, X) + theta11^2 I, the lower triangle. A tile is as urgent as the first task of the factorisation that
/// reads it.
void submit_covariance(Runtime& rt, const Hyperparameters& theta, const TimeAxis& x, Tiles& k) {
  static const Codelet covariance("covariance", [](const Hyperparameters& h, TimeSlice rows, TimeSlice cols,
                                                   bool on_diagonal, MatrixView<double> tile) {
    fill_covariance(h, rows, cols, tile);
    if (on_diagonal) add_white_noise(h, tile);
  });
  const CholeskyPriorities urgent(k.matrix.row_tiles());
  for (std::size_t j = 0; j < k.matrix.col_tiles(); ++j) {
    for (std::size_t i = j; i < k.matrix.row_tiles(); ++i) {
      const int first_use = i == 0   ? urgent.potrf(0)
                            : j == 0 ? urgent.trsm(0, i)
                            : i == j ? urgent.herk(0, i)
                                     : urgent.gemm(0, i, j);
      rt.submit({.priority = first_use + 1}, covariance, theta, k.rows_of(i, x), k.cols_of(j, x), i == j,
                write(k.data(i, j)));
    }
  }
}

/// K* := k(X, X*). White noise is not shared by two measurements, so it is not in it.
void submit_cross_covariance(Runtime& rt, const Hyperparameters& theta, const TimeAxis& x, const TimeAxis& x_star,
                             Tiles& k_star) {
  static const Codelet covariance(
      "cross_covariance", [](const Hyperparameters& h, TimeSlice rows, TimeSlice cols, MatrixView<double> tile) {
        fill_covariance(h, rows, cols, tile);
      });
  for (std::size_t j = 0; j < k_star.matrix.col_tiles(); ++j) {
    for (std::size_t i = 0; i < k_star.matrix.row_tiles(); ++i) {
      rt.submit(covariance, theta, k_star.rows_of(i, x), k_star.cols_of(j, x_star), write(k_star.data(i, j)));
    }
  }
}

/// b := y, tile by tile.
void submit_copy(Runtime& rt, const std::vector<double>& y, Tiles& b) {
  static const Codelet copy(
      "copy", [](const double* from, MatrixView<double> tile) { std::copy_n(from, tile.rows, tile.data); });
  for (std::size_t i = 0; i < b.matrix.row_tiles(); ++i) {
    rt.submit(copy, y.data() + i * b.matrix.tile_size(), write(b.data(i, 0)));
  }
}

/// log p(y | X) = -1/2 y^T alpha - sum_i log L_ii - n/2 log 2 pi. The sum goes from the last tile to the first, as the
/// backward substitution finishes alpha, and always in that order, so that it is the same in each run.
void submit_log_likelihood(Runtime& rt, const std::vector<double>& y, const Tiles& l, const Tiles& alpha,
                           const tandem::Data<double>& log_p) {
  static const Codelet likelihood("log_likelihood", [](const double* y_tile, MatrixView<const double> l_tile,
                                                       MatrixView<const double> alpha_tile, double& sum) {
    for (std::size_t i = 0; i < alpha_tile.rows; ++i) {
      sum -= 0.5 * y_tile[i] * alpha_tile(i, 0) + std::log(l_tile(i, i)) + 0.5 * std::log(2 * std::numbers::pi);
    }
  });
  for (std::size_t i = l.matrix.row_tiles(); i-- > 0;) {
    rt.submit({.priority = 1}, likelihood, y.data() + i * l.matrix.tile_size(), read(l.data(i, i)),
              read(alpha.data(i, 0)), read_write(log_p));
  }
}

/// V(x*) := k(x*, x*) - v^T v for each column v, starting from the variances before anything was measured.
void submit_variance(Runtime& rt, const Tiles& v, Tiles& variance) {
  static const Codelet subtract("variance", [](MatrixView<const double> v_tile, MatrixView<double> variances) {
    for (std::size_t j = 0; j < v_tile.cols; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < v_tile.rows; ++i) sum += v_tile(i, j) * v_tile(i, j);
      variances(j, 0) -= sum;
    }
  });
  for (std::size_t j = 0; j < v.matrix.col_tiles(); ++j) {
    for (std::size_t i = 0; i < v.matrix.row_tiles(); ++i) {
      rt.submit(subtract, read(v.data(i, j)), read_write(variance.data(j, 0)));
    }
  }
}

/// K^-1 = L^T \ (L \ I), the tiles on and below the diagonal. L \ I is lower triangular, and the backward substitution
/// for those tiles needs only tiles below them, so both go without the others: 2/3 n^3 flops instead of the 2 n^3 of
/// two full solves.
void submit_inverse(Runtime& rt, const Tiles& l, Tiles& k_inverse, const Info& info) {
  static const Codelet identity("identity", [](bool on_diagonal, MatrixView<double> tile) {
    for (std::size_t j = 0; j < tile.cols; ++j) {
      std::fill_n(&tile(0, j), tile.rows, 0.0);
      if (on_diagonal) tile(j, j) = 1;
    }
  });
  static const Codelet update("inverse_gemm", [](Op op, MatrixView<const double> l_tile, MatrixView<const double> x,
                                                 MatrixView<double> b, const Info* failed_before) {
    if (!failed_before->failed()) kernels::gemm<double>(op, Op::no_trans, -1, l_tile, x, 1, b);
  });
  static const Codelet solve("inverse_trsm", [](Op op, MatrixView<const double> l_tile, MatrixView<double> b,
                                                const Info* failed_before) {
    if (!failed_before->failed()) kernels::trsm<double>(Side::left, Uplo::lower, op, Diag::non_unit, 1, l_tile, b);
  });
  const std::size_t tiles = k_inverse.matrix.row_tiles();
  const auto& x = k_inverse.data;
  for (std::size_t j = 0; j < tiles; ++j) {
    for (std::size_t i = j; i < tiles; ++i) {  // forward: L W = I
      rt.submit(identity, i == j, write(x(i, j)));
      for (std::size_t k = j; k < i; ++k) {
        rt.submit(update, Op::no_trans, read(l.data(i, k)), read(x(k, j)), read_write(x(i, j)), &info);
      }
      rt.submit(solve, Op::no_trans, read(l.data(i, i)), read_write(x(i, j)), &info);
    }
    for (std::size_t i = tiles; i-- > j;) {  // backward: L^T X = W
      for (std::size_t k = i + 1; k < tiles; ++k) {
        rt.submit(update, Op::trans, read(l.data(k, i)), read(x(k, j)), read_write(x(i, j)), &info);
      }
      rt.submit(solve, Op::trans, read(l.data(i, i)), read_write(x(i, j)), &info);
    }
  }
}

/// d log p / d log theta_p = 1/2 tr((alpha alpha^T - K^-1) dK / d log theta_p), equation 5.9, one sum per row of tiles,
/// so that rows go in parallel and each sum keeps its order. dK is never stored, and neither is its mirrored half.
void submit_gradient(Runtime& rt, const Hyperparameters& theta, const TimeAxis& x, const Tiles& alpha, Tiles& k_inverse,
                     const std::vector<tandem::Data<Gradient>>& row_sums) {
  static const Codelet gradient("gradient", [](const Hyperparameters& h, TimeSlice rows, TimeSlice cols,
                                               bool on_diagonal,
                                               MatrixView<const double> alpha_i, MatrixView<const double> alpha_j,
                                               MatrixView<double> weights, Gradient& sums) {
    for (std::size_t j = 0; j < weights.cols; ++j) {
      for (std::size_t i = 0; i < weights.rows; ++i) weights(i, j) = alpha_i(i, 0) * alpha_j(j, 0) - weights(i, j);
    }
    const double scale = on_diagonal ? 0.5 : 1;  // a tile below the diagonal stands for its mirror image too
    add_weighted_derivatives(h, rows, cols, weights, scale, sums);
    if (on_diagonal) add_weighted_white_derivative(h, weights, scale, sums);
  });
  for (std::size_t j = 0; j < k_inverse.matrix.col_tiles(); ++j) {
    for (std::size_t i = j; i < k_inverse.matrix.row_tiles(); ++i) {
      rt.submit(gradient, theta, k_inverse.rows_of(i, x), k_inverse.cols_of(j, x), i == j, read(alpha.data(i, 0)),
                read(alpha.data(j, 0)), read_write(k_inverse.data(i, j)), read_write(row_sums[i]));
    }
  }
}

}  // namespace

std::optional<Regression> GaussianProcess::regress(const Hyperparameters& theta, const TimeAxis& times) {
  Runtime& rt = runtime_;
  const TimeAxis &x = training_.times, &x_star = times;
  const std::vector<double>& y = training_.residuals_ppm;
  const std::size_t n = x.size(), m = x_star.size();
  Tiles k(rt, "K", {n, n, tile_, Uplo::lower}), alpha(rt, "alpha", {n, 1, tile_});
  double log_p = 0;
  Info info;
  const auto log_p_data = rt.data("log p(y)", log_p);

  submit_covariance(rt, theta, x, k);  // K = k(X, X) + theta11^2 I
  submit_potrf(rt, Uplo::lower, k.data, info);  // L := cholesky(K), in place of K
  submit_copy(rt, y, alpha);
  submit_potrs(rt, Uplo::lower, k.data, alpha.data, &info);  // alpha := L^T \ (L \ y)
  submit_log_likelihood(rt, y, k, alpha, log_p_data);  // log p(y | X)

  Regression result;
  if (m > 0) {
    Tiles k_star(rt, "K*", {n, m, tile_}), v(rt, "v", {n, m, tile_}), mean(rt, "mean", {m, 1, tile_}),
        variance(rt, "variance", {m, 1, tile_});
    const std::vector<double> prior(m, measurement_variance(theta));
    submit_cross_covariance(rt, theta, x, x_star, k_star);  // k* = k(X, x*)
    submit_gemm(rt, Op::trans, Op::no_trans, 1, k_star.data, alpha.data, 0, mean.data);  // mean := k*^T alpha
    submit_lacpy(rt, Uplo::general, k_star.data, v.data);
    submit_trsm(rt, Side::left, Uplo::lower, Op::no_trans, Diag::non_unit, 1, k.data, v.data, &info);  // v := L \ k*
    submit_copy(rt, prior, variance);
    submit_variance(rt, v, variance);  // V := k(x*, x*) - v^T v
    rt.wait();
    result.mean_ppm.resize(m);
    result.deviation_ppm.resize(m);
    mean.matrix.to_lapack({result.mean_ppm.data(), m, 1, m});
    variance.matrix.to_lapack({result.deviation_ppm.data(), m, 1, m});
    for (double& deviation : result.deviation_ppm) deviation = std::sqrt(deviation);
  } else {
    rt.wait();
  }
  if (info.failed()) return std::nullopt;
  result.log_marginal_likelihood = log_p;
  const auto n_flop = static_cast<double>(n), m_flop = static_cast<double>(m);
  result.flop_count = n_flop * n_flop * n_flop / 3 + 2 * n_flop * n_flop + (n_flop * n_flop + 4 * n_flop) * m_flop;
  return result;
}

std::optional<Likelihood> GaussianProcess::likelihood(const Hyperparameters& theta) {
  Runtime& rt = runtime_;
  const TimeAxis& x = training_.times;
  const std::size_t n = x.size();
  Tiles k(rt, "K", {n, n, tile_, Uplo::lower}), alpha(rt, "alpha", {n, 1, tile_});
  Tiles k_inverse(rt, "K^-1", {n, n, tile_, Uplo::lower});
  std::vector<Gradient> row_sums(k.matrix.row_tiles(), Gradient{});
  Likelihood result;
  Info info;
  const auto log_p_data = rt.data("log p(y)", result.log_marginal_likelihood);
  std::vector<tandem::Data<Gradient>> row_sum_data;
  for (Gradient& sum : row_sums) row_sum_data.push_back(rt.data("gradient", sum));

  submit_covariance(rt, theta, x, k);
  submit_potrf(rt, Uplo::lower, k.data, info);
  submit_copy(rt, training_.residuals_ppm, alpha);
  submit_potrs(rt, Uplo::lower, k.data, alpha.data, &info);
  submit_log_likelihood(rt, training_.residuals_ppm, k, alpha, log_p_data);
  submit_inverse(rt, k, k_inverse, info);
  submit_gradient(rt, theta, x, alpha, k_inverse, row_sum_data);
  rt.wait();

  if (info.failed()) return std::nullopt;
  for (const Gradient& sum : row_sums) {
    for (std::size_t p = 0; p < hyperparameter_count; ++p) result.gradient[p] += sum[p];
  }
  return result;
}

}  // namespace co2_forecast
