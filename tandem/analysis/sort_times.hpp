// tandem/analysis/sort_times.hpp: sorts rows by a time, in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tandem::analysis {

/// A time, and the row that it is of. Sorting these reads memory in order; sorting rows by a time that is looked up does not.
struct TimedRow {
  std::int64_t ns = 0;
  std::uint32_t row = 0;
};

/// Sorts by `key(row)`, whole numbers of 64 bits; rows of equal keys keep their order. A radix sort by those digits in which keys differ, from the
/// lowest on (Knuth, The Art of Computer Programming, volume 3, section 5.2.5): O(n) for each digit of 11 bits, and a second vector for
/// the time of sorting, from the same memory. Rows that are sorted already are only looked at. `Rows`: a vector or a `SpillVector`.
template <class Rows, class Key = std::identity>
void sort_by_time(Rows& rows, Key key = {}) {
  using Row = typename Rows::value_type;
  static_assert(std::is_trivially_copyable_v<Row>);
  constexpr unsigned digit_bits = 11;
  constexpr std::size_t few = 512;  // below, comparisons are faster than counting
  const auto time_of = [&](const Row& row) -> std::int64_t { return std::invoke(key, row); };
  const auto touch = [&] {
    if constexpr (requires { rows.touch(); }) rows.touch();
  };
  if (rows.size() < few) {
    if (!std::ranges::is_sorted(rows, {}, time_of)) std::ranges::stable_sort(rows, {}, time_of);
    return;
  }
  bool sorted = true;
  std::int64_t least = time_of(rows[0]), greatest = least, before = least;
  for (const Row& row : rows) {
    const std::int64_t time = time_of(row);
    sorted = sorted && before <= time;
    before = time;
    least = std::min(least, time);
    greatest = std::max(greatest, time);
    touch();
  }
  if (sorted) return;
  const auto distance = [&](const Row& row) { return static_cast<std::uint64_t>(time_of(row)) - static_cast<std::uint64_t>(least); };
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least)));
  Rows other = [&] {
    if constexpr (requires { rows.memory(); }) return Rows(rows.memory());
    else return Rows();
  }();
  other.resize(rows.size());
  // How often each digit has each value: of all digits in one pass, since the order of rows does not matter.
  using Places = std::array<std::size_t, std::size_t{1} << digit_bits>;
  const unsigned digits = (bits + digit_bits - 1) / digit_bits;
  std::vector<Places> places(digits);
  const auto digit = [&](const Row& row, unsigned place) { return distance(row) >> (place * digit_bits) & ((1u << digit_bits) - 1); };
  for (const Row& row : rows) {
    for (unsigned place = 0; place < digits; ++place) ++places[place][digit(row, place)];
    touch();
  }
  for (unsigned place = 0; place < digits; ++place) {
    if (std::ranges::find(places[place], rows.size()) != places[place].end()) continue;  // all have the same digit
    std::size_t begin = 0;
    for (std::size_t& of_value : places[place]) begin += std::exchange(of_value, begin);
    for (const Row& row : rows) {
      other[places[place][digit(row, place)]++] = row;
      touch();
    }
    rows.swap(other);
  }
}

}  // namespace tandem::analysis
