// tandem/base/narrow.hpp: conversions to smaller integers that lose nothing.
#pragma once

#include <concepts>
#include <limits>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::base {

/// `value` as a `To`. The caller ensures that it fits: otherwise it is a bug of ours, and the process ends. Any thread.
template <std::integral To, std::integral From>
[[nodiscard]] constexpr To narrow(From value) noexcept {
  TANDEM_ASSERT(std::in_range<To>(value));
  return static_cast<To>(value);
}

/// `value` as a `To`, or the largest or smallest `To` when it does not fit: for numbers from outside that only a
/// message shows. Any thread.
template <std::integral To, std::integral From>
[[nodiscard]] constexpr To saturated(From value) noexcept {
  if (std::in_range<To>(value)) return static_cast<To>(value);
  return std::cmp_less(value, 0) ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
}

}  // namespace tandem::base
