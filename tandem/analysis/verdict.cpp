// tandem/analysis/verdict.cpp: one rule for each kind of loss.
#include "tandem/analysis/verdict.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace tandem::analysis {
namespace {

constexpr double least_share = 0.02;     ///< of the makespan, for a loss to be told
constexpr double chain_share = 0.8;      ///< of the makespan, for a chain of tasks to be the limit
constexpr double busy_share = 0.2;       ///< of the makespan, for tasks that held up others to be a matter of their order

class Judge {
 public:
  Judge(const History& history, const Summary& summary) : history_(history), summary_(summary), total_(summary.split.total()) {}

  std::vector<Finding> judge() {
    if (summary_.split.makespan_ns == 0 || summary_.split.workers.empty()) return {};
    no_ready_task();
    find("slow_submission", Spent::awaiting_submission, "Workers had executed all submitted tasks, and waited for the program to submit more.",
         "submit earlier or from fewer waits; make tasks larger; record the flow once and replay it (rt.record)");
    find("communication", Spent::awaiting_message, "Workers waited for data of other ranks.",
         "another distribution of the data; larger tiles; priorities for tasks whose results travel; --tandem.broadcast=automatic");
    find("ready_tasks_not_taken", Spent::ready_elsewhere, "Workers were idle although a task of their rank was ready.",
         "tasks of 50 us or more, so that waking a worker pays; --tandem.sched=lws; fewer workers");
    small_tasks();
    find("fetching", Spent::fetching, "Workers waited for copies between memories.", "data on the node of its tasks; larger tasks");
    find("held_cores", Spent::holding, "Workers held their cores free for urgent tasks.", "shorter tasks beside the urgent ones");
    find("program", Spent::program, "The submitting thread submitted tasks or did other work, while its worker could have run tasks.",
         "record the flow once and replay it (rt.record); make other work a task; call rt.wait() earlier; --tandem.caller=false and a core for "
         "the submitting thread");
    find("imbalance", Spent::outside, "Ranks had ended their tasks before others, or began later.",
         "another distribution of the data over ranks");
    slow_executions();
    std::ranges::stable_sort(found_, std::greater(), &Finding::lost_ns);
    return std::move(found_);
  }

 private:
  std::int64_t workers() const { return static_cast<std::int64_t>(summary_.split.workers.size()); }
  double makespan() const { return static_cast<double>(summary_.split.makespan_ns); }
  std::int64_t lost_ns(Spent spent) const { return total_[static_cast<std::size_t>(spent)] / workers(); }

  void add(Finding finding) {
    if (static_cast<double>(finding.lost_ns) >= least_share * makespan()) found_.push_back(std::move(finding));
  }
  void find(std::string_view key, Spent spent, std::string what, std::string remedy) {
    add({.key = key, .lost_ns = lost_ns(spent), .what = std::move(what), .remedy = std::move(remedy)});
  }

  /// Tasks waited for others: since the graph has no more parallelism, or since its longest chain was delayed.
  void no_ready_task() {
    const std::int64_t lost = lost_ns(Spent::no_ready_task);
    const double chain = static_cast<double>(summary_.path.length_ns) / makespan();
    const double busy = static_cast<double>(summary_.realised.total_ns(StepKind::busy)) / makespan();
    if (chain >= chain_share) {
      add({.key = "long_chain", .lost_ns = lost,
           .what = fmt::format("A chain of {} tasks, each of which needs the one before, takes {:.0f} % of the makespan.",
                               summary_.path.tasks.size(), 100 * chain),
           .remedy = "smaller tasks on that chain (smaller tiles); an algorithm with fewer steps in a row; more workers do not help"});
    } else if (busy >= busy_share) {
      add({.key = "order_of_tasks", .lost_ns = lost,
           .what = fmt::format("Tasks that everything waited for began late: their workers executed others during {:.0f} % of the "
                               "makespan.", 100 * busy),
           .remedy = "priorities for the tasks of the longest chain, and --tandem.sched=prio"});
    } else {
      add({.key = "few_ready_tasks", .lost_ns = lost, .what = "The submitted tasks waited for those that ran: too few could run at once.",
           .remedy = "smaller tiles; submit independent work together; a larger --tandem.window"});
    }
  }

  void small_tasks() {
    std::uint64_t tasks = 0;
    for (const KernelProfile& kernel : summary_.kernels) tasks += kernel.tasks;
    const std::int64_t executing_ns = total_[static_cast<std::size_t>(Spent::executing)];
    find("small_tasks", Spent::scheduling,
         fmt::format("Workers prepared and chose tasks; a task takes {:.3g} us on average.",
                     tasks == 0 ? 0.0 : static_cast<double>(executing_ns) / static_cast<double>(tasks) / 1e3),
         "larger tasks (larger tiles); record the flow once and replay it (rt.record)");
  }

  void slow_executions() {
    std::int64_t excess_ns = 0;
    std::uint64_t outliers = 0;
    const KernelProfile* worst = nullptr;
    for (const KernelProfile& kernel : summary_.kernels) {
      excess_ns += kernel.outlier_excess_ns;
      outliers += kernel.outliers;
      if (worst == nullptr || kernel.outlier_excess_ns > worst->outlier_excess_ns) worst = &kernel;
    }
    if (worst == nullptr) return;
    add({.key = "slow_executions", .lost_ns = excess_ns / workers(),
         .what = fmt::format("{} tasks took much longer than others of their codelet, most of all of '{}'.", outliers,
                             history_.texts[worst->codelet]),
         .remedy = "other programs on these cores; first use of memory; a slow core"});
  }

  const History& history_;
  const Summary& summary_;
  SpentTimes total_;
  std::vector<Finding> found_;
};

}  // namespace

Summary::Summary(const History& history, const TaskGraph& graph)
    : split(split_time(history)),
      area_ns(area_bound_ns(history)),
      path(critical_path(history, graph, Messages::free)),
      path_with_messages(critical_path(history, graph, Messages::measured)),
      realised(realised_path(history, graph, split.begin_ns)),
      kernels(profile_kernels(history)) {}

std::vector<Finding> verdict(const History& history, const Summary& summary) { return Judge(history, summary).judge(); }

}  // namespace tandem::analysis
