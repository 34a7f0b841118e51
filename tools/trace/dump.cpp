// tools/trace/dump.cpp: `tandem trace dump`: lists the events in the order of time, one a line.
#include <algorithm>

#include <fmt/core.h>

#include "tools/json/json_report.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {
namespace {

using trace::Event;
using trace::EventSpec;
using trace::Field;

struct DumpOptions {
  std::optional<std::uint32_t> rank;
  std::vector<std::string> types;
  std::uint64_t limit = UINT64_MAX;
  bool json = false;
};

using TypeSet = std::vector<bool>;  ///< indexed by number of type

/// Types by their names, or those of categories; no names: all types. Errors: invalid_argument.
base::Result<TypeSet> types_of(const trace::TraceReader& run, const std::vector<std::string>& names) {
  TypeSet chosen(run.type_count(), names.empty());
  if (names.empty()) return chosen;
  for (const std::string& name : names) {
    bool known = false;
    for (std::size_t i = 0; i < trace::kEventSpecs + run.declared.size(); ++i) {
      const EventSpec& spec = i < trace::kEventSpecs ? trace::spec_at(i) : *run.declared[i - trace::kEventSpecs];
      if (spec.category == trace::Category::about || (spec.name != name && name_of(spec.category) != name)) continue;
      chosen[static_cast<std::size_t>(spec.type)] = true;
      known = true;
    }
    if (!known)
      return base::Error{
          base::ErrorCode::invalid_argument,
          fmt::format("--type {}: no such events; name a type such as task.started, or a category such as task", name)};
  }
  return chosen;
}

Json field_json(const Event& event, std::size_t field) {
  switch (event.spec().fields[field].field) {
    case Field::i16:
    case Field::i32:
    case Field::i64: return event.integer(field);
    case Field::f64: return event.real(field);
    case Field::text: return event.text(field);
    case Field::list16:
    case Field::list32: {
      Json list = Json::array();
      for (std::size_t i = 0; i < event.list_size(field); ++i) list.push_back(event.list_entry(field, i));
      return list;
    }
    default: return Json::exact(event.number(field));
  }
}

void print_json(const Event& event, std::int64_t time_ns, const RunTimes& times, const std::string& actor) {
  Json fields = Json::object();
  for (std::size_t i = 0; i < field_count(event.spec()); ++i)
    fields[std::string(event.spec().fields[i].name)] = field_json(event, i);
  const Json line{{"date_ns", times.date_ns(time_ns)}, {"rank", event.rank}, {"actor", event.actor}, {"actor_name", actor},
                  {"ticks", event.ticks}, {"event", event.spec().name}, {"fields", fields}};
  fmt::print("{}\n", line.dump());
}

base::Result<void> dump(trace::TraceReader& run, const DumpOptions& options) {
  const auto types = types_of(run, options.types);
  if (!types) return types.error();
  if (options.rank && run.rank_of(*options.rank) == nullptr)
    return base::Error{base::ErrorCode::invalid_argument,
                       fmt::format("--rank {}: the trace has no such rank", *options.rank)};
  const RunTimes times(run);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> names;
  for (const auto& rank : run.ranks)
    for (const auto& stream : rank->streams) names[{rank->rank, stream->summary().actor}] = stream->summary().name;

  std::uint64_t left = options.limit;
  std::optional<std::int64_t> start_ns;  // start of the whole run, for any choice of events
  if (left == 0) return {};
  return run.in_order([&](const Event& event) { return times.of(event); }, [&](const Event& event,
                                                                               std::int64_t time_ns) {
    if (!start_ns) start_ns = time_ns;
    if (options.rank && event.rank != *options.rank) return true;
    if (!types.value()[static_cast<std::size_t>(event.type)]) return true;
    const std::string& actor = names[{event.rank, event.actor}];
    if (options.json) {
      print_json(event, time_ns, times, actor);
    } else {
      const std::string fields = event.described();
      fmt::print("{:>16}  {:>4}  {:<16} {}{}{}\n", seconds(time_ns - *start_ns), event.rank, actor, event.spec().name,
                 fields.empty() ? "" : " ", fields);
    }
    return --left > 0;
  });
}

}  // namespace

void add_trace_dump(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand(
      "dump", "Print all events in the order of time: seconds since the first, rank, actor, event, fields");
  const auto folder = trace_folder(command);
  auto options = std::make_shared<DumpOptions>();
  command.add_option("--rank", options->rank, "Only events of this rank");
  command.add_option("--type", options->types, "Only these types or categories: task.started,comm").list();
  command.add_option("--limit", options->limit, "Print at most this many events");
  command.add_flag("--json", options->json, "Print one JSON object per line, one for each event");
  command.callback([folder, options, &context] {
    const auto run = open_trace(*folder, context);
    if (run == nullptr) return;
    if (const auto dumped = dump(*run, *options); !dumped) fail(context, dumped.error());
  });
}

}  // namespace tandem::tools
