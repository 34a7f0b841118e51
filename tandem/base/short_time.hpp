// tandem/base/short_time.hpp: durations for people.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace tandem::base {

/// `ns` nanoseconds, not negative, as text: three digits, and a suitable unit.
inline std::string short_time(double ns) {
  constexpr std::array<std::string_view, 4> units{"ns", "us", "ms", "s"};
  std::size_t unit = 0;
  for (; ns >= 999.5 && unit + 1 < units.size(); ++unit) ns /= 1000;  // what would be rounded to 1000 has the next unit
  return ns >= 999.5 ? fmt::format("{:.0f} {}", ns, units[unit]) : fmt::format("{:.3g} {}", ns, units[unit]);
}

}  // namespace tandem::base
