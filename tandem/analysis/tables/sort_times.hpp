// tandem/analysis/tables/sort_times.hpp: sorts rows by a time, in linear time.
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

/// A time, and its row. Sorting these reads memory in order; sorting rows by a time that is looked up does not.
struct TimedRow {
  std::int64_t ns = 0;
  std::uint32_t row = 0;
};

namespace internal {

/// The beginnings of sorted runs of rows, then their end, and the least and greatest time. Incomplete if there are more
/// than `most`.
struct Runs {
  static constexpr std::size_t most = 8;
  std::vector<std::size_t> begins{0};
  std::int64_t least = 0, greatest = 0;

  std::size_t count() const noexcept { return begins.size() - 1; }
};

/// Merges neighbours until one run is left (natural merge sort): reads and writes in order, unlike a radix sort.
template <class Rows, class Time, class Touch>
void merge_runs(Rows& rows, Rows& other, std::vector<std::size_t> begins, const Time& time_of, const Touch& touch) {
  while (begins.size() > 2) {
    std::vector<std::size_t> merged{0};
    for (std::size_t run = 0; run + 1 < begins.size(); run += 2) {
      std::size_t a = begins[run], b = begins[run + 1], out = a;
      const std::size_t a_end = b, b_end = run + 2 < begins.size() ? begins[run + 2] : b;
      while (a < a_end || b < b_end) {
        const bool takes_b = a == a_end || (b < b_end && time_of(rows[b]) < time_of(rows[a]));
        other[out++] = rows[takes_b ? b++ : a++];
        touch();
      }
      merged.push_back(b_end);
    }
    rows.swap(other);
    begins = std::move(merged);
  }
}

}  // namespace internal

/// Sorts by `key(row)`, whole numbers of 64 bits; rows of equal keys keep their order. Sorted rows are only read, and a
/// few sorted runs are merged. Else a radix sort by those digits in which keys differ, from the lowest on (Knuth, The
/// Art of Computer Programming, volume 3, section 5.2.5): O(n) for each digit of 11 bits, and a second vector for the
/// time of sorting, from the same memory. `Rows`: a vector or a `SpillVector`.
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
  internal::Runs runs{.least = time_of(rows[0]), .greatest = time_of(rows[0])};
  std::int64_t before = runs.least;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t time = time_of(rows[i]);
    if (time < before && runs.begins.size() <= internal::Runs::most) runs.begins.push_back(i);
    before = time;
    runs.least = std::min(runs.least, time);
    runs.greatest = std::max(runs.greatest, time);
    touch();
  }
  runs.begins.push_back(rows.size());
  if (runs.count() == 1) return;
  Rows other = [&] {
    if constexpr (requires { rows.memory(); }) return Rows(rows.memory());
    else return Rows();
  }();
  other.resize(rows.size());
  if (runs.count() <= internal::Runs::most)
    return internal::merge_runs(rows, other, std::move(runs.begins), time_of, touch);
  const auto distance = [&](const Row& row) {
    return static_cast<std::uint64_t>(time_of(row)) - static_cast<std::uint64_t>(runs.least);
  };
  const std::uint64_t greatest = static_cast<std::uint64_t>(runs.greatest) - static_cast<std::uint64_t>(runs.least);
  const auto bits = static_cast<unsigned>(std::bit_width(greatest));
  // Counts of each value of each digit, in one pass, since the order of rows does not matter.
  using Places = std::array<std::size_t, std::size_t{1} << digit_bits>;
  const unsigned digits = (bits + digit_bits - 1) / digit_bits;
  std::vector<Places> places(digits);
  const auto digit = [&](const Row& row, unsigned place) {
    return distance(row) >> (place * digit_bits) & ((1u << digit_bits) - 1);
  };
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

/// Sorts by time, and at equal times by row.
template <class Rows>
void sort_by_time_and_row(Rows& rows) {
  sort_by_time(rows, &TimedRow::ns);
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
    bool by_row = true;
    for (last = first + 1; last < rows.size() && rows[last].ns == rows[first].ns; ++last)
      by_row = by_row && rows[last - 1].row < rows[last].row;
    if (by_row) continue;
    std::sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.begin() + static_cast<std::ptrdiff_t>(last),
              [](const TimedRow& a, const TimedRow& b) { return a.row < b.row; });
  }
}

}  // namespace tandem::analysis
