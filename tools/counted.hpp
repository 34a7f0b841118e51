// tools/counted.hpp: a count and its noun, for messages: "1 rank", "2 ranks".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::tools {

/// The plural is the noun with an s.
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace tandem::tools
