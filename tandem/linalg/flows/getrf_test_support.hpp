// tandem/linalg/flows/getrf_test_support.hpp: the fixture of the tests of LU flows, and matrices that need exchanges of
// rows.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tandem/linalg/flows/flow_test_support.hpp"
#include "tandem/linalg/types.hpp"

namespace tandem::linalg::test {

/// The fixture; the tests of its suite are in several files.
template <class T>
class GetrfFlow : public testing::Test {};
TYPED_TEST_SUITE(GetrfFlow, Scalars, Letters);

/// The rows of another generator's matrix in another order.
template <class G>
struct RowsOf {
  G generator;
  const std::vector<std::size_t>* order;
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return generator.template element<T>((*order)[i], j);
  }
};

/// A permutation matrix: zeros on the diagonal, unless shifted by nothing.
struct Shifted {
  std::size_t order = 0, by = 1;
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T((i + by) % order == j ? 1 : 0);
  }
};

}  // namespace tandem::linalg::test
