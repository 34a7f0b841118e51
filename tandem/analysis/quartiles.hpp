// tandem/analysis/quartiles.hpp: quartiles and outliers of times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::analysis {

/// Of values in ns. The quartiles are values that occur: the k-th smallest, for k = (n - 1) / 4 and so on.
struct Quartiles {
  std::uint64_t count = 0;
  std::int64_t total = 0;
  std::int64_t min = 0, first = 0, median = 0, third = 0, max = 0;

  /// A value above is an outlier: the third quartile plus 1.5 times the distance between the quartiles (Tukey).
  double fence() const noexcept { return static_cast<double>(third) + 1.5 * static_cast<double>(third - first); }
  bool is_outlier(std::int64_t value) const noexcept { return static_cast<double>(value) > fence(); }
};

/// The value that `k` others stand before when they are sorted; k < n. Reorders them. O(n).
template <class T>
T smallest(std::vector<T>& values, std::size_t k) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  std::ranges::nth_element(values, at);
  return *at;
}

/// Nothing of no values. Reorders them. O(n).
inline std::optional<Quartiles> quartiles(std::vector<std::int64_t>& values) {
  if (values.empty()) return std::nullopt;
  const std::size_t last = values.size() - 1;
  Quartiles result{.count = values.size(), .min = smallest(values, 0), .first = smallest(values, last / 4), .median = smallest(values, last / 2),
                   .third = smallest(values, last - last / 4), .max = smallest(values, last)};
  for (const std::int64_t value : values) result.total += value;
  return result;
}

}  // namespace tandem::analysis
