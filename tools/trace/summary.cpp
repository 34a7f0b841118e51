// tools/trace/summary.cpp: the numbers of a run, and what its trace does not permit to say.
#include "tools/trace/summary.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "tandem/analysis/bounds/replay.hpp"
#include "tools/counted.hpp"

namespace tandem::tools {

using namespace analysis;

namespace {

/// Lists the statements that the trace does not permit, and why.
std::vector<std::string> reservations_of(const History& history, const Summary& summary, const Quality& quality) {
  std::vector<std::string> result = defects_of(quality);
  if (history.job.starts_with("simulated"))  // as simulations name their jobs
    result.emplace_back("the run was simulated: its times are virtual, by models of its kernels and of the network");
  const auto all_ns =
      static_cast<double>(summary.split.makespan_ns) * static_cast<double>(summary.split.workers.size());
  const auto unknown_ns = static_cast<double>(summary.split.total()[static_cast<std::size_t>(Spent::unknown)]);
  if (all_ns > 0 && unknown_ns > 0.01 * all_ns)
    result.emplace_back("the states of workers were not recorded all the time: select `worker`");
  if (history.tasks.empty())
    result.emplace_back("no task was recorded: the program ran none, or they were not selected (`task`)");
  bool readied = false;
  for (const std::uint32_t row : history.tasks.rows()) readied = readied || history.tasks.ready_ns[row] != no_time;
  if (!history.tasks.empty() && !readied) result.emplace_back("it is not known when tasks became ready: select `task`");
  if (!history.tasks.empty() && history.waits.empty())
    result.emplace_back(
        "it is not known when the program waited, and what the last task waited for is therefore partly a guess: "
        "select `flow`");
  if (history.tasks.size() > 1 && history.dependencies.empty())
    result.emplace_back("no dependencies: either the tasks have none, or they were not recorded (`task`)");
  return result;
}

}  // namespace

std::vector<std::string> defects_of(const Quality& quality) {
  std::vector<std::string> result;
  const auto note = [&](std::uint64_t count, std::string_view what, std::string_view more = "") {
    if (count > 0) result.push_back(fmt::format("{}: {}{}", what, count, more));
  };
  note(quality.missing_ranks, "ranks whose folder is missing",
       "; times of messages with them, and the factor transfer, are not known");
  note(quality.cut_files, "files that end too early",
       fmt::format("; at least {} events are missing, all below is a part of the run", quality.cut_events));
  if (quality.cut_files == 0)
    note(quality.cut_events, "events that were written and that no file holds",
         "; all below is a part of the run (see tandem trace check)");
  note(quality.lost_events, "events lost", "; all below is a part of the run (see tandem trace info)");
  note(quality.running_tasks, "tasks that began and never ended", " (the program was killed, or events were lost)");
  note(quality.waiting_tasks, "tasks that were submitted and never began",
       ", which are not among the submitted and the ready ones below");
  note(quality.unmatched_sends, "messages sent without a known arrival");
  note(quality.unmatched_receives, "messages that arrived without a known send");
  note(quality.early_messages, "messages that arrived before they were sent",
       quality.lost_events > 0 ? std::string(" (events were lost: some are no pairs)")
                               : fmt::format(", by up to {:.1f} us: the clocks are wrong by that much",
                                             1e6 * in_seconds(quality.earliest_ns)));
  note(quality.clocks_by_date, "ranks whose clock was never compared",
       "; the dates of their systems had to do, wrong by 10 ms or so");
  if (quality.tracer_waits_ns > 0)
    result.push_back(fmt::format("threads waited {:.6f} s for the tracer: give it more memory (--tandem.trace.memory)",
                                 in_seconds(quality.tracer_waits_ns)));
  return result;
}

RunNumbers::RunNumbers(const History& run, const TaskGraph& graph)
    : history(run),
      summary(run, graph),
      efficiency(analysis::efficiency(summary.split, replay_end_ns(run, graph, analysis::Messages::free))),
      parallelism(analysis::parallelism(run, summary.split)),
      communication(analysis::communication(run, graph, summary.split)),
      broadcasts(analysis::broadcasts(run)),
      memory(memory_use(run)),
      energy(RunEnergy::of(run)),
      quality(analysis::quality(run)),
      reservations(reservations_of(run, summary, quality)) {}

}  // namespace tandem::tools
