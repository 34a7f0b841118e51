// tandem/runtime/exec/log_lines.hpp: a text of several lines as several messages of the log.
#pragma once

#include <algorithm>
#include <string_view>

#include "tandem/base/log.hpp"

namespace tandem::runtime {

/// Logs each line of `text` as an error of its own, since a message of the log is one line. The first one follows
/// `before`.
inline void log_lines(base::Log& log, std::string_view before, std::string_view text) {
  bool first = true;
  while (first || !text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    log.error("{}{}", first ? before : std::string_view(), text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    first = false;
  }
}

}  // namespace tandem::runtime
