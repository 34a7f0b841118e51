// tandem/base/toml_file.hpp: a TOML file as a flat list of names and values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/owned_file.hpp"
#include "tandem/base/result.hpp"

namespace tandem::base {

/// One key: the names of its tables and its own joined by '.', and its value as a person writes it on a command line.
struct TomlValue {
  std::string name;
  std::string text;
  unsigned line = 0;
};

/// Reads a whole file: the part of TOML 1.0 that options need. Tables, dotted and quoted names, comments; values are
/// strings of one line, numbers and booleans. An array, an inline table, a date or a string of several lines is an
/// error, since no option takes one; so are a second value of a name and a second header of a table. Errors: io,
/// malformed (with file and line).
Result<std::vector<TomlValue>> read_toml(const std::filesystem::path& path);
Result<std::vector<TomlValue>> read_toml(const OwnedFile& file);

/// Reads from memory; `name` stands for the file in messages.
Result<std::vector<TomlValue>> parse_toml(std::string_view document, std::string_view name);

/// `text` in quotes, for `parse_toml`. Bytes that are not UTF-8 become U+FFFD.
std::string toml_quoted(std::string_view text);

}  // namespace tandem::base
