// tandem/dist/need.cpp: merges the accesses of a task to the same data.
#include "tandem/dist/need.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace tandem::dist {

namespace {

/// The most accesses that are compared in pairs.
constexpr std::size_t kFew = 32;

void add(const Use& use, Need& need) {
  const bool reduces = use.mode == AccessMode::reduce;
  need.sees |= sees_value(use.mode) || reduces;
  if (makes_value(use.mode) || reduces) ++need.new_versions;
}

}  // namespace

void gather_needs(std::span<const Use> uses, std::vector<Need>& needs) {
  needs.clear();
  std::unordered_map<const runtime::Handle*, std::size_t> places;  // used for many accesses
  if (uses.size() > kFew) places.reserve(uses.size());
  for (const Use& use : uses) {
    if (use.mode == AccessMode::scratch) continue;
    std::size_t at = needs.size();
    if (uses.size() > kFew) {
      at = places.try_emplace(use.handle, at).first->second;
    } else {
      const auto known = std::find_if(needs.begin(), needs.end(),
                                      [&](const Need& need) { return need.handle == use.handle; });
      at = static_cast<std::size_t>(known - needs.begin());
    }
    if (at == needs.size()) needs.push_back({use.handle});
    add(use, needs[at]);
  }
}

}  // namespace tandem::dist
