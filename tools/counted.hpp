// tools/counted.hpp: numbers for people: "1 rank", "2 ranks", "15.7 GiB"; times in seconds.
#pragma once

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

/// From a GiB on with one decimal, below exact; 0 is "unknown size".
inline std::string readable_bytes(std::uint64_t bytes) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  if (bytes == 0) return "unknown size";
  const auto exact = base::format_bytes(static_cast<std::int64_t>(bytes));
  return static_cast<double>(bytes) < gib ? exact : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / gib);
}

inline double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace tandem::tools
