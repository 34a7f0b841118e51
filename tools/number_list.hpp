// tools/number_list.hpp: numbers as command lines name them, one by one or as a range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tandem::tools {

/// Most numbers of a range.
inline constexpr std::size_t most_of_range = 100'000;

/// The whole numbers of "4800:40000:3200": FIRST:LAST:STEP, of which LAST is one if a step meets it. Nothing: it is no
/// such range. One that is longer than `most_of_range` ends behind one more.
std::optional<std::vector<std::int64_t>> range_of(std::string_view text);

/// Those of one word of a list: a number, or a range. Nothing: it is neither, or some are not from 1 to `most`.
std::optional<std::vector<std::int64_t>> positive_numbers(std::string_view word, std::int64_t most);

}  // namespace tandem::tools
