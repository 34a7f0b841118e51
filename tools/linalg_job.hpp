// tools/linalg_job.hpp: one linear algebra operation as `tandem linalg` runs it: inputs, repetitions, times, residual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/linalg/distribution.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/tandem.hpp"

namespace tandem::tools {

enum class LinalgOp { potrf, potrs, posv, gemm, trsm, syrk, herk, lacpy, getrf, gesv, geqrf, gels };

/// How getrf and gesv choose pivots.
enum class Pivoting { tournament, none };

/// What the command line asks for, in one precision.
struct LinalgJob {
  LinalgOp op = LinalgOp::potrf;
  std::size_t n = 0;                    ///< order of the matrices; taken from the file when there is one
  std::optional<std::size_t> m;         ///< geqrf and gels: rows of A, which has n columns; default n
  std::size_t tile = 256;
  std::optional<std::size_t> nrhs;      ///< right-hand sides; default 1 for potrs, posv, gesv and gels, n for trsm
  linalg::Uplo uplo = linalg::Uplo::lower;
  linalg::Distribution distribution = {};  ///< of all matrices; needed on several ranks
  Pivoting pivoting = Pivoting::tournament;
  unsigned repetitions = 5;
  bool check = false;
  std::uint64_t seed = 1;
  std::string matrix_file;              ///< where A is factorised: Matrix Market file of it instead of a generated matrix
  std::string rhs_file;                 ///< potrs, posv and gesv: of B
  std::string out_file;                 ///< potrs, posv and gesv: where X goes; potrf: the factor

  std::size_t rows() const noexcept { return m.value_or(n); }
  std::size_t right_hand_sides() const noexcept { return nrhs.value_or(op == LinalgOp::trsm ? n : 1); }
};

/// What came out.
struct LinalgOutcome {
  std::size_t n = 0;
  std::size_t m = 0;                  ///< rows of A; n for square matrices
  std::size_t nrhs = 0;               ///< 0 for operations that have none
  std::vector<double> seconds;        ///< of each repetition; generating, reading and checking are not counted
  double work = 0;                    ///< of one repetition: operations, or bytes moved for lacpy
  std::size_t info = 0;               ///< LAPACK's, of factorisations
  std::optional<double> residual;     ///< scaled as LAPACK's testers do; with `check`, if info is 0
};

/// Runs a job in element type T. A generated matrix is run once before the repetitions, uncounted; a user's own is not. Errors:
/// files, a matrix that is not square or not Hermitian, right-hand sides of another length.
template <linalg::Scalar T>
base::Result<LinalgOutcome> run_linalg(Runtime& rt, const LinalgJob& job);

}  // namespace tandem::tools
