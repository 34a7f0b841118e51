// tools/trace/export.hpp: writers of a run's history in formats of other programs, and the account of what they wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/analysis/history/history.hpp"

namespace tandem::tools {

using namespace analysis;

struct ExportedTable {
  std::string name;
  std::string file;             ///< relative to the folder of the export
  std::uint64_t rows = 0;
  std::int64_t total_ns = 0;    ///< sum of all durations
};
struct ExportedFile {
  std::string file;
  std::uint64_t bytes = 0;
};
struct Exported {
  std::vector<ExportedTable> tables;
  std::vector<ExportedFile> files;
  std::vector<std::string> notes;  ///< parts that the format cannot express
};

// Each makes the folder or file `out`, and replaces files of its own that are there. Errors: io; unsupported, with the
// remedy.

/// Writes a copy of the folder, which is CTF itself; the metadata converts ranks' stamps to the time of rank 0 by the
/// line.
base::Result<Exported> export_ctf(const std::filesystem::path& folder, const std::filesystem::path& out);
/// Writes a folder: paje.trace for ViTE; tasks.rec, data.rec, comms.rec and dag.dot as StarPU writes them.
base::Result<Exported> export_paje(const History& history, const std::filesystem::path& out);
/// Writes one file, a GOAL schedule, for LogGOPSim and ATLAHS.
base::Result<Exported> export_goal(const History& history, const std::filesystem::path& out);
/// Writes one file, a schedule for option `sched.recorded`.
base::Result<Exported> export_schedule(const History& history, const std::filesystem::path& out);
/// Writes one file, for ui.perfetto.dev and trace_processor.
base::Result<Exported> export_perfetto(const History& history, const std::filesystem::path& out);
/// Writes a folder with a Parquet file for each table. Needs a Python with pyarrow: `python`, or the one that
/// `run_python` finds.
base::Result<Exported> export_parquet(History& history, const std::filesystem::path& out, const std::string& python);
/// Writes a folder with the tables that the second phase of StarVZ reads, and its config.yaml. Needs what
/// export_parquet needs.
base::Result<Exported> export_starvz(History& history, const std::filesystem::path& out, const std::string& python);

// Parts of export_paje.
base::Result<void> export_paje_trace(const History& history, const std::filesystem::path& folder, Exported& exported);
base::Result<void> export_records(const History& history, const std::filesystem::path& folder, Exported& exported);
base::Result<void> export_dag(const History& history, const std::filesystem::path& folder, Exported& exported);

/// Makes a folder and those above it. Errors: io.
base::Result<void> make_folder(const std::filesystem::path& folder);

/// Rows of a table by task: those of task t are rows[first[t]] to rows[first[t + 1]].
struct ByTask {
  std::vector<std::uint32_t> first, rows;

  template <class Rows>
  ByTask(const Rows& table, std::size_t tasks) : first(tasks + 1), rows(table.size()) {
    for (const auto& row : table) ++first[row.task + 1];
    for (std::size_t task = 0; task < tasks; ++task) first[task + 1] += first[task];
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (std::uint32_t i = 0; i < table.size(); ++i) rows[next[table[i].task]++] = i;
  }
};

/// A change of a rank's numbers of submitted tasks that are not ready, and of ready tasks that have not started.
struct TaskCountChange {
  std::int64_t time_ns = 0;
  std::uint32_t rank = 0;
  std::int8_t submitted = 0, ready = 0;
};
/// All changes, in the order of time. Tasks whose submission is not known do not count; joins and events, which never
/// start, are never ready.
std::vector<TaskCountChange> task_count_changes(const History& history);

}  // namespace tandem::tools
