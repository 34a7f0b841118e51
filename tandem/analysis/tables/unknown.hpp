// tandem/analysis/tables/unknown.hpp: the numbers that stand for unknown values.
#pragma once

#include <cstdint>
#include <limits>

namespace tandem::analysis {

/// Stands for a time that is not known: the event was not recorded, or has not happened.
inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::min();
/// Stands for a row, a datum, a rank or a request that is not known.
inline constexpr std::uint32_t no_number = UINT32_MAX;
inline constexpr std::uint16_t no_worker = UINT16_MAX;
inline constexpr std::int32_t no_iteration = INT32_MIN;

}  // namespace tandem::analysis
