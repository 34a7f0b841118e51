// tandem/base/pu_list.hpp: lists of numbers, mostly of hardware threads, as people write them: "0-7,16-23".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::base {

/// Parses numbers and ranges, separated by commas, in the order given. Errors: invalid_argument (something else, an
/// empty list, a number twice, one above 1,048,575).
Result<std::vector<unsigned>> parse_pu_list(std::string_view text);

/// The numbers in ascending order, each run of neighbours as a range.
std::string format_pu_list(std::span<const unsigned> pus);

}  // namespace tandem::base
