// tandem/analysis/tables/texts.cpp: strings by number.
#include "tandem/analysis/tables/texts.hpp"

namespace tandem::analysis {

Texts::Id Texts::add(std::string_view text) {
  const auto [at, added] = ids_.try_emplace(std::string(text), static_cast<Id>(texts_.size()));
  if (added) texts_.push_back(&at->first);
  return at->second;
}

}  // namespace tandem::analysis
