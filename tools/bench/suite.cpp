// tools/bench/suite.cpp: rounds of programs, their reports, and paired ratios.
#include "tools/bench/suite.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/core.h>

namespace tandem::tools {
namespace {

const BenchValue* find(const BenchRound& round, const std::string& peer, std::string_view name) {
  const auto run = round.find(peer);
  if (run == round.end()) return nullptr;
  for (const auto& [key, value] : run->second.values)
    if (key == name) return &value;
  return nullptr;
}

std::optional<double> paired_ratio(const std::vector<BenchRound>& rounds, const std::string& ours,
                                   const std::string& peer, const std::string& name) {
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

namespace {

/// The rounds of one suite.
class SuiteRun {
 public:
  SuiteRun(const BenchSuite& suite, const BenchLimits& limits, const BenchProgress& progress)
      : suite_(suite), limits_(limits), progress_(progress), begin_(Clock::now()) {}

  BenchOutcome go() {
    std::vector<std::string> peers;
    for (const BenchProgram& program : suite_.programs) {
      peers.push_back(program.peer);
      runs_[program.peer] = program.exists;
      if (!program.exists)
        outcome_.failures.emplace_back(program.peer,
                                       fmt::format("there is no program {}", program.command.file.string()));
    }
    if (suite_.stability_probe) begin_monitor();
    std::vector<BenchRound> rounds;
    for (unsigned number = suite_.warms_up ? 0 : 1; number <= limits_.rounds; ++number) {
      const Clock::time_point begin = Clock::now();
      if (number > 1 && Clock::now() + longest_round_ > limits_.end) {
        outcome_.is_cut_short = true;
        break;
      }
      BenchRound round = run_round(number);
      if (number == 0) continue;
      rounds.push_back(std::move(round));
      longest_round_ = std::max(longest_round_, Clock::now() - begin);
    }
    outcome_.rounds = static_cast<unsigned>(rounds.size());
    if (monitor_) outcome_.stability = monitor_->report(), outcome_.stability->unit = stability_unit_;
    outcome_.rows = summarise(peers, rounds);
    return std::move(outcome_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Whether this share of the suite's time is over.
  bool is_over(double share) const {
    return limits_.end != Clock::time_point::max() && Clock::now() - begin_ >= (limits_.end - begin_) * share;
  }

  void begin_monitor() {
    progress_(fmt::format("{}: how the machine usually is", suite_.title));
    auto monitor = StabilityMonitor::begin([this] { return run_probe(); }, suite_.stability_probe->tolerance);
    if (monitor) {
      monitor_ = std::move(monitor).value();
      monitor_->repeat_unless([this] { return is_over(0.5); });
    } else {
      outcome_.failures.emplace_back("stability probe", monitor.error().message);
    }
  }

  base::Result<double> run_probe() {
    const auto run = run_once(suite_.stability_probe->command);
    if (!run) return run.error();
    if (run.value().values.empty()) return base::Error{base::ErrorCode::malformed, "it has no results"};
    stability_unit_ = run.value().values.front().second.unit;
    return run.value().values.front().second.value;
  }

  base::Result<BenchRun> run_once(const Command& command) const {
    const auto written = run_program(command, limits_.timeout);
    return written ? parse_bench_run(written.value().output) : base::Result<BenchRun>(written.error());
  }

  BenchRound run_round(unsigned number) {
    BenchRound round;
    for (const auto& part : suite_.parts) {
      if (&part != &suite_.parts.front() && is_over(number == 0 ? 0.2 : 1)) {
        outcome_.is_cut_short |= number > 0;
        break;
      }
      for (const BenchProgram& program : suite_.programs) {
        if (!runs_[program.peer]) continue;
        progress_(fmt::format("{}: {}, {}", suite_.title,
                              number == 0 ? "warming up" : fmt::format("round {} of {}", number, limits_.rounds),
                              program.peer));
        Command command = program.command;
        command.arguments.insert(command.arguments.end(), part.begin(), part.end());
        const auto run = watched(command);
        if (!run) {
          runs_[program.peer] = false;
          const std::string when = number == 0 ? "" : fmt::format(" (in round {})", number);
          outcome_.failures.emplace_back(program.peer, run.error().message + when);
          continue;
        }
        outcome_.versions[program.peer] = run.value().version;
        auto& values = round[program.peer].values;
        values.insert(values.end(), run.value().values.begin(), run.value().values.end());
      }
    }
    return round;
  }

  base::Result<BenchRun> watched(const Command& command) {
    if (!monitor_) return run_once(command);
    std::optional<base::Result<BenchRun>> run;
    monitor_->around([&] { return run.emplace(run_once(command)).ok(); });
    return std::move(*run);
  }

  const BenchSuite& suite_;
  const BenchLimits& limits_;
  const BenchProgress& progress_;
  const Clock::time_point begin_;
  Clock::duration longest_round_{};
  BenchOutcome outcome_;
  std::map<std::string, bool> runs_;  ///< whether each peer exists and has not failed
  std::optional<StabilityMonitor> monitor_;
  std::string stability_unit_;
};

}  // namespace

BenchOutcome run_suite(const BenchSuite& suite, const BenchLimits& limits, const BenchProgress& progress) {
  return SuiteRun(suite, limits, progress).go();
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
