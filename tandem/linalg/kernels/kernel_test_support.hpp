// tandem/linalg/kernels/kernel_test_support.hpp: what tests of kernels share: matrices with guards around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/scalar_test_support.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::test {

/// A matrix inside a larger array, so that a kernel that confuses ld and rows, or writes outside, is caught.
template <class T>
class Padded {
 public:
  Padded(std::size_t rows, std::size_t cols)
      : rows_(rows), cols_(cols), ld_(rows + 3), storage_(ld_ * (cols + 1), guard()) {}
  template <class G>
  Padded(std::size_t rows, std::size_t cols, const G& generator) : Padded(rows, cols) {
    generate_tile(generator, {}, view());
  }
  MatrixView<T> view() { return {storage_.data(), rows_, cols_, ld_}; }
  bool guards_intact() {
    for (std::size_t j = 0; j <= cols_; ++j)
      for (std::size_t i = 0; i < ld_; ++i)
        if ((i >= rows_ || j == cols_) && storage_[i + j * ld_] != guard()) return false;
    return true;
  }

 private:
  static T guard() { return T(Real<T>(12345)); }
  std::size_t rows_, cols_, ld_;
  std::vector<T> storage_;
};

template <class T>
Padded<T> random(std::uint64_t seed, std::size_t rows, std::size_t cols) {
  return {rows, cols, RandomGeneral{seed}};
}

}  // namespace tandem::linalg::test
