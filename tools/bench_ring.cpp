// tools/bench_ring.cpp: `tandem bench ring`: durations of messages by wrong clocks, corrected in several ways (figure
// 17 of the article on traces).
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

/// A number of the last round's details, or "-" where the program did not print it.
std::string detail(const BenchRow& row, const char* key) {
  const Json* const found = row.details.find(key);
  return found != nullptr && found->is_number() ? fmt::format("{:.4g}", found->number()) : "-";
}

void print_ring(const BenchOutcome& outcome) {
  fmt::print("us, and errors (measured minus true)\n{:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10}\n", "clocks by",
             "median", "1 %", "99 %", "|.| 99 %", "drift", "violations");
  for (const BenchRow& row : outcome.rows) {
    fmt::print("{:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10}\n", row.name, detail(row, "duration"),
               detail(row, "error_p01"), detail(row, "error_p99"), detail(row, "error_p99_abs"), detail(row, "drift"),
               detail(row, "violations"));
  }
}

BenchSuite ring_suite(const Programs& programs, const RingArguments& arguments) {
  BenchSuite suite{
      fmt::format("durations of messages of 4 bytes round a ring of {} ranks over {}, {} s, drifts injected",
                  arguments.ranks, arguments.transport, arguments.seconds),
      {programs.ours("bench_ring_tandem",
                     {"--ranks", std::to_string(arguments.ranks), "--seconds", std::to_string(arguments.seconds),
                      "--period", std::to_string(arguments.period_ms), "--transport", arguments.transport})},
      false,
      {{"ranks", arguments.ranks},
       {"seconds", arguments.seconds},
       {"period_ms", arguments.period_ms},
       {"transport", arguments.transport}}};
  suite.warms_up = false;
  suite.print_table = print_ring;
  return suite;
}

}  // namespace

void add_bench_ring(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand("ring", "Message durations by drifting clocks, corrected in several ways");
  const auto arguments = std::make_shared<RingArguments>();
  arguments->rounds = 1;
  add_bench_options(command, *arguments);
  command.add_option("--ranks", arguments->ranks, "Number of ranks").between(2, 64).show_default();
  command.add_option("--seconds", arguments->seconds, "Seconds for which messages circulate")
      .between(1, 86'400).show_default();
  command.add_option("--period", arguments->period_ms, "Milliseconds between two messages")
      .positive().show_default();
  command.add_option("--transport", arguments->transport, "shm or tcp")
      .one_of({"shm", "tcp"}).show_default();
  add_picture_option(command, *arguments, "durations and errors over the run, by method");
  command.callback([arguments, &context] {
    arguments->timeout_s = std::max(arguments->timeout_s, 2.0 * arguments->seconds);
    run_bench("ring", *arguments, context,
              [&](const Programs& programs, unsigned) { return std::vector{ring_suite(programs, *arguments)}; });
  });
}

}  // namespace tandem::tools
