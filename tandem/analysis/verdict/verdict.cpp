// tandem/analysis/verdict/verdict.cpp: one rule for each kind of loss.
#include "tandem/analysis/verdict/verdict.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "tandem/analysis/tables/short_time.hpp"
#include "tandem/analysis/tables/sort_times.hpp"
#include "tandem/analysis/verdict/broadcasts.hpp"
#include "tandem/analysis/verdict/idle_kinds.hpp"
#include "tandem/analysis/verdict/polling_neighbours.hpp"
#include "tandem/analysis/verdict/shared_processors.hpp"
#include "tandem/analysis/verdict/worker_speed.hpp"

namespace tandem::analysis {
namespace {

constexpr double least_share = 0.02;     ///< of the makespan, for a loss to be reported
constexpr double chain_share = 0.8;      ///< of the makespan, for a chain of tasks to be the limit
constexpr double alone_share = 0.2;      ///< of the makespan, for a chain with a task that ran alone
constexpr double busy_share = 0.2;  ///< of the makespan, for tasks that held up others to be a matter of their order

class Judge {
 public:
  Judge(const History& history, const Summary& summary)
      : history_(history),
        summary_(summary),
        total_(summary.split.total()),
        speeds_(worker_speeds(history, summary.kernels)),
        polling_(polling_neighbours(history)),
        contention_(summary.contention),
        idle_kinds_(idle_kinds(history, summary.split, summary.kernels)) {
    for (const IdleKind& kind : idle_kinds_)
      for (std::size_t spent = 0; spent < spent_kinds; ++spent) total_[spent] -= kind.ns[spent];
  }

  std::vector<Finding> judge() {
    if (summary_.split.makespan_ns == 0 || summary_.split.workers.empty()) return {};
    no_ready_task();
    find("slow_submission", Spent::awaiting_submission,
         "All submitted tasks ran or had ended, and idle workers waited for the program to submit more.",
         "submit earlier or from fewer waits; make tasks larger; record the flow once and replay it (rt.record)");
    communication();
    find("ready_tasks_not_taken", Spent::ready_elsewhere, "Workers were idle although a task of their rank was ready.",
         "tasks of 50 us or more, so that waking a worker pays; --tandem.sched=lws; fewer workers");
    memory();
    kinds_without_work();
    small_tasks();
    find("fetching", Spent::fetching, "Workers waited for copies between memories.",
         "data on the node of its tasks; larger tasks");
    find("held_cores", Spent::holding, "Workers held their cores free for urgent tasks.",
         "shorter tasks beside the urgent ones");
    find("program", Spent::program,
         "The submitting thread submitted tasks or did other work, while its worker could have run tasks.",
         "record the flow once and replay it (rt.record); make other work a task; call rt.wait() earlier; "
         "--tandem.caller=false and a core for "
         "the submitting thread");
    find("imbalance", Spent::outside, "Ranks had ended their tasks before others, or began later.",
         "another distribution of the data over ranks");
    slow_workers();
    polling_threads();
    large_messages();
    slow_executions();
    std::ranges::stable_sort(found_, std::greater(), &Finding::lost_ns);
    return std::move(found_);
  }

 private:
  std::int64_t workers() const { return static_cast<std::int64_t>(summary_.split.workers.size()); }
  double makespan() const { return static_cast<double>(summary_.split.makespan_ns); }
  std::int64_t lost_ns(Spent spent) const { return total_[static_cast<std::size_t>(spent)] / workers(); }

  void add(Finding finding) {
    if (matters(finding.lost_ns)) found_.push_back(std::move(finding));
  }
  bool matters(std::int64_t lost_ns) const { return static_cast<double>(lost_ns) >= least_share * makespan(); }
  void find(std::string_view key, Spent spent, std::string what, std::string remedy) {
    add({.key = key, .lost_ns = lost_ns(spent), .what = std::move(what), .remedy = std::move(remedy)});
  }

  /// Tasks waited for others: because the graph has no more parallelism, or because its longest chain was delayed.
  void no_ready_task() {
    const std::int64_t lost = lost_ns(Spent::no_ready_task);
    if (!matters(lost)) return;
    const double chain = static_cast<double>(summary_.path.length_ns) / makespan();
    const double busy = static_cast<double>(summary_.realised.total_ns(StepKind::busy)) / makespan();
    const Alone alone = alone_times();
    if (executed() < 2 * static_cast<std::uint64_t>(workers())) {
      add({.key = "few_tasks", .lost_ns = lost,
           .what = fmt::format("{} tasks are too few for {} workers.", grouped(executed()), workers()),
           .remedy = "smaller tiles; fewer workers"});
    } else if (2 * alone.ns * (workers() - 1) >= lost * workers() && chain >= alone_share && workers() > 1 &&
               2 * alone.longest_ns >= alone.ns) {
      add({.key = "serial_phase", .lost_ns = lost,
           .what = fmt::format("During {:.0f} % of the makespan one task ran alone, for the most part '{}'.",
                               100 * static_cast<double>(alone.ns) / makespan(), history_.texts[alone.codelet]),
           .remedy = "divide that task into several; submit what does not need it before it"});
    } else if (chain >= chain_share) {
      add({.key = "long_chain",
           .lost_ns = lost,
           .what =
               fmt::format("A chain of {} tasks, each of which needs the one before, takes {:.0f} % of the makespan.",
                           grouped(summary_.path.tasks.size()), 100 * chain),
           .remedy = "smaller tasks on that chain (smaller tiles); an algorithm with fewer steps in a row; more "
                     "workers do not help"});
    } else if (busy >= busy_share) {
      add({.key = "order_of_tasks", .lost_ns = lost,
           .what = fmt::format("Tasks that everything waited for began late: their workers executed others during {:.0f} % of the "
                               "makespan.", 100 * busy),
           .remedy = "priorities for the tasks of the longest chain, and --tandem.sched=prio"});
    } else {
      add({.key = "few_ready_tasks",
           .lost_ns = lost,
           .what = "The submitted tasks waited for those that ran: too few could run at once.",
           .remedy = "smaller tiles; submit independent work together; a larger --tandem.window"});
    }
  }

  std::uint64_t executed() const {
    std::uint64_t tasks = 0;
    for (const KernelProfile& kernel : summary_.kernels) tasks += kernel.tasks;
    return tasks;
  }

  /// The time in which one task ran and no other one, on all ranks.
  struct Alone {
    std::int64_t ns = 0;
    std::int64_t longest_ns = 0;  ///< of one task
    Texts::Id codelet = 0;        ///< that most of it belongs to
  };
  Alone alone_times() const {
    const TaskTable& tasks = history_.tasks;
    const auto& memory = history_.memory_of_tables();
    SpillVector<TimedRow> starts(memory), ends(memory);
    const auto takes_time = [&](std::uint32_t row) {
      return tasks.has_run(row) && tasks.end_ns[row] > tasks.start_ns[row];
    };
    for (const std::uint32_t row : tasks.started())
      if (takes_time(row)) starts.push_back({tasks.start_ns[row], row});
    for (const std::uint32_t row : tasks.ended())
      if (takes_time(row)) ends.push_back({tasks.end_ns[row], row});
    sort_by_time_and_row(starts);
    sort_by_time_and_row(ends);
    std::int64_t since_ns = 0;
    std::uint64_t rows = 0;  // the sum of running rows: of one it is the row
    std::size_t running = 0, begun = 0;
    SpillVector<std::int64_t> alone(memory);  // of each row
    alone.resize(tasks.size());
    for (const auto& [end_ns, ended] : ends) {
      ends.touch();
      for (; begun < starts.size() && starts[begun].ns < end_ns; ++begun) {
        if (running == 1) alone[rows] += starts[begun].ns - since_ns;
        since_ns = starts[begun].ns;
        rows += starts[begun].row;
        ++running;
      }
      if (running == 1) alone[rows] += end_ns - since_ns;
      since_ns = end_ns;
      rows -= ended;
      --running;
    }
    Alone all;
    std::vector<std::int64_t> codelets(history_.texts.size());
    for (const std::uint32_t row : tasks.rows()) {
      all.ns += alone[row];
      all.longest_ns = std::max(all.longest_ns, alone[row]);
      codelets[tasks.codelet(row)] += alone[row];
    }
    all.codelet = static_cast<Texts::Id>(std::ranges::max_element(codelets) - codelets.begin());
    return all;
  }

  /// Workers waited for data: several ranks needed it and got it one by one, or a rank had dropped it and got it again.
  void communication() {
    const std::int64_t lost = lost_ns(Spent::awaiting_message);
    if (!matters(lost)) return;
    const SharedData shared = shared_data(history_);
    const auto [messages, again] = repeated_messages();
    if (5 * again >= messages && again > 0) {
      add({.key = "copies_dropped", .lost_ns = lost,
           .what = fmt::format("Workers waited for data of other ranks; {} of {} messages brought a version that the rank had received before and "
                               "dropped.", grouped(again), grouped(messages)),
           .remedy = "more memory for received copies (--tandem.copies)"});
    } else if (shared.recipients >= 3 * shared.versions && shared.versions > 0 &&
               shared.detection_rate().value_or(1) < 0.5) {
      add({.key = "no_broadcasts",
           .lost_ns = lost,
           .what = fmt::format("Workers waited for data of other ranks; {:.0f} % of what several ranks needed was sent "
                               "to one after the other.",
                               100 * (1 - shared.detection_rate().value_or(1))),
           .remedy = "--tandem.broadcast=automatic"});
    } else {
      add({.key = "communication", .lost_ns = lost, .what = "Workers waited for data of other ranks.",
           .remedy = std::string("another distribution of the data; larger tiles; priorities for tasks whose results travel") +
                     (history_.broadcasts.empty() ? "; --tandem.broadcast=automatic" : "")});
    }
  }

  /// Messages of flow data between ranks, and those of them that brought a version again.
  std::pair<std::uint64_t, std::uint64_t> repeated_messages() const {
    std::uint64_t messages = 0, again = 0;
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> seen;
    for (const CommunicationRow& row : history_.communications) {
      if (!row.has_receive() || row.failed || row.receive_data == no_number || row.version == no_number ||
          row.source == row.destination)
        continue;
      ++messages;
      if (!seen.emplace(row.destination, row.receive_data, row.version).second) ++again;
    }
    return {messages, again};
  }

  /// Tasks waited for room within a budget, or for data that had left and came again.
  void memory() {
    std::int64_t room_ns = 0, all_ns = 0;
    for (const StagingRow& row : history_.stagings) {
      all_ns += row.end_ns - row.start_ns;
      if (row.stage == trace::StagingState::memory) room_ns += row.end_ns - row.start_ns;
    }
    const double room = all_ns > 0 ? 100 * static_cast<double>(room_ns) / static_cast<double>(all_ns) : 0;
    if (room < 1)
      return find("copies", Spent::awaiting_memory,
                  "Workers were idle while the data of tasks was copied from one memory to another.",
                  "a scheduler that looks ahead, so that copies are made while others compute (--tandem.sched=plan); "
                  "tasks that compute more with what "
                  "is copied");
    find("memory_budget", Spent::awaiting_memory,
         fmt::format("Workers were idle because tasks waited for memory: {:.0f} % of this for room within the budget, "
                     "{:.0f} % for data that "
                     "was copied in or out, for instance from the spill file.",
                     room, 100 - room),
         "a larger budget (--tandem.memory); smaller pieces of data; tasks that use the same data submitted one after "
         "the other");
  }

  void kinds_without_work() {
    if (idle_kinds_.empty()) return;
    for (const IdleKind& kind : idle_kinds_) {
      std::int64_t idle_ns = 0;
      for (const std::int64_t ns : kind.ns) idle_ns += ns;
      add({.key = "kind_without_work",
           .lost_ns = idle_ns / workers(),
           .what = fmt::format(
               "Workers of kind {} were idle while all ready tasks were of kernels that ran on other kinds alone.",
               summary_.kinds.names()[kind.kind]),
           .remedy = "implementations of these kernels for these workers, too; other work for them; if there is none, "
                     "fewer of them"});
    }
  }

  void slow_workers() {
    std::int64_t excess_ns = 0;
    const WorkerSpeed* worst = nullptr;
    for (const WorkerSpeed& speed : speeds_) {
      if (!speed.is_slow()) continue;
      excess_ns += std::max<std::int64_t>(speed.excess_ns, 0);
      if (worst == nullptr || speed.excess_ns > worst->excess_ns) worst = &speed;
    }
    if (worst == nullptr) return;
    add({.key = "slow_worker",
         .lost_ns = excess_ns / workers(),
         .what = fmt::format("Worker {} of rank {} took {:.2g} times as long for the same tasks as the others.",
                             worst->worker, worst->rank, worst->slowness),
         .remedy = "look for other programs on its core, its frequency and the memory near it; leave the core out "
                   "(--tandem.cores)"});
  }
  bool is_slow(std::uint32_t row) const {
    return std::ranges::any_of(speeds_, [&](const WorkerSpeed& speed) {
      return speed.is_slow() && speed.rank == history_.tasks.rank[row] && speed.worker == history_.tasks.worker[row];
    });
  }

  void polling_threads() {
    if (!polling_.do_harm()) return;
    add({.key = "polling_neighbours",
         .lost_ns = std::max<std::int64_t>(polling_.excess_ns, 0) / workers(),
         .what = fmt::format("{} tasks took {:.2g} times as long while other threads of their host polled.",
                             grouped(polling_.tasks), polling_.slowness),
         .remedy = "let idle threads sleep earlier (--tandem.poll_for, --tandem.comm.spin); fewer workers and ranks "
                   "than cores; a core for the "
                   "progress thread (--tandem.comm.progress_core)"});
  }

  /// Reports tasks beside large messages; those beside polling threads are reported there.
  void large_messages() {
    if (!contention_.slows_tasks() || is_told_by_polling()) return;
    const std::string messages =
        contention_.slows_messages()
            ? fmt::format("; these messages took {:.2g} times as long beside kernels", contention_.message_slowness)
            : "";
    add({.key = "contention",
         .lost_ns = std::max<std::int64_t>(contention_.excess_ns, 0) / workers(),
         .what = fmt::format(
             "{} tasks took {:.2g} times as long while messages of {} KiB or more were under way on their host{}.",
             grouped(contention_.tasks), contention_.slowness, Contention::least_bytes >> 10, messages),
         .remedy = "tiles that fit into the caches; data of kernels and received copies on different NUMA nodes; fewer "
                   "workers; tandem contention "
                   "measure shows what cores and network have of this memory"});
  }
  bool is_told_by_polling() const {
    const auto told = std::ranges::count_if(
        contention_.slowed, [&](std::uint32_t row) { return std::ranges::binary_search(polling_.slowed, row); });
    return 2 * static_cast<std::size_t>(told) > contention_.slowed.size();
  }

  void small_tasks() {
    const std::uint64_t tasks = executed();
    const std::int64_t executing_ns = total_[static_cast<std::size_t>(Spent::executing)];
    find("small_tasks", Spent::scheduling,
         fmt::format("Workers chose tasks and prepared them; a task takes {} on average.",
                     short_time(tasks == 0 ? 0.0 : static_cast<double>(executing_ns) / static_cast<double>(tasks))),
         "larger tasks (larger tiles); record the flow once and replay it (rt.record)");
  }

  void slow_executions() {
    std::int64_t excess_ns = 0;
    std::uint64_t outliers = 0;
    const KernelProfile* worst = nullptr;
    const bool some_slow =
        std::ranges::any_of(speeds_, &WorkerSpeed::is_slow) || !polling_.slowed.empty() || !contention_.slowed.empty();
    for (const KernelProfile& kernel : summary_.kernels) {
      excess_ns += kernel.outlier_excess_ns;
      outliers += kernel.outliers;
      if (worst == nullptr || kernel.outlier_excess_ns > worst->outlier_excess_ns) worst = &kernel;
    }
    if (some_slow) {  // the time of these tasks is reported already
      const TaskTable& tasks = history_.tasks;
      const UsualDurations usual(history_, summary_.kernels);
      for (const std::uint32_t row : tasks.rows()) {
        if (!tasks.has_run(row) || !usual.is_outlier(row)) continue;
        const bool is_told = is_slow(row) || std::ranges::binary_search(polling_.slowed, row) ||
                             std::ranges::binary_search(contention_.slowed, row);
        if (!is_told) continue;
        excess_ns -= tasks.end_ns[row] - tasks.start_ns[row] - usual.of(row).median_ns;
        --outliers;
      }
    }
    if (worst == nullptr) return;
    Finding finding{.key = "slow_executions",
                    .lost_ns = excess_ns / workers(),
                    .what = fmt::format("{} tasks took much longer than others of their codelet, most of all of '{}'",
                                        grouped(outliers), history_.texts[worst->codelet]),
                    .remedy = "other programs on these cores; first use of memory; a lock in the kernel; a slow core"};
    if (const auto shared = shared_processors(history_)) {
      finding.key = "shared_cores";
      finding.what += fmt::format(": {} workers took turns on {} hardware thread{} of a host", shared->workers,
                                  shared->pus, shared->pus == 1 ? "" : "s");
      finding.remedy =
          "no more workers, of all ranks of a host, than it has cores (tandem run -n, --tandem.workers); more hosts";
    }
    finding.what += '.';
    add(std::move(finding));
  }

  const History& history_;
  const Summary& summary_;
  SpentTimes total_;
  std::vector<WorkerSpeed> speeds_;
  PollingNeighbours polling_;
  const Contention& contention_;
  std::vector<IdleKind> idle_kinds_;  ///< whose times are not in `total_`
  std::vector<Finding> found_;
};

}  // namespace

Summary::Summary(const History& history, const TaskGraph& graph)
    : kinds(history),
      split(split_time(history)),
      area(area_bound(history)),
      path(critical_path(history, graph, Messages::free)),
      path_with_messages(graph.has_messages() ? critical_path(history, graph, Messages::measured) : path),
      realised(realised_path(history, graph, split.begin_ns)),
      kernels(profile_kernels(history)),
      contention(analysis::contention(history)) {}

std::vector<Finding> verdict(const History& history, const Summary& summary) { return Judge(history, summary).judge(); }

}  // namespace tandem::analysis
