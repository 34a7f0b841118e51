// tandem/base/units.cpp: reading and writing durations and sizes.
#include "tandem/base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/core.h>

namespace tandem::base {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array duration_units{
    Unit{"ns", 1},          Unit{"us", ns_per_us},        Unit{"ms", ns_per_ms},
    Unit{"s", ns_per_s},    Unit{"min", 60 * ns_per_s},   Unit{"h", 3600 * ns_per_s},
};

constexpr std::int64_t kibi = 1024;
constexpr std::array byte_units{
    Unit{"B", 1},
    Unit{"KiB", kibi},
    Unit{"MiB", kibi* kibi},
    Unit{"GiB", kibi* kibi* kibi},
    Unit{"TiB", kibi* kibi* kibi* kibi},
    Unit{"kB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"K", kibi},
    Unit{"M", kibi* kibi},
    Unit{"G", kibi* kibi* kibi},
    Unit{"T", kibi* kibi* kibi* kibi},
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::int64_t> factor_of(std::string_view unit, std::span<const Unit> units) {
  for (const Unit& known : units)
    if (known.name == unit) return known.factor;
  return std::nullopt;
}

struct Quantity {
  double number;
  std::string_view unit;
};

std::optional<Quantity> split(std::string_view text) {
  text = trimmed(text);
  Quantity quantity{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), quantity.number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(quantity.number)) return std::nullopt;
  quantity.unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  return quantity;
}

/// The number times the factor, if it is a whole number of at most 2^53, which a double holds exactly.
std::optional<std::int64_t> whole(double number, std::int64_t factor) {
  const double product = number * static_cast<double>(factor);
  if (std::abs(product) > 9007199254740992.0) return std::nullopt;
  const double rounded = std::round(product);
  if (std::abs(product - rounded) > 1e-6) return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

std::string format_with(std::int64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (unit.factor > best->factor && value % unit.factor == 0) best = &unit;
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

Result<std::int64_t> parse_duration_ns(std::string_view text) {
  const auto quantity = split(text);
  if (quantity && quantity->unit.empty() && quantity->number == 0) return std::int64_t{0};
  if (quantity)
    if (const auto factor = factor_of(quantity->unit, duration_units))
      if (const auto ns = whole(quantity->number, *factor)) return *ns;
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("'{}' is not a duration; write a number and a unit out of ns, us, ms, s, min, h, for example 10s",
                  text)};
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  const auto quantity = split(text);
  if (quantity) {
    const auto factor = quantity->unit.empty() ? std::optional<std::int64_t>(1) : factor_of(quantity->unit, byte_units);
    if (factor)
      if (const auto bytes = whole(quantity->number, *factor)) return *bytes;
  }
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("'{}' is not a size; write bytes, or a number with KiB, MiB, GiB or TiB, for example 64KiB", text)};
}

std::string format_duration_ns(std::int64_t ns) {
  return ns == 0 ? "0" : format_with(ns, std::span(duration_units).first(4));
}

std::string format_bytes(std::int64_t bytes) {
  return bytes == 0 ? "0" : format_with(bytes, std::span(byte_units).first(5));
}

}  // namespace tandem::base
