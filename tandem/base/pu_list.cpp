// tandem/base/pu_list.cpp: reads and writes lists of hardware threads.
#include "tandem/base/pu_list.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include <fmt/core.h>

namespace tandem::base {
namespace {

constexpr unsigned most = (1u << 20) - 1;

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

}  // namespace

Result<std::vector<unsigned>> parse_pu_list(std::string_view text) {
  const auto wrong = [&](std::string_view part, std::string_view why) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("'{}' in the list of hardware threads '{}' {}; write numbers and ranges, as in '0-7,16-23'", part,
                    text, why)};
  };
  std::vector<unsigned> pus;
  std::set<unsigned> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    begin = comma + 1;
    const auto dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last) return wrong(part, "is no number and no range");
    if (*last < *first) return wrong(part, "ends before it begins");
    for (unsigned pu = *first; pu <= *last; ++pu) {
      if (!seen.insert(pu).second) return wrong(part, "names one twice");
      pus.push_back(pu);
    }
  }
  return pus;
}

std::string format_pu_list(std::span<const unsigned> pus) {
  const std::set<unsigned> sorted(pus.begin(), pus.end());
  std::string text;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const unsigned first = *at;
    unsigned last = first;
    while (++at != sorted.end() && *at == last + 1) last = *at;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last != first) text += fmt::format("-{}", last);
  }
  return text;
}

}  // namespace tandem::base
