// tandem/base/config.hpp: the values of the options, and where each came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/option.hpp"
#include "tandem/base/result.hpp"

namespace tandem::base {

/// Where a value came from; a later one overrides an earlier one.
enum class Origin { default_value, file, environment, command_line, program, override_variable };

/// The name: "default", "file", "environment", "command line", "program", "override".
std::string_view name_of(Origin origin) noexcept;

/// Names and values of environment variables.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// A copy of this process's environment. Not to be called while another thread calls setenv.
Environment process_environment();

/// The input of Config::load. Everything is passed in, so that tests and several ranks in one process do not share it.
struct ConfigSources {
  std::vector<std::string> arguments = {};           ///< as in argv, the program's name included or not
  Environment environment = {};                      ///< only names that begin with TANDEM_ are read
  std::optional<std::filesystem::path> toml = {};    ///< a file to read
  /// False: a missing file gives no values, and an existing one must belong to this user or to root, and not be
  /// writable by all. True: a user has named it.
  bool toml_must_exist = false;
  /// TANDEM_ names for other readers: neither read nor refused. One that ends with * stands for all names with this
  /// beginning.
  std::vector<std::string> reserved_variables = {};

  /// The sources of this process: argv, its environment, and tandem.toml in the current folder if it exists.
  static ConfigSources of_process(int argc, const char* const* argv);
};

/// One option with its value.
struct ConfigEntry {
  const Option* option = nullptr;  ///< lives as long as its configuration
  OptionValue value;
  Origin origin = Origin::default_value;
  std::string where;  ///< "tandem.toml:3", "TANDEM_SCHED", "--tandem.sched=lws"; empty for a default

  std::string value_text() const { return option->format(value); }
};

/// All options with their values: an ordinary value, independent of the registry it was made from. Reading is
/// thread-safe while nobody calls set(). Asking for a name that is not registered, or with the wrong type, is a bug
/// (assertion).
///
///   auto config = Config::load(registry, ConfigSources::of_process(argc, argv));
///   if (!config) return fail(config.error().message);
///   argc = remove_arguments(argc, argv, config.value().consumed_arguments());
///   std::int64_t window = config.value().get_int("window");
class Config {
 public:
  /// Makes a configuration of defaults alone.
  explicit Config(const Registry& registry);

  /// Defaults, overridden by the toml file, by TANDEM_NAME, by --tandem.name=value (a boolean may leave out =value).
  /// Arguments that do not begin with --tandem. are the program's and are left alone, as is everything after "--".
  /// TANDEM_OVERRIDE="NAME=VALUE NAME=VALUE" beats all of them, and what the program sets later.
  /// Errors: an unknown name (not_found, with the nearest known one), a value that its option refuses
  /// (invalid_argument, with what is accepted), a file that cannot be read or is another user's (io) or is not TOML
  /// (malformed, with the line). All name the place.
  static Result<Config> load(const Registry& registry, const ConfigSources& sources);

  bool get_bool(std::string_view name) const;
  std::int64_t get_int(std::string_view name) const;
  double get_double(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;  ///< of a text or a choice
  std::int64_t get_duration_ns(std::string_view name) const;
  std::int64_t get_bytes(std::string_view name) const;
  Origin origin(std::string_view name) const;

  /// Gives one option another value, as a person writes it; one that TANDEM_OVERRIDE names keeps its own. Errors: as
  /// for load().
  Result<void> set(std::string_view name, std::string_view text, Origin origin = Origin::program,
                   std::string where = {});

  /// The entries in the order of registration.
  std::span<const ConfigEntry> entries() const noexcept { return entries_; }
  /// Indices into ConfigSources::arguments, ascending, that were read as options.
  std::span<const std::size_t> consumed_arguments() const noexcept { return consumed_; }

 private:
  const ConfigEntry& entry(std::string_view name) const;
  const ConfigEntry& entry(std::string_view name, OptionType type) const;
  ConfigEntry* find(std::string_view name) noexcept;
  std::string suggestion(std::string_view word, std::string_view prefix) const;
  Result<void> read_environment(const ConfigSources& sources);
  Result<void> read_overrides(const ConfigSources& sources);
  Result<void> read_arguments(std::span<const std::string> arguments);
  Result<void> read_argument(const std::string& argument);

  std::shared_ptr<const Registry::Known> known_;  ///< what the entries point to
  std::vector<ConfigEntry> entries_;
  std::vector<std::size_t> consumed_;
};

/// Removes the consumed arguments from argv, keeps the order and the ending nullptr, and returns the new argc.
int remove_arguments(int argc, char** argv, std::span<const std::size_t> consumed);

}  // namespace tandem::base
