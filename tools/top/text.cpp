// tools/top/text.cpp: the view of `tandem top` as text.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/counted.hpp"
#include "tools/top/view.hpp"

namespace tandem::tools {

using namespace analysis;

namespace {

constexpr std::size_t most_waits = 10, most_kernels = 10;

/// A duration as text: "850 us", "12.3 ms", "4.2 s", "3 min 5 s".
std::string duration(std::int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return fmt::format("{:.0f} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
  if (ns < 60'000'000'000) return fmt::format("{:.1f} s", value / 1e9);
  return fmt::format("{} min {} s", ns / 60'000'000'000, ns / 1'000'000'000 % 60);
}

double per_second(std::uint64_t count, std::int64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

std::string or_dash(const std::optional<std::uint64_t>& value) { return value ? std::to_string(*value) : "-"; }

bool is_followed(const TopRank& rank) {
  return rank.trace != nullptr && rank.trace->state() != trace::LiveState::elsewhere;
}

/// Adds "and 3 other NOUN" for the rows beyond `most`.
void add_rest(std::string& text, std::size_t rows, std::size_t most, std::string_view noun) {
  if (rows > most) text += fmt::format("and {} other {}: see --json\n", rows - most, noun);
}

void add_head(std::string& text, const TopRun& run) {
  const trace::Manifest& manifest = run.manifest();
  LiveInterval::Tasks now, all;
  std::uint64_t waiting = 0, ready = 0, running = 0;
  bool are_known = true;
  std::int64_t length_ns = 0, elapsed_ns = 0;
  for (const TopRank& rank : run.ranks()) {
    if (!is_followed(rank)) continue;
    const LiveInterval& interval = rank.interval;
    length_ns = std::max(length_ns, interval.length_ns);
    elapsed_ns = std::max(elapsed_ns, interval.now_ns - rank.trace->manifest().realtime_local_ns);
    now += interval.tasks;
    all += interval.all_tasks;
    are_known = are_known && interval.waiting && interval.ready;
    waiting += interval.waiting.value_or(0);
    ready += interval.ready.value_or(0);
    running += interval.running;
  }
  text += std::filesystem::path(manifest.program).filename().string();
  if (manifest.size > 1) text += ", job " + manifest.job;
  text += fmt::format(", {} of {}", counted(run.ranks().size(), "rank"), manifest.size);
  if (std::ranges::none_of(run.ranks(), is_followed)) {
    text += '\n';
    return;
  }
  const auto known = [&](std::uint64_t count) { return are_known ? std::to_string(count) : "-"; };
  text += fmt::format(", {} since the start of its trace; the last {}\n", duration(elapsed_ns), duration(length_ns));
  text += fmt::format("tasks: {} waiting, {} ready, {} running; {:.0f}/s submitted, {:.0f}/s ended; {} ended so far",
                      known(waiting), known(ready), running, per_second(now.submitted, length_ns),
                      per_second(now.ended, length_ns), all.ended);
  if (all.failed > 0) text += fmt::format(", {} failed", all.failed);
  if (all.cancelled > 0) text += fmt::format(", {} cancelled", all.cancelled);
  text += '\n';
}

constexpr std::string_view rank_row =
    "{:>4} {:>8} {:>7} {:>7} {:>8} {:>8} {:>7} {:>9} {:>7} {:>10} {:>5} {:>8} {:>6}\n";

std::string row_of(const TopRank& rank) {
  const LiveInterval& interval = rank.interval;
  const auto rate = [&](std::uint64_t count) { return fmt::format("{:.0f}", per_second(count, interval.length_ns)); };
  const auto mib = [&](std::uint64_t bytes) {
    return fmt::format("{:.1f}", per_second(bytes, interval.length_ns) / (1 << 20));
  };
  const trace::LiveRank::Counts counts = rank.trace->counts();
  return fmt::format(rank_row, rank.rank(), or_dash(interval.waiting), or_dash(interval.ready), interval.running,
                     rate(interval.tasks.ended), rate(interval.messages.sent), mib(interval.messages.sent_bytes),
                     rate(interval.messages.arrived), mib(interval.messages.arrived_bytes),
                     rank.use ? short_bytes(rank.use->resident_bytes) : "-",
                     rank.use ? fmt::format("{:.1f}", rank.cpu) : "-",
                     fmt::format("{}/{}", counts.buffers_used, counts.buffers), counts.lost_events);
}

void add_ranks(std::string& text, const TopRun& run, std::size_t most) {
  if (std::ranges::any_of(run.ranks(), is_followed))
    text += '\n' + fmt::format(rank_row, "rank", "waiting", "ready", "running", "ended/s", "sent/s", "MiB/s",
                               "arrived/s", "MiB/s", "memory", "cores", "buffers", "lost");
  std::size_t rows = 0;
  for (const TopRank& rank : run.ranks())
    if (is_followed(rank) && ++rows <= most) text += row_of(rank);
  add_rest(text, rows, most, "ranks");
  for (const TopRank& rank : run.ranks()) {
    if (rank.trace == nullptr) {
      text += fmt::format("not followed: {}\n", rank.why_not.message);
    } else if (!is_followed(rank)) {
      const std::int64_t age_ns = std::max<std::int64_t>(0, rank.trace->now_ns() - rank.trace->last_event_ns());
      text += fmt::format("rank {} runs on {}, where its live buffers are: start tandem top there. "
                          "Its files, written {} ago, have {} ended\n",
                          rank.rank(), rank.trace->manifest().host, duration(age_ns),
                          counted(rank.interval.all_tasks.ended, "task"));
    } else if (rank.trace->state() != trace::LiveState::running) {
      text += fmt::format("rank {}: {}\n", rank.rank(), name_of(rank.trace->state()));
    }
  }
}

void add_kernels(std::string& text, const TopRun& run) {
  std::map<std::string, LiveKernel> all;
  std::int64_t total_ns = 0, length_ns = 0;
  for (const TopRank& rank : run.ranks()) {
    if (!is_followed(rank)) continue;
    length_ns = std::max(length_ns, rank.interval.length_ns);
    for (const LiveKernel& kernel : rank.interval.kernels) {
      LiveKernel& sum = all[kernel.name];
      sum.name = kernel.name;
      sum.tasks += kernel.tasks;
      sum.ns += kernel.ns;
      total_ns += kernel.ns;
    }
  }
  if (all.empty()) return;
  std::vector<LiveKernel> kernels;
  for (const auto& [name, kernel] : all) kernels.push_back(kernel);
  std::ranges::stable_sort(kernels, std::ranges::greater(), &LiveKernel::ns);
  text += fmt::format("\n{:<28} {:>9} {:>14} {:>8}\n", "kernel", "ended/s", "busy workers", "share");
  for (std::size_t i = 0; i < std::min(most_kernels, kernels.size()); ++i)
    text +=
        fmt::format("{:<28} {:>9.0f} {:>14.2f} {:>6.1f} %\n", kernels[i].name, per_second(kernels[i].tasks, length_ns),
                    length_ns == 0 ? 0 : static_cast<double>(kernels[i].ns) / static_cast<double>(length_ns),
                    total_ns == 0 ? 0 : 100 * static_cast<double>(kernels[i].ns) / static_cast<double>(total_ns));
  add_rest(text, kernels.size(), most_kernels, "kernels");
}

bool is_idle(const LiveInterval& interval) {
  return interval.ready.value_or(0) == 0 &&
         std::ranges::none_of(interval.workers, [](const LiveWorker& worker) { return worker.task != no_number; });
}

void add_waits_of(std::vector<std::string>& lines, const TopRank& rank) {
  const LiveInterval& interval = rank.interval;
  for (const LiveReceives& of : interval.receives)
    lines.push_back(fmt::format("rank {} {} data of rank {}: {}, the oldest {}for {}", rank.rank(),
                                is_idle(interval) ? "is idle, and waits for" : "expects", of.peer,
                                counted(of.count, "message"), of.data.empty() ? "" : fmt::format("({}) ", of.data),
                                duration(of.oldest_ns)));
  if (interval.program == LiveProgram::waiting)
    lines.push_back(
        fmt::format("the program of rank {} waits for tasks, for {}", rank.rank(), duration(interval.program_ns)));
  if (interval.program == LiveProgram::throttled)
    lines.push_back(fmt::format("submission on rank {} waits for room in the window, for {}", rank.rank(),
                                duration(interval.program_ns)));
  if (interval.tracer_waited_ns > 0)
    lines.push_back(
        fmt::format("threads of rank {} waited {} for the tracer's buffers: --tandem.trace.memory gives it more",
                    rank.rank(), duration(interval.tracer_waited_ns)));
}

/// Lists the waits of the run's workers and requests.
std::vector<std::string> waits_of(const TopRun& run) {
  std::vector<std::string> lines;
  const LiveWorker* longest = nullptr;
  std::uint32_t its_rank = 0;
  for (const TopRank& rank : run.ranks()) {
    if (!is_followed(rank)) continue;
    for (const LiveWorker& worker : rank.interval.workers)
      if (worker.task != no_number && (longest == nullptr || worker.state_ns > longest->state_ns)) {
        longest = &worker;
        its_rank = rank.rank();
      }
  }
  if (longest != nullptr)
    lines.push_back(fmt::format("longest running task: {} (task {}) on worker {} of rank {}, for {}", longest->kernel,
                                longest->task, longest->worker, its_rank, duration(longest->state_ns)));
  for (const TopRank& rank : run.ranks())
    if (is_followed(rank) && rank.trace->state() == trace::LiveState::running) add_waits_of(lines, rank);
  return lines;
}

void add_waits(std::string& text, const TopRun& run) {
  const std::vector<std::string> lines = waits_of(run);
  if (!lines.empty()) text += '\n';
  for (std::size_t i = 0; i < std::min(most_waits, lines.size()); ++i) text += lines[i] + '\n';
  add_rest(text, lines.size(), most_waits, "waits");
}

std::string row_of(const TopRank& rank, const LiveWorker& worker) {
  // Nothing is known of unread time, so shares are of the rest.
  std::int64_t known_ns = 0;
  for (const std::int64_t ns : worker.ns) known_ns += ns;
  const std::int64_t whole_ns = rank.interval.missed_packets > 0 ? known_ns : rank.interval.length_ns;
  const bool has_states = rank.trace->selection().has(trace::Type::worker_state);
  const auto share = [&](LiveSpent spent) {
    if (whole_ns <= 0 || known_ns == 0 || (!has_states && spent != LiveSpent::kernels)) return std::string("-");
    const auto ns = static_cast<double>(worker.ns[static_cast<std::size_t>(spent)]);
    return fmt::format("{:.1f} %", 100 * ns / static_cast<double>(whole_ns));
  };
  std::string now = "?";
  if (worker.task != no_number) now = worker.kernel;
  else if (worker.state) now = std::string(name_of(*worker.state));
  else if (!has_states) now = "not executing";
  return fmt::format("{:>4} {:>6} {:>4} {:>8} {:>8} {:>8} {:>8} {:>9.0f}  {}{}\n", rank.rank(), worker.worker,
                     worker.core < 0 ? "-" : std::to_string(worker.core), share(LiveSpent::kernels),
                     share(LiveSpent::runtime), share(LiveSpent::idle), share(LiveSpent::program),
                     per_second(worker.tasks, rank.interval.length_ns), now,
                     worker.state ? " for " + duration(worker.state_ns) : "");
}

void add_workers(std::string& text, const TopRun& run, std::size_t most) {
  if (std::ranges::none_of(run.ranks(), is_followed)) return;
  text += fmt::format("\n{:>4} {:>6} {:>4} {:>8} {:>8} {:>8} {:>8} {:>9}  {}\n", "rank", "worker", "core", "kernels",
                      "runtime", "idle", "program", "ended/s", "now");
  std::size_t rows = 0;
  for (const TopRank& rank : run.ranks()) {
    if (!is_followed(rank) || rank.trace->state() != trace::LiveState::running) continue;
    for (const LiveWorker& worker : rank.interval.workers)
      if (++rows <= most) text += row_of(rank, worker);
  }
  add_rest(text, rows, most, "workers");
}

/// Adds the parts that are not shown, and why.
void add_notes(std::string& text, const TopRun& run) {
  std::map<std::string, std::string> lacking;  // the ranks, by their missing categories
  for (const TopRank& rank : run.ranks()) {
    if (!is_followed(rank)) continue;
    std::string words;
    for (const std::string& word : rank.view->lacks()) words += (words.empty() ? "" : ",") + word;
    if (!words.empty()) lacking[words] += fmt::format("{}{}", lacking[words].empty() ? "" : ", ", rank.rank());
    if (rank.interval.missed_packets > 0)
      text += fmt::format("rank {}: {} of events were not read; numbers are of the rest\n", rank.rank(),
                          counted(rank.interval.missed_packets, "packet"));
  }
  for (const auto& [words, ranks] : lacking)
    text += fmt::format("not recorded by rank {}: {}; select more by TANDEM_TRACE (`all`) to see it\n", ranks, words);
}

}  // namespace

std::string top_text(const TopRun& run, std::size_t most_rows) {
  std::string text;
  add_head(text, run);
  add_ranks(text, run, most_rows);
  add_kernels(text, run);
  add_waits(text, run);
  add_notes(text, run);
  add_workers(text, run, most_rows);
  return text;
}

std::string end_text(const TopRun& run) {
  std::string text;
  LiveInterval::Tasks tasks;
  LiveMessages messages;
  std::uint64_t lost = 0, missed = 0;
  std::int64_t elapsed_ns = 0;
  std::filesystem::path folder;
  for (const TopRank& rank : run.ranks()) {
    if (rank.trace == nullptr) continue;
    folder = run.ranks().size() > 1 ? rank.folder.parent_path() : rank.folder;
    tasks += rank.interval.all_tasks;
    messages += rank.interval.all_messages;
    lost += rank.trace->counts().lost_events;
    missed += rank.trace->counts().missed_packets;
    elapsed_ns = std::max(elapsed_ns, rank.trace->last_event_ns() - rank.trace->manifest().realtime_local_ns);
    if (rank.trace->state() == trace::LiveState::killed)
      text +=
          fmt::format("rank {} was killed: its process {} is gone. Recover what it recorded: tandem trace recover {}\n",
                      rank.rank(), rank.trace->manifest().process, rank.folder.string());
    if (rank.trace->state() == trace::LiveState::recovered)
      text += fmt::format("rank {} was killed; its trace was recovered\n", rank.rank());
  }
  text += fmt::format("the run {} after {}: {}{} ended", run.was_killed() ? "was cut off" : "has ended",
                      duration(elapsed_ns), missed > 0 ? "at least " : "", counted(tasks.ended, "task"));
  if (tasks.failed > 0) text += fmt::format(", {} failed", tasks.failed);
  if (messages.sent > 0)
    text += fmt::format(", {} with {} sent", counted(messages.sent, "message"), short_bytes(messages.sent_bytes));
  if (lost > 0) text += fmt::format("; {} lost", counted(lost, "event"));
  return text + fmt::format("\nwhere the time went: tandem trace summary {}\n", folder.string());
}

}  // namespace tandem::tools
