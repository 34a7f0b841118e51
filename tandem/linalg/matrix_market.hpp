// tandem/linalg/matrix_market.hpp: reads and writes dense and sparse matrices in NIST's Matrix Market format.
#pragma once

#include <complex>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg {

/// The symmetry that a file declares: which elements also give a mirrored one.
enum class Symmetry { general, symmetric, skew_symmetric, hermitian };

/// The contents of a Matrix Market file, before a precision is chosen. A value.
struct MatrixMarketFile {
  /// An element as it stands in the file, zero-based; its mirror image is not repeated.
  struct Entry {
    std::size_t row = 0;         ///< from 0
    std::size_t col = 0;         ///< from 0
    std::complex<double> value;  ///< with imaginary part 0 in real files
  };

  std::string name;  ///< for messages
  std::size_t rows = 0;                   ///< of the matrix
  std::size_t cols = 0;                   ///< of the matrix
  bool is_complex = false;                ///< as the banner declares
  Symmetry symmetry = Symmetry::general;  ///< as the banner declares
  std::vector<Entry>
      entries;  ///< a coordinate file may list an element twice; the values are added, as in finite elements
};

/// Reads a file: `coordinate` or `array`; `real`, `double`, `integer`, `complex` or `pattern` (ones); any symmetry.
/// Errors name the file, the line and what was expected there: a bad banner, text that is not a finite number, indices
/// outside the matrix, elements above the diagonal of a symmetric file, too few or too many of them. Fortran's
/// `1.0D+00` is understood. Format: Boisvert, Pozo, Remington, The Matrix Market Exchange Formats: Initial Design,
/// NISTIR 5935, 1996.
base::Result<MatrixMarketFile> read_matrix_market(const std::string& path);

/// Reads from a stream; `name` stands for the file in messages.
base::Result<MatrixMarketFile> read_matrix_market(std::istream& input, const std::string& name);

/// A column-major matrix that owns its elements.
template <Scalar T>
struct DenseMatrix {
  std::size_t rows = 0;   ///< of the matrix
  std::size_t cols = 0;   ///< of the matrix
  std::vector<T> values;  ///< rows * cols elements, column after column

  MatrixView<T> view() noexcept { return {values.data(), rows, cols, rows}; }  ///< of the whole matrix
  /// A view of the whole matrix, for reading only.
  MatrixView<const T> view() const noexcept { return {values.data(), rows, cols, rows}; }
};

/// The file's matrix with all its elements, mirrored as its symmetry says. Errors: a complex file for a real T, and a
/// matrix that does not fit in memory when it is dense.
template <Scalar T>
base::Result<DenseMatrix<T>> to_dense(const MatrixMarketFile& file);

/// Writes an `array general` file with enough digits that a reader gets equal elements. Errors name the file.
template <Scalar T>
base::Result<void> write_matrix_market(const std::string& path, MatrixView<const T> a);

}  // namespace tandem::linalg
