// tandem/base/option.cpp: reading and writing values by type, and the registry.
#include "tandem/base/option.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tandem/base/suggest.hpp"
#include "tandem/base/units.hpp"

namespace tandem::base {
namespace {

bool is_option_name(std::string_view name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; };
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' && std::all_of(name.begin(), name.end(), allowed);
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> parse_bool(std::string_view text) {
  for (std::string_view yes : {"true", "yes", "on", "1"})
    if (text == yes) return true;
  for (std::string_view no : {"false", "no", "off", "0"})
    if (text == no) return false;
  return std::nullopt;
}

std::string article_and_type(OptionType type) {
  switch (type) {
    case OptionType::boolean: return "true or false";
    case OptionType::integer: return "an integer";
    case OptionType::real: return "a number";
    case OptionType::text: return "any text";
    case OptionType::choice: return "one of a list";
    case OptionType::duration: return "a duration with its unit, such as 60us, 1.5ms or 10s";
    case OptionType::bytes: return "a size, such as 4096, 64KiB or 2GiB";
  }
  return "a value";
}

std::string format_limit(OptionType type, double limit) {
  if (type == OptionType::duration) return format_duration_ns(static_cast<std::int64_t>(limit));
  if (type == OptionType::bytes) return format_bytes(static_cast<std::int64_t>(limit));
  return fmt::format("{}", limit);
}

/// The value by type, before its range is checked.
std::optional<OptionValue> parse_as(OptionType type, std::string_view text) {
  switch (type) {
    case OptionType::boolean:
      if (const auto flag = parse_bool(text)) return OptionValue(*flag);
      break;
    case OptionType::integer:
      if (const auto number = parse_number<std::int64_t>(text)) return OptionValue(*number);
      break;
    case OptionType::real:
      if (const auto number = parse_number<double>(text); number && std::isfinite(*number)) return OptionValue(*number);
      break;
    case OptionType::duration:
      if (const auto ns = parse_duration_ns(text)) return OptionValue(ns.value());
      break;
    case OptionType::bytes:
      if (const auto bytes = parse_bytes(text)) return OptionValue(bytes.value());
      break;
    case OptionType::text:
    case OptionType::choice: return OptionValue(std::string(text));
  }
  return std::nullopt;
}

bool in_range(const Option& option, const OptionValue& value) {
  double number = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) number = static_cast<double>(*integer);
  else if (const auto* real = std::get_if<double>(&value)) number = *real;
  else return true;
  return option.minimum <= number && number <= option.maximum;
}

}  // namespace

std::string_view name_of(OptionType type) noexcept {
  switch (type) {
    case OptionType::boolean: return "boolean";
    case OptionType::integer: return "integer";
    case OptionType::real: return "real";
    case OptionType::text: return "text";
    case OptionType::choice: return "choice";
    case OptionType::duration: return "duration";
    case OptionType::bytes: return "bytes";
  }
  return "unknown";
}

std::string Option::environment_name() const {
  std::string result = "TANDEM_";
  for (char c : name) result += c == '.' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  return result;
}

std::string Option::accepted() const {
  if (type == OptionType::choice) return fmt::format("one of {}", fmt::join(choices, ", "));
  const bool below = std::isfinite(minimum), above = std::isfinite(maximum);
  std::string result = article_and_type(type);
  if (below && above)
    result += fmt::format(", from {} to {}", format_limit(type, minimum), format_limit(type, maximum));
  else if (below) result += fmt::format(", at least {}", format_limit(type, minimum));
  else if (above) result += fmt::format(", at most {}", format_limit(type, maximum));
  return result;
}

Result<OptionValue> Option::parse(std::string_view text) const {
  auto value = parse_as(type, text);
  const bool listed = type != OptionType::choice || std::find(choices.begin(), choices.end(), text) != choices.end();
  if (value && listed && in_range(*this, *value)) return *std::move(value);
  const std::string meant = type == OptionType::choice ? nearest_name(text, choices) : "";
  return Error{ErrorCode::invalid_argument,
               fmt::format("option {} cannot be '{}'{}; accepted: {}", name, text,
                           meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant), accepted())};
}

std::string Option::format(const OptionValue& value) const {
  switch (type) {
    case OptionType::boolean: return std::get<bool>(value) ? "true" : "false";
    case OptionType::integer: return fmt::format("{}", std::get<std::int64_t>(value));
    case OptionType::real: return fmt::format("{}", std::get<double>(value));
    case OptionType::duration: return format_duration_ns(std::get<std::int64_t>(value));
    case OptionType::bytes: return format_bytes(std::get<std::int64_t>(value));
    case OptionType::text:
    case OptionType::choice: return std::get<std::string>(value);
  }
  return {};
}

namespace {

/// Whether options of these names have the same environment variable, in which a point is an underscore.
bool have_one_variable(std::string_view a, std::string_view b) noexcept {
  const auto letter = [](char c) { return c == '.' ? '_' : c; };
  return std::ranges::equal(a, b, {}, letter, letter);
}

}  // namespace

void Registry::add(Option option) {
  TANDEM_ASSERT(is_option_name(option.name));
  TANDEM_ASSERT(option.parse(option.default_value).ok());
  for (const Option& known : options()) TANDEM_ASSERT(!have_one_variable(known.name, option.name));
  if (known_.use_count() > 1) known_ = std::make_shared<Known>(*known_);
  known_->places.emplace(option.name, known_->options.size());
  known_->options.push_back(std::move(option));
}

const Option* Registry::find(std::string_view name) const noexcept {
  const auto place = known_->places.find(name);
  return place != known_->places.end() ? &known_->options[place->second] : nullptr;
}

}  // namespace tandem::base
