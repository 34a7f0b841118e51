// tandem/linalg/kernel_operations.cpp: the counts.
#include "tandem/linalg/kernel_operations.hpp"

#include <algorithm>

namespace tandem::linalg {
namespace {

using runtime::Shape;

double rows(const Shape& tile) { return static_cast<double>(tile.rows); }
double cols(const Shape& tile) { return static_cast<double>(tile.cols); }
double size(const Shape& tile) { return rows(tile) * cols(tile); }

/// Operations of factorising an m x n tile into reflectors.
double reflectors(double m, double n) {
  const double less = std::min(m, n), more = std::max(m, n);
  return 2 * less * less * (more - less / 3);
}

}  // namespace

std::optional<double> kernel_operations(std::string_view codelet, std::span<const Shape> data) {
  const auto is = [&](std::string_view name, std::size_t accesses) {
    return codelet == name && data.size() == accesses;
  };
  // The inner dimension of a product is what A has beside C's rows, transposed or not.
  if (is("gemm", 3)) return 2 * size(data[2]) * (size(data[0]) / rows(data[2]));
  if (is("herk", 2) || is("syrk", 2)) return rows(data[1]) * (rows(data[1]) + 1) * (size(data[0]) / rows(data[1]));
  if (is("trsm", 2)) return size(data[1]) * rows(data[0]);
  if (is("potrf", 1)) return rows(data[0]) * rows(data[0]) * rows(data[0]) / 3;
  if (is("getrf", 1)) {
    const double m = rows(data[0]), n = cols(data[0]), least = std::min(m, n);
    return 2 * (m * n * least - (m + n) * least * least / 2 + least * least * least / 3);
  }
  if (is("geqrt", 2)) return reflectors(rows(data[0]), cols(data[0]));
  if (is("unmqr", 3)) {
    const double reflector_count = std::min(rows(data[0]), cols(data[0]));
    return 2 * cols(data[2]) * reflector_count * (2 * rows(data[2]) - reflector_count);
  }
  if (is("tpqrt", 3)) return 2 * size(data[1]) * cols(data[1]);
  if (is("tpmqrt", 4)) return 4 * size(data[3]) * cols(data[0]);
  return std::nullopt;
}

}  // namespace tandem::linalg
