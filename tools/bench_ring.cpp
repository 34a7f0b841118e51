// tools/bench_ring.cpp: `tandem bench ring`: how long messages took, by wrong clocks set right in several ways (figure 17 of the
// article on traces).
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct RingArguments : BenchOptions {
  unsigned ranks = 4;
  unsigned seconds = 60;
  unsigned period_ms = 10;
  std::string transport = "shm";
};

/// Of the last round: a number of the details, or nothing where a program did not tell it.
std::string detail(const BenchRow& row, const char* key) {
  const auto found = row.details.is_object() ? row.details.find(key) : row.details.end();
  if (!row.details.is_object() || found == row.details.end() || !found->is_number()) return "-";
  return fmt::format("{:.4g}", found->get<double>());
}

void print_ring(const BenchOutcome& outcome) {
  fmt::print("us, and errors (measured minus true)\n{:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10}\n", "clocks by", "median",
             "1 %", "99 %", "|.| 99 %", "drift", "violations");
  for (const BenchRow& row : outcome.rows) {
    fmt::print("{:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10}\n", row.name, detail(row, "duration"), detail(row, "error_p01"),
               detail(row, "error_p99"), detail(row, "error_p99_abs"), detail(row, "drift"), detail(row, "violations"));
  }
}

BenchSuite ring_suite(const Programs& programs, const RingArguments& arguments) {
  BenchSuite suite{fmt::format("durations of messages of 4 bytes round a ring of {} ranks over {}, {} s, drifts injected",
                               arguments.ranks, arguments.transport, arguments.seconds),
                   {programs.ours("bench_ring_tandem",
                                  {"--ranks", std::to_string(arguments.ranks), "--seconds", std::to_string(arguments.seconds),
                                   "--period", std::to_string(arguments.period_ms), "--transport", arguments.transport})},
                   false,
                   {{"ranks", arguments.ranks}, {"seconds", arguments.seconds}, {"period_ms", arguments.period_ms},
                    {"transport", arguments.transport}}};
  suite.warms_up = false;
  suite.print_table = print_ring;
  return suite;
}

}  // namespace

void add_bench_ring(CLI::App& bench, ToolContext& context) {
  CLI::App* command = bench.add_subcommand("ring", "Durations of messages by wrong clocks, corrected in several ways");
  const auto arguments = std::make_shared<RingArguments>();
  arguments->rounds = 1;
  add_bench_options(command, *arguments);
  command->add_option("--ranks", arguments->ranks, "Processes")->check(CLI::Range(2, 64))->capture_default_str();
  command->add_option("--seconds", arguments->seconds, "How long messages go round")
      ->check(CLI::Range(1, 86'400))->capture_default_str();
  command->add_option("--period", arguments->period_ms, "Milliseconds between two rounds")
      ->check(positive())->capture_default_str();
  command->add_option("--transport", arguments->transport, "shm or tcp")
      ->check(CLI::IsMember({"shm", "tcp"}))->capture_default_str();
  add_picture_option(command, *arguments, "durations and errors over the run, by method");
  command->callback([arguments, &context] {
    arguments->timeout_s = std::max(arguments->timeout_s, 2.0 * arguments->seconds);
    run_bench("ring", *arguments, context,
              [&](const Programs& programs, unsigned) { return std::vector{ring_suite(programs, *arguments)}; });
  });
}

}  // namespace tandem::tools
