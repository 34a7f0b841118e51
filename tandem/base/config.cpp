// tandem/base/config.cpp: which source wins, and what is said about a name or a value that no option takes.
#include "tandem/base/config.hpp"

#include <algorithm>
#include <system_error>

#include <unistd.h>

#include <fmt/core.h>

#include "tandem/base/owned_file.hpp"
#include "tandem/base/suggest.hpp"
#include "tandem/base/toml_file.hpp"

namespace tandem::base {
namespace {

constexpr std::string_view argument_prefix = "--tandem.";
constexpr std::string_view variable_prefix = "TANDEM_";
constexpr std::string_view override_variable = "TANDEM_OVERRIDE";

/// Variables that CMake and environment modules set for any package, to say where it is installed, and those of
/// `audits` and of overrides. No option may have these names.
constexpr std::string_view package_variables[] = {
    "TANDEM_ROOT",   "TANDEM_HOME",        "TANDEM_DIR",    "TANDEM_VERSION", "TANDEM_PREFIX",  "TANDEM_PATH",
    "TANDEM_BASE",   "TANDEM_BIN",         "TANDEM_LIB",    "TANDEM_INC",     "TANDEM_INCLUDE", "TANDEM_LIBRARY",
    "TANDEM_LIBDIR", "TANDEM_INCLUDE_DIR", "TANDEM_SOURCE", "TANDEM_SRC",     "TANDEM_AUDIT",   override_variable};

Error at(std::string_view where, const Error& error) {
  return {error.code, fmt::format("{}: {}", where, error.message)};
}

/// Options name libraries that are loaded and folders that are written: only who may decide that for this process is
/// heard.
Result<std::vector<TomlValue>> options_in(const std::filesystem::path& path, Owners owners) {
  constexpr std::string_view remedy = "options are not taken from it: copy it, remove it, or start in another folder";
  const auto file = OwnedFile::open(path, owners);
  if (!file && owners == Owners::anyone) return Error{ErrorCode::io, "cannot read " + file.error().message};
  if (!file) return Error{ErrorCode::io, fmt::format("{}; {}", file.error().message, remedy)};
  if (owners != Owners::anyone && file.value().is_writable_by_all())
    return Error{ErrorCode::io, fmt::format("{}: every user may change it (mode o+w); {}", path.string(), remedy)};
  return read_toml(file.value());
}

/// `found_by_chance`: nobody has named the file; it lies in the current folder.
Result<void> read_options(Config& config, const std::filesystem::path& path, bool found_by_chance) {
  auto lines = options_in(path, found_by_chance ? Owners::self_or_root : Owners::anyone);
  if (!lines) return lines.error();
  for (const TomlValue& line : lines.value()) {
    const std::string where = fmt::format("{}:{}", path.string(), line.line);
    if (auto done = config.set(line.name, line.text, Origin::file, where); !done) return at(where, done.error());
  }
  return {};
}

}  // namespace

std::string_view name_of(Origin origin) noexcept {
  switch (origin) {
    case Origin::default_value: return "default";
    case Origin::file: return "file";
    case Origin::environment: return "environment";
    case Origin::command_line: return "command line";
    case Origin::program: return "program";
    case Origin::override_variable: return "override";
  }
  return "unknown";
}

Environment process_environment() {
  Environment environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

ConfigSources ConfigSources::of_process(int argc, const char* const* argv) {
  ConfigSources sources;
  if (argc > 0) sources.arguments.assign(argv, argv + argc);
  sources.environment = process_environment();
  sources.toml = "tandem.toml";
  return sources;
}

Config::Config(const Registry& registry) : known_(registry.known_) {
  entries_.reserve(known_->options.size());
  for (const Option& option : known_->options)
    // Registry::add has checked that every default can be read.
    entries_.push_back({&option, option.parse(option.default_value).value(), Origin::default_value, {}});
}

Result<Config> Config::load(const Registry& registry, const ConfigSources& sources) {
  Config config(registry);
  if (sources.toml) {
    std::error_code unknown_is_absent;
    if (sources.toml_must_exist || std::filesystem::exists(*sources.toml, unknown_is_absent))
      if (auto done = read_options(config, *sources.toml, !sources.toml_must_exist); !done) return done.error();
  }
  if (auto done = config.read_environment(sources); !done) return done.error();
  if (auto done = config.read_arguments(sources.arguments); !done) return done.error();
  if (auto done = config.read_overrides(sources); !done) return done.error();
  return config;
}

Result<void> Config::read_overrides(const ConfigSources& sources) {
  for (const auto& [variable, text] : sources.environment) {
    if (variable != override_variable) continue;
    for (std::string_view left = text; !left.empty();) {
      const std::string_view word = left.substr(0, left.find(' '));
      left.remove_prefix(std::min(word.size() + 1, left.size()));
      if (word.empty()) continue;
      const auto equals = word.find('=');
      if (equals == std::string_view::npos)
        return Error{ErrorCode::invalid_argument,
                     fmt::format("{}: {}: write NAME=VALUE for each option, with spaces between", variable, word)};
      auto done = set(word.substr(0, equals), word.substr(equals + 1), Origin::override_variable, variable);
      if (!done) return at(variable, done.error());
    }
  }
  return {};
}

Result<void> Config::read_environment(const ConfigSources& sources) {
  const auto& reserved = sources.reserved_variables;
  for (const auto& [variable, text] : sources.environment) {
    if (!std::string_view(variable).starts_with(variable_prefix)) continue;
    if (std::ranges::find(package_variables, variable) != std::end(package_variables)) continue;
    const bool others = std::any_of(reserved.begin(), reserved.end(), [&](const std::string& name) {
      return name.ends_with('*')
                 ? std::string_view(variable).starts_with(std::string_view(name).substr(0, name.size() - 1))
                 : name == variable;
    });
    if (others) continue;
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const ConfigEntry& entry) {
      return entry.option->environment_name() == variable;
    });
    if (found == entries_.end()) {
      return Error{ErrorCode::not_found, fmt::format("environment variable {} is no option of Tandem{}", variable,
                                                     suggestion(variable, variable_prefix))};
    }
    if (auto done = set(found->option->name, text, Origin::environment, variable); !done)
      return at(variable, done.error());
  }
  return {};
}

Result<void> Config::read_arguments(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;
    if (!std::string_view(arguments[i]).starts_with(argument_prefix)) continue;
    if (auto done = read_argument(arguments[i]); !done) return done.error();
    consumed_.push_back(i);
  }
  return {};
}

Result<void> Config::read_argument(const std::string& argument) {
  const auto equals = argument.find('=');
  const std::string written = argument.substr(0, equals);
  ConfigEntry* found = find(std::string_view(written).substr(argument_prefix.size()));
  if (found == nullptr) {
    return Error{ErrorCode::not_found,
                 fmt::format("{} is no option of Tandem{}", written, suggestion(written, argument_prefix))};
  }
  if (equals == std::string::npos && found->option->type != OptionType::boolean) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{0} needs a value: write {0}=VALUE; accepted: {1}", written, found->option->accepted())};
  }
  const std::string text = equals == std::string::npos ? "true" : argument.substr(equals + 1);
  if (auto done = set(found->option->name, text, Origin::command_line, argument); !done)
    return at(written, done.error());
  return {};
}

Result<void> Config::set(std::string_view name, std::string_view text, Origin origin, std::string where) {
  ConfigEntry* found = find(name);
  if (found == nullptr)
    return Error{ErrorCode::not_found, fmt::format("there is no option '{}'{}", name, suggestion(name, ""))};
  auto value = found->option->parse(text);
  if (!value) return value.error();
  if (found->origin == Origin::override_variable && origin != Origin::override_variable) return {};
  found->value = std::move(value).value();
  found->origin = origin;
  found->where = std::move(where);
  return {};
}

ConfigEntry* Config::find(std::string_view name) noexcept {
  const auto place = known_->places.find(name);
  return place != known_->places.end() ? &entries_[place->second] : nullptr;
}

/// "; did you mean ...?" in the spelling of the place where `word` stands, which begins with `prefix`. The prefix
/// itself is not compared: what all names share makes none of them likelier.
std::string Config::suggestion(std::string_view word, std::string_view prefix) const {
  const bool variable = prefix == variable_prefix;
  std::vector<std::string> names;
  for (const ConfigEntry& known : entries_)
    names.push_back(variable ? known.option->environment_name().substr(prefix.size()) : known.option->name);
  const std::string nearest = nearest_name(word.substr(prefix.size()), names);
  return nearest.empty() ? "; `tandem config` lists the options" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

const ConfigEntry& Config::entry(std::string_view name) const {
  const auto place = known_->places.find(name);
  TANDEM_ASSERT(place != known_->places.end());
  return entries_[place->second];
}

const ConfigEntry& Config::entry(std::string_view name, OptionType type) const {
  const ConfigEntry& found = entry(name);
  TANDEM_ASSERT(found.option->type == type);
  return found;
}

bool Config::get_bool(std::string_view name) const { return std::get<bool>(entry(name, OptionType::boolean).value); }
std::int64_t Config::get_int(std::string_view name) const {
  return std::get<std::int64_t>(entry(name, OptionType::integer).value);
}
double Config::get_double(std::string_view name) const { return std::get<double>(entry(name, OptionType::real).value); }
std::int64_t Config::get_bytes(std::string_view name) const {
  return std::get<std::int64_t>(entry(name, OptionType::bytes).value);
}

std::int64_t Config::get_duration_ns(std::string_view name) const {
  return std::get<std::int64_t>(entry(name, OptionType::duration).value);
}

const std::string& Config::get_string(std::string_view name) const {
  const ConfigEntry& found = entry(name);
  TANDEM_ASSERT(std::holds_alternative<std::string>(found.value));
  return std::get<std::string>(found.value);
}

Origin Config::origin(std::string_view name) const { return entry(name).origin; }

int remove_arguments(int argc, char** argv, std::span<const std::size_t> consumed) {
  int kept = 0;
  auto next = consumed.begin();
  for (int i = 0; i < argc; ++i) {
    if (next != consumed.end() && *next == static_cast<std::size_t>(i)) ++next;
    else argv[kept++] = argv[i];
  }
  if (kept < argc) argv[kept] = nullptr;
  return kept;
}

}  // namespace tandem::base
