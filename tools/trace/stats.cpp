// tools/trace/stats.cpp: `tandem trace stats`: counts events by type and time, and estimates their cost.
#include "tools/trace/stats.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include "tools/out_file.hpp"
#include "tools/python_script.hpp"

namespace tandem::tools {

using trace::Event;
using trace::EventSpec;
using trace::Type;

EventCount& EventCount::operator+=(const EventCount& other) noexcept {
  events += other.events;
  same_stamp += other.same_stamp;
  bytes += other.bytes;
  cost_ns += other.cost_ns;
  return *this;
}

namespace {

void find_range(const trace::TraceReader& run, const RunTimes& times, TraceStats& stats) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
  for (const auto& rank : run.ranks) {
    for (const auto& stream : rank->streams) {
      const trace::StreamSummary& summary = stream->summary();
      if (summary.records == 0 || summary.kind == trace::ActorKind::catalogue) continue;
      first = std::min(first, times.of(rank->rank, rank->scale.to_ns(summary.first_ticks)));
      last = std::max(last, times.of(rank->rank, rank->scale.to_ns(summary.last_ticks)));
    }
  }
  if (first > last) return;
  stats.start_ns = first;
  stats.duration_ns = last - first;
}

base::Result<void> count_stream(trace::StreamReader& stream, const RunTimes& times, const StatsOptions& options,
                                TraceStats& stats, TraceStats::Actor& actor) {
  stream.rewind();
  std::uint64_t last_ticks = 0;
  bool is_first = true;
  for (;;) {
    const auto next = stream.next();
    if (!next) return next.error();
    if (!next.value()) return {};
    const Event& event = *next.value();
    const bool timed = event.spec().category != trace::Category::about;
    const bool same_stamp = !is_first && event.ticks == last_ticks;
    // Descriptions are written separately, by the thread that registers something: their cost is not that of events.
    // An event in the record of another one costs a reading of the clock, if it has one of its own.
    const bool own_record = event.record_bytes() > 0;
    const double cost_ns = !timed ? 0 : !same_stamp ? options.event_ns : own_record ? options.same_stamp_ns : 0;
    const EventCount one{
        .events = 1, .same_stamp = same_stamp ? 1U : 0U, .bytes = event.record_bytes(), .cost_ns = cost_ns};
    is_first = false;
    last_ticks = event.ticks;
    stats.types[static_cast<std::size_t>(event.type)] += one;
    actor.count += one;
    if (!timed) continue;
    const std::int64_t since_ns = std::clamp<std::int64_t>(times.of(event) - stats.start_ns, 0, stats.duration_ns);
    const double part =
        stats.duration_ns > 0 ? static_cast<double>(since_ns) / static_cast<double>(stats.duration_ns) : 0;
    const auto bin =
        std::min(stats.bins.size() - 1, static_cast<std::size_t>(part * static_cast<double>(stats.bins.size())));
    ++stats.bins[bin][static_cast<std::size_t>(event.type)];
  }
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// The occurring types, the most frequent first.
std::vector<const EventSpec*> types_of(const TraceStats& stats) {
  std::vector<const EventSpec*> types;
  for (const EventSpec* spec : stats.specs)
    if (stats.types[static_cast<std::size_t>(spec->type)].events > 0) types.push_back(spec);
  std::ranges::stable_sort(types, std::ranges::greater{}, [&](const EventSpec* spec) {
    return stats.types[static_cast<std::size_t>(spec->type)].events;
  });
  return types;
}

Json json_of(const EventCount& count, const EventCount& all) {
  return {{"events", count.events}, {"share", share(static_cast<double>(count.events), static_cast<double>(all.events))},
          {"same_stamp", count.same_stamp}, {"bytes", count.bytes}, {"cost_ns", count.cost_ns}};
}

Json json_of(const TraceStats& stats, const std::string& folder, const StatsOptions& options) {
  Json types = Json::array(), categories = Json::array(), actors = Json::array();
  for (const EventSpec* spec : types_of(stats)) {
    const auto type = static_cast<std::size_t>(spec->type);
    Json object{{"type", spec->name}, {"category", name_of(spec->category)}};
    object.update(json_of(stats.types[type], stats.all));
    Json bins = Json::array();
    for (const auto& bin : stats.bins) bins.push_back(bin[type]);
    object["bins"] = bins;
    types.push_back(object);
  }
  for (std::size_t i = 0; i < trace::kCategories; ++i) {
    if (stats.categories[i].events == 0) continue;
    Json object{{"category", name_of(static_cast<trace::Category>(i))}};
    object.update(json_of(stats.categories[i], stats.all));
    categories.push_back(object);
  }
  for (const TraceStats::Actor& actor : stats.actors) {
    Json object{{"rank", actor.rank}, {"actor", actor.actor}, {"name", actor.name}};
    object.update(json_of(actor.count, stats.all));
    object["lost_events"] = actor.lost_events;
    object["stream_bytes"] = actor.stream_bytes;
    actors.push_back(object);
  }
  Json object{{"folder", folder},
              {"duration_ns", stats.duration_ns},
              {"event_ns", options.event_ns},
              {"same_stamp_ns", options.same_stamp_ns}};
  object.update(json_of(stats.all, stats.all));
  object["stream_bytes"] = stats.stream_bytes;
  object["categories"] = categories;
  object["types"] = types;
  object["actors"] = actors;
  return object;
}

void print_row(const std::string& name, const EventCount& count, const EventCount& all) {
  fmt::print("{:<34} {:>12} {:>7.2f} % {:>13} {:>7.2f} % {:>12.3f}\n", name, count.events,
             100 * share(static_cast<double>(count.events), static_cast<double>(all.events)), count.bytes,
             100 * share(static_cast<double>(count.bytes), static_cast<double>(all.bytes)), count.cost_ns / 1e6);
}

void print_table(const TraceStats& stats) {
  const auto head = [](const char* what) {
    fmt::print("{:<34} {:>12} {:>9} {:>13} {:>9} {:>12}\n", what, "events", "share", "bytes", "share", "cost ms");
  };
  head("type");
  for (const EventSpec* spec : types_of(stats))
    print_row(std::string(spec->name), stats.types[static_cast<std::size_t>(spec->type)], stats.all);
  fmt::print("\n");
  head("category");
  for (std::size_t i = 0; i < trace::kCategories; ++i)
    if (stats.categories[i].events > 0)
      print_row(std::string(name_of(static_cast<trace::Category>(i))), stats.categories[i], stats.all);
  fmt::print("\n");
  head("rank, actor");
  for (const TraceStats::Actor& actor : stats.actors)
    print_row(fmt::format("{}, {}", actor.rank, actor.name), actor.count, stats.all);
  print_row("all", stats.all, stats.all);
  fmt::print("\nthe files have {} bytes, {} of them packet headers\n\n", stats.stream_bytes,
             stats.stream_bytes - std::min(stats.stream_bytes, stats.all.bytes));

  std::vector<std::uint64_t> counts;
  for (const auto& bin : stats.bins) {
    std::uint64_t count = 0;
    for (const std::uint64_t of_type : bin) count += of_type;
    counts.push_back(count);
  }
  const std::uint64_t most = std::max<std::uint64_t>(*std::ranges::max_element(counts), 1);
  fmt::print("{:>14} {:>12}\n", "from s", "events");
  for (std::size_t i = 0; i < counts.size(); ++i)
    fmt::print(
        "{:>14.6f} {:>12} {}\n",
        static_cast<double>(stats.duration_ns) * static_cast<double>(i) / static_cast<double>(counts.size()) / 1e9,
        counts[i], std::string(static_cast<std::size_t>(60 * counts[i] / most), '#'));
}

base::Result<void> draw(const Json& json, const std::string& prefix, const std::string& python) {
  const std::string file = prefix + ".json";
  auto opened = OutFile::create(file);
  if (!opened) return opened.error();
  opened.value().write(json.dump(2) + "\n");
  if (auto closed = opened.value().close(); !closed) return closed;
  const auto drawn = run_python(python, "trace-stats", {file, "--output", prefix});
  if (!drawn) return drawn.error();
  return {};
}

}  // namespace

base::Result<TraceStats> stats_of(trace::TraceReader& run, const StatsOptions& options) {
  TraceStats stats;
  const RunTimes times(run);
  find_range(run, times, stats);
  for (std::size_t i = 0; i < trace::kEventSpecs; ++i) stats.specs.push_back(&trace::spec_at(i));
  stats.specs.insert(stats.specs.end(), run.declared.begin(), run.declared.end());
  stats.types.resize(run.type_count());
  stats.bins.assign(std::max<std::size_t>(options.bins, 1), std::vector<std::uint64_t>(run.type_count()));
  for (const auto& rank : run.ranks) {
    for (const auto& stream : rank->streams) {
      const trace::StreamSummary& summary = stream->summary();
      TraceStats::Actor actor{.rank = rank->rank, .actor = summary.actor, .name = summary.name, .count = {},
                              .lost_events = summary.lost_events, .stream_bytes = summary.bytes};
      if (auto counted = count_stream(*stream, times, options, stats, actor); !counted) return counted.error();
      stats.stream_bytes += summary.bytes;
      stats.actors.push_back(std::move(actor));
    }
  }
  for (const EventSpec* spec : stats.specs) {
    const EventCount& count = stats.types[static_cast<std::size_t>(spec->type)];
    stats.categories[static_cast<std::size_t>(spec->category)] += count;
    stats.all += count;
  }
  return stats;
}

void add_trace_stats(Subcommand trace, ToolContext& context) {
  Subcommand command =
      trace.add_subcommand("stats", "Count events by type, category, actor and time, and estimate their cost");
  const auto folder = trace_folder(command);
  auto options = std::make_shared<StatsOptions>();
  const auto json = json_flag(command);
  auto prefix = std::make_shared<std::string>();
  command.add_option("--bins", options->bins, "Number of intervals into which the duration is divided")
      .between(1, 100'000)
      .show_default();
  command.add_option("--event-ns", options->event_ns, "Assumed cost of recording an event, in nanoseconds")
      .show_default();
  command.add_option("--same-stamp-ns", options->same_stamp_ns,
                     "Assumed cost of an event with the same stamp as the one before, in nanoseconds")
      .show_default();
  command.add_option("-o,--out", *prefix,
                      "Draw PREFIX-types.png, PREFIX-time.png and PREFIX-time-types.png; numbers go to PREFIX.json");
  command.callback([=, &context] {
    const auto run = open_trace(*folder, context);
    if (run == nullptr) return;
    const auto stats = stats_of(*run, *options);
    if (!stats) return fail(context, stats.error());
    const Json object = json_of(stats.value(), *folder, *options);
    *json ? print(object) : print_table(stats.value());
    if (prefix->empty()) return;
    if (const auto drawn = draw(object, *prefix, context.config.get_string("python")); !drawn)
      fail(context, drawn.error());
  });
}

}  // namespace tandem::tools
