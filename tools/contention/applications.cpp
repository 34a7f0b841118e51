// tools/contention/applications.cpp: plans runs of applications, reads and writes their lines, compares them.
#include "tools/contention/applications.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "tools/counted.hpp"

namespace tandem::tools::contention {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;

constexpr std::array run_columns{"application", "workers", "repetition", "seconds", "gflop_s", "iterations_per_s",
                             "messages", "message_bytes", "send_mb_s", "delivered_mb_s", "stalled"};

std::string header_of_runs() { return fmt::format("{}\n", fmt::join(run_columns, ",")); }

std::string line_of_run(const ApplicationRun& run) {
  return fmt::format("{},{},{},{:.6g},{:.6g},{},{},{},{},{},{}\n", run.application, run.workers, run.repetition,
                     run.seconds, run.gflop_s, cell_text(run.iterations_per_s), run.messages, run.message_bytes,
                     cell_text(run.send_mb_s), cell_text(run.delivered_mb_s), cell_text(run.stalled));
}

/// The name of a cell that is wrong; null if none is.
const char* parse(const std::vector<std::string_view>& cells, ApplicationRun& run) {
  run.application = cells[0];
  const bool good[] = {run.application == "cg" || run.application == "gemm",
                       read_cell(cells[1], run.workers) && run.workers > 0,
                       read_cell(cells[2], run.repetition),
                       read_cell(cells[3], run.seconds) && run.seconds > 0,
                       read_cell(cells[4], run.gflop_s),
                       read_cell(cells[5], run.iterations_per_s),
                       read_cell(cells[6], run.messages),
                       read_cell(cells[7], run.message_bytes),
                       read_cell(cells[8], run.send_mb_s),
                       read_cell(cells[9], run.delivered_mb_s),
                       read_cell(cells[10], run.stalled)};
  const auto* const wrong = std::ranges::find(good, false);
  return wrong == std::end(good) ? nullptr : run_columns[static_cast<std::size_t>(wrong - good)];
}

base::Result<std::vector<ApplicationRun>> read_runs(std::string_view text, const std::string& name) {
  const std::string first = header_of_runs();
  if (!text.starts_with(std::string_view(first).substr(0, first.size() - 1)))
    return Error{ErrorCode::malformed, fmt::format("{}: its first line is not that of applications: {}", name,
                                                   first.substr(0, first.size() - 1))};
  std::vector<ApplicationRun> runs;
  const auto lines = read_lines(text, name, run_columns.size(), [&](const std::vector<std::string_view>& cells) {
    return parse(cells, runs.emplace_back());
  });
  if (!lines) return lines.error();
  return runs;
}

}  // namespace

const RowFormat<ApplicationRun> application_format{.header = header_of_runs, .line = line_of_run, .read = read_runs};

base::Result<std::vector<ApplicationRun>> read_applications(const std::string& folder) {
  const fs::path file = fs::path(folder) / applications_file;
  if (!fs::exists(file)) return std::vector<ApplicationRun>();
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return read_runs(text, file.string());
}

base::Result<void> check(const ApplicationOptions& options, unsigned cores) {
  const auto wrong = [](std::string what) {
    return Error{ErrorCode::invalid_argument, "contention measure: " + std::move(what)};
  };
  if (options.applications.empty()) {
    if (!options.workers.empty())
      return wrong("--workers is for applications: name them, as in --applications cg,gemm");
    return {};
  }
  for (const std::string& application : options.applications)
    if (options.order(application) <= options.tile)
      return wrong(
          fmt::format("--{}-order {} with tiles of {} (--nb) makes one tile, which no other rank needs: take a larger "
                      "matrix or smaller tiles",
                      application, options.order(application), options.tile));
  for (const unsigned count : options.workers)
    if (count == 0 || count > cores)
      return wrong(fmt::format("--workers {}: from 1 to {}, the cores that this process may use", count, cores));
  return {};
}

std::vector<unsigned> worker_counts(const ApplicationOptions& options, unsigned cores) {
  std::vector<unsigned> counts = options.workers;
  if (counts.empty()) {
    for (unsigned count = 1; count < cores; count *= 2) counts.push_back(count);
    counts.push_back(std::max(1U, cores));
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<ApplicationRun> plan_applications(const ApplicationOptions& options, const std::vector<unsigned>& workers,
                                              unsigned repetitions) {
  std::vector<ApplicationRun> plan;
  for (unsigned repetition = 0; repetition < repetitions; ++repetition)
    for (const std::string& application : options.applications)
      for (const unsigned count : workers) {
        ApplicationRun run{.application = application, .workers = count, .repetition = repetition};
        if (std::ranges::none_of(plan, [&](const ApplicationRun& other) { return other.key() == run.key(); }))
          plan.push_back(std::move(run));
      }
  return plan;
}

std::vector<std::string> notes_of_applications(const std::vector<unsigned>& workers, unsigned cores, bool one_host,
                                               const std::string& no_counters) {
  std::vector<std::string> notes;
  const unsigned most = workers.empty() ? 0 : workers.back();
  if (one_host)
    notes.push_back(
        fmt::format("applications: both ranks share this host, {} for each, and their messages are copies in its "
                    "memory; two hosts measure the network",
                    counted(cores, "core")));
  if (most > cores)
    notes.push_back(
        fmt::format("applications: {} on {} of a rank share cores, and so do the threads that serve messages: what "
                    "they lose is not contention for memory alone",
                    counted(most, "worker"), counted(cores, "core")));
  else if (most == cores)
    notes.push_back(fmt::format(
        "applications: with {} a rank has no core left for the thread that serves messages while all workers compute",
        counted(most, "worker")));
  if (!no_counters.empty())
    notes.push_back("applications: how long kernels are stalled on memory is not known here: " + no_counters);
  return notes;
}

std::vector<ApplicationRow> summary_of(const std::vector<ApplicationRun>& runs) {
  std::map<std::pair<std::string, unsigned>, ApplicationRow> rows;
  for (const ApplicationRun& run : runs) {
    ApplicationRow& row = rows[{run.application, run.workers}];
    row.application = run.application;
    row.workers = run.workers;
    row.seconds.values.push_back(run.seconds);
    row.gflop_s.values.push_back(run.gflop_s);
    const auto add = [](Cell& cell, const std::optional<double>& value) {
      if (value) cell.values.push_back(*value);
    };
    add(row.iterations_per_s, run.iterations_per_s);
    add(row.send_mb_s, run.send_mb_s);
    add(row.delivered_mb_s, run.delivered_mb_s);
    add(row.stalled, run.stalled);
  }
  std::vector<ApplicationRow> list;
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return list;
}

std::string application_title(std::size_t repetitions) {
  return fmt::format("applications on two ranks: medians [least, greatest] of {}; messages in GB/s",
                     counted(repetitions, "repetition"));
}

std::array<std::string, application_columns> application_names() {
  return {"application", "workers", "seconds", "GFlop/s", "sent", "delivered", "stalled"};
}

std::array<std::string, application_columns> cells_of(const ApplicationRow& row) {
  return {row.application, std::to_string(row.workers), row.seconds.text(1, 3), row.gflop_s.text(1, 2), row.send_mb_s.text(1e-3, 3), row.delivered_mb_s.text(1e-3, 3),
          row.stalled.values.empty() ? "-" : row.stalled.text(100, 0) + " %"};
}

}  // namespace tandem::tools::contention
