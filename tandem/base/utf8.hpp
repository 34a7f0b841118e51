// tandem/base/utf8.hpp: texts from anywhere as UTF-8 that every reader accepts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::base {

/// Replaces bytes that are not UTF-8: U+FFFD.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the UTF-8 character at the front of `text`, which is not empty; 0: there is none (Unicode, table 3-7): it
/// is longer than needed, a surrogate, beyond U+10FFFF, cut off, or begins in the middle.
std::size_t utf8_length(std::string_view text) noexcept;

/// `text` with U+FFFD in place of each byte that is not UTF-8. Names come from programs, which may give any bytes, and
/// readers of most formats refuse a whole file for one of them.
std::string as_utf8(std::string_view text);

}  // namespace tandem::base
