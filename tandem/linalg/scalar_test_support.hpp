// tandem/linalg/scalar_test_support.hpp: what tests in all precisions share: the types, and their letters in names of
// tests.
#pragma once

#include <gtest/gtest.h>

#include <complex>
#include <string>

#include "tandem/linalg/types.hpp"

namespace tandem::linalg::test {

using Scalars = testing::Types<float, double, std::complex<float>, std::complex<double>>;
struct Letters {
  template <class T>
  static std::string GetName(int) {
    return std::string(1, precision_letter<T>);
  }
};

}  // namespace tandem::linalg::test
