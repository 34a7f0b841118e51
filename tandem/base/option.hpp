// tandem/base/option.hpp: the existing options: name, type, default, accepted values, one line of help.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <map>
#include <memory>
#include <functional>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::base {

enum class OptionType {
  boolean,   ///< true, false, yes, no, on, off, 1, 0
  integer,   ///< a signed 64-bit number
  real,      ///< a finite double
  text,      ///< any string
  choice,    ///< one of Option::choices
  duration,  ///< 60us, 1.5ms, 10s; held in nanoseconds
  bytes,     ///< 4096, 64KiB; held in bytes
};

/// The name: "boolean", "integer", and so on.
std::string_view name_of(OptionType type) noexcept;

/// boolean holds bool; integer, duration (ns) and bytes hold int64; real holds double; text and choice hold string.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

/// One option. A description only; values live in Config. Write it with designated initialisers:
///   registry.add({.name = "window", .type = OptionType::integer, .default_value = "4096",
///                 .help = "most tasks that are submitted and not finished", .minimum = 1});
struct Option {
  std::string name = {};             ///< lower case letters, digits, `_` and `.`: `window`, `trace.folder`
  OptionType type = OptionType::text;
  std::string default_value = {};    ///< as a person would write it
  std::string help = {};             ///< one line
  std::vector<std::string> choices = {};  ///< the accepted values of a choice
  /// Accepted range, both ends included, of integer, real, duration (ns) and bytes. Exact up to 2^53.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();

  /// "TANDEM_" and the name in upper case, `.` replaced by `_`.
  std::string environment_name() const;
  /// The accepted texts, for messages: "an integer of at least 1", "one of eager, lws".
  std::string accepted() const;
  /// Reads `text` as this option's type. Errors (invalid_argument): a sentence with the option, the text and what is
  /// accepted.
  Result<OptionValue> parse(std::string_view text) const;
  /// A value of this option as text for parse().
  std::string format(const OptionValue& value) const;
};

/// The existing options, in the order of registration. An object: each program, test or runtime has its own. Not
/// thread-safe while options are added.
class Registry {
 public:
  /// Adds an option. A bad name, a name or environment name taken twice, or a default that its own type refuses is a
  /// bug of the caller (assertion).
  void add(Option option);

  /// The option of that name, or nullptr.
  const Option* find(std::string_view name) const noexcept;
  std::span<const Option> options() const noexcept { return known_->options; }

 private:
  friend class Config;
  struct Known {
    std::vector<Option> options;
    std::map<std::string, std::size_t, std::less<>> places;  ///< by name
  };
  std::shared_ptr<Known> known_ = std::make_shared<Known>();  ///< configurations share it; then it does not change
};

}  // namespace tandem::base
