// tandem/trace/json_writer.cpp: texts in JSON.
#include "tandem/trace/json_writer.hpp"

#include <cstddef>

#include "tandem/base/utf8.hpp"

namespace tandem::trace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t bytes = base::utf8_length(text);
    const char c = text.front();
    if (bytes == 0) out += base::kReplacement;
    else if (c == '"' || c == '\\') (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else out += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  out += '"';
  return out;
}

}  // namespace tandem::trace
