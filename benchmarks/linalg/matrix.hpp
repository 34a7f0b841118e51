// benchmarks/linalg/matrix.hpp: the matrix that the Cholesky programs factorise, in contiguous tiles, and the check of
// a factor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace benchmarks::linalg {

/// A number in [-0.5, 0.5) that is always the same for the same pair of row and column, in either order.
inline double random_entry(std::size_t row, std::size_t column) {
  std::uint64_t bits = (static_cast<std::uint64_t>(std::max(row, column)) << 32) | std::min(row, column);
  bits = (bits + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 29)) * 0x94d049bb133111ebULL;
  bits ^= bits >> 32;
  return static_cast<double>(bits >> 11) * 0x1.0p-53 - 0.5;
}

/// Entry of the symmetric test matrix of order n. Its diagonal dominates, so it is positive definite.
inline double test_entry(std::size_t row, std::size_t column, std::size_t n) {
  return random_entry(row, column) + (row == column ? static_cast<double>(n) : 0.0);
}

/// Runs `body(i)` for all i below `count`, spread over `workers` threads.
template <class Body>
void on_threads(unsigned workers, std::size_t count, const Body& body) {
  std::vector<std::jthread> threads;
  for (unsigned worker = 0; worker < workers; ++worker) {
    threads.emplace_back([=, &body] {
      for (std::size_t i = worker; i < count; i += workers) {
        body(i);
      }
    });
  }
}

/// The lower triangle of a symmetric matrix of order `n` in tiles of order `nb` (the last ones smaller), each
/// contiguous and column-major with as many rows as it has, and starting on a cache line.
template <class T>
class TiledMatrix {
 public:
  TiledMatrix(std::size_t n, std::size_t nb) : n_(n), nb_(nb), side_((n + nb - 1) / nb) {
    tiles_.resize(side_ * (side_ + 1) / 2);
    for (auto& tile : tiles_) {
      tile.reset(static_cast<T*>(::operator new(nb * nb * sizeof(T), alignment)));
    }
  }

  std::size_t order() const { return n_; }
  std::size_t tile_order() const { return nb_; }
  std::size_t side() const { return side_; }

  /// Rows of the tiles in this row of tiles, and so columns of those in this column of tiles.
  int extent(std::size_t index) const { return static_cast<int>(std::min(nb_, n_ - index * nb_)); }

  /// The tile; `row` is not less than `column`.
  T* tile(std::size_t row, std::size_t column) const { return tiles_[row * (row + 1) / 2 + column].get(); }

  /// Sets the test matrix.
  void fill(unsigned workers) {
    on_threads(workers, side_, [this](std::size_t row) {
      for (std::size_t column = 0; column <= row; ++column) {
        fill_tile(row, column);
      }
    });
  }

  /// || A x - L L^T x ||_max / (||A||_1 ||x||_1 n epsilon) for a random x, with A the test matrix and L this one: of
  /// order 1 and less when L is its factor, and large otherwise with probability 1.
  double residual() const {
    std::vector<double> x(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      x[i] = random_entry(i, n_);
    }
    const std::vector<double> product = multiply(multiply_transposed(x));
    double error = 0;
    double norm_a = 0;
    double norm_x = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      double expected = 0;
      double row_sum = 0;
      for (std::size_t j = 0; j < n_; ++j) {
        const double entry = test_entry(i, j, n_);
        expected += entry * x[j];
        row_sum += std::abs(entry);
      }
      const double difference = std::abs(expected - product[i]);
      error = std::isnan(difference) ? difference : std::max(error, difference);
      norm_a = std::max(norm_a, row_sum);
      norm_x += std::abs(x[i]);
    }
    return error / (norm_a * norm_x * static_cast<double>(n_) * static_cast<double>(std::numeric_limits<T>::epsilon()));
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(T* tile) const { ::operator delete(tile, alignment); }
  };

  void fill_tile(std::size_t row, std::size_t column) {
    T* const entries = tile(row, column);
    const std::size_t rows = static_cast<std::size_t>(extent(row));
    const std::size_t columns = static_cast<std::size_t>(extent(column));
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t i = 0; i < rows; ++i) {
        entries[j * rows + i] = static_cast<T>(test_entry(row * nb_ + i, column * nb_ + j, n_));
      }
    }
  }

  /// Calls visit(row, column, entry) for the entries of the lower triangle.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t row = 0; row < side_; ++row) {
      for (std::size_t column = 0; column <= row; ++column) {
        const T* const entries = tile(row, column);
        const std::size_t rows = static_cast<std::size_t>(extent(row));
        const std::size_t columns = static_cast<std::size_t>(extent(column));
        for (std::size_t j = 0; j < columns; ++j) {
          for (std::size_t i = row == column ? j : 0; i < rows; ++i) {
            visit(row * nb_ + i, column * nb_ + j, static_cast<double>(entries[j * rows + i]));
          }
        }
      }
    }
  }

  std::vector<double> multiply(const std::vector<double>& x) const {
    std::vector<double> y(n_, 0.0);
    for_each([&](std::size_t row, std::size_t column, double entry) { y[row] += entry * x[column]; });
    return y;
  }

  std::vector<double> multiply_transposed(const std::vector<double>& x) const {
    std::vector<double> y(n_, 0.0);
    for_each([&](std::size_t row, std::size_t column, double entry) { y[column] += entry * x[row]; });
    return y;
  }

  std::size_t n_;
  std::size_t nb_;
  std::size_t side_;
  std::vector<std::unique_ptr<T, Free>> tiles_;
};

}  // namespace benchmarks::linalg
