// tools/bench/flushes.cpp: `tandem bench flushes`: whether a traced program ever waits for the disk (figure 2 of the
// article on traces).
//
// One process factorises a matrix many times, with buffers that are far smaller than its trace, so that they are
// written all the time. Each round does so untraced, with events that find no buffer lost (the default), and with
// waiting for a buffer instead; the order rotates. If nothing waits, the slowest of the factorisations is no slower
// beside their median than it is untraced. All figures are of times: 1.05 says that the slowest one took 5 % longer
// than the median.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <numeric>

#include <fmt/core.h>

#include "tandem/base/units.hpp"
#include "tools/bench/table.hpp"
#include "tools/trace/command.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

struct FlushesArguments : BenchOptions {
  unsigned order = 4096;
  unsigned tile = 128;
  unsigned factorisations = 40;
  std::string memory = "256KiB", buffer = "8KiB";
  std::string traces;   ///< folder in which traces are written; empty: the system's for temporary files
};

/// A way of tracing a process.
struct Way {
  const char* name;
  const char* when_full;  ///< as option trace.when_full has it; empty: untraced
};
constexpr std::array<Way, 3> ways{{{"untraced", ""}, {"lose", "lose"}, {"wait", "wait"}}};

/// The output of one process, and the content of its trace.
struct FlushesRun {
  std::vector<double> seconds;  ///< of each factorisation
  std::uint64_t events = 0, lost = 0, bytes = 0;
  std::uint64_t buffers = 0;    ///< that were written
  double waited_s = 0;          ///< all threads together, for buffers

  double median_s() const { return median(seconds); }
  double slowest_s() const { return *std::max_element(seconds.begin(), seconds.end()); }
  double spread() const { return slowest_s() / median_s(); }
  double lost_share() const {
    return events + lost == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(events + lost);
  }
};

/// One run of each way, in the order of `ways`.
using FlushesRound = std::array<FlushesRun, ways.size()>;

/// Adds the facts in the trace in the folder. Errors: there is none, or it is damaged.
Result<void> read_trace(const fs::path& folder, FlushesRun& run) {
  const auto trace = trace::TraceReader::open(folder);
  if (!trace) return trace.error();
  for (const auto& rank : trace.value()->ranks) {
    for (const auto& stream : rank->streams) {
      run.events += stream->summary().records;
      run.lost += stream->summary().lost_events;
      run.bytes += stream->summary().bytes;
      run.buffers += stream->summary().packets;
      while (true) {
        const auto event = stream->next();
        if (!event) return event.error();
        if (!event.value()) break;
        if (event.value()->type == trace::Type::tracer_waited)
          run.waited_s += static_cast<double>(event.value()->number(0)) / 1e9;
      }
    }
  }
  return {};
}

Result<FlushesRun> run_once(const BenchProgram& program, const FlushesArguments& arguments, const Way& way,
                            std::chrono::milliseconds limit) {
  const fs::path within = arguments.traces.empty() ? fs::temp_directory_path() : fs::path(arguments.traces);
  const auto folder = WorkFolder::create(within, "bench-flushes-");
  if (!folder) return folder.error();
  const fs::path traces = folder.value().path() / "trace";
  const bool traced = *way.when_full != '\0';
  Command command = program.command;
  command.environment.emplace_back("TANDEM_TRACE", traced ? "all" : "");
  if (traced)
    command.environment.insert(command.environment.end(), {{"TANDEM_TRACE_FOLDER", traces.string()},
                                                           {"TANDEM_TRACE_MEMORY", arguments.memory},
                                                           {"TANDEM_TRACE_BUFFER", arguments.buffer},
                                                           {"TANDEM_TRACE_WHEN_FULL", way.when_full}});
  const auto output = run_program(command, limit);
  if (!output) return output.error();
  const auto printed = parse_bench_run(output.value().output);
  if (!printed) return printed.error();
  FlushesRun run;
  for (const auto& [name, value] : printed.value().values)
    if (value.details.contains("seconds"))
      run.seconds = value.details["seconds"].numbers();
  if (run.seconds.empty()) return Error{ErrorCode::malformed, "its JSON has the time of no factorisation"};
  if (traced)
    if (const auto read = read_trace(traces, run); !read) return read.error();
  return run;
}

Result<std::vector<FlushesRound>> measure(const BenchProgram& program, const FlushesArguments& arguments,
                                          const BenchLimits& limits) {
  std::vector<FlushesRound> rounds(limits.rounds);
  std::array<std::size_t, ways.size()> order;
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t number = 0; number < rounds.size(); ++number) {
    if (number > 0 && std::chrono::steady_clock::now() >= limits.end) {
      rounds.resize(number);
      break;
    }
    for (const std::size_t i : order) {
      show_progress(fmt::format("{} factorisations, round {} of {}, {}", arguments.factorisations, number + 1,
                                rounds.size(), ways[i].name));
      auto run = run_once(program, arguments, ways[i], limits.timeout);
      if (!run) {
        show_progress("");
        return Error{run.error().code, fmt::format("{}: {}", ways[i].name, run.error().message)};
      }
      rounds[number][i] = std::move(run).value();
    }
    std::reverse(order.begin(), order.end());
  }
  show_progress("");
  return rounds;
}

/// A figure of one way over all rounds.
template <class Figure>
std::vector<double> over_rounds(const std::vector<FlushesRound>& rounds, std::size_t way, Figure figure) {
  std::vector<double> all;
  for (const FlushesRound& round : rounds) all.push_back(figure(round, round[way]));
  return all;
}

double beside_untraced(const FlushesRound& round, const FlushesRun& run) {
  return run.median_s() / round.front().median_s();
}

/// Medians over these rounds.
void print_rows(const std::string& name, const std::vector<FlushesRound>& rounds) {
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const auto middle = [&](auto figure) {
      return median(over_rounds(rounds, way,
                                [&](const FlushesRound&, const FlushesRun& run) { return 1.0 * figure(run); }));
    };
    fmt::print("{:<7} {:<9} {:>10.2f} {:>11.2f} {:>15.4f} {:>16.4f}", way == 0 ? name : "", ways[way].name,
               middle([](const FlushesRun& run) { return run.median_s() * 1e3; }),
               middle([](const FlushesRun& run) { return run.slowest_s() * 1e3; }),
               middle([](const FlushesRun& run) { return run.spread(); }),
               median(over_rounds(rounds, way, beside_untraced)));
    if (way == 0) {
      fmt::print(" {:>9} {:>8} {:>8} {:>10}\n", "-", "-", "-", "-");
    } else {
      fmt::print(" {:>9.2f} {:>8.0f} {:>8.3f} {:>10.1f}\n",
                 middle([](const FlushesRun& run) { return static_cast<double>(run.bytes) / 1e6; }),
                 middle([](const FlushesRun& run) { return static_cast<double>(run.buffers); }),
                 middle([](const FlushesRun& run) { return run.lost_share() * 100; }),
                 middle([](const FlushesRun& run) { return run.waited_s * 1e3; }));
    }
  }
}

void print_table(const std::vector<FlushesRound>& rounds, const FlushesArguments& arguments) {
  fmt::print(
      "\n{} factorisations in one process, n = {}, tile {}; traced through {} in buffers of {} (lower is better)\n"
      "{:<7} {:<9} {:>10} {:>11} {:>15} {:>16} {:>9} {:>8} {:>8} {:>10}\n",
      arguments.factorisations, arguments.order, arguments.tile, arguments.memory, arguments.buffer, "round", "way",
      "median ms", "slowest ms", "slowest/median", "median/untraced", "trace MB", "buffers", "lost %", "waited ms");
  for (std::size_t number = 0; number < rounds.size(); ++number)
    print_rows(std::to_string(number + 1), {rounds[number]});
  if (rounds.size() > 1) print_rows("median", rounds);
}

Json to_json(const std::vector<FlushesRound>& rounds, const FlushesArguments& arguments, unsigned workers) {
  Json results = Json::array();
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const auto list = [&](auto figure) {
      Json values = Json::array();
      for (const FlushesRound& round : rounds) values.push_back(figure(round[way]));
      return values;
    };
    Measurement measurement{ways[way].name,
                            {{"n", arguments.order}, {"nb", arguments.tile}, {"factorisations", arguments.factorisations},
                             {"workers", workers}, {"memory", arguments.memory}, {"buffer", arguments.buffer}},
                            "slowest/median of the times",
                            over_rounds(rounds, way, [](const FlushesRound&, const FlushesRun& run) { return run.spread(); })};
    measurement.details = {{"median_s", list([](const FlushesRun& run) { return run.median_s(); })},
                           {"slowest_s", list([](const FlushesRun& run) { return run.slowest_s(); })},
                           {"median_over_untraced", over_rounds(rounds, way, beside_untraced)},
                           {"seconds", list([](const FlushesRun& run) { return run.seconds; })}};
    if (way > 0)
      measurement.details.update({{"trace_bytes", list([](const FlushesRun& run) { return run.bytes; })},
                                  {"events", list([](const FlushesRun& run) { return run.events; })},
                                  {"lost_events", list([](const FlushesRun& run) { return run.lost; })},
                                  {"buffers", list([](const FlushesRun& run) { return run.buffers; })},
                                  {"waited_s", list([](const FlushesRun& run) { return run.waited_s; })}});
    results.push_back(result_json(measurement));
  }
  return results;
}

/// Why the arguments contradict each other; empty: they do not.
std::string contradiction(const FlushesArguments& arguments) {
  if (arguments.tile > arguments.order)
    return fmt::format("a tile of {} is larger than the matrix, of {}", arguments.tile, arguments.order);
  if (base::parse_bytes(arguments.buffer).value() > base::parse_bytes(arguments.memory).value())
    return fmt::format("a buffer of {} does not fit into a memory of {}", arguments.buffer, arguments.memory);
  return "";
}

void bench_flushes(const FlushesArguments& arguments, ToolContext& context) {
  const auto refuse = [&](const Error& error) {
    context.log.error("bench flushes: {}", error.message);
    context.exit_status = 1;
  };
  if (const std::string what = contradiction(arguments); !what.empty()) {
    refuse({ErrorCode::invalid_argument, what});
    context.exit_status = 2;
    return;
  }
  auto start = begin_bench("flushes", arguments, context);
  if (!start) return;
  const BenchProgram program =
      Programs(arguments, context.config)
          .find("tandem", "tandem", {"linalg", "potrf", "-n", std::to_string(arguments.order), "--nb",
                           std::to_string(arguments.tile), "--workers", std::to_string(start->workers), "--repetitions",
                           std::to_string(arguments.factorisations), "--json"});
  if (!program.exists) return refuse({ErrorCode::not_found, "there is no program " + program.command.file.string()});
  const auto rounds = measure(program, arguments, start->limits);
  if (!rounds) return refuse(rounds.error());
  start->object["results"] = to_json(rounds.value(), arguments, start->workers);
  const std::size_t counted = rounds.value().size();
  if (counted < arguments.rounds) start->object["cut_short"].push_back({{"suite", "flushes"}, {"rounds", counted}});
  if (arguments.json) print(start->object);
  else print_table(rounds.value(), arguments);
  if (!arguments.json && counted < arguments.rounds) print_cut_short(counted, arguments);
  draw_picture("flushes", start->object, arguments, context);
}

}  // namespace

void add_bench_flushes(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("flushes", "Whether traced factorisations wait for the disk while their trace is written");
  const auto arguments = std::make_shared<FlushesArguments>();
  arguments->rounds = 3;
  add_bench_options(command, *arguments);
  const auto bytes = [](const std::string& text) {
    const auto parsed = base::parse_bytes(text);
    return parsed.ok() ? std::string() : parsed.error().message;
  };
  command.add_option("-n", arguments->order, "Order of the matrix").positive().show_default();
  command.add_option("--nb", arguments->tile, "Order of a tile; smaller tiles give more events")
      .positive().show_default();
  command.add_option("--repetitions", arguments->factorisations,
                     "Measured factorisations in a process, after one that warms up")
      .positive().show_default();
  command.add_option("--memory", arguments->memory, "Memory of all trace buffers, as option trace.memory")
      .type_name("BYTES").check(bytes).show_default();
  command.add_option("--buffer", arguments->buffer,
                     "Size of one trace buffer, as option trace.buffer").type_name("BYTES").check(bytes).show_default();
  command.add_option("--traces", arguments->traces, "Folder for the traces (default: the folder for temporary files)")
      .existing_folder();
  add_picture_option(command, *arguments, "the time of each factorisation");
  command.callback([arguments, &context] { bench_flushes(*arguments, context); });
}

}  // namespace tandem::tools
