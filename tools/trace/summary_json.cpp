// tools/trace/summary_json.cpp: the object that `tandem trace summary --json` prints. Times are in seconds, sizes in
// bytes.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/standard_output.hpp"
#include "tools/trace/summary.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

using namespace analysis;

constexpr std::size_t intervals_over_time = 100;

Json json_of(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json json_of(const SpentTimes& ns) {
  Json object = Json::object();
  for (std::size_t i = 0; i < spent_kinds; ++i) object[std::string(name_of(static_cast<Spent>(i)))] = in_seconds(ns[i]);
  return object;
}

Json json_of(const History& history, const PathStep& step) {
  const TaskTable& tasks = history.tasks;
  Json object{{"kind", name_of(step.kind)}, {"rank", tasks.rank[step.task]}, {"task", history.number_of(tasks.id[step.task])},
              {"name", history.texts[tasks.name(step.task)]}, {"start_s", in_seconds(step.start_ns)},
              {"end_s", in_seconds(step.end_ns)}};
  if (step.from != no_number) object["from"] = step.from;
  return object;
}

Json json_of(const History& history, const AreaBound& area) {
  Json kinds = Json::array(), kernels = Json::array();
  for (const AreaBound::Kind& kind : area.kinds) kinds.push_back({{"name", kind.name}, {"workers", kind.workers}});
  for (const KernelPlace& place : area.kernels)
    kernels.push_back({{"codelet", history.texts[place.codelet]},
                       {"kind", area.kinds[place.kind].name},
                       {"tasks", place.tasks},
                       {"total_s", in_seconds(place.ns)},
                       {"placed", area.is_exact ? Json(place.placed) : Json(nullptr)}});
  return {{"exact", area.is_exact}, {"kinds", kinds}, {"kernels", kernels}};
}

/// Statistics of times; null: there are none.
Json times_json(const std::optional<Quartiles>& ns) {
  if (!ns) return nullptr;
  return {{"count", ns->count}, {"min_s", in_seconds(ns->min)}, {"first_quartile_s", in_seconds(ns->first)},
          {"median_s", in_seconds(ns->median)}, {"third_quartile_s", in_seconds(ns->third)}, {"max_s", in_seconds(ns->max)}};
}

Json json_of(const Efficiency& efficiency) {
  return {{"parallel", efficiency.parallel},
          {"load_balance", efficiency.load_balance},
          {"serialisation", efficiency.serialisation},
          {"transfer", efficiency.transfer}};
}

Json json_of(const std::optional<RunEfficiency>& efficiency) {
  if (!efficiency) return nullptr;
  Json object = json_of(static_cast<const Efficiency&>(*efficiency)), ranks = Json::array();
  object["load_balance_across_ranks"] = efficiency->across_ranks;
  object["load_balance_within_ranks"] = efficiency->within_ranks;
  object["ideal_makespan_s"] = in_seconds(efficiency->ideal_makespan_ns);
  for (const RankEfficiency& rank : efficiency->ranks) {
    Json entry{{"rank", rank.rank}, {"workers", rank.workers}, {"useful_s", in_seconds(rank.useful_ns)}};
    entry.update(json_of(static_cast<const Efficiency&>(rank)));
    ranks.push_back(entry);
  }
  object["ranks"] = ranks;
  return object;
}

Json json_of(const Parallelism& parallelism) {
  const analysis::Interval& makespan = parallelism.makespan;
  const auto length_s = in_seconds(makespan.length_ns());
  Json object{{"idle_s", in_seconds(parallelism.idle_ns)}, {"starved_s", in_seconds(parallelism.starved_ns)}};
  Json over_time{{"begin_s", in_seconds(makespan.begin_ns)},
                 {"interval_s", length_s / static_cast<double>(intervals_over_time)}};
  const auto add = [&](const char* key, const StepFunction& function) {
    object[key] = Json{{"mean", function.mean(makespan)}, {"max", function.max(makespan)}};
    over_time[key] = Json(function.bins(makespan, intervals_over_time));
  };
  add("submitted", parallelism.submitted);
  add("ready", parallelism.ready);
  add("running", parallelism.running);
  add("idle_workers", parallelism.idle_workers);
  object["over_time"] = over_time;
  return object;
}

Json json_of(const RunParallelism& parallelism) {
  Json ranks = Json::array();
  for (const Parallelism& of_rank : parallelism.ranks) {
    Json entry{{"rank", of_rank.rank}};
    entry.update(json_of(of_rank));
    ranks.push_back(entry);
  }
  Json object = json_of(parallelism.all);
  object["ranks"] = ranks;
  return object;
}

Json json_of(const analysis::Traffic& traffic) {
  return {{"messages", traffic.messages}, {"bytes", traffic.bytes}, {"busy_s", in_seconds(traffic.busy_ns)},
          {"bytes_per_s", traffic.bytes_per_s()}, {"most_at_once", traffic.most_at_once}};
}

Json json_of(const Communication& communication) {
  Json matrix = Json::array(), ranks = Json::array();
  for (const RankPair& pair : communication.matrix)
    matrix.push_back({{"source", pair.source}, {"destination", pair.destination}, {"messages", pair.messages}, {"bytes", pair.bytes},
                      {"total_s", in_seconds(pair.total_ns)}});
  for (const RankCommunication& rank : communication.ranks)
    ranks.push_back({{"rank", rank.rank}, {"in", json_of(rank.in)}, {"out", json_of(rank.out)}, {"awaiting_s", in_seconds(rank.awaiting_ns)},
                     {"exposed_s", in_seconds(rank.exposed_ns)}, {"overlapped_s", in_seconds(rank.overlapped_ns)}});
  return {{"messages", communication.messages()}, {"bytes", communication.bytes()}, {"overlap", json_of(communication.overlap())},
          {"sent_to_arrived", times_json(communication.sent_to_arrived)}, {"arrived_to_used", times_json(communication.arrived_to_used)},
          {"ranks", ranks}, {"matrix", matrix}};
}

/// Slowness is the ratio to the duration of those that ran alone.
Json json_of(const Contention& contention) {
  return {{"least_bytes", Contention::least_bytes}, {"tasks", contention.tasks},
          {"task_slowness", contention.slowness},   {"task_excess_s", in_seconds(contention.excess_ns)},
          {"messages", contention.messages},        {"message_slowness", contention.message_slowness}};
}

Json json_of(const Broadcasts& broadcasts) {
  const SharedData& shared = broadcasts.shared;
  Json recipients = nullptr;
  if (broadcasts.recipients)
    recipients = Json{{"min", broadcasts.recipients->min}, {"median", broadcasts.recipients->median}, {"max", broadcasts.recipients->max}};
  return {{"count", broadcasts.count},
          {"bytes", broadcasts.bytes},
          {"recipients", recipients},
          {"durations", times_json(broadcasts.durations)},
          {"gain", json_of(broadcasts.gain)},
          {"arrivals", broadcasts.arrivals},
          {"late", broadcasts.late},
          {"late_excess_s", in_seconds(broadcasts.late_excess_ns)},
          {"awaited", broadcasts.awaited},
          {"declined", broadcasts.declined},
          {"shared_data",
           {{"versions", shared.versions},
            {"recipients", shared.recipients},
            {"by_broadcast", shared.by_broadcast},
            {"bytes", shared.bytes},
            {"bytes_by_broadcast", shared.bytes_by_broadcast},
            {"split", shared.split},
            {"detection_rate", json_of(shared.detection_rate())}}}};
}

Json json_of(const History& history, const std::vector<NodeMemory>& memory) {
  Json nodes = Json::array();
  for (const NodeMemory& node : memory)
    nodes.push_back({{"rank", node.rank}, {"node", node.node}, {"name", history.memory_name(node.rank, node.node)},
                     {"peak_bytes", node.peak_bytes}, {"peak_at_s", in_seconds(node.peak_at_ns)}, {"mean_bytes", node.mean_bytes}, {"last_bytes", node.last_bytes}, {"allocations", node.allocations}});
  return nodes;
}

Json json_of(const std::vector<PageLockedRow>& pools) {
  Json ranks = Json::array();
  for (const PageLockedRow& pool : pools)
    ranks.push_back({{"rank", pool.rank}, {"most_used_bytes", pool.most_used}, {"most_locked_bytes", pool.most_locked}, {"bound_bytes", pool.bound},
                     {"allocations", pool.allocations}, {"from_driver", pool.from_driver}, {"refused", pool.refused}, {"refused_bytes", pool.refused_bytes}});
  return ranks;
}

Json json_of(const model::Watts& watts) {
  return {
      {"watts", watts.watts}, {"error", watts.error}, {"seconds", watts.seconds}, {"confidence", watts.confidence()}};
}

/// Energy; null: it was not measured.
Json json_of(const RunEnergy& energy) {
  if (energy.counters.empty()) return nullptr;
  Json counters = Json::array(), kernels = Json::array(), kinds = Json::array();
  for (const RunEnergy::Counter& one : energy.counters)
    counters.push_back({{"rank", one.rank}, {"name", one.name}, {"joules", one.joules}, {"seconds", one.seconds}});
  for (const RunEnergy::Kernel& one : energy.kernels)
    kernels.push_back(
        {{"codelet", one.codelet}, {"kind", one.kind}, {"joules", one.joules}, {"power", json_of(one.watts)}});
  for (const RunEnergy::Kind& one : energy.kinds)
    kinds.push_back({{"kind", one.kind}, {"joules", one.joules}, {"idle_joules", one.idle_joules}, {"idle_power", json_of(one.idle)}});
  return {{"joules", energy.joules}, {"counters", counters}, {"kernels", kernels}, {"kinds", kinds}};
}

Json json_of(const Quality& quality) {
  return {{"complete", quality.is_complete()}, {"missing_ranks", quality.missing_ranks}, {"cut_files", quality.cut_files}, {"cut_events", quality.cut_events},
          {"lost_events", quality.lost_events},
          {"lossy_actors", quality.lossy_actors}, {"tracer_waits_s", in_seconds(quality.tracer_waits_ns)},
          {"running_tasks", quality.running_tasks}, {"waiting_tasks", quality.waiting_tasks}, {"failed_tasks", quality.failed_tasks},
          {"cancelled_tasks", quality.cancelled_tasks}, {"unmatched_receives", quality.unmatched_receives},
          {"unmatched_sends", quality.unmatched_sends}, {"open_receives", quality.open_receives},
          {"failed_messages", quality.failed_messages}, {"early_messages", quality.early_messages},
          {"earliest_s", in_seconds(quality.earliest_ns)}, {"clocks_by_date", quality.clocks_by_date},
          {"worst_residual_s", quality.worst_residual_ns / 1e9}, {"worst_residual_rms_s", quality.worst_residual_rms_ns / 1e9}};
}

Json workers_json(const Summary& summary) {
  Json workers = Json::array();
  for (const WorkerTimes& worker : summary.split.workers)
    workers.push_back({{"rank", worker.rank}, {"worker", worker.worker}, {"seconds", json_of(worker.ns)}});
  return workers;
}

/// The colour that the program gave, as "#rrggbb"; null: none.
Json colour_json(const History& history, Texts::Id codelet) {
  const auto found = history.colours.find(codelet);
  return found == history.colours.end() ? Json(nullptr) : Json(fmt::format("#{:06x}", found->second));
}

Json durations_json(const Durations& durations) {
  return {{"tasks", durations.tasks}, {"total_s", in_seconds(durations.total_ns)}, {"min_s", in_seconds(durations.min_ns)},
          {"first_quartile_s", in_seconds(durations.first_quartile_ns)}, {"median_s", in_seconds(durations.median_ns)},
          {"third_quartile_s", in_seconds(durations.third_quartile_ns)}, {"max_s", in_seconds(durations.max_ns)},
          {"fence_s", durations.limit_ns() / 1e9}, {"outliers", durations.outliers},
          {"outlier_excess_s", in_seconds(durations.outlier_excess_ns)}};
}

Json kernels_json(const History& history, const Summary& summary) {
  Json kernels = Json::array();
  for (const KernelProfile& kernel : summary.kernels) {
    Json entry{{"codelet", history.texts[kernel.codelet]}, {"colour", colour_json(history, kernel.codelet)}};
    entry.update(durations_json(kernel));
    entry.update({{"flops", kernel.flops}, {"flops_per_second", kernel.flops_per_second()}, {"counted_tasks", kernel.counted_tasks},
                  {"cycles", kernel.cycles}, {"instructions", kernel.instructions}, {"instructions_per_cycle", json_of(kernel.instructions_per_cycle())},
                  {"stalled_cycles", json_of(kernel.stalled)}, {"cache_misses", json_of(kernel.misses)}});
    Json on_kinds = Json::array();
    for (const KernelOnKind& one : kernel.kinds) {
      Json durations{{"kind", summary.kinds.names()[one.kind]}};
      durations.update(durations_json(one));
      on_kinds.push_back(durations);
    }
    entry["kinds"] = on_kinds;
    Json expectations = Json::array();
    for (const Expectations& one : kernel.expectations)
      expectations.push_back({{"kind", summary.kinds.names()[one.kind]},
                              {"tasks", one.tasks},
                              {"first_quartile", one.first_quartile},
                              {"median", one.median},
                              {"third_quartile", one.third_quartile}, {"error", one.error}});
    entry["expectations"] = expectations;
    kernels.push_back(entry);
  }
  return kernels;
}

}  // namespace

Json summary_json(const std::string& folder, const RunNumbers& numbers) {
  const History& history = numbers.history;
  const Summary& summary = numbers.summary;
  Json findings = Json::array();
  for (const analysis::Finding& finding : verdict(history, summary))
    findings.push_back({{"key", finding.key}, {"lost_s", in_seconds(finding.lost_ns)}, {"what", finding.what}, {"remedy", finding.remedy}});
  Json object{{"tandem", version}, {"commit", commit}, {"folder", folder}, {"program", history.program}, {"arguments", history.arguments}, {"ranks", history.size},
              {"tasks", history.tasks.size()}, {"makespan_s", in_seconds(summary.split.makespan_ns)}};
  object["bounds"] = Json{{"area_s", in_seconds(summary.area.ns)}, {"critical_path_s", in_seconds(summary.path.length_ns)},
                          {"critical_path_tasks", summary.path.tasks.size()},
                          {"critical_path_with_messages_s", in_seconds(summary.path_with_messages.length_ns)}};
  object["area"] = json_of(history, summary.area);
  object["seconds"] = json_of(summary.split.total());
  object["workers"] = workers_json(summary);
  object["kernels"] = kernels_json(history, summary);
  object["efficiency"] = json_of(numbers.efficiency);
  object["parallelism"] = json_of(numbers.parallelism);
  object["communication"] = json_of(numbers.communication);
  object["contention"] = json_of(numbers.summary.contention);
  object["broadcasts"] = json_of(numbers.broadcasts);
  object["memory"] = json_of(history, numbers.memory);
  object["page_locked"] = json_of(history.page_locked);
  object["energy"] = json_of(numbers.energy);
  object["realised_path"] = Json();
  object["verdict"] = findings;
  object["quality"] = json_of(numbers.quality);
  object["reservations"] = Json(numbers.reservations);
  return object;
}

/// The path may have a step for every task, so each step is written as soon as it is formatted.
void print_summary_json(const std::string& folder, const RunNumbers& numbers) {
  constexpr int indent = 2;
  constexpr std::string_view place = "\n  \"realised_path\": ";  // a line break is never within a text of JSON
  const std::string text = summary_json(folder, numbers).dump(indent);
  const std::size_t at = text.find(place) + place.size();
  const auto write = [](std::string_view part) { write_output(part); };
  write(std::string_view(text).substr(0, at));
  bool first = true;
  for (const PathStep& step : numbers.summary.realised.steps) {
    numbers.summary.realised.steps.touch();
    const std::string lines = json_of(numbers.history, step).dump(indent);
    write(first ? "[\n    " : ",\n    ");
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', begin), lines.size());
      write(std::string_view(lines).substr(begin, end - begin));
      if (end < lines.size()) write("\n    ");
      begin = end + 1;
    }
    first = false;
  }
  write(first ? "[]" : "\n  ]");
  write(std::string_view(text).substr(at + std::string_view("null").size()));
  write("\n");
}

}  // namespace tandem::tools
