// tandem/comm/schedule/rail_share.hpp: how much of a large message each rail carries.
#pragma once

#include <cstdint>
#include <span>

#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm::internal {

inline constexpr std::size_t max_rails = 64;

/// Bytes that a rail carries of a message of `bytes`, when no rail should carry less than `least_bytes`.
///
/// Rail r delivers its first new byte at s_r = latency_r + in_flight_r / b_r, and b_r bytes per ns from then on. All
/// end together at the T with
///
///     sum over r in P of  b_r max(0, T - s_r)  =  bytes,                                                         (1)
///
/// and rail r carries b_r max(0, T - s_r). P is first all rails; then those whose part is at least `least_bytes`, and
/// the rail that would be done first with the whole message, with which (1) is solved again. Since that rail is in P, T
/// is never later than its end. Example: b = (2, 1) bytes/ns, s = (0, 600) ns. Of 3000 bytes T = 1200, the parts are
/// 2400 and 600; of 1000 bytes T = 500: all on rail 0, the second rail would end later.
///
/// A rail of unknown bandwidth counts with the mean of the known ones, or with 1 byte/ns when none is known. The parts
/// add up to `bytes`. O(rails^2); at most `max_rails`.
double share_of_rail(std::span<const RailState> rails, unsigned rail, std::uint64_t bytes,
                     std::uint64_t least_bytes) noexcept;

}  // namespace tandem::comm::internal
