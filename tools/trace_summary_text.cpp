// tools/trace_summary.cpp: `tandem trace summary`: where the time of a run went, its bounds, and what to try.
#include <fmt/core.h>

#include "tandem/analysis/history.hpp"
#include "tandem/analysis/verdict.hpp"
#include "tools/json_report.hpp"
#include "tools/trace_command.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

using namespace analysis;

double in_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }
double in_us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }
double share(std::int64_t part_ns, std::int64_t whole_ns) {
  return whole_ns == 0 ? 0 : 100 * static_cast<double>(part_ns) / static_cast<double>(whole_ns);
}

/// What could not be judged, and why; for people.
std::vector<std::string> reservations(const History& history, const Summary& summary) {
  std::vector<std::string> result;
  std::uint64_t lost = 0;
  for (const ActorFacts& actor : history.actors) lost += actor.lost_events;
  if (lost > 0) result.push_back(fmt::format("{} events were lost: all below is a part of the run (see tandem trace info)", lost));
  const std::int64_t all_ns = summary.split.makespan_ns * static_cast<std::int64_t>(summary.split.workers.size());
  const std::int64_t unknown_ns = summary.split.total()[static_cast<std::size_t>(Spent::unknown)];
  if (share(unknown_ns, all_ns) > 1) result.push_back("the states of workers were not recorded all the time: select `worker`");
  bool readied = false;
  for (const TaskRow& task : history.tasks) readied = readied || task.ready_ns != no_time;
  if (!history.tasks.empty() && !readied) result.push_back("it is not known when tasks became ready: select `task`");
  if (history.tasks.size() > 1 && history.dependencies.empty())
    result.push_back("no dependencies: either the tasks have none, or they were not recorded (`task`)");
  return result;
}

Json json_of(const SpentTimes& ns) {
  Json object = Json::object();
  for (std::size_t i = 0; i < spent_kinds; ++i) object[std::string(name_of(static_cast<Spent>(i)))] = in_seconds(ns[i]);
  return object;
}

Json json_of(const History& history, const PathStep& step) {
  Json object{{"kind", name_of(step.kind)}, {"rank", history.tasks[step.task].rank}, {"task", history.tasks[step.task].id},
              {"name", history.texts[history.tasks[step.task].name]}, {"start_s", in_seconds(step.start_ns)},
              {"end_s", in_seconds(step.end_ns)}};
  if (step.from != no_number) object["from"] = step.from;
  return object;
}

void print_json(const std::string& folder, const History& history, const Summary& summary) {
  Json workers = Json::array(), kernels = Json::array(), steps = Json::array(), findings = Json::array();
  for (const WorkerTimes& worker : summary.split.workers)
    workers.push_back({{"rank", worker.rank}, {"worker", worker.worker}, {"seconds", json_of(worker.ns)}});
  for (const KernelProfile& kernel : summary.kernels)
    kernels.push_back({{"codelet", history.texts[kernel.codelet]}, {"tasks", kernel.tasks}, {"total_s", in_seconds(kernel.total_ns)},
                       {"min_s", in_seconds(kernel.min_ns)}, {"first_quartile_s", in_seconds(kernel.first_quartile_ns)},
                       {"median_s", in_seconds(kernel.median_ns)}, {"third_quartile_s", in_seconds(kernel.third_quartile_ns)},
                       {"max_s", in_seconds(kernel.max_ns)}, {"outliers", kernel.outliers},
                       {"outlier_excess_s", in_seconds(kernel.outlier_excess_ns)}});
  for (const PathStep& step : summary.realised.steps) steps.push_back(json_of(history, step));
  for (const Finding& finding : verdict(history, summary))
    findings.push_back({{"key", finding.key}, {"lost_s", in_seconds(finding.lost_ns)}, {"what", finding.what}, {"remedy", finding.remedy}});
  Json object{{"tandem", version}, {"commit", commit}, {"folder", folder}, {"program", history.program}, {"ranks", history.size},
              {"tasks", history.tasks.size()}, {"makespan_s", in_seconds(summary.split.makespan_ns)}};
  object["bounds"] = Json{{"area_s", in_seconds(summary.area_ns)}, {"critical_path_s", in_seconds(summary.path.length_ns)},
                          {"critical_path_tasks", summary.path.tasks.size()},
                          {"critical_path_with_messages_s", in_seconds(summary.path_with_messages.length_ns)}};
  object["seconds"] = json_of(summary.split.total());
  object["workers"] = workers;
  object["kernels"] = kernels;
  object["realised_path"] = steps;
  object["verdict"] = findings;
  object["reservations"] = Json(reservations(history, summary));
  print(object);
}

void print_times(const Summary& summary) {
  const auto all = static_cast<std::int64_t>(summary.split.workers.size()) * summary.split.makespan_ns;
  const SpentTimes total = summary.split.total();
  fmt::print("\n{:<38} {:>12} {:>8}\n", "time of all workers", "seconds", "share");
  constexpr std::array<std::string_view, spent_kinds> texts{
      "executing tasks", "copying between memories", "choosing and preparing tasks", "holding a core for an urgent task",
      "idle: a ready task was not taken", "idle: waiting for another rank's data", "idle: no task was ready",
      "idle: waiting for the program to submit", "in the program, or submitting", "idle: before or after the rank's tasks", "unknown"};
  for (std::size_t i = 0; i < spent_kinds; ++i)
    if (total[i] != 0) fmt::print("{:<38} {:>12.6f} {:>6.1f} %\n", texts[i], in_seconds(total[i]), share(total[i], all));
}

void print_workers(const Summary& summary) {
  constexpr std::size_t most = 64;
  fmt::print("\n{:<18} {:>10} {:>11} {:>7} {:>9} {:>9}\n", "rank, worker", "executing", "scheduling", "idle", "program", "unknown");
  for (std::size_t i = 0; i < std::min(most, summary.split.workers.size()); ++i) {
    const WorkerTimes& worker = summary.split.workers[i];
    const auto of = [&](Spent spent) { return share(worker.ns[static_cast<std::size_t>(spent)], summary.split.makespan_ns); };
    fmt::print("{:<18} {:>8.1f} % {:>9.1f} % {:>5.1f} % {:>7.1f} % {:>7.1f} %\n", fmt::format("{}, {}", worker.rank, worker.worker),
               of(Spent::executing), of(Spent::scheduling) + of(Spent::fetching) + of(Spent::holding),
               of(Spent::ready_elsewhere) + of(Spent::awaiting_message) + of(Spent::no_ready_task) + of(Spent::awaiting_submission) +
                   of(Spent::outside),
               of(Spent::program), of(Spent::unknown));
  }
  if (summary.split.workers.size() > most) fmt::print("and {} other workers: see --json\n", summary.split.workers.size() - most);
}

void print_kernels(const History& history, const Summary& summary) {
  std::int64_t all_ns = 0;
  for (const KernelProfile& kernel : summary.kernels) all_ns += kernel.total_ns;
  fmt::print("\n{:<24} {:>9} {:>12} {:>8} {:>11} {:>11} {:>9}\n", "codelet", "tasks", "seconds", "share", "median us", "longest us",
             "outliers");
  for (const KernelProfile& kernel : summary.kernels)
    fmt::print("{:<24} {:>9} {:>12.6f} {:>6.1f} % {:>11.2f} {:>11.2f} {:>9}\n", history.texts[kernel.codelet], kernel.tasks,
               in_seconds(kernel.total_ns), share(kernel.total_ns, all_ns), in_us(kernel.median_ns), in_us(kernel.max_ns), kernel.outliers);
}

void print_bounds(const Summary& summary) {
  const std::int64_t makespan_ns = summary.split.makespan_ns;
  fmt::print("\n{:<52} {:>12} {:>12}\n", "bounds of the makespan", "seconds", "of makespan");
  const auto bound = [&](std::string_view name, std::int64_t ns) {
    fmt::print("{:<52} {:>12.6f} {:>10.1f} %\n", name, in_seconds(ns), share(ns, makespan_ns));
  };
  bound("area: time of all kernels / workers", summary.area_ns);
  bound(fmt::format("critical path: {} tasks, one after the other", summary.path.tasks.size()), summary.path.length_ns);
  if (summary.path_with_messages.length_ns != summary.path.length_ns)
    bound("critical path with the times of its messages", summary.path_with_messages.length_ns);
  fmt::print("\n{:<52} {:>12} {:>12}\n", "what the last task waited for, back to the start", "seconds", "of makespan");
  bound("tasks that the next one needed", summary.realised.total_ns(StepKind::execution));
  bound("tasks that held up a worker", summary.realised.total_ns(StepKind::busy));
  bound("messages", summary.realised.total_ns(StepKind::message));
  bound("queues and wake-ups", summary.realised.total_ns(StepKind::overhead));
  bound("submission", summary.realised.total_ns(StepKind::submission));
}

void print_verdict(const History& history, const Summary& summary) {
  const auto findings = verdict(history, summary);
  if (summary.split.makespan_ns == 0) {
    fmt::print("\nNo task has run.\n");
  } else if (findings.empty()) {
    fmt::print("\nNothing to gain here: no loss takes 2 % of the makespan.\n");
  } else {
    fmt::print("\nWhat limits this run, and what it cost:\n");
  }
  for (std::size_t i = 0; i < findings.size(); ++i) {
    fmt::print("{}. {:.6f} s ({:.0f} % of the makespan): {}\n   Try: {}.\n", i + 1, in_seconds(findings[i].lost_ns),
               share(findings[i].lost_ns, summary.split.makespan_ns), findings[i].what, findings[i].remedy);
  }
}

void print_text(const History& history, const Summary& summary) {
  fmt::print("{}, {} {}, {} {}, {} tasks, makespan {:.6f} s\n", history.program, history.size, history.size == 1 ? "rank" : "ranks",
             summary.split.workers.size(), summary.split.workers.size() == 1 ? "worker" : "workers", history.tasks.size(),
             in_seconds(summary.split.makespan_ns));
  for (const std::string& text : reservations(history, summary)) fmt::print("note: {}\n", text);
  print_times(summary);
  print_workers(summary);
  print_kernels(history, summary);
  print_bounds(summary);
  print_verdict(history, summary);
}

}  // namespace

void add_trace_summary(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand("summary", "Say where the time of a run went, what limits it, and what to try");
  const auto folder = trace_folder(command);
  const auto json = json_flag(command);
  command.callback([folder, json, &context] {
    const auto run = open_trace(*folder, context);
    if (run == nullptr) return;
    const auto history = History::read(*run);
    if (!history) return fail(context, history.error());
    const Summary summary(*history.value());
    *json ? print_json(*folder, *history.value(), summary) : print_text(*history.value(), summary);
  });
}

}  // namespace tandem::tools
