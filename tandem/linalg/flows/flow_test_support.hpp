// tandem/linalg/flows/flow_test_support.hpp: what tests of flows share: matrices with data, and the runtimes they run on.
#pragma once

#include <string>
#include <vector>

#include "tandem/linalg/flows/generate.hpp"
#include "tandem/linalg/scalar_test_support.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg::test {

/// A tiled matrix, its data, and LAPACK's layout of it.
template <Scalar T>
struct Tiled {
  Tiled(Runtime& rt, TileShape shape) : matrix(shape), data(rt, "A", matrix) {}
  template <class G>
  Tiled(Runtime& rt, TileShape shape, const G& generator) : Tiled(rt, shape) {
    generate(rt, generator, data);
  }

  std::vector<T> dense() const {
    std::vector<T> result(matrix.rows() * matrix.cols());
    matrix.to_lapack({result.data(), matrix.rows(), matrix.cols(), matrix.rows()});
    return result;
  }

  TileMatrix<T> matrix;
  TiledData<T> data;
};

/// Worker counts and schedulers that flows are run with.
struct Setting {
  unsigned workers = 1;
  std::string sched = "lws";
};
inline const std::vector<Setting> settings{{1, "eager"}, {2, "lws"}, {3, "prio"}, {4, "random"}};

inline Options options(const Setting& setting) { return {.workers = setting.workers, .sched = setting.sched, .more = {}}; }

}  // namespace tandem::linalg::test
