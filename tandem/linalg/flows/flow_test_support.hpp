// tandem/linalg/flows/flow_test_support.hpp: what tests of flows share: matrices with data, and the runtimes they run
// on.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "tandem/linalg/flows/generate.hpp"
#include "tandem/linalg/scalar_test_support.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg::test {

/// A tiled matrix, its data, and LAPACK's layout of it. Compiled in flow_test_support.cpp: tests have hundreds of
/// these.
template <Scalar T>
struct Tiled {
  Tiled(Runtime& rt, TileShape shape);
  template <class G>
  Tiled(Runtime& rt, TileShape shape, const G& generator) : Tiled(rt, shape) {
    generate(rt, generator, data);
  }
  ~Tiled();

  /// All elements, in column-major order.
  std::vector<T> dense() const;

  TileMatrix<T> matrix;
  TiledData<T> data;
};

extern template struct Tiled<float>;
extern template struct Tiled<double>;
extern template struct Tiled<std::complex<float>>;
extern template struct Tiled<std::complex<double>>;

/// Worker counts and schedulers that flows are run with.
struct Setting {
  unsigned workers = 1;
  std::string sched = "lws";
};
extern const std::vector<Setting> settings;

Options options(const Setting& setting);

}  // namespace tandem::linalg::test
