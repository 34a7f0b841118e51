// tools/trace/command.cpp: `tandem trace`: its subcommands, and functions that they share.
#include "tools/trace/command.hpp"

#include <fmt/core.h>

namespace tandem::tools {

std::shared_ptr<std::string> trace_folder(Subcommand command) {
  auto folder = std::make_shared<std::string>();
  command.add_option("folder", *folder, "Folder with the trace of a run, or of one rank").required();
  return folder;
}

std::shared_ptr<bool> json_flag(Subcommand command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print a JSON object");
  return json;
}

void fail(ToolContext& context, const base::Error& error) {
  using base::ErrorCode;
  context.log.error("{}", error.message);
  context.exit_status = error.code == ErrorCode::malformed || error.code == ErrorCode::io ? 1 : 2;
}

std::unique_ptr<trace::TraceReader> open_trace(const std::string& folder, ToolContext& context) {
  auto opened = trace::TraceReader::open(folder);
  if (opened) return std::move(opened).value();
  fail(context, opened.error());
  return nullptr;
}

RunTimes::RunTimes(const trace::TraceReader& run) {
  const auto date_offset = [](const trace::RankTrace& rank) { return rank.realtime_ns - rank.realtime_local_ns; };
  const trace::RankTrace* reference =
      run.ranks.empty() || run.ranks.front()->rank != 0 ? nullptr : run.ranks.front().get();
  if (reference != nullptr) date_offset_ns_ = date_offset(*reference);
  for (const auto& rank : run.ranks) {
    trace::ReferenceLine line = rank->line();
    if (rank->rank == 0) {
      errors_[0] = 0;
    } else if (line.error_ns()) {
      errors_[rank->rank] = *line.error_ns();
    } else if (reference != nullptr && reference->host != rank->host) {
      const trace::ClockPoint by_date{.local_ns = 0, .reference_ns = date_offset(*rank) - date_offset_ns_};
      line = {by_date, by_date};
    }
    lines_[rank->rank] = line;
  }
  if (reference == nullptr && !run.ranks.empty()) {
    const trace::RankTrace& first = *run.ranks.front();
    date_offset_ns_ = first.realtime_ns - of(first.rank, first.realtime_local_ns);
  }
}

std::int64_t RunTimes::of(std::uint32_t rank, std::int64_t local_ns) const {
  const auto line = lines_.find(rank);
  return line == lines_.end() ? local_ns : line->second.to_reference(local_ns, trace::ReferenceLine::Outside::held);
}

std::optional<std::int64_t> RunTimes::error_ns(std::uint32_t rank) const {
  const auto error = errors_.find(rank);
  return error == errors_.end() ? std::nullopt : std::optional(error->second);
}

std::string seconds(std::int64_t ns) {
  constexpr std::uint64_t billion = 1'000'000'000;
  const std::uint64_t size =
      ns < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format("{}{}.{:09}", ns < 0 ? "-" : "", size / billion, size % billion);
}

void add_trace(Subcommand app, ToolContext& context) {
  Subcommand command = app.add_subcommand("trace", "Show, check, export or archive the trace of a run");
  command.require_subcommand();
  add_trace_archive(command, context);
  add_trace_check(command, context);
  add_trace_dump(command, context);
  add_trace_export(command, context);
  add_trace_info(command, context);
  add_trace_overhead(command, context);
  add_trace_recover(command, context);
  add_trace_report(command, context);
  add_trace_stats(command, context);
  add_trace_summary(command, context);
}

}  // namespace tandem::tools
