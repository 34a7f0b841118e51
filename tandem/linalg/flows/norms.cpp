// tandem/linalg/flows/norms.cpp: tile by tile; sums of columns are added in the order of the flow.
#include "tandem/linalg/flows/norms.hpp"

#include <cmath>
#include <vector>

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/norms.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

/// Sums over the columns of a matrix, in one piece of data per tile column.
template <class R>
class ColumnSums {
 public:
  template <Scalar T>
  ColumnSums(Runtime& rt, const TileMatrix<T>& a) : sums_(a.col_tiles()) {
    for (std::size_t j = 0; j < sums_.size(); ++j) {
      sums_[j].assign(a.tile_cols(j), R(0));
      data_.push_back(rt.data("column sums", sums_[j]));
    }
  }

  const Data<Vector<R>>& operator[](std::size_t j) const { return data_[j]; }

  /// After the flow's end. A NaN anywhere gives NaN.
  R largest(Runtime& rt) {
    rt.wait();
    R result = 0;
    for (std::size_t j = 0; j < sums_.size(); ++j) {
      const auto view = rt.acquire(read(data_[j]));
      for (const R sum : sums_[j]) result = result > sum || std::isnan(result) ? result : sum;
    }
    return result;
  }

 private:
  std::vector<std::vector<R>> sums_;
  std::vector<Data<Vector<R>>> data_;  ///< goes first: it lies over sums_
};

template <Scalar T>
const auto& column_sums_codelet() {
  static const Codelet codelet("lange",
                               [](MatrixView<const T> a, std::span<Real<T>> sums) { kernels::add_column_sums<T>(a, sums); });
  return codelet;
}

}  // namespace

template <Scalar T>
Real<T> norm_one(Runtime& rt, const TiledData<T>& a) {
  require(is_general(a), "norm_one: the matrix has to store all its tiles; norm_one_hermitian takes a triangle");
  ColumnSums<Real<T>> sums(rt, a.matrix());
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i) rt.submit(column_sums_codelet<T>(), read(a(i, j)), read_write(sums[j]));
  return sums.largest(rt);
}

template <Scalar T>
Real<T> norm_one_hermitian(Runtime& rt, Uplo uplo, const TiledData<T>& a) {
  require(has_triangle(a, uplo), "norm_one_hermitian: the matrix has to be square and store the triangle");
  using Sums = std::span<Real<T>>;
  static const Codelet diagonal("lanhe", [](Uplo part, MatrixView<const T> tile, Sums sums) {
    kernels::add_hermitian_sums<T>(part, tile, sums);
  });
  // A tile beside the diagonal stands for two: its rows are columns of its mirror image.
  static const Codelet beside("lanhe", [](MatrixView<const T> tile, Sums of_columns, Sums of_rows) {
    kernels::add_column_sums<T>(tile, of_columns);
    kernels::add_row_sums<T>(tile, of_rows);
  });
  ColumnSums<Real<T>> sums(rt, a.matrix());
  for (std::size_t j = 0; j < a.col_tiles(); ++j) {
    rt.submit(diagonal, uplo, read(a(j, j)), read_write(sums[j]));
    const std::size_t first = uplo == Uplo::lower ? j + 1 : 0;
    const std::size_t last = uplo == Uplo::lower ? a.row_tiles() : j;
    for (std::size_t i = first; i < last; ++i) rt.submit(beside, read(a(i, j)), read_write(sums[j]), read_write(sums[i]));
  }
  return sums.largest(rt);
}

template <Scalar T>
Real<T> norm_max(Runtime& rt, const TiledData<T>& a) {
  using R = Real<T>;
  static const Codelet largest("lange", [](MatrixView<const T> tile, R* result) { *result = kernels::lange(Norm::max, tile); });
  std::vector<R> results(a.row_tiles() * a.col_tiles(), R(0));
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i)
      if (a.stores(i, j)) rt.submit(largest, read(a(i, j)), &results[i + j * a.row_tiles()]);
  rt.wait();
  R maximum = 0;
  for (const R result : results) maximum = maximum > result || std::isnan(maximum) ? maximum : result;
  return maximum;
}

#define INSTANTIATE(T)                                                      \
  template Real<T> norm_max<T>(Runtime&, const TiledData<T>&);              \
  template Real<T> norm_one<T>(Runtime&, const TiledData<T>&);              \
  template Real<T> norm_one_hermitian<T>(Runtime&, Uplo, const TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
