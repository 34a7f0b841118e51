// tools/config_command.cpp: `tandem config`: every option, its value, and where the value came from.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "tools/json/json_report.hpp"
#include "tools/subcommands.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

std::string origin_text(const base::ConfigEntry& entry) {
  return entry.where.empty() ? std::string(name_of(entry.origin))
                             : fmt::format("{}: {}", name_of(entry.origin), entry.where);
}

std::string value_text(const base::ConfigEntry& entry) {
  const std::string text = entry.value_text();
  return text.empty() ? "\"\"" : text;
}

void print_table(const base::Config& config) {
  std::size_t name_width = 0, value_width = 0;
  for (const base::ConfigEntry& entry : config.entries()) {
    name_width = std::max(name_width, entry.option->name.size());
    value_width = std::max(value_width, value_text(entry).size());
  }
  for (const base::ConfigEntry& entry : config.entries()) {
    fmt::print("{:<{}}  {:<{}}  ({})\n", entry.option->name, name_width, value_text(entry), value_width,
               origin_text(entry));
    fmt::print("{:<{}}  {}; {}\n", "", name_width, entry.option->help, entry.option->accepted());
  }
  fmt::print(
      "\nAn option NAME can be set in tandem.toml (NAME = value), in the environment (TANDEM_NAME=value), or on the "
      "command\n"
      "line of any program that uses Tandem (--tandem.NAME=value). The later one in this list takes precedence.\n");
}

Json value_json(const base::ConfigEntry& entry) {
  return std::visit([](const auto& value) { return Json(value); }, entry.value);
}

void print_json(const base::Config& config) {
  Json options = Json::array();
  for (const base::ConfigEntry& entry : config.entries()) {
    options.push_back({{"name", entry.option->name},
                       {"type", name_of(entry.option->type)},
                       {"value", value_json(entry)},
                       {"text", entry.value_text()},
                       {"origin", name_of(entry.origin)},
                       {"where", entry.where},
                       {"default", entry.option->default_value},
                       {"accepted", entry.option->accepted()},
                       {"environment", entry.option->environment_name()},
                       {"help", entry.option->help}});
  }
  print({{"tandem", version}, {"commit", commit}, {"options", options}});
}

}  // namespace

void add_config(Subcommand app, ToolContext& context) {
  Subcommand command =
      app.add_subcommand("config", "Show all options with their values, and where each value comes from");
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print a JSON object; durations in nanoseconds, sizes in bytes");
  command.callback([json, &context] { *json ? print_json(context.config) : print_table(context.config); });
}

}  // namespace tandem::tools
