// tandem/base/units.hpp: the few units with names, and their forms for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"

namespace tandem::base {

inline constexpr std::int64_t ns_per_us = 1'000;
inline constexpr std::int64_t ns_per_ms = 1'000'000;
inline constexpr std::int64_t ns_per_s = 1'000'000'000;

/// Parses "250ns", "60us", "1.5 ms", "2s", "5min" to nanoseconds. A number without a unit is refused unless it is 0,
/// because a person who writes 10 may mean seconds. Errors: invalid_argument.
Result<std::int64_t> parse_duration_ns(std::string_view text);

/// Parses "4096", "64KiB", "1.5 GiB", "2MB" to bytes; K, M, G and T alone are powers of 1024. Errors: invalid_argument.
Result<std::int64_t> parse_bytes(std::string_view text);

/// The shortest form that parse_duration_ns reads back exactly, up to 2^53 ns: 1'500'000 is "1500us".
std::string format_duration_ns(std::int64_t ns);

/// The shortest form that parse_bytes reads back exactly, up to 2^53 bytes: 65536 is "64KiB".
std::string format_bytes(std::int64_t bytes);

}  // namespace tandem::base
