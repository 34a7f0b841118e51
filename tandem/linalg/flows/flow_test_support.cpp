// tandem/linalg/flows/flow_test_support.cpp: what tests of flows share, compiled once.
#include "tandem/linalg/flows/flow_test_support.hpp"

namespace tandem::linalg::test {

template <Scalar T>
Tiled<T>::Tiled(Runtime& rt, TileShape shape) : matrix(shape), data(rt, "A", matrix) {}

template <Scalar T>
Tiled<T>::~Tiled() = default;

template <Scalar T>
std::vector<T> Tiled<T>::dense() const {
  std::vector<T> result(matrix.rows() * matrix.cols());
  matrix.to_lapack({result.data(), matrix.rows(), matrix.cols(), matrix.rows()});
  return result;
}

template struct Tiled<float>;
template struct Tiled<double>;
template struct Tiled<std::complex<float>>;
template struct Tiled<std::complex<double>>;

const std::vector<Setting> settings{{1, "eager"}, {2, "lws"}, {3, "prio"}, {4, "random"}};

Options options(const Setting& setting) { return {.workers = setting.workers, .sched = setting.sched, .more = {}}; }

}  // namespace tandem::linalg::test
