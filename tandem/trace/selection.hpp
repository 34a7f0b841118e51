// tandem/trace/selection.hpp: which event types are recorded, as a value and as text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/result.hpp"
#include "tandem/trace/event.hpp"

namespace tandem::trace {

/// A set of event types, one bit each. A set that is not empty includes the descriptions (`about`).
struct Selection {
  std::array<std::uint64_t, kTypes / 64> words{};

  static Selection none() noexcept { return {}; }
  static Selection all() noexcept;
  static Selection of(Category category) noexcept;

  /// Reads `task,comm,-task.deps`: names of categories and events, `all`, `none`, from left to right; `-` removes. A
  /// text that begins with `-` removes from `all`. Errors (invalid_argument): names the unknown word and the nearest
  /// known one.
  static base::Result<Selection> parse(std::string_view text);

  constexpr bool has(Type type) const noexcept {
    const auto number = static_cast<unsigned>(type);
    return (words[number / 64] >> number % 64 & 1) != 0;
  }
  constexpr void add(Type type) noexcept {
    const auto number = static_cast<unsigned>(type);
    words[number / 64] |= std::uint64_t{1} << number % 64;
  }
  bool empty() const noexcept { return words == decltype(words){}; }
  /// The selection as text that `parse` reads.
  std::string described() const;

  friend bool operator==(const Selection&, const Selection&) = default;
};

}  // namespace tandem::trace
