// tools/svg_text.hpp: escapes texts for pictures.
#pragma once

#include <string>
#include <string_view>

namespace tandem::tools {

/// The text as the content of an XML element; control characters become question marks.
inline std::string svg_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') result += "&amp;";
    else if (c == '<') result += "&lt;";
    else if (c == '>') result += "&gt;";
    else result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return result;
}

}  // namespace tandem::tools
