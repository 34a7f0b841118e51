// tandem/base/suggest.hpp: the known name that a person probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tandem::base {

/// Least number of characters to insert, delete, replace or swap with a neighbour to turn `a` into `b` (optimal string
/// alignment distance). O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" if none is near enough to be what was meant (more than a third of the word
/// wrong).
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace tandem::base
