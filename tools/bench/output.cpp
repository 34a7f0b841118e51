// tools/bench/output.cpp: reads the output of a benchmark program.
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "tools/bench/suite.hpp"

namespace tandem::tools {
namespace {

base::Error not_readable(std::string what) { return {base::ErrorCode::malformed, std::move(what)}; }

/// The member of either name that is text, or "".
std::string text_of(const Json& object, const char* name, const char* other_name) {
  for (const char* key : {name, other_name})
    if (const Json* const found = object.find(key); found != nullptr && found->is_text()) return found->text();
  return "";
}

}  // namespace

base::Result<BenchRun> parse_bench_run(std::string_view text) {
  if (text.find_first_not_of(" \n\r\t") == std::string_view::npos) return not_readable("its output is empty");
  const std::optional<Json> parsed = Json::parse(text);
  if (!parsed) return not_readable("its output is no JSON");
  const Json& object = *parsed;
  if (!object.contains("results") || !object["results"].is_array())
    return not_readable("its JSON has no list of results");
  BenchRun run;
  run.version = text_of(object, "version", "tandem");
  for (const Json& result : object["results"]) {
    const std::string name = result.is_object() ? text_of(result, "name", "name") : "";
    if (name.empty()) return not_readable("its JSON has a result without a name");
    const Json* const value = result.find(result.contains("median") ? "median" : "value");
    if (value == nullptr || !value->is_number()) return not_readable(fmt::format("its result {} has no median", name));
    const Json* const details = result.find("details");
    const bool has_details = details != nullptr && details->is_object();
    run.values.push_back({name, {value->number(), text_of(result, "unit", "unit"), has_details ? *details : Json()}});
  }
  return run;
}

}  // namespace tandem::tools
