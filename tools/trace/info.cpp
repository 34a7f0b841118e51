// tools/trace/info.cpp: `tandem trace info`: lists ranks, actors, records, bytes, missing parts, and the quality of the
// clocks.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tools/json/json_report.hpp"
#include "tools/trace/command.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

using trace::RankTrace;
using trace::StreamSummary;

struct Totals {
  std::uint64_t records = 0, bytes = 0, lost_events = 0, missing_packets = 0;
  bool truncated = false;
  std::optional<std::int64_t> first_ns, last_ns;  ///< on rank 0's clock; descriptions do not count

  void add(const Totals& other) {
    records += other.records;
    bytes += other.bytes;
    lost_events += other.lost_events;
    missing_packets += other.missing_packets;
    truncated = truncated || other.truncated;
    if (other.first_ns) first_ns = std::min(first_ns.value_or(*other.first_ns), *other.first_ns);
    if (other.last_ns) last_ns = std::max(last_ns.value_or(*other.last_ns), *other.last_ns);
  }
  std::int64_t duration_ns() const noexcept { return first_ns ? *last_ns - *first_ns : 0; }
  double bytes_per_record() const noexcept {
    return records == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(records);
  }
};

Totals totals_of(const StreamSummary& summary, const RankTrace& rank, const RunTimes& times) {
  Totals totals{.records = summary.records, .bytes = summary.bytes, .lost_events = summary.lost_events,
                .missing_packets = summary.missing_packets, .truncated = summary.truncated, .first_ns = {}, .last_ns = {}};
  if (summary.records > 0 && summary.kind != trace::ActorKind::catalogue) {
    totals.first_ns = times.of(rank.rank, rank.scale.to_ns(summary.first_ticks));
    totals.last_ns = times.of(rank.rank, rank.scale.to_ns(summary.last_ticks));
  }
  return totals;
}

Totals totals_of(const RankTrace& rank, const RunTimes& times) {
  Totals totals;
  for (const auto& stream : rank.streams) totals.add(totals_of(stream->summary(), rank, times));
  totals.lost_events = std::max(totals.lost_events, rank.lost_events);
  return totals;
}

const char* state_of(const RankTrace& rank) noexcept {
  return rank.complete ? "complete" : rank.unwritten ? "its end was not written" : "killed, recovered";
}

Json json_of(const Totals& totals) {
  return {{"records", totals.records},          {"bytes", totals.bytes},
          {"bytes_per_record", totals.bytes_per_record()}, {"lost_events", totals.lost_events},
          {"missing_packets", totals.missing_packets},   {"truncated", totals.truncated},
          {"duration_ns", totals.duration_ns()}};
}

Json json_of(const RankTrace& rank, const RunTimes& times) {
  Json actors = Json::array(), points = Json::array();
  for (const auto& stream : rank.streams) {
    const StreamSummary& summary = stream->summary();
    Json actor{{"actor", summary.actor}, {"name", summary.name}, {"kind", name_of(summary.kind)},
               {"index", summary.index}, {"core", summary.core}, {"packets", summary.packets}};
    actor.update(json_of(totals_of(summary, rank, times)));
    actors.push_back(actor);
  }
  for (const trace::ClockPoint& point : rank.clock_points)
    points.push_back({{"kind", point.kind == trace::ClockPointKind::barrier ? "barrier" : "background"},
                      {"local_ns", point.local_ns}, {"reference_ns", point.reference_ns}, {"error_ns", point.error_ns},
                      {"late_ns", point.late_ns}});
  Json object{{"rank", rank.rank}, {"host", rank.host}, {"complete", rank.complete}, {"recovered", rank.recovered}, {"unwritten", rank.unwritten}};
  object.update(json_of(totals_of(rank, times)));
  object["clock_points"] = points;
  object["actors"] = actors;
  return object;
}

/// An option of the traced program; empty: not recorded, as by other writers.
std::string option_of(const RankTrace& rank, std::string_view name) {
  const auto found = std::ranges::find(rank.options, name, &std::pair<std::string, std::string>::first);
  return found != rank.options.end() ? found->second : "";
}

/// What the tracer does when events find no room.
std::string when_full_text(const RankTrace& rank) {
  const std::string choice = option_of(rank, "trace.when_full");
  const std::string does = choice == "lose"     ? "new events are lost, and counted below"
                           : choice == "wait"   ? "threads wait for the disk"
                           : choice == "newest" ? "the oldest events are dropped"
                                                : choice;
  return fmt::format("{}; when they are full, {} (trace.when_full={})", option_of(rank, "trace.memory"), does, choice);
}

void print_json(const trace::TraceReader& run, const RunTimes& times) {
  Totals totals;
  Json ranks = Json::array();
  for (const auto& rank : run.ranks) {
    totals.add(totals_of(*rank, times));
    ranks.push_back(json_of(*rank, times));
  }
  const RankTrace& first = *run.ranks.front();
  Json object{
      {"tandem", version},
      {"commit", commit},
      {"folder", run.folder.string()},
      {"program", first.program},
      {"arguments", first.arguments},
      {"job", first.job},
      {"size", first.size},
      {"written_by", {{"tandem", first.version}, {"commit", first.commit}}},
      {"buffers", {{"memory", option_of(first, "trace.memory")}, {"when_full", option_of(first, "trace.when_full")}}}};
  object.update(json_of(totals));
  object["ranks"] = ranks;
  print(object);
}

void print_totals(const Totals& totals) {
  fmt::print("{:>12} {:>13} {:>8.1f} {:>10} {:>8}{}\n", totals.records, totals.bytes, totals.bytes_per_record(),
             totals.lost_events, totals.missing_packets, totals.truncated ? "  file ends within a packet" : "");
}

void print_clocks(const RankTrace& rank) {
  if (rank.clock_points.empty()) return;
  const auto point = [](const trace::ClockPoint& at) {
    return fmt::format("{} +- {} ns", at.reference_ns - at.local_ns, at.error_ns);
  };
  fmt::print("  clock: {} {} with rank 0's, offset {}", rank.clock_points.size(),
             rank.clock_points.size() == 1 ? "comparison" : "comparisons", point(rank.clock_points.front()));
  if (rank.clock_points.size() > 1)
    fmt::print(" to {}, rate {:+.3f} ppm", point(rank.clock_points.back()), (rank.line().rate() - 1) * 1e6);
  fmt::print("\n");
}

void print_table(const trace::TraceReader& run, const RunTimes& times) {
  const RankTrace& first = *run.ranks.front();
  Totals totals;
  for (const auto& rank : run.ranks) totals.add(totals_of(*rank, times));
  fmt::print(
      "program   {}\narguments {}\njob       {}\nranks     {} of {}\nduration  {} s\nwritten   by tandem {} ({})\n",
      first.program, fmt::join(first.arguments, " "), first.job, run.ranks.size(), first.size,
      seconds(totals.duration_ns()), first.version, first.commit);
  if (!option_of(first, "trace.when_full").empty()) fmt::print("buffers   {}\n", when_full_text(first));
  fmt::print("\n{:<28} {:>5} {:>12} {:>13} {:>8} {:>10} {:>8}\n", "rank, actor", "core", "records", "bytes", "B/record",
             "lost", "missing");
  for (const auto& rank : run.ranks) {
    fmt::print("{:<34} ", fmt::format("{} on {}, {}", rank->rank, rank->host, state_of(*rank)));
    print_totals(totals_of(*rank, times));
    for (const auto& stream : rank->streams) {
      const StreamSummary& summary = stream->summary();
      fmt::print("  {:<26} {:>5} ", summary.name, summary.core < 0 ? "-" : std::to_string(summary.core));
      print_totals(totals_of(summary, *rank, times));
    }
    print_clocks(*rank);
  }
  if (run.ranks.size() > 1) {
    fmt::print("{:<34} ", "all");
    print_totals(totals);
  }
}

}  // namespace

void add_trace_info(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand(
      "info", "Summarise a trace: ranks, actors, records (of one event or several), bytes, losses, clocks");
  const auto folder = trace_folder(command);
  const auto json = json_flag(command);
  command.callback([folder, json, &context] {
    const auto run = open_trace(*folder, context);
    if (run == nullptr) return;
    const RunTimes times(*run);
    *json ? print_json(*run, times) : print_table(*run, times);
  });
}

}  // namespace tandem::tools
