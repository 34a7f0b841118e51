// tools/trace/summary_text.cpp: the tables that `tandem trace summary` prints. Tables without content for a run are
// left out.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "tandem/analysis/tables/short_time.hpp"
#include "tools/counted.hpp"
#include "tools/trace/summary.hpp"

namespace tandem::tools {
namespace {

using namespace analysis;

double in_us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }
double share(std::int64_t part_ns, std::int64_t whole_ns) {
  return whole_ns == 0 ? 0 : 100 * static_cast<double>(part_ns) / static_cast<double>(whole_ns);
}

constexpr std::size_t most_rows = 64;  ///< of a table
/// Written after a table whose other rows are left out.
void print_rest(std::size_t rows, std::string_view noun) {
  if (rows > most_rows) fmt::print("and {} other {}: see --json\n", rows - most_rows, noun);
}

void print_times(const Summary& summary) {
  const auto all = static_cast<std::int64_t>(summary.split.workers.size()) * summary.split.makespan_ns;
  const SpentTimes total = summary.split.total();
  fmt::print("\n{:<40} {:>10} {:>8}\n", "time of all workers", "seconds", "share");
  constexpr std::array<std::string_view, spent_kinds> texts{
      "executing tasks", "copying between memories", "choosing and preparing tasks", "holding a core for an urgent task",
      "idle: a task was ready", "idle: waiting for room or copies", "idle: waiting for another rank's data", "idle: no task was ready",
      "idle: waiting for the program to submit", "in the program, or submitting", "idle: before or after the rank's tasks", "unknown"};
  for (std::size_t i = 0; i < spent_kinds; ++i)
    if (total[i] != 0)
      fmt::print("{:<40} {:>10.6f} {:>6.1f} %\n", texts[i], in_seconds(total[i]), share(total[i], all));
}

void print_workers(const Summary& summary) {
  fmt::print("\n{:<18} {:>10} {:>11} {:>7} {:>9} {:>9}\n", "rank, worker", "executing", "scheduling", "idle", "program",
             "unknown");
  for (std::size_t i = 0; i < std::min(most_rows, summary.split.workers.size()); ++i) {
    const WorkerTimes& worker = summary.split.workers[i];
    const auto of = [&](Spent spent) {
      return share(worker.ns[static_cast<std::size_t>(spent)], summary.split.makespan_ns);
    };
    fmt::print("{:<18} {:>8.1f} % {:>9.1f} % {:>5.1f} % {:>7.1f} % {:>7.1f} %\n",
               fmt::format("{}, {}", worker.rank, worker.worker), of(Spent::executing),
               of(Spent::scheduling) + of(Spent::fetching) + of(Spent::holding),
               of(Spent::ready_elsewhere) + of(Spent::awaiting_memory) + of(Spent::awaiting_message) +
                   of(Spent::no_ready_task) + of(Spent::awaiting_submission) + of(Spent::outside),
               of(Spent::program), of(Spent::unknown));
  }
  print_rest(summary.split.workers.size(), "workers");
}

void print_kernels(const History& history, const Summary& summary) {
  std::int64_t all_ns = 0;
  bool tells_flops = false;
  for (const KernelProfile& kernel : summary.kernels) {
    all_ns += kernel.total_ns;
    tells_flops = tells_flops || kernel.flops > 0;
  }
  fmt::print("\n{:<24} {:>9} {:>12} {:>8} {:>11} {:>11} {:>9}{}\n", "codelet", "tasks", "seconds", "share", "median us",
             "longest us", "outliers", tells_flops ? "   GFlop/s" : "");
  const auto print = [&](std::string_view name, const Durations& durations, const std::string& rate) {
    fmt::print("{:<24} {:>9} {:>12.6f} {:>6.1f} % {:>11.2f} {:>11.2f} {:>9}{}\n", name, durations.tasks,
               in_seconds(durations.total_ns), share(durations.total_ns, all_ns), in_us(durations.median_ns),
               in_us(durations.max_ns), durations.outliers, rate);
  };
  for (const KernelProfile& kernel : summary.kernels) {
    print(history.texts[kernel.codelet], kernel,
          kernel.flops > 0 ? fmt::format("{:>10.2f}", kernel.flops_per_second() / 1e9) : "");
    for (const KernelOnKind& one : kernel.kinds)
      print(fmt::format("  on {}", summary.kinds.names()[one.kind]), one, "");
  }
}

/// The processor's counters during the tasks of each kernel.
void print_counts(const History& history, const Summary& summary) {
  if (history.counts.empty()) return;
  fmt::print("\n{:<24} {:>9} {:>14} {:>14} {:>22} {:>16} {:>22}\n", "counted by the processor", "tasks", "cycles",
             "instructions", "instructions / cycle", "stalled cycles", "cache misses / task");
  for (const KernelProfile& kernel : summary.kernels) {
    if (!kernel.instructions_per_cycle()) continue;
    const auto tasks = static_cast<double>(kernel.counted_tasks);
    fmt::print("{:<24} {:>9} {:>14.4g} {:>14.4g} {:>22.2f} {:>16} {:>22}\n", history.texts[kernel.codelet],
               kernel.counted_tasks, kernel.cycles, kernel.instructions, *kernel.instructions_per_cycle(),
               kernel.stalled ? fmt::format("{:.1f} %", 100 * *kernel.stalled / kernel.cycles) : "not counted",
               kernel.misses ? fmt::format("{:.4g}", *kernel.misses / tasks) : "not counted");
  }
}

/// The accuracy of the scheduler's predictions of kernels' durations.
void print_expectations(const History& history, const Summary& summary) {
  if (history.expected.empty()) return;
  fmt::print("\n{:<24} {:<12} {:>9} {:>10} {:>10} {:>10} {:>12}\n", "took / was expected", "on", "tasks", "quartile",
             "median", "quartile", "mean error");
  for (const KernelProfile& kernel : summary.kernels)
    for (const Expectations& one : kernel.expectations)
      fmt::print("{:<24} {:<12} {:>9} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.1f} %\n", history.texts[kernel.codelet],
                 summary.kinds.names()[one.kind], one.tasks, one.first_quartile, one.median, one.third_quartile,
                 100 * one.error);
}

std::string name_of(const AreaBound& area) {
  if (area.kinds.size() < 2) return "area: time of all kernels / workers";
  std::string workers;
  for (const AreaBound::Kind& kind : area.kinds)
    workers += fmt::format("{}{} {}", workers.empty() ? "" : " and ", kind.workers, kind.name);
  return fmt::format("area: all kernels on {} workers{}", workers,
                     area.is_exact ? "" : " (weak: built without lp_solve)");
}

/// The number of tasks of each kernel on each kind of worker in an optimal distribution.
void print_distribution(const History& history, const AreaBound& area) {
  if (area.kinds.size() < 2) return;
  fmt::print("\n{:<30} {:<8} {:>12} {:>14} {:>16}\n", "kernel", "worker", "tasks", "mean us", "for area bound");
  for (const KernelPlace& place : area.kernels)
    fmt::print("{:<30} {:<8} {:>12} {:>14.3f} {:>16}\n", history.texts[place.codelet], area.kinds[place.kind].name,
               place.tasks, in_us(place.ns) / static_cast<double>(place.tasks),
               area.is_exact ? fmt::format("{:.1f}", place.placed) : "not known");
}

void print_bounds(const History& history, const Summary& summary) {
  const std::int64_t makespan_ns = summary.split.makespan_ns;
  fmt::print("\n{:<52} {:>12} {:>12}\n", "bounds of the makespan", "seconds", "of makespan");
  const auto bound = [&](std::string_view name, std::int64_t ns) {
    fmt::print("{:<52} {:>12.6f} {:>10.1f} %\n", name, in_seconds(ns), share(ns, makespan_ns));
  };
  bound(name_of(summary.area), summary.area.ns);
  bound(fmt::format("critical path: {} tasks, one after the other", summary.path.tasks.size()), summary.path.length_ns);
  if (summary.path_with_messages.length_ns != summary.path.length_ns)
    bound("critical path with the times of its messages", summary.path_with_messages.length_ns);
  fmt::print("\n{:<52} {:>12} {:>12}\n", "what the last task waited for, back to the start", "seconds", "of makespan");
  bound("tasks that the next one needed", summary.realised.total_ns(StepKind::execution));
  bound("tasks that held up a worker", summary.realised.total_ns(StepKind::busy));
  if (history.size > 1) bound("messages", summary.realised.total_ns(StepKind::message));
  bound(history.stagings.empty() ? "queues and wake-ups" : "queues, wake-ups, room in memory",
        summary.realised.total_ns(StepKind::overhead));
  bound("the program: it had not submitted the next task", summary.realised.total_ns(StepKind::submission));
}

void print_efficiency(const RunEfficiency& efficiency) {
  const auto row = [](const std::string& name, const Efficiency& of) {
    fmt::print("{:<18} {:>8.1f} % {:>14.1f} % {:>15.1f} % {:>10.1f} %\n", name, 100 * of.parallel,
               100 * of.load_balance, 100 * of.serialisation, 100 * of.transfer);
  };
  fmt::print("\n{:<18} {:>10} {:>16} {:>17} {:>12}\n", "efficiency", "parallel", "= load balance", "* serialisation",
             "* transfer");
  row("all workers", efficiency);
  if (efficiency.ranks.size() < 2) return;
  for (std::size_t i = 0; i < std::min(most_rows, efficiency.ranks.size()); ++i)
    row(fmt::format("rank {}", efficiency.ranks[i].rank), efficiency.ranks[i]);
  print_rest(efficiency.ranks.size(), "ranks");
  fmt::print("load balance {:.1f} % = {:.1f} % across ranks * {:.1f} % within ranks\n", 100 * efficiency.load_balance,
             100 * efficiency.across_ranks, 100 * efficiency.within_ranks);
}

/// Whether the states of workers were recorded, from which idle times follow.
bool has_states(const Summary& summary) {
  const SpentTimes total = summary.split.total();
  for (std::size_t i = 0; i < spent_kinds; ++i)
    if (static_cast<Spent>(i) != Spent::executing && static_cast<Spent>(i) != Spent::unknown && total[i] > 0)
      return true;
  return total[static_cast<std::size_t>(Spent::unknown)] == 0;
}

void print_parallelism(const Summary& summary, const RunParallelism& parallelism) {
  if (parallelism.all.makespan.length_ns() == 0) return;
  fmt::print("\n{:<18} {:>18} {:>18} {:>18} {:>12} {:>12}\n", "", "submitted", "ready", "running", "some worker",
             "and no task");
  fmt::print("{:<18} {:>10} {:>7} {:>10} {:>7} {:>10} {:>7} {:>12} {:>12}\n", "tasks at a time", "mean", "most", "mean",
             "most", "mean", "most", "is idle", "is ready");
  const auto row = [&](const std::string& name, const Parallelism& of, bool has_idle) {
    const auto& makespan = of.makespan;
    const auto counts = [&](const StepFunction& function) {
      if (function.steps().empty()) return fmt::format("{:>10} {:>7}", "-", "-");  // not recorded
      return fmt::format("{:>10.1f} {:>7}", function.mean(makespan), function.max(makespan));
    };
    const auto part = [&](std::int64_t ns) {
      return has_idle ? fmt::format("{:.1f} %", share(ns, makespan.length_ns())) : "-";
    };
    fmt::print("{:<18} {} {} {} {:>12} {:>12}\n", name, counts(of.submitted), counts(of.ready), counts(of.running),
               part(of.idle_ns), part(of.starved_ns));
  };
  // A worker runs tasks of its rank only, so the ready tasks of all ranks together say nothing of idle workers.
  row("all", parallelism.all, parallelism.ranks.size() == 1 && has_states(summary));
  if (parallelism.ranks.size() == 1) return;
  for (std::size_t i = 0; i < std::min(most_rows, parallelism.ranks.size()); ++i)
    row(fmt::format("rank {}", parallelism.ranks[i].rank), parallelism.ranks[i], has_states(summary));
  print_rest(parallelism.ranks.size(), "ranks");
}

/// The traffic between ranks. For two ranks the table of ranks has it, and a large matrix cannot be read.
void print_matrix(const Communication& communication) {
  constexpr std::size_t most = 8;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const RankPair*> pairs;
  for (const RankPair& pair : communication.matrix) pairs[{pair.source, pair.destination}] = &pair;
  if (communication.ranks.size() < 3 || communication.ranks.size() > most) return;
  fmt::print("\n{:<10}", "sent");
  for (const RankCommunication& to : communication.ranks) fmt::print(" {:>10}", fmt::format("to {}", to.rank));
  fmt::print("\n");
  for (const RankCommunication& from : communication.ranks) {
    fmt::print("{:<10}", fmt::format("from {}", from.rank));
    for (const RankCommunication& to : communication.ranks) {
      const auto pair = pairs.find({from.rank, to.rank});
      fmt::print(" {:>10}", pair == pairs.end() ? "-" : short_bytes(pair->second->bytes));
    }
    fmt::print("\n");
  }
}

void print_communication(const Communication& communication) {
  if (communication.messages() == 0) return;
  const auto traffic = [](const analysis::Traffic& of) {
    if (of.busy_ns == 0) return fmt::format("{:>9} {:>10} {:>12} {:>7}", of.messages, short_bytes(of.bytes), "-", "-");
    return fmt::format("{:>9} {:>10} {:>12} {:>7}", of.messages, short_bytes(of.bytes),
                       short_bytes(of.bytes_per_s()) + "/s", of.most_at_once);
  };
  fmt::print("\n{:<9} {:>9} {:>10} {:>12} {:>7}   {:>9} {:>10} {:>12} {:>7}\n", "messages", "received", "size", "rate",
             "at once", "sent", "size", "rate", "at once");
  for (std::size_t i = 0; i < std::min(most_rows, communication.ranks.size()); ++i) {
    const RankCommunication& rank = communication.ranks[i];
    fmt::print("{:<9} {}   {}\n", fmt::format("rank {}", rank.rank), traffic(rank.in), traffic(rank.out));
  }
  print_rest(communication.ranks.size(), "ranks");
  print_matrix(communication);

  fmt::print("\n{:<38} {:>12} {:>12} {:>12}\n", "time of one message", "median", "3rd quartile", "longest");
  const auto times = [](std::string_view name, const std::optional<Quartiles>& ns) {
    if (ns)
      fmt::print("{:<38} {:>12} {:>12} {:>12}\n", name, short_time(static_cast<double>(ns->median)),
                 short_time(static_cast<double>(ns->third)), short_time(static_cast<double>(ns->max)));
  };
  times("from its posting to its arrival", communication.sent_to_arrived);
  times("from its arrival to its first use", communication.arrived_to_used);

  if (!communication.sent_to_arrived) return;
  RankCommunication all;
  for (const RankCommunication& rank : communication.ranks) {
    all.awaiting_ns += rank.awaiting_ns;
    all.exposed_ns += rank.exposed_ns;
    all.overlapped_ns += rank.overlapped_ns;
  }
  fmt::print("\n{:<52} {:>12}\n", "messages and the time of workers", "seconds");
  fmt::print("{:<52} {:>12.6f}\n", "exposed: idle while a message was under way", in_seconds(all.exposed_ns));
  fmt::print("{:<52} {:>12.6f}\n", "idle before the data was sent", in_seconds(all.awaiting_ns - all.exposed_ns));
  fmt::print("{:<52} {:>12.6f}", "overlapped: kernels while a message was under way", in_seconds(all.overlapped_ns));
  fmt::print("{}\n",
             communication.overlap() ? fmt::format("  ({:.1f} % of both)", 100 * *communication.overlap()) : "");
}

/// The effect of kernels and large messages on each other. A few of them say nothing.
void print_contention(const analysis::Contention& contention) {
  const auto row = [](std::string_view name, double slowness, std::uint64_t compared) {
    if (compared >= analysis::Contention::least_compared)
      fmt::print("{:<52} {:>12.2f}  ({} compared)\n", name, slowness, grouped(compared));
  };
  if (std::max(contention.tasks, contention.messages) < analysis::Contention::least_compared) return;
  fmt::print("\n{:<52} {:>12}\n", "contention", "times as long");
  row("kernels beside messages of 64 KiB or more", contention.slowness, contention.tasks);
  row("messages of 64 KiB or more beside kernels", contention.message_slowness, contention.messages);
}

void print_broadcasts(const Broadcasts& broadcasts) {
  const SharedData& shared = broadcasts.shared;
  if (broadcasts.count == 0 && shared.versions == 0) return;
  fmt::print("\n{:<52} {:>24}\n", "broadcasts", broadcasts.count);
  const auto row = [](std::string_view name, const std::string& value) { fmt::print("{:<52} {:>24}\n", name, value); };
  if (broadcasts.recipients) {
    row("recipients: fewest, median, most", fmt::format("{}, {}, {}", broadcasts.recipients->min,
                                                        broadcasts.recipients->median, broadcasts.recipients->max));
    row("bytes to all recipients", short_bytes(broadcasts.bytes));
  }
  if (broadcasts.durations)
    row("to the last arrival: median, longest", short_time(static_cast<double>(broadcasts.durations->median)) + ", " +
                                                    short_time(static_cast<double>(broadcasts.durations->max)));
  if (broadcasts.gain)
    row("plain messages in turn at the highest rate: median", fmt::format("{:.2f} times as long", *broadcasts.gain));
  if (broadcasts.arrivals > 0) {
    row("late arrivals: much later than others of their size",
        fmt::format("{} of {}", broadcasts.late, broadcasts.arrivals));
    row("recipients that had posted their receive before",
        fmt::format("{} of {}", broadcasts.awaited, broadcasts.arrivals));
  }
  if (broadcasts.declined > 0) row("ranks without room to forward", fmt::format("{}", broadcasts.declined));
  if (!shared.detection_rate()) return;
  row("recipients of shared data served by a broadcast",
      fmt::format("{} of {} ({:.1f} %)", shared.by_broadcast, shared.recipients, 100 * *shared.detection_rate()));
  row("versions of data that were sent in several ways", fmt::format("{} of {}", shared.split, shared.versions));
}

void print_memory(const History& history, const std::vector<NodeMemory>& memory) {
  if (memory.empty()) return;
  fmt::print("\n{:<42} {:>12} {:>14} {:>12} {:>12}\n", "memory", "peak", "at, seconds", "mean", "at the end");
  for (std::size_t i = 0; i < std::min(most_rows, memory.size()); ++i) {
    const NodeMemory& node = memory[i];
    fmt::print("{:<42} {:>12} {:>14.6f} {:>12} {:>12}\n",
               fmt::format("rank {}, {}", node.rank, history.memory_name(node.rank, node.node)),
               short_bytes(node.peak_bytes), in_seconds(node.peak_at_ns), short_bytes(node.mean_bytes),
               short_bytes(node.last_bytes));
  }
  print_rest(memory.size(), "nodes");
}

/// Main memory that CUDA devices access by themselves.
void print_page_locked(const std::vector<PageLockedRow>& pools) {
  if (pools.empty()) return;
  fmt::print("\n{:<16} {:>12} {:>12} {:>12} {:>12} {:>12} {:>24}\n", "page-locked", "peak", "locked", "allowed",
             "allocations", "from driver", "had no room");
  for (std::size_t i = 0; i < std::min(most_rows, pools.size()); ++i) {
    const PageLockedRow& pool = pools[i];
    const auto bytes = [](std::uint64_t count) { return short_bytes(static_cast<double>(count)); };
    fmt::print("{:<16} {:>12} {:>12} {:>12} {:>12} {:>12} {:>24}\n", fmt::format("rank {}", pool.rank),
               bytes(pool.most_used), bytes(pool.most_locked), bytes(pool.bound), pool.allocations, pool.from_driver,
               fmt::format("{} ({})", pool.refused, bytes(pool.refused_bytes)));
  }
  print_rest(pools.size(), "ranks");
}

/// The counters of energy, and the share of each kernel.
void print_energy(const RunEnergy& energy) {
  if (energy.counters.empty()) return;
  fmt::print("\n{:<24} {:<12} {:>12} {:>8} {:>11} {:>9} {:>11}\n", "energy", "on", "joules", "share", "watts", "+-",
             "confidence");
  const auto row = [&](std::string_view what, std::string_view kind, double joules, const model::Watts& watts) {
    fmt::print("{:<24} {:<12} {:>12.3f} {:>6.1f} % {:>11.2f} {:>9.2f} {:>11.2f}\n", what, kind, joules,
               energy.joules > 0 ? 100 * joules / energy.joules : 0, watts.watts, watts.error, watts.confidence());
  };
  for (std::size_t i = 0; i < std::min(most_rows, energy.kernels.size()); ++i)
    row(energy.kernels[i].codelet, energy.kernels[i].kind, energy.kernels[i].joules, energy.kernels[i].watts);
  print_rest(energy.kernels.size(), "kernels");
  for (const RunEnergy::Kind& kind : energy.kinds) row("(idle)", kind.kind, kind.idle_joules, kind.idle);
  for (std::size_t i = 0; i < std::min(most_rows, energy.counters.size()); ++i) {
    const RunEnergy::Counter& counter = energy.counters[i];
    fmt::print("{:<37} {:>12.3f} {:>8} {:>11.2f}\n", fmt::format("rank {}, {}", counter.rank, counter.name),
               counter.joules, "", counter.seconds > 0 ? counter.joules / counter.seconds : 0);
  }
  print_rest(energy.counters.size(), "counters");
  fmt::print("{:<37} {:>12.3f}\n", "all", energy.joules);
}

/// One line where the trace is complete, else its missing parts.
void print_quality(const RunNumbers& numbers) {
  const Quality& quality = numbers.quality;
  for (const std::string& text : numbers.reservations) fmt::print("note: {}\n", text);
  if (!numbers.reservations.empty()) return;
  // A line through two comparisons has no residuals.
  const std::string clocks = quality.worst_residual_ns >= 100  // less is no statement about the clocks
                                 ? fmt::format("; its corrected clocks are within {} of each comparison",
                                               short_time(quality.worst_residual_ns))
                                 : "";
  fmt::print("The trace is complete{}.\n", clocks);
}

void print_verdict(const History& history, const Summary& summary) {
  const auto findings = verdict(history, summary);
  if (summary.split.makespan_ns == 0) {
    fmt::print("\nNo task has run, as far as was recorded.\n");
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

}  // namespace

void print_summary_text(const RunNumbers& numbers) {
  const History& history = numbers.history;
  const Summary& summary = numbers.summary;
  fmt::print("{}, {}, {}, {}, makespan {:.6f} s\n", history.program, counted(history.size, "rank"),
             counted(summary.split.workers.size(), "worker"), counted(history.tasks.size(), "task"),
             in_seconds(summary.split.makespan_ns));
  print_quality(numbers);
  print_times(summary);
  print_workers(summary);
  if (numbers.efficiency) print_efficiency(*numbers.efficiency);
  print_parallelism(summary, numbers.parallelism);
  print_kernels(history, summary);
  print_counts(history, summary);
  print_expectations(history, summary);
  print_communication(numbers.communication);
  print_contention(numbers.summary.contention);
  print_broadcasts(numbers.broadcasts);
  print_memory(history, numbers.memory);
  print_page_locked(history.page_locked);
  print_energy(numbers.energy);
  print_bounds(history, summary);
  print_distribution(history, summary.area);
  print_verdict(history, summary);
}

}  // namespace tandem::tools
