// tests/dist_flow/distributed_matrix.hpp: a matrix of a test program's, with tiles on several ranks.
#pragma once

#include <vector>

#include "tandem/linalg.hpp"

namespace tandem::dist_test {

template <class T>
struct DistributedMatrix {
  DistributedMatrix(Runtime& rt, linalg::TileShape shape, const linalg::Distribution& distribution)
      : matrix([&] {
          shape.distribution = distribution;
          shape.rank = rt.rank();
          return shape;
        }()),
        data(rt, "A", matrix) {}
  template <class G>
  DistributedMatrix(Runtime& rt, linalg::TileShape shape, const linalg::Distribution& distribution, const G& generator)
      : DistributedMatrix(rt, shape, distribution) {
    submit_generate(rt, generator, data);
  }
  /// All of it, in LAPACK's layout, goes to the end of `values`, on every rank.
  void keep(Runtime& rt, std::vector<T>& values) const {
    std::vector<T> whole(matrix.rows() * matrix.cols());
    gather(rt, data, {whole.data(), matrix.rows(), matrix.cols(), matrix.rows()});
    values.insert(values.end(), whole.begin(), whole.end());
  }
  linalg::TileMatrix<T> matrix;
  linalg::TiledData<T> data;
};

}  // namespace tandem::dist_test
