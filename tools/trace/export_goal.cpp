// tools/trace/export_goal.cpp: writes a GOAL schedule, which LogGOPSim and ATLAHS simulate: what each rank computes,
// sends and receives, and what comes before what.
//
// Tasks keep their workers, as CPUs, and their order there; messages have a CPU of their own. Format: Hoefler,
// Siebert and Lumsdaine, "Group Operation Assembly Language" (ICPP 2009), as LogGOPSim's txt2bin reads it.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tandem/analysis/bounds/measured_order.hpp"
#include "tandem/analysis/bounds/task_graph.hpp"
#include "tools/out_file.hpp"
#include "tools/trace/export.hpp"

namespace tandem::tools {
namespace {

class GoalWriter {
 public:
  GoalWriter(const History& history, OutFile& file, Exported& exported)
      : history_(history), graph_(history), order_(history), file_(file), exported_(exported), ranks_(history.size) {
    for (const std::uint32_t row : history.tasks.rows()) {
      if (history.tasks.rank[row] >= history.size) continue;
      RankRows& rank = ranks_[history.tasks.rank[row]];
      rank.tasks.push_back(row);
      if (history.tasks.has_run(row)) rank.workers = std::max(rank.workers, history.tasks.worker[row] + 1U);
      for (const TaskGraph::Edge& edge : graph_.into(row))
        if (is_message(edge) && known_.insert(edge.message).second) add_message(edge);
    }
  }

  void write() {
    file_.print("num_ranks {}\n", ranks_.size());
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      file_.print("\nrank {} {{\n", rank);
      write_tasks(ranks_[rank]);
      write_messages(ranks_[rank]);
      write_order(ranks_[rank]);
      file_.print("}}\n");
    }
    exported_.tables.push_back({.name = "executions", .file = {}, .rows = executions_, .total_ns = executing_ns_});
    exported_.tables.push_back({.name = "messages", .file = {}, .rows = known_.size()});
    exported_.notes.emplace_back(
        "submission and waits of the program are left out, so the schedule may be shorter than the run");
    if (!history_.broadcasts.empty())
      exported_.notes.emplace_back("the root of a broadcast sends to each recipient: its tree is left out");
  }

 private:
  struct Message {
    std::uint32_t row = 0;       ///< in communications
    std::uint32_t producer = 0;  ///< task at the sender
    std::uint64_t tag = 0;       ///< among those of the pair of ranks
  };
  struct RankRows {
    std::vector<std::uint32_t> tasks;
    std::vector<Message> sent, received;
    unsigned workers = 0;
  };

  bool is_message(const TaskGraph::Edge& edge) const {
    if (edge.message == no_number) return false;
    const CommunicationRow& row = history_.communications[edge.message];
    return row.source < history_.size && row.destination < history_.size && row.source != row.destination;
  }

  void add_message(const TaskGraph::Edge& edge) {
    const CommunicationRow& row = history_.communications[edge.message];
    const Message message{edge.message, edge.from, tags_[{row.source, row.destination}]++};
    ranks_[row.source].sent.push_back(message);
    ranks_[row.destination].received.push_back(message);
  }

  void write_tasks(const RankRows& rank) {
    for (const std::uint32_t row : rank.tasks) {
      const bool has_run = history_.tasks.has_run(row);
      const std::int64_t ns =
          has_run ? std::max<std::int64_t>(history_.tasks.end_ns[row] - history_.tasks.start_ns[row], 0) : 0;
      file_.print("t{}: calc {} cpu {}\n", row, ns, has_run ? history_.tasks.worker[row] : rank.workers);
      executing_ns_ += ns;
      executions_ += has_run ? 1 : 0;
    }
  }

  void write_messages(const RankRows& rank) {
    for (const Message& message : rank.sent) {
      const CommunicationRow& row = history_.communications[message.row];
      file_.print("s{}: send {}b to {} tag {} cpu {}\n", message.row, row.bytes, row.destination, message.tag,
                  rank.workers);
    }
    for (const Message& message : rank.received) {
      const CommunicationRow& row = history_.communications[message.row];
      file_.print("r{}: recv {}b from {} tag {} cpu {}\n", message.row, row.bytes, row.source, message.tag,
                  rank.workers);
    }
  }

  void write_order(const RankRows& rank) {
    for (const std::uint32_t row : rank.tasks)
      for (const TaskGraph::Edge& edge : graph_.into(row)) {
        if (is_message(edge))
          file_.print("t{} requires r{}\n", row, edge.message);
        else if (history_.tasks.rank[edge.from] == history_.tasks.rank[row])
          file_.print("t{} requires t{}\n", row, edge.from);
      }
    for (const Message& message : rank.sent)
      if (history_.tasks.rank[message.producer] == history_.communications[message.row].source)
        file_.print("s{} requires t{}\n", message.row, message.producer);
    for (const std::uint32_t row : rank.tasks)
      if (const std::uint32_t before = order_.before(row); before != no_number)
        file_.print("t{} requires t{}\n", row, before);
  }

  const History& history_;
  const TaskGraph graph_;
  const WorkerOrder order_;
  OutFile& file_;
  Exported& exported_;
  std::vector<RankRows> ranks_;
  std::set<std::uint32_t> known_;  ///< messages, by row
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> tags_;
  std::uint64_t executions_ = 0;
  std::int64_t executing_ns_ = 0;
};

}  // namespace

base::Result<Exported> export_goal(const History& history, const std::filesystem::path& out) {
  auto file = OutFile::create(out);
  if (!file) return file.error();
  Exported exported;
  GoalWriter(history, file.value(), exported).write();
  for (ExportedTable& table : exported.tables) table.file = out.filename().string();
  exported.files.push_back({.file = out.filename().string(), .bytes = file.value().bytes()});
  if (auto closed = file.value().close(); !closed) return closed.error();
  return exported;
}

}  // namespace tandem::tools
