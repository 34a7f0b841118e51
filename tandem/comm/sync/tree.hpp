// tandem/comm/sync/tree.hpp: the binomial tree along which clocks are compared.
//
// The parent of rank r > 0 is r without its highest bit. In round j the ranks 2^j .. 2^(j+1) - 1 measure against ranks
// below 2^j, each of which has one partner in that round and has been synchronised before: ceil(log2 p) rounds for p
// ranks.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "tandem/base/ids.hpp"

namespace tandem::comm::internal::sync {

/// The parent of a rank other than 0.
constexpr base::Rank parent_of(base::Rank rank) noexcept {
  return base::Rank{rank.value() ^ std::bit_floor(rank.value())};
}

/// The children of a rank in the order of their rounds.
inline std::vector<base::Rank> children_of(base::Rank rank, std::uint32_t size) {
  std::vector<base::Rank> children;
  const std::uint64_t first = rank.value() == 0 ? 1 : std::uint64_t{std::bit_floor(rank.value())} * 2;
  for (std::uint64_t bit = first; rank.value() + bit < size; bit *= 2)
    children.emplace_back(static_cast<std::uint32_t>(rank.value() + bit));
  return children;
}

}  // namespace tandem::comm::internal::sync
