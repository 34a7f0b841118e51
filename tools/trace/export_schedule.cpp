// tools/trace/export_schedule.cpp: writes where each kernel of a run ran, and in which order they began, for option
// `sched.recorded` (`runtime::RecordedSchedule`).
#include <algorithm>
#include <tuple>
#include <vector>

#include "tools/out_file.hpp"
#include "tools/trace/export.hpp"

namespace tandem::tools {

base::Result<Exported> export_schedule(const History& history, const std::filesystem::path& out) {
  struct Rank {
    std::vector<std::uint32_t> rows;
    std::uint32_t workers = 0;
  };
  std::vector<Rank> ranks(history.size);
  for (const ActorFacts& actor : history.actors)
    if (actor.kind == trace::ActorKind::worker && actor.rank < history.size) ++ranks[actor.rank].workers;
  const auto& tasks = history.tasks;
  std::uint64_t rows = 0;
  for (const std::uint32_t row : tasks.rows())
    if (tasks.start_ns[row] != no_time && tasks.worker[row] != no_worker && tasks.rank[row] < history.size) {
      ranks[tasks.rank[row]].rows.push_back(row);
      ++rows;
    }
  if (rows == 0)
    return base::Error{base::ErrorCode::not_found,
                       "the trace has no beginnings of kernels: trace with --tandem.trace=task.started"};
  auto file = OutFile::create(out);
  if (!file) return file.error();
  file.value().print("tandem schedule 1\n");
  for (std::uint32_t number = 0; number < ranks.size(); ++number) {
    Rank& rank = ranks[number];
    // What begins at one instant is in the order of the flow, in which no task comes before one that it follows.
    std::ranges::sort(rank.rows, {}, [&](std::uint32_t row) { return std::tuple(tasks.start_ns[row], tasks.id[row]); });
    file.value().print("rank {} workers {}\n", number, rank.workers);
    for (const std::uint32_t row : rank.rows) file.value().print("{} {}\n", tasks.id[row], tasks.worker[row]);
  }
  Exported exported;
  exported.tables.push_back({.name = "tasks", .file = out.filename().string(), .rows = rows});
  exported.files.push_back({.file = out.filename().string(), .bytes = file.value().bytes()});
  if (auto closed = file.value().close(); !closed) return closed.error();
  return exported;
}

}  // namespace tandem::tools
