// tools/linalg/job.hpp: one linear algebra operation as `tandem linalg` runs it: inputs, repetitions, times, residual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/linalg/distribution.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/tandem.hpp"

namespace tandem::tools {

enum class LinalgOp { potrf, potrs, posv, gemm, trsm, syrk, herk, lacpy, getrf, gesv, geqrf, gels, cg, stencil, copy };

/// The pivoting of getrf and gesv.
enum class Pivoting { tournament, none };

/// The job that the command line describes, in one precision.
struct LinalgJob {
  LinalgOp op = LinalgOp::potrf;
  std::size_t n = 0;                    ///< order of the matrices; taken from the file when there is one
  std::optional<std::size_t> m;         ///< geqrf, gels, stencil and copy: rows of A, which has n columns; default n
  std::size_t tile = 256;
  std::optional<std::size_t> nrhs;      ///< right-hand sides; default 1 for potrs, posv, gesv and gels, n for trsm
  linalg::Uplo uplo = linalg::Uplo::lower;
  linalg::Distribution distribution = {};  ///< of all matrices; needed on several ranks
  linalg::Distribution target = {};        ///< copy: owners of the matrix that is written
  std::optional<std::size_t> iterations;   ///< most iterations; cg: default n; stencil: default 100
  std::optional<double> tolerance;         ///< as CgOptions and JacobiOptions have it
  Pivoting pivoting = Pivoting::tournament;
  unsigned repetitions = 5;
  bool check = false;
  std::uint64_t seed = 1;
  std::string matrix_file;              ///< factorisations and cg: Matrix Market file of A instead of a generated one
  std::string rhs_file;                 ///< potrs, posv, gesv and cg: file of B
  std::string out_file;                 ///< file to write; potrs, posv, gesv and cg: X; potrf: the factor
  std::function<void()> before_measured = {};  ///< called before the clock of each repetition that counts starts
  std::function<void()> after_measured = {};   ///< called after that clock has stopped

  std::size_t rows() const noexcept { return m.value_or(n); }
  std::size_t right_hand_sides() const noexcept { return nrhs.value_or(op == LinalgOp::trsm ? n : 1); }
};

/// The results of a job.
struct LinalgOutcome {
  std::size_t n = 0;
  std::size_t m = 0;                  ///< rows of A; n for square matrices
  std::size_t nrhs = 0;               ///< 0 for operations that have none
  std::vector<double> seconds;        ///< of each repetition; generating, reading and checking are not counted
  double work = 0;                    ///< of one repetition: operations, or bytes moved for lacpy, copy and stencil
  std::size_t info = 0;               ///< LAPACK's, of factorisations; cg's
  std::optional<double> residual;     ///< scaled as LAPACK's testers do; with `check`, if info is 0
  std::optional<std::size_t> iterations;  ///< cg and stencil: iterations done
  std::optional<double> reached;          ///< cg: ||r|| / ||b||; stencil: the largest change at the last check
  bool converged = true;                  ///< cg and stencil: false when a tolerance above 0 was not reached
  std::size_t travelling = 0;             ///< copy: bytes that are read on one rank and written on another
};

/// Runs a job in element type T. A generated matrix is run once before the repetitions, uncounted; a matrix from a file
/// is not. Errors: files, a matrix that is not square or not Hermitian, right-hand sides of another length.
template <linalg::Scalar T>
base::Result<LinalgOutcome> run_linalg(Runtime& rt, const LinalgJob& job);

}  // namespace tandem::tools
