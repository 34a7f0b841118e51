// tandem/base/splitmix64.hpp: a small random generator with equal numbers on all systems.
#pragma once

#include <cstdint>

namespace tandem::base {

/// The increment of SplitMix64's counter: 2^64 divided by the golden ratio, made odd.
inline constexpr std::uint64_t kSplitMix64Step = 0x9e3779b97f4a7c15U;

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014):
/// a bijection that spreads every bit of `x` over all bits of the result.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The next of SplitMix64's numbers; `state` begins as the seed, which may be any number. A few instructions. Not for
/// secrets.
constexpr std::uint64_t splitmix64(std::uint64_t& state) noexcept { return mix64(state += kSplitMix64Step); }

}  // namespace tandem::base
