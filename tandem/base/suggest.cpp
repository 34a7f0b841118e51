// tandem/base/suggest.cpp: edit distance, and the nearest name by it.
#include "tandem/base/suggest.hpp"

#include <algorithm>
#include <vector>

namespace tandem::base {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // d(i,j) is the distance between the first i of a and the first j of b. Three rows are enough: a swap refers to two
  // back.
  std::vector<std::size_t> two_back(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], two_back[j - 2] + 1);
    }
    two_back.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  // Names are short; a word of thousands of characters is no typing error and not worth the time.
  constexpr std::size_t longest = 100;
  if (word.size() > longest) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tandem::base
