// tandem/model/energy/power_table.cpp: writing powers as TOML, and reading untrusted files.
#include "tandem/model/energy/power_table.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/base/toml_file.hpp"
#include "tandem/model/tasks/codelet_models.hpp"

namespace tandem::model {
namespace {

using base::Error;
using base::ErrorCode;
using base::number_of;

constexpr std::string_view kPlain = " !#$&'()*+,-.:;<=>?@[]^_`{|}~";  // as in files of models, less the slash
constexpr double kMostWatts = 1e7;
constexpr double kOld = 2;  ///< factor on the errors of stored powers

/// Reads "11.8 W +- 0.2, 1830 s".
std::optional<Watts> read_watts(std::string_view text) {
  const auto cut = [&](std::string_view behind) -> std::optional<double> {
    const std::size_t end = text.find(behind);
    if (end == text.npos) return {};
    const auto number = number_of<double>(text.substr(0, end));
    text.remove_prefix(end + behind.size());
    return number && *number >= 0 && *number <= 1e15 ? number : std::nullopt;
  };
  const auto watts = cut(" W +- "), error = cut(", "), seconds = cut(" s");
  if (!watts || !error || !seconds || !text.empty() || *watts > kMostWatts || !(*seconds > 0)) return {};
  return Watts{*watts, *error, *seconds};
}

std::string row_of(std::string_view key, const Watts& power) {
  return fmt::format("\"{}\" = \"{:.6g} W +- {:.3g}, {:.6g} s\"\n", key, power.watts, power.error, power.seconds);
}

void add_to(Watts& known, const Watts& news) {
  Watts old = known;
  old.error *= kOld;
  known = combined(old, news);
}

}  // namespace

void PowerTable::add(const PowerTable& other) {
  for (const auto& [kind, power] : other.idle) add_to(idle[kind], power);
  for (const auto& [key, power] : other.kernels) add_to(kernels[key], power);
}

Watts PowerTable::mean_of(std::string_view kind) const {
  double joules = 0, errors = 0, seconds = 0;
  for (const auto& [key, power] : kernels) {
    if (key.first != kind || !power.is_known()) continue;
    joules += power.watts * power.seconds;
    errors += power.error * power.seconds;
    seconds += power.seconds;
  }
  return seconds > 0 ? Watts{joules / seconds, errors / seconds, seconds} : Watts{};
}

std::string to_text(const PowerTable& powers, std::string_view machine) {
  std::string idle, kernels;
  std::size_t rows = 0;
  for (const auto& [kind, power] : powers.idle) {
    if (!(power.seconds > 0)) continue;
    idle += row_of(percent_encoded(kind, kPlain), power);
    ++rows;
  }
  for (const auto& [key, power] : powers.kernels) {
    if (!(power.seconds > 0)) continue;
    kernels += row_of(percent_encoded(key.first, kPlain) + "/" + percent_encoded(key.second, kPlain), power);
    ++rows;
  }
  return fmt::format(
      "# What workers of this machine draw, as Tandem has learnt it from its counters of energy. `tandem models list` "
      "prints it.\n"
      "# [idle]: all that the counters of such workers cover, while no kernel runs. [kernel]: WORKER/CODELET, what one "
      "running kernel adds.\n"
      "format = 1\nmachine = \"{}\"\nrows = {}\n\n[idle]\n{}\n[kernel]\n{}",
      percent_encoded(machine, kPlain), rows, idle, kernels);
}

base::Result<PowerTable> parse_powers(std::string_view text, std::string_view file, std::string_view machine) {
  const auto damaged = [&](const std::string& why) {
    return Error{ErrorCode::malformed, fmt::format("{}: {}; remove it", file, why)};
  };
  const auto read = base::parse_toml(text, file);
  if (!read.ok()) return damaged("is damaged (" + read.error().message + ")");
  PowerTable powers;
  std::optional<std::string> format, of_machine;
  std::optional<std::uint64_t> rows;
  std::uint64_t found = 0;
  for (const base::TomlValue& value : read.value()) {
    const std::string_view name = value.name;
    if (name == "format") format = value.text;
    else if (name == "machine") of_machine = percent_decoded(value.text);
    else if (name == "rows") rows = number_of<std::uint64_t>(value.text);
    const bool is_idle = name.starts_with("idle.");
    if (!is_idle && !name.starts_with("kernel.")) continue;
    const std::string_view key = name.substr(name.find('.') + 1);
    const std::size_t slash = key.find('/');
    const auto power = read_watts(value.text);
    if (!power || key.empty() || (slash != key.npos) == is_idle)
      return damaged(fmt::format("line {} holds no power", value.line));
    if (is_idle) powers.idle[percent_decoded(key)] = *power;
    else powers.kernels[{percent_decoded(key.substr(0, slash)), percent_decoded(key.substr(slash + 1))}] = *power;
    ++found;
  }
  if (format && *format != "1")
    return Error{ErrorCode::unsupported, fmt::format("{}: has format {}, and this version of Tandem reads format 1",
                                                     file, percent_encoded(*format, kPlain))};
  if (!format || !of_machine || !rows) return damaged("is no file of powers, or is truncated");
  if (!machine.empty() && *of_machine != machine)
    return Error{ErrorCode::unsupported, fmt::format("{}: is of another machine ('{}', and this one is '{}')", file,
                                                     percent_encoded(*of_machine, kPlain), machine)};
  if (*rows != found) return damaged(fmt::format("is truncated: it has {} of {} rows", found, *rows));
  return powers;
}

}  // namespace tandem::model
