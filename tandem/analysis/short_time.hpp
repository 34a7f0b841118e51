// tandem/analysis/short_time.hpp: a time and a number for people: "76.3 us", "12,345".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace tandem::analysis {

/// Of `ns` nanoseconds, not negative: three digits, and the unit that suits them.
inline std::string short_time(double ns) {
  constexpr std::array<std::string_view, 4> units{"ns", "us", "ms", "s"};
  std::size_t unit = 0;
  for (; ns >= 999.5 && unit + 1 < units.size(); ++unit) ns /= 1000;  // what would be rounded to 1000 has the next unit
  return ns >= 999.5 ? fmt::format("{:.0f} {}", ns, units[unit]) : fmt::format("{:.3g} {}", ns, units[unit]);
}

/// "12,345": digits in threes.
inline std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

}  // namespace tandem::analysis
