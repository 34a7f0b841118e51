// tools/counted.hpp: numbers for people: "1 rank", "2 ranks", "12.5 MiB"; times in seconds.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "tandem/base/units.hpp"

namespace tandem::tools {

/// The plural is the noun with an s.
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

/// A size: from a GiB on with one decimal, below exact; 0 is "unknown size".
inline std::string readable_bytes(std::uint64_t bytes) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  if (bytes == 0) return "unknown size";
  const auto exact = base::format_bytes(static_cast<std::int64_t>(bytes));
  return static_cast<double>(bytes) < gib ? exact : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / gib);
}

/// A size such as "12.5 MiB": three digits in units of 1024, as in the page and the pictures of a report. For rates,
/// "/s" follows.
inline std::string short_bytes(double bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return unit == 0 || bytes >= 100 ? fmt::format("{:.0f} {}", bytes, units[unit])
                                   : fmt::format("{:.3g} {}", bytes, units[unit]);
}
std::string short_bytes(std::integral auto bytes) { return short_bytes(static_cast<double>(bytes)); }

inline double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace tandem::tools
