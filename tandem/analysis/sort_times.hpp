// tandem/analysis/sort_times.hpp: sorts rows by a time, in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <type_traits>
#include <vector>

namespace tandem::analysis {

/// A time, and the row that it is of. Sorting these reads memory in order; sorting rows by a time that is looked up does not.
struct TimedRow {
  std::int64_t ns = 0;
  std::uint32_t row = 0;
};

/// Sorts by `key(row)`, whole numbers of 64 bits; rows of equal keys keep their order. A radix sort by those digits in which keys differ, from the
/// lowest on (Knuth, The Art of Computer Programming, volume 3, section 5.2.5): O(n) for each digit of 11 bits, and a second vector for
/// the time of sorting. Rows that are sorted already are only looked at.
template <class Row, class Key = std::identity>
void sort_by_time(std::vector<Row>& rows, Key key = {}) {
  static_assert(std::is_trivially_copyable_v<Row>);
  constexpr unsigned digit_bits = 11;
  constexpr std::size_t few = 512;  // below, comparisons are faster than counting
  const auto time_of = [&](const Row& row) -> std::int64_t { return std::invoke(key, row); };
  if (std::ranges::is_sorted(rows, {}, time_of)) return;
  if (rows.size() < few) {
    std::ranges::stable_sort(rows, {}, time_of);
    return;
  }
  const auto [least, greatest] = std::ranges::minmax(rows | std::views::transform(time_of));
  const auto distance = [&](const Row& row) { return static_cast<std::uint64_t>(time_of(row)) - static_cast<std::uint64_t>(least); };
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least)));
  std::vector<Row> other(rows.size());
  for (unsigned shift = 0; shift < bits; shift += digit_bits) {
    const auto digit = [&](const Row& row) { return distance(row) >> shift & ((1u << digit_bits) - 1); };
    std::array<std::size_t, (std::size_t{1} << digit_bits) + 1> places = {};
    for (const Row& row : rows) ++places[digit(row) + 1];
    if (std::ranges::find(places, rows.size()) != places.end()) continue;  // all have the same digit
    for (std::size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
    for (const Row& row : rows) other[places[digit(row)]++] = row;
    rows.swap(other);
  }
}

}  // namespace tandem::analysis
