// tools/linalg/job.cpp: the operations of `tandem linalg`: generate or read, run, check.
#include "tools/linalg/job.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "tandem/base/config.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/linalg.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::tools {
namespace {

using namespace linalg;
using base::Error;
using base::ErrorCode;
using base::Result;

/// A tiled matrix and its data.
template <Scalar T>
struct Tiled {
  Tiled(Runtime& rt, const char* name, TileShape shape) : matrix(where_it_fits(rt, shape)), data(rt, name, matrix) {}
  /// Tiles belong to the runtime where main memory has a limit, and in a simulation, where nobody touches their memory.
  static TileShape where_it_fits(Runtime& rt, TileShape shape) {
    shape.in_runtime = rt.config().get_bytes("memory") != 0 || rt.is_simulated();
    return shape;
  }
  TileMatrix<T> matrix;
  TiledData<T> data;
};

/// A matrix in LAPACK's layout that is read element by element, as generators are. Outlives the tasks.
template <Scalar T>
struct Elements {
  const DenseMatrix<T>* dense;

  template <Scalar U>
    requires std::same_as<T, U>
  U element(std::size_t i, std::size_t j) const noexcept {
    return dense->view()(i, j);
  }
};

/// Real operations of a multiplication and an addition in T, relative to those in a real type.
template <Scalar T>
constexpr double complex_factor = is_complex<T> ? 4 : 1;

/// A random symmetric positive definite matrix whose eigenvalues differ by a factor of about ten (generators.hpp has
/// the edge), so that conjugate gradients need several steps.
double little_dominance(std::size_t n) { return 2.5 / std::sqrt(3 * static_cast<double>(n)); }

template <Scalar T>
Result<void> require_square(const DenseMatrix<T>& dense, const std::string& name) {
  if (dense.rows != dense.cols)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: the matrix is {} x {}, not square", name, dense.rows, dense.cols)};
  return {};
}

/// A must be Hermitian within the rounding of its decimal digits.
template <Scalar T>
Result<void> require_hermitian(const DenseMatrix<T>& dense, const std::string& name) {
  if (Result<void> square = require_square(dense, name); !square) return square;
  const auto a = dense.view();
  Real<T> largest = 0;
  for (const T& value : dense.values) largest = std::max<Real<T>>(largest, std::abs(value));
  for (std::size_t j = 0; j < dense.cols; ++j)
    for (std::size_t i = j; i < dense.rows; ++i)
      if (std::abs(a(i, j) - conj(a(j, i))) > Real<T>(1e-5) * largest)
        return Error{ErrorCode::invalid_argument,
                     fmt::format("{}: the matrix is not {}: elements ({}, {}) and ({}, {}) differ", name,
                                 is_complex<T> ? "Hermitian" : "symmetric", i + 1, j + 1, j + 1, i + 1)};
  return {};
}

template <Scalar T>
Result<DenseMatrix<T>> read_dense(const std::string& path) {
  const auto file = read_matrix_market(path);
  if (!file) return file.error();
  return to_dense<T>(file.value());
}

template <Scalar T>
class Runner {
 public:
  Runner(Runtime& rt, const LinalgJob& job) : rt_(rt), job_(job) {}

  Result<LinalgOutcome> run() {
    if (Result<void> read = read_files(); !read) return read.error();
    outcome_.n = job_.n;
    outcome_.m = job_.rows();
    switch (job_.op) {
      case LinalgOp::potrf: return run_potrf();
      case LinalgOp::potrs:
      case LinalgOp::posv: return run_solve();
      case LinalgOp::gemm: return run_gemm();
      case LinalgOp::trsm: return run_trsm();
      case LinalgOp::syrk:
      case LinalgOp::herk: return run_rank_update();
      case LinalgOp::lacpy: return run_lacpy();
      case LinalgOp::getrf: return run_getrf();
      case LinalgOp::gesv: return run_gesv();
      case LinalgOp::geqrf: return run_geqrf();
      case LinalgOp::gels: return run_gels();
      case LinalgOp::cg: return run_cg();
      case LinalgOp::stencil: return run_stencil();
      case LinalgOp::copy: return run_copy();
    }
    return std::move(outcome_);
  }

 private:
  using R = Real<T>;

  // --- inputs

  Result<void> read_files() {
    if (!job_.matrix_file.empty()) {
      auto matrix = read_dense<T>(job_.matrix_file);
      if (!matrix) return matrix.error();
      a_file_ = std::move(matrix).value();
      const bool general = job_.op == LinalgOp::getrf || job_.op == LinalgOp::gesv;
      const std::string& name = job_.matrix_file;
      const Result<void> fit = general ? require_square(*a_file_, name) : require_hermitian(*a_file_, name);
      if (!fit) return fit;
      job_.n = a_file_->rows;
    }
    if (!job_.rhs_file.empty()) {
      auto rhs = read_dense<T>(job_.rhs_file);
      if (!rhs) return rhs.error();
      b_file_ = std::move(rhs).value();
      if (b_file_->rows != job_.n)
        return Error{ErrorCode::invalid_argument, fmt::format("{}: the right-hand side has {} rows, the matrix {}",
                                                              job_.rhs_file, b_file_->rows, job_.n)};
      job_.nrhs = b_file_->cols;
    }
    return {};
  }

  TileShape square(Uplo uplo = Uplo::general) const { return shape(job_.n, job_.n, uplo); }
  TileShape tall() const { return shape(job_.n, job_.right_hand_sides()); }
  TileShape shape(std::size_t rows, std::size_t cols, Uplo uplo = Uplo::general) const {
    return {.rows = rows, .cols = cols, .tile = job_.tile, .uplo = uplo, .distribution = job_.distribution, .rank = rt_.rank()};
  }

  void fill_positive_definite(TiledData<T>& a) {
    if (a_file_) generate(rt_, Elements<T>{&*a_file_}, a);
    else generate(rt_, RandomPositiveDefinite{.seed = job_.seed, .order = job_.n}, a);
  }
  /// Without pivoting, a generated matrix must need none.
  void fill_general(TiledData<T>& a) {
    if (a_file_) generate(rt_, Elements<T>{&*a_file_}, a);
    else if (job_.pivoting == Pivoting::none) generate(rt_, RandomDominant{.seed = job_.seed, .order = job_.n}, a);
    else fill_random(a, 0);
  }
  void fill_rhs(TiledData<T>& b) {
    if (b_file_) generate(rt_, Elements<T>{&*b_file_}, b);
    else fill_random(b, 1);
  }
  /// `which` selects one of the operation's matrices.
  void fill_random(TiledData<T>& a, std::uint64_t which) { generate(rt_, RandomGeneral{.seed = job_.seed + which}, a); }

  // --- repetitions

  /// Calls `prepare`, then `timed` under the clock, for each repetition.
  void repeat(double work, const std::function<void()>& prepare, const std::function<void()>& timed) {
    outcome_.work = work;
    const unsigned warm_ups = a_file_ ? 0 : 1;
    for (unsigned i = 0; i < warm_ups + job_.repetitions; ++i) {
      prepare();
      const bool counts = i >= warm_ups;
      if (counts && job_.before_measured) job_.before_measured();
      const clock::Clock& clock = *rt_.core().world().clock;  // virtual, if the program is simulated
      const std::int64_t begin_ns = clock.now_ns();
      timed();
      const std::int64_t elapsed_ns = clock.now_ns() - begin_ns;
      if (!counts) continue;
      outcome_.seconds.push_back(static_cast<double>(elapsed_ns) * 1e-9);
      if (job_.after_measured) job_.after_measured();
    }
  }

  double order() const { return static_cast<double>(job_.n); }

  /// Writes the half of a factor that is not stored as zeros.
  Result<LinalgOutcome> write_result(const TiledData<T>& x) {
    if (job_.out_file.empty() || outcome_.info != 0) return std::move(outcome_);
    const std::size_t rows = x.matrix().rows(), cols = x.matrix().cols();
    DenseMatrix<T> dense{rows, cols, std::vector<T>(rows * cols)};
    gather(rt_, x, dense.view());
    if (rt_.rank() != 0) return std::move(outcome_);
    const Result<void> written = write_matrix_market<T>(job_.out_file, dense.view());
    if (!written) return written.error();
    return std::move(outcome_);
  }

  // --- operations

  Result<LinalgOutcome> run_potrf() {
    Tiled<T> factor(rt_, "A", square(job_.uplo));
    repeat(order() * order() * order() / 3 * complex_factor<T>, [&] { fill_positive_definite(factor.data); },
           [&] { outcome_.info = potrf(rt_, job_.uplo, factor.data); });
    if (job_.check && outcome_.info == 0) {
      Tiled<T> a(rt_, "A again", square(job_.uplo));
      fill_positive_definite(a.data);
      outcome_.residual = static_cast<double>(potrf_residual(rt_, job_.uplo, a.data, factor.data));
    }
    return write_result(factor.data);
  }

  Result<LinalgOutcome> run_solve() {
    const bool factorise = job_.op == LinalgOp::posv;
    const double rhs = static_cast<double>(outcome_.nrhs = job_.right_hand_sides());
    const double work = (factorise ? order() * order() * order() / 3 : 0) + 2 * order() * order() * rhs;
    Tiled<T> factor(rt_, "A", square(job_.uplo)), x(rt_, "B", tall());
    if (!factorise) {
      fill_positive_definite(factor.data);
      outcome_.info = potrf(rt_, job_.uplo, factor.data);
    }
    if (outcome_.info == 0) {
      repeat(work * complex_factor<T>,
             [&] {
               if (factorise) fill_positive_definite(factor.data);
               fill_rhs(x.data);
             },
             [&] {
               if (factorise) outcome_.info = posv(rt_, job_.uplo, factor.data, x.data);
               else potrs(rt_, job_.uplo, factor.data, x.data);
             });
    }
    if (job_.check && outcome_.info == 0) {
      Tiled<T> a(rt_, "A again", square(job_.uplo)), b(rt_, "B again", tall());
      fill_positive_definite(a.data);
      fill_rhs(b.data);
      outcome_.residual = static_cast<double>(posv_residual(rt_, job_.uplo, a.data, x.data, b.data));
    }
    return write_result(x.data);
  }

  Result<LinalgOutcome> run_gemm() {
    Tiled<T> a(rt_, "A", square()), b(rt_, "B", square()), c(rt_, "C", square());
    const auto fill = [&] {
      fill_random(a.data, 0);
      fill_random(b.data, 1);
      fill_random(c.data, 2);
    };
    const Product<T> product{.alpha = T(R(1.5)), .a = a.data, .b = b.data, .beta = T(R(-0.5))};
    repeat(2 * order() * order() * order() * complex_factor<T>, fill,
           [&] { gemm(rt_, product.op_a, product.op_b, product.alpha, a.data, b.data, product.beta, c.data); });
    if (job_.check) {
      Tiled<T> before(rt_, "C again", square());
      fill_random(before.data, 2);
      outcome_.residual = static_cast<double>(gemm_residual(rt_, product, before.data, c.data));
    }
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_trsm() {
    const double rhs = static_cast<double>(outcome_.nrhs = job_.right_hand_sides());
    const T alpha = T(R(0.5));
    Tiled<T> a(rt_, "A", square(job_.uplo)), x(rt_, "B", tall());
    fill_positive_definite(a.data);
    repeat(order() * order() * rhs * complex_factor<T>, [&] { fill_random(x.data, 1); },
           [&] { trsm(rt_, Side::left, job_.uplo, Op::no_trans, Diag::non_unit, alpha, a.data, x.data); });
    if (job_.check) {
      Tiled<T> triangle(rt_, "triangle of A", square()), b(rt_, "B again", tall());
      submit_zero(triangle.data);
      submit_lacpy(rt_, job_.uplo, a.data, triangle.data);
      fill_random(b.data, 1);
      outcome_.residual = static_cast<double>(trsm_residual(rt_, Op::no_trans, alpha, triangle.data, x.data, b.data));
    }
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_rank_update() {
    const bool hermitian = job_.op == LinalgOp::herk;
    const Op transposed = hermitian ? Op::conj_trans : Op::trans;
    const R alpha = R(1.5), beta = R(-0.5);
    Tiled<T> a(rt_, "A", square()), c(rt_, "C", square(job_.uplo));
    fill_random(a.data, 0);
    const auto fill_symmetric = [&](TiledData<T>& data) { generate(rt_, Kms{.rho = 0.5}, data); };
    repeat(order() * order() * order() * complex_factor<T>, [&] { fill_symmetric(c.data); },
           [&] {
             if (hermitian) herk(rt_, job_.uplo, Op::no_trans, alpha, a.data, beta, c.data);
             else syrk(rt_, job_.uplo, Op::no_trans, T(alpha), a.data, T(beta), c.data);
           });
    if (job_.check) {
      Tiled<T> before(rt_, "C again", square()), after(rt_, "all of C", square());
      fill_symmetric(before.data);
      submit_expand(rt_, job_.uplo, hermitian ? Mirror::hermitian : Mirror::symmetric, c.data, after.data);
      const Product<T> product{.op_b = transposed, .alpha = T(alpha), .a = a.data, .b = a.data, .beta = T(beta)};
      outcome_.residual = static_cast<double>(gemm_residual(rt_, product, before.data, after.data));
    }
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_lacpy() {
    Tiled<T> a(rt_, "A", square()), b(rt_, "B", square());
    fill_random(a.data, 0);
    repeat(2 * order() * order() * sizeof(T), [] {}, [&] { lacpy(rt_, Uplo::general, a.data, b.data); });
    if (job_.check) outcome_.residual = differs(a, b) ? 1 / static_cast<double>(epsilon<T>) : 0;
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_getrf() {
    const bool pivoting = job_.pivoting == Pivoting::tournament;
    Tiled<T> factors(rt_, "A", square());
    TiledPivots pivots(rt_, factors.data);
    repeat(2 * order() * order() * order() / 3 * complex_factor<T>, [&] { fill_general(factors.data); },
           [&] { outcome_.info = pivoting ? getrf(rt_, factors.data, pivots) : getrf_nopiv(rt_, factors.data); });
    if (job_.check && outcome_.info == 0) {
      Tiled<T> a(rt_, "A again", square());
      fill_general(a.data);
      outcome_.residual = static_cast<double>(pivoting ? getrf_residual(rt_, a.data, factors.data, pivots)
                                                       : getrf_nopiv_residual(rt_, a.data, factors.data));
    }
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_gesv() {
    const bool pivoting = job_.pivoting == Pivoting::tournament;
    const double rhs = static_cast<double>(outcome_.nrhs = job_.right_hand_sides());
    Tiled<T> factors(rt_, "A", square()), x(rt_, "B", tall());
    TiledPivots pivots(rt_, factors.data);
    repeat((2 * order() * order() * order() / 3 + 2 * order() * order() * rhs) * complex_factor<T>,
           [&] {
             fill_general(factors.data);
             fill_rhs(x.data);
           },
           [&] {
             outcome_.info = pivoting ? gesv(rt_, factors.data, pivots, x.data) : gesv_nopiv(rt_, factors.data, x.data);
           });
    if (job_.check && outcome_.info == 0) {
      Tiled<T> a(rt_, "A again", square()), b(rt_, "B again", tall());
      fill_general(a.data);
      fill_rhs(b.data);
      outcome_.residual = static_cast<double>(gesv_residual(rt_, a.data, x.data, b.data));
    }
    return write_result(x.data);
  }

  TileShape rectangular() const { return shape(job_.rows(), job_.n); }
  TileShape sides() const { return shape(job_.rows(), job_.right_hand_sides()); }

  /// Operations of QR: 2 n^2 (m - n/3) for m >= n.
  double qr_work() const {
    const double rows = static_cast<double>(job_.rows()), less = std::min(rows, order()),
                 more = std::max(rows, order());
    return 2 * less * less * (more - less / 3);
  }

  Result<LinalgOutcome> run_geqrf() {
    Tiled<T> a(rt_, "A", rectangular()), t(rt_, "T", geqrf_factors_shape(rectangular()));
    repeat(qr_work() * complex_factor<T>, [&] { fill_random(a.data, 0); }, [&] { geqrf(rt_, a.data, t.data); });
    if (job_.check) {
      Tiled<T> again(rt_, "A again", rectangular());
      fill_random(again.data, 0);
      const R product = geqrf_residual(rt_, again.data, a.data, t.data),
              unitary = geqrf_orthogonality(rt_, a.data, t.data);
      outcome_.residual = static_cast<double>(unitary > product || std::isnan(unitary) ? unitary : product);
    }
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_gels() {
    const double rhs = static_cast<double>(outcome_.nrhs = job_.right_hand_sides());
    // Q^H B takes 4 m n - 2 n^2 operations for each right-hand side, and R X = Q^H B n^2.
    const double solve = rhs * order() * (4 * static_cast<double>(job_.rows()) - order());
    Tiled<T> a(rt_, "A", rectangular()), t(rt_, "T", geqrf_factors_shape(rectangular())), x(rt_, "B", sides());
    repeat((qr_work() + solve) * complex_factor<T>,
           [&] {
             fill_random(a.data, 0);
             fill_random(x.data, 1);
           },
           [&] { gels(rt_, Op::no_trans, a.data, t.data, x.data); });
    if (job_.check) {
      Tiled<T> b(rt_, "B again", sides());
      fill_random(a.data, 0);
      fill_random(b.data, 1);
      outcome_.residual = static_cast<double>(gels_residual(rt_, Op::no_trans, a.data, x.data, b.data));
    }
    return std::move(outcome_);
  }

  Result<LinalgOutcome> run_cg() {
    if (b_file_ && b_file_->cols != 1)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}: cg takes one right-hand side, and here are {}", job_.rhs_file, b_file_->cols)};
    Tiled<T> a(rt_, "A", square(job_.uplo)), b(rt_, "B", tall()), x(rt_, "X", tall());
    if (a_file_) generate(rt_, Elements<T>{&*a_file_}, a.data);
    else
      generate(rt_, RandomPositiveDefinite{.seed = job_.seed, .order = job_.n, .dominance = little_dominance(job_.n)},
               a.data);
    fill_rhs(b.data);
    const CgOptions options{.iterations = job_.iterations, .tolerance = job_.tolerance};
    CgOutcome ended;
    repeat(0,
           [&] {
             submit_zero(x.data);
             rt_.wait();
           },
           [&] { ended = cg(rt_, job_.uplo, a.data, b.data, x.data, options); });
    // Each iteration has a product with A, two products and three additions of vectors.
    outcome_.work = static_cast<double>(ended.iterations) * (2 * order() * order() + 10 * order()) * complex_factor<T>;
    outcome_.info = ended.info;
    outcome_.iterations = ended.iterations;
    outcome_.reached = ended.residual;
    outcome_.converged = ended.converged || job_.tolerance == 0.0;
    if (job_.check && outcome_.info == 0)
      outcome_.residual = static_cast<double>(cg_residual(rt_, job_.uplo, a.data, x.data, b.data, ended.residual));
    return write_result(x.data);
  }

  Result<LinalgOutcome> run_stencil() {
    if constexpr (is_complex<T>) {
      return Error{ErrorCode::invalid_argument, "stencil: the grid has real numbers; give precision s or d"};
    } else {
      Tiled<T> u(rt_, "u", rectangular()), work(rt_, "next u", rectangular());
      const JacobiModes start({.rows = job_.rows(), .cols = job_.n}, 0);
      const JacobiOptions options{.steps = job_.iterations.value_or(JacobiOptions{}.steps),
                                  .tolerance = job_.tolerance.value_or(0)};
      JacobiOutcome ended;
      repeat(0, [&] { generate(rt_, start, u.data); }, [&] { ended = jacobi(rt_, u.data, work.data, options); });
      // Each step reads and writes every point.
      outcome_.work = static_cast<double>(ended.steps) * 2 * order() * static_cast<double>(job_.rows()) * sizeof(T);
      outcome_.iterations = ended.steps;
      outcome_.reached = ended.change;
      outcome_.converged = ended.converged || options.tolerance == 0;
      if (job_.check) outcome_.residual = static_cast<double>(jacobi_residual(rt_, u.data, ended.steps, work.data));
      return std::move(outcome_);
    }
  }

  Result<LinalgOutcome> run_copy() {
    const TileShape from = rectangular();
    TileShape to = from;
    to.distribution = job_.target;
    Tiled<T> a(rt_, "A", from), b(rt_, "B", to);
    const TileMatrix<T>& m = a.matrix;
    for (std::size_t j = 0; j < m.col_tiles(); ++j)
      for (std::size_t i = 0; i < m.row_tiles(); ++i)
        if (from.distribution.several() && from.distribution.owner(i, j) != to.distribution.owner(i, j))
          outcome_.travelling += m.tile_rows(i) * m.tile_cols(j) * sizeof(T);
    // Rewritten for each run: values that another rank has seen do not travel again.
    repeat(2 * order() * static_cast<double>(job_.rows()) * sizeof(T), [&] { fill_random(a.data, 0); },
           [&] { lacpy(rt_, Uplo::general, a.data, b.data); });
    if (job_.check) {
      Tiled<T> again(rt_, "A again", to);
      fill_random(again.data, 0);
      outcome_.residual = differs(again, b) ? 1 / static_cast<double>(epsilon<T>) : 0;
    }
    return std::move(outcome_);
  }

  void submit_zero(TiledData<T>& a) {
    static const Codelet zero("zero", [](MatrixView<T> tile) { kernels::laset(Uplo::general, T(0), T(0), tile); });
    for (std::size_t j = 0; j < a.col_tiles(); ++j)
      for (std::size_t i = 0; i < a.row_tiles(); ++i) rt_.submit(zero, write(a(i, j)));
  }

  bool differs(const Tiled<T>& a, const Tiled<T>& b) {
    const auto found = std::make_shared<std::atomic<std::uint64_t>>(0);
    for (std::size_t j = 0; j < a.matrix.col_tiles(); ++j)
      for (std::size_t i = 0; i < a.matrix.row_tiles(); ++i) {
        const auto compare = [&](const auto& ta, const auto& tb) {
          if (!std::equal(ta.data, ta.data + ta.rows * ta.cols, tb.data)) *found = 1;
        };
        if (!a.matrix.shape().in_runtime) {
          if (a.matrix.is_here(i, j)) compare(a.matrix.tile(i, j), b.matrix.tile(i, j));
          continue;
        }
        // All ranks call it, and the owner checks.
        auto ta = rt_.acquire_at_owner(read(a.data(i, j)));
        auto tb = rt_.acquire_at_owner(read(b.data(i, j)));
        if (ta) compare(**ta, **tb);
      }
    rt_.agree_on_least(found);
    rt_.wait();
    return *found != 0;
  }

  Runtime& rt_;
  LinalgJob job_;
  LinalgOutcome outcome_;
  std::optional<DenseMatrix<T>> a_file_, b_file_;
};

}  // namespace

template <Scalar T>
Result<LinalgOutcome> run_linalg(Runtime& rt, const LinalgJob& job) {
  return Runner<T>(rt, job).run();
}

template Result<LinalgOutcome> run_linalg<float>(Runtime&, const LinalgJob&);
template Result<LinalgOutcome> run_linalg<double>(Runtime&, const LinalgJob&);
template Result<LinalgOutcome> run_linalg<std::complex<float>>(Runtime&, const LinalgJob&);
template Result<LinalgOutcome> run_linalg<std::complex<double>>(Runtime&, const LinalgJob&);

}  // namespace tandem::tools
