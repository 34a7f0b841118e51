// tandem/analysis/tables/quartiles.hpp: quartiles and outliers of times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tandem::analysis {

/// Quartiles of values in ns. They are values that occur: the k-th smallest, for k = (n - 1) / 4 and so on.
struct Quartiles {
  std::uint64_t count = 0;
  std::int64_t total = 0;
  std::int64_t min = 0, first = 0, median = 0, third = 0, max = 0;

  /// The limit of outliers: the third quartile plus 1.5 times the distance between the quartiles (Tukey).
  double fence() const noexcept { return static_cast<double>(third) + 1.5 * static_cast<double>(third - first); }
  bool is_outlier(std::int64_t value) const noexcept { return static_cast<double>(value) > fence(); }
};

/// The value at index `k` when they are sorted; k < n. Reorders them. O(n).
template <class Values>
auto smallest(Values&& values, std::size_t k) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  std::ranges::nth_element(values, at);
  return *at;
}

/// The quartiles; empty without values. Reorders them. O(n).
inline std::optional<Quartiles> quartiles(std::span<std::int64_t> values) {
  if (values.empty()) return std::nullopt;
  const std::size_t last = values.size() - 1;
  const auto [min, max] = std::ranges::minmax(values);
  Quartiles result{.count = values.size(), .min = min, .max = max};
  // Each call leaves smaller values before its result, and greater ones behind.
  result.median = smallest(values, last / 2);
  result.first = smallest(values.first(last / 2 + 1), last / 4);
  const std::size_t behind = last / 2, third = last - last / 4;
  result.third = smallest(values.subspan(behind), third - behind);
  for (const std::int64_t value : values) result.total += value;
  return result;
}

}  // namespace tandem::analysis
