// tandem/linalg/flows/norms.cpp: one task per tile, on the tile's rank; sums of columns are added in the order of the
// flow.
#include "tandem/linalg/flows/norms.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/norms.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

template <class R>
const auto& zero_codelet() {
  static const Codelet codelet("zero", [](std::span<R> sums) { std::fill(sums.begin(), sums.end(), R(0)); });
  return codelet;
}

template <class R>
const auto& add_codelet() {
  static const Codelet codelet("add", [](std::span<const R> part, std::span<R> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
  });
  return codelet;
}

/// Sums over the columns of a matrix, one datum per tile column, on the rank of its first tile.
template <Scalar T>
class ColumnSums {
 public:
  using R = Real<T>;

  ColumnSums(Runtime& rt, const TiledData<T>& a) : rt_(rt) {
    for (std::size_t j = 0; j < a.col_tiles() && a.row_tiles() > 0; ++j) {
      const std::size_t first = a.stores(0, j) ? 0 : j;
      data_.push_back(rt.vector<R>("column sums", a.matrix().tile_cols(j), rt.beside(a(first, j))));
      rt.submit(zero_codelet<R>(), write(data_[j]));
    }
  }

  /// A part of the sums of tile column j, computed on the rank of tile (row, col) and added by `add`.
  Data<Vector<R>> part(const TiledData<T>& a, std::size_t row, std::size_t col, std::size_t j) {
    return rt_.vector<R>("part of sums", data_[j].rows(), rt_.beside(a(row, col)));
  }
  void add(std::size_t j, const Data<Vector<R>>& part) {
    rt_.submit(add_codelet<R>(), read(part), read_write(data_[j]));
  }

  /// The largest sum, on every rank after the flow's end. A NaN anywhere gives NaN.
  R largest() {
    rt_.wait();
    R result = 0;
    for (auto& data : data_) {
      auto view = rt_.acquire(read(data));
      for (const R sum : *view) result = result > sum || std::isnan(result) ? result : sum;
    }
    return result;
  }

 private:
  Runtime& rt_;
  std::vector<Data<Vector<R>>> data_;
};

template <Scalar T>
const auto& column_sums_codelet() {
  static const Codelet codelet("lange", [](MatrixView<const T> a, std::span<Real<T>> sums) {
    std::fill(sums.begin(), sums.end(), Real<T>(0));
    kernels::add_column_sums<T>(a, sums);
  });
  return codelet;
}

}  // namespace

template <Scalar T>
Real<T> norm_one(Runtime& rt, const TiledData<T>& a) {
  require(is_general(a), "norm_one: the matrix has to store all its tiles; norm_one_hermitian takes a triangle");
  ColumnSums<T> sums(rt, a);
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i) {
      const auto part = sums.part(a, i, j, j);
      rt.submit(column_sums_codelet<T>(), read(a(i, j)), write(part));
      sums.add(j, part);
    }
  return sums.largest();
}

template <Scalar T>
Real<T> norm_one_hermitian(Runtime& rt, Uplo uplo, const TiledData<T>& a) {
  require(has_triangle(a, uplo), "norm_one_hermitian: the matrix has to be square and store the triangle");
  using Sums = std::span<Real<T>>;
  static const Codelet diagonal("lanhe", [](Uplo half, MatrixView<const T> tile, Sums sums) {
    std::fill(sums.begin(), sums.end(), Real<T>(0));
    kernels::add_hermitian_sums<T>(half, tile, sums);
  });
  // A tile off the diagonal gives two sums: its rows are columns of its mirror image.
  static const Codelet beside("lanhe", [](MatrixView<const T> tile, Sums of_columns, Sums of_rows) {
    std::fill(of_columns.begin(), of_columns.end(), Real<T>(0));
    std::fill(of_rows.begin(), of_rows.end(), Real<T>(0));
    kernels::add_column_sums<T>(tile, of_columns);
    kernels::add_row_sums<T>(tile, of_rows);
  });
  ColumnSums<T> sums(rt, a);
  for (std::size_t j = 0; j < a.col_tiles(); ++j) {
    const auto on_diagonal = sums.part(a, j, j, j);
    rt.submit(diagonal, uplo, read(a(j, j)), write(on_diagonal));
    sums.add(j, on_diagonal);
    const std::size_t first = uplo == Uplo::lower ? j + 1 : 0;
    const std::size_t last = uplo == Uplo::lower ? a.row_tiles() : j;
    for (std::size_t i = first; i < last; ++i) {
      const auto of_columns = sums.part(a, i, j, j), of_rows = sums.part(a, i, j, i);
      rt.submit(beside, read(a(i, j)), write(of_columns), write(of_rows));
      sums.add(j, of_columns);
      sums.add(i, of_rows);
    }
  }
  return sums.largest();
}

template <Scalar T>
Real<T> norm_max(Runtime& rt, const TiledData<T>& a) {
  using R = Real<T>;
  static const Codelet largest("lange",
                               [](MatrixView<const T> tile, R& result) { result = kernels::lange(Norm::max, tile); });
  static const Codelet zero("zero", [](R& value) { value = 0; });
  static const Codelet larger("larger",
                              [](const R& value, R& most) { most = most > value || std::isnan(most) ? most : value; });
  // One number per tile column, on the rank of its first tile, so that few of them are sent.
  std::vector<Data<R>> columns;
  for (std::size_t j = 0; j < a.col_tiles() && a.row_tiles() > 0; ++j) {
    columns.push_back(rt.scalar<R>("largest of a column", rt.beside(a(a.stores(0, j) ? 0 : j, j))));
    rt.submit(zero, write(columns[j]));
    for (std::size_t i = 0; i < a.row_tiles(); ++i) {
      if (!a.stores(i, j)) continue;
      const auto of_tile = rt.scalar<R>("largest of a tile", rt.beside(a(i, j)));
      rt.submit(largest, read(a(i, j)), write(of_tile));
      rt.submit(larger, read(of_tile), read_write(columns[j]));
    }
  }
  rt.wait();
  R maximum = 0;
  for (auto& column : columns) {
    auto value = rt.acquire(read(column));
    maximum = maximum > *value || std::isnan(maximum) ? maximum : *value;
  }
  return maximum;
}

#define INSTANTIATE(T)                                                      \
  template Real<T> norm_max<T>(Runtime&, const TiledData<T>&);              \
  template Real<T> norm_one<T>(Runtime&, const TiledData<T>&);              \
  template Real<T> norm_one_hermitian<T>(Runtime&, Uplo, const TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
