// tools/bench_suite.cpp: rounds of programs, their reports, and paired ratios.
#include "tools/bench_suite.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/core.h>

namespace tandem::tools {
namespace {

base::Error malformed(std::string what) { return {base::ErrorCode::malformed, std::move(what)}; }

/// The member of either name that is text, or "".
std::string text_of(const Json& object, const char* name, const char* other_name) {
  for (const char* key : {name, other_name})
    if (const auto found = object.find(key); found != object.end() && found->is_string()) return found->get<std::string>();
  return "";
}

const BenchValue* find(const BenchRound& round, const std::string& peer, std::string_view name) {
  const auto run = round.find(peer);
  if (run == round.end()) return nullptr;
  for (const auto& [key, value] : run->second.values)
    if (key == name) return &value;
  return nullptr;
}

std::optional<double> paired_ratio(const std::vector<BenchRound>& rounds, const std::string& ours, const std::string& peer,
                                   const std::string& name) {
  std::vector<double> ratios;
  for (const auto& round : rounds) {
    const BenchValue* mine = find(round, ours, counterpart(name));
    const BenchValue* theirs = find(round, peer, name);
    if (mine != nullptr && theirs != nullptr && theirs->value > 0) ratios.push_back(mine->value / theirs->value);
  }
  return ratios.empty() ? std::nullopt : std::optional(median(ratios));
}

/// The number at the end of `half_4`, if there is one.
void add_bytes(std::string_view name, Json& params) {
  const std::string_view digits = name.substr(name.find_last_of('_') + 1);
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (error == std::errc{} && end == digits.data() + digits.size()) params["bytes"] = bytes;
}

}  // namespace

base::Result<BenchRun> parse_bench_run(std::string_view text) {
  if (text.find_first_not_of(" \n\r\t") == std::string_view::npos) return malformed("its output is empty");
  const Json object = Json::parse(text, nullptr, false);
  if (object.is_discarded()) return malformed("its output is no JSON");
  if (!object.is_object() || !object.contains("results") || !object["results"].is_array())
    return malformed("its JSON has no list of results");
  BenchRun run;
  run.version = text_of(object, "version", "tandem");
  for (const Json& result : object["results"]) {
    const std::string name = result.is_object() ? text_of(result, "name", "name") : "";
    if (name.empty()) return malformed("its JSON has a result without a name");
    const auto value = result.contains("median") ? result.find("median") : result.find("value");
    if (value == result.end() || !value->is_number()) return malformed(fmt::format("its result {} has no median", name));
    const auto details = result.find("details");
    const bool has_details = details != result.end() && details->is_object();
    run.values.push_back({name, {value->get<double>(), text_of(result, "unit", "unit"), has_details ? *details : Json()}});
  }
  return run;
}

std::string_view counterpart(std::string_view name) { return name == "bound" ? "potrf" : name; }

std::vector<BenchRow> summarise(const std::vector<std::string>& peers, const std::vector<BenchRound>& rounds) {
  std::vector<std::string> names;
  for (const auto& round : rounds)
    for (const std::string& peer : peers)
      if (const auto run = round.find(peer); run != round.end())
        for (const auto& [name, value] : run->second.values)
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);

  std::vector<BenchRow> rows;
  for (const std::string& name : names) {
    for (const std::string& peer : peers) {
      BenchRow row{name, peer, "", {}};
      for (const auto& round : rounds) {
        if (const BenchValue* value = find(round, peer, name)) {
          row.samples.push_back(value->value);
          row.unit = value->unit;
          if (!value->details.is_null()) row.details = value->details;
        }
      }
      if (row.samples.empty()) continue;
      if (peer != peers.front()) row.ours_over_peer = paired_ratio(rounds, peers.front(), peer, name);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

BenchOutcome run_suite(const BenchSuite& suite, const BenchLimits& limits, const BenchProgress& progress) {
  BenchOutcome outcome;
  std::vector<std::string> peers;
  std::map<std::string, bool> runs;
  for (const BenchProgram& program : suite.programs) {
    peers.push_back(program.peer);
    runs[program.peer] = program.exists;
    if (!program.exists)
      outcome.failures.emplace_back(program.peer, fmt::format("there is no program {}", program.command.file.string()));
  }
  std::vector<BenchRound> rounds;
  for (unsigned number = 0; number <= limits.rounds; ++number) {
    BenchRound round;
    for (const BenchProgram& program : suite.programs) {
      if (!runs[program.peer]) continue;
      progress(fmt::format("{}: {}, {}", suite.title,
                           number == 0 ? "warming up" : fmt::format("round {} of {}", number, limits.rounds), program.peer));
      const auto written = run_program(program.command, limits.timeout);
      const auto run = written ? parse_bench_run(written.value().output) : base::Result<BenchRun>(written.error());
      if (!run) {
        runs[program.peer] = false;
        const std::string when = number == 0 ? "" : fmt::format(" (in round {})", number);
        outcome.failures.emplace_back(program.peer, run.error().message + when);
        continue;
      }
      outcome.versions[program.peer] = run.value().version;
      round[program.peer] = run.value();
    }
    if (number > 0) rounds.push_back(std::move(round));
  }
  outcome.rows = summarise(peers, rounds);
  return outcome;
}

Json results_json(const BenchSuite& suite, const BenchOutcome& outcome) {
  const std::string& ours = suite.programs.front().peer;
  Json results = Json::array();
  const auto has_ours = [&](std::string_view name) {
    return std::any_of(outcome.rows.begin(), outcome.rows.end(),
                       [&](const BenchRow& row) { return row.peer == ours && row.name == name; });
  };
  for (const BenchRow& row : outcome.rows) {
    if (row.peer != ours && has_ours(counterpart(row.name))) continue;
    Measurement measurement{row.name, suite.params, row.unit, row.samples, {}};
    if (!suite.name_as_param.empty()) measurement.params[suite.name_as_param] = row.name;
    if (suite.name_ends_in_bytes) add_bytes(row.name, measurement.params);
    Json ratios = Json::object();
    if (row.peer == ours) {
      for (const BenchRow& other : outcome.rows) {
        if (other.peer == ours || counterpart(other.name) != row.name) continue;
        measurement.peers[other.peer] = median(other.samples);
        if (other.ours_over_peer) ratios[other.peer] = *other.ours_over_peer;
      }
    } else {
      measurement.params["program"] = row.peer;
    }
    Json result = result_json(measurement);
    result["ours_over_peer"] = ratios;
    if (!row.details.is_null()) result["details"] = row.details;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace tandem::tools
