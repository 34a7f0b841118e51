// tools/number_list.cpp: FIRST:LAST:STEP.
#include "tools/number_list.hpp"

#include <algorithm>

#include "tandem/base/number_of.hpp"

namespace tandem::tools {

std::optional<std::vector<std::int64_t>> range_of(std::string_view text) {
  std::vector<std::int64_t> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(':', begin);
    const auto number = base::number_of<std::int64_t>(text.substr(begin, end - begin));
    if (!number) return {};
    parts.push_back(*number);
    if (end == text.npos) break;
    begin = end + 1;
  }
  if (parts.size() != 3 || parts[2] <= 0 || parts[1] < parts[0]) return {};
  std::vector<std::int64_t> numbers;
  for (std::int64_t value = parts[0]; numbers.size() <= most_of_range; value += parts[2]) {
    numbers.push_back(value);
    if (parts[1] - value < parts[2]) break;
  }
  return numbers;
}

std::optional<std::vector<std::int64_t>> positive_numbers(std::string_view word, std::int64_t most) {
  auto numbers = range_of(word);
  if (const auto one = base::number_of<std::int64_t>(word); !numbers && one) numbers = {*one};
  const auto is_right = [most](std::int64_t number) { return number >= 1 && number <= most; };
  if (!numbers || numbers->size() > most_of_range || !std::ranges::all_of(*numbers, is_right)) return {};
  return numbers;
}

}  // namespace tandem::tools
