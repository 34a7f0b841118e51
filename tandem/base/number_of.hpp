// tandem/base/number_of.hpp: a text that is exactly one number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace tandem::base {

/// The number that is all of `text`, without blanks or a plus. Empty: it is something else, or too large for `Number`.
/// `radix` is for integers.
template <class Number>
std::optional<Number> number_of(std::string_view text, int radix = 10) {
  Number number{};
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>)
    read = std::from_chars(text.data(), text.data() + text.size(), number);
  else read = std::from_chars(text.data(), text.data() + text.size(), number, radix);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return number;
}

}  // namespace tandem::base
