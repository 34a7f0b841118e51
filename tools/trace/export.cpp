// tools/trace/export.cpp: `tandem trace export`: writes a run in formats of other programs.
#include "tools/trace/export.hpp"

#include <array>

#include <fmt/core.h>

#include "tools/json/json_report.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {
namespace {

struct ExportOptions {
  std::string format;
  std::string out;
  std::string clock = "auto";
  bool json = false;
};

std::optional<clock::CorrectionMethod> method_of(const std::string& name) {
  if (name == "none") return clock::CorrectionMethod::none;
  if (name == "linear") return clock::CorrectionMethod::linear;
  if (name == "piecewise") return clock::CorrectionMethod::piecewise;
  return std::nullopt;
}

std::string_view name_of(clock::CorrectionMethod method) {
  constexpr std::array<std::string_view, 3> names{"none", "linear", "piecewise"};
  return names[static_cast<std::size_t>(method)];
}

Json json_of(const Exported& exported) {
  Json tables = Json::array(), files = Json::array();
  for (const ExportedTable& table : exported.tables)
    tables.push_back({{"name", table.name}, {"file", table.file}, {"rows", table.rows}, {"total_ns", table.total_ns}});
  for (const ExportedFile& file : exported.files) files.push_back({{"file", file.file}, {"bytes", file.bytes}});
  return {{"tables", tables}, {"files", files}, {"notes", exported.notes}};
}

Json clocks_json(const History& history) {
  const clock::CorrectionReport& report = history.clock_report;
  const auto violations = [](const clock::Violations& found) {
    return Json{{"count", found.count}, {"worst_ns", found.worst_ns}};
  };
  Json ranks = Json::array();
  for (const RankClock& rank : history.clocks)
    ranks.push_back({{"rank", rank.rank}, {"points", rank.points}, {"corrected", rank.corrected}, {"by_date", rank.by_date},
                     {"residual_rms_ns", rank.residual_rms_ns}, {"residual_max_ns", rank.residual_max_ns}});
  return {{"method", name_of(history.method)}, {"messages", report.message_count}, {"violations", violations(report.after)},
          {"violations_by_offset", violations(report.by_offset)}, {"violations_by_line", violations(report.by_line)},
          {"inconsistent", report.inconsistent_count}, {"ranks", ranks}};
}

void print_clocks(const History& history) {
  if (history.clocks.size() < 2) return;
  double residual_ns = 0;
  std::string standing;
  for (const RankClock& rank : history.clocks) {
    residual_ns = std::max(residual_ns, rank.residual_max_ns);
    if (!rank.corrected || rank.by_date) standing += fmt::format(" {}", rank.rank);
  }
  const clock::CorrectionReport& report = history.clock_report;
  fmt::print("clocks    {}, residual up to {:.0f} ns; {} of {} messages arrive before they were sent",
             name_of(history.method), residual_ns, report.after.count, report.message_count);
  if (report.after.count > 0) fmt::print(", by up to {} ns", report.after.worst_ns);
  fmt::print("\n");
  if (!standing.empty()) fmt::print("          never compared with rank 0's clock: ranks{}\n", standing);
}

void print_table(const Exported& exported) {
  fmt::print("{:<20} {:<24} {:>12} {:>16}\n", "table", "file", "rows", "total s");
  for (const ExportedTable& table : exported.tables)
    fmt::print("{:<20} {:<24} {:>12} {:>16}\n", table.name, table.file, table.rows,
               table.total_ns > 0 ? seconds(table.total_ns) : "");
  std::uint64_t bytes = 0;
  for (const ExportedFile& file : exported.files) bytes += file.bytes;
  fmt::print("\n");
  for (const ExportedFile& file : exported.files) fmt::print("{:<45} {:>12} bytes\n", file.file, file.bytes);
  if (exported.files.size() > 1) fmt::print("{:<45} {:>12} bytes\n", "all", bytes);
  for (const std::string& note : exported.notes) fmt::print("note: {}\n", note);
}

std::string out_of(const std::string& folder, const ExportOptions& options) {
  if (!options.out.empty()) return options.out;
  std::string name = std::filesystem::path(folder).lexically_normal().string();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name + (options.format == "perfetto" ? ".pftrace" : "." + options.format);
}

base::Result<Exported> export_history(History& history, const std::string& format, const std::string& out,
                                      const ToolContext& context) {
  if (format == "paje") return export_paje(history, out);
  if (format == "goal") return export_goal(history, out);
  if (format == "schedule") return export_schedule(history, out);
  if (format == "perfetto") return export_perfetto(history, out);
  const std::string python = context.config.get_string("python");
  return format == "starvz" ? export_starvz(history, out, python) : export_parquet(history, out, python);
}

void run_export(const std::string& folder, const ExportOptions& options, ToolContext& context) {
  const auto run = open_trace(folder, context);
  if (run == nullptr) return;
  const std::string out = out_of(folder, options);
  std::unique_ptr<History> history;
  if (options.format == "ctf" && (options.clock == "none" || options.clock == "piecewise"))
    return fail(context, {base::ErrorCode::invalid_argument,
                          fmt::format("--clock {}: what CTF's metadata can say of a clock is a line", options.clock)});
  if (options.format != "ctf") {
    auto read = History::read(*run, {.method = method_of(options.clock)});
    if (!read) return fail(context, read.error());
    history = std::move(read).value();
  }
  const auto exported =
      history == nullptr ? export_ctf(folder, out) : export_history(*history, options.format, out, context);
  if (!exported) return fail(context, exported.error());
  if (options.json) {
    Json object{{"format", options.format}, {"out", out}};
    if (history != nullptr) {
      object["events"] = history->events;
      object["duration_ns"] = history->duration_ns;
      object["clocks"] = clocks_json(*history);
    }
    object.update(json_of(exported.value()));
    return print(object);
  }
  fmt::print("written   {}\n", out);
  if (history != nullptr) {
    fmt::print("duration  {} s\n", seconds(history->duration_ns));
    print_clocks(*history);
  }
  fmt::print("\n");
  print_table(exported.value());
}

}  // namespace

void add_trace_export(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand(
      "export", "Convert a trace for other programs: ViTE, StarVZ, Perfetto, LogGOPSim, data frames, readers of CTF");
  const auto folder = trace_folder(command);
  auto options = std::make_shared<ExportOptions>();
  command
      .add_option("--format", options->format,
                  "paje: for ViTE, with records like StarPU's; starvz: tables for its second phase; perfetto: for "
                  "ui.perfetto.dev; "
                  "parquet: tables; goal: a schedule for LogGOPSim; schedule: for option sched.recorded, which "
                  "repeats it; ctf: a copy")
      .required()
      .one_of({"paje", "starvz", "perfetto", "parquet", "goal", "schedule", "ctf"});
  command.add_option(
      "-o,--out", options->out,
      "Output file of perfetto, goal and schedule, output folder of the others (default: FOLDER.pftrace, FOLDER.paje, "
      "...)");
  command.add_option("--clock", options->clock,
          "Correction of the ranks' clocks; auto: linear if the clocks were compared twice, else none")
      .one_of({"auto", "none", "linear", "piecewise"});
  command.add_flag("--json", options->json, "Print a JSON object");
  command.callback([folder, options, &context] { run_export(*folder, *options, context); });
}

}  // namespace tandem::tools
