// tandem/analysis/tables/short_time.hpp: a time and a number for people: "76.3 us", "12,345".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tandem/base/short_time.hpp"

namespace tandem::analysis {

using base::short_time;

/// A number with digits in threes: "12,345".
inline std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace tandem::analysis
