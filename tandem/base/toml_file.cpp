// tandem/base/toml_file.cpp: reading TOML with toml++, which is included nowhere else.
#include "tandem/base/toml_file.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace tandem::base {
namespace {

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  return std::nullopt;
}

/// Appends the values of a table and of those in it. Depth is bounded by the parser.
Result<void> flatten(const toml::table& table, const std::string& prefix, std::string_view file, std::vector<TomlValue>& values) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const unsigned line = node.source().begin.line;
    if (const auto* inner = node.as_table()) {
      if (auto done = flatten(*inner, name + ".", file, values); !done) return done;
    } else if (auto text = text_of(node)) {
      values.push_back({name, *std::move(text), line});
    } else {
      return Error{ErrorCode::malformed,
                   fmt::format("{}:{}: {} is an array or a date; options take strings, numbers and booleans", file, line, name)};
    }
  }
  return {};
}

}  // namespace

Result<std::vector<TomlValue>> parse_toml(std::string_view document, std::string_view name) {
  const toml::parse_result parsed = toml::parse(document, name);
  if (!parsed) {
    const auto& error = parsed.error();
    return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", name, error.source().begin.line, error.description())};
  }
  std::vector<TomlValue> values;
  if (auto done = flatten(parsed.table(), "", name, values); !done) return done.error();
  // toml++ orders keys by name; the file's own order makes the first error the topmost.
  std::stable_sort(values.begin(), values.end(), [](const TomlValue& a, const TomlValue& b) { return a.line < b.line; });
  return values;
}

Result<std::vector<TomlValue>> read_toml(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::io, fmt::format("cannot read {}", path.string())};
  const std::string document(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return Error{ErrorCode::io, fmt::format("cannot read {}", path.string())};
  return parse_toml(document, path.string());
}

}  // namespace tandem::base
