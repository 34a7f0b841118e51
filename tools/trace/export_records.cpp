// tools/trace/export_records.cpp: writes tasks.rec, data.rec, comms.rec (GNU recutils) and dag.dot, with StarPU's
// columns.
#include <array>
#include <map>

#include "tandem/base/utf8.hpp"
#include "tools/out_file.hpp"
#include "tools/trace/export.hpp"

namespace tandem::tools {
namespace {

/// Milliseconds with all digits, as StarPU's times.
std::string milliseconds(std::int64_t ns) { return fmt::format("{}.{:06}", ns / 1'000'000, ns % 1'000'000); }

/// A value in one line, as recutils require.
std::string line_of(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return base::as_utf8(text);
}

class RecordWriter {
 public:
  explicit RecordWriter(OutFile& file) : file_(file) {}

  template <class Value>
  void field(const char* name, const Value& value) {
    file_.print("{}: {}\n", name, value);
  }
  void text(const char* name, const std::string& value) {
    if (!value.empty()) field(name, line_of(value));
  }
  void time(const char* name, std::int64_t ns) {
    if (ns != no_time) field(name, milliseconds(ns));
  }
  void end() {
    file_.write("\n");
    ++records_;
  }
  std::uint64_t records() const noexcept { return records_; }

 private:
  OutFile& file_;
  std::uint64_t records_ = 0;
};

/// Ids are numbers with one rank; with several they name the rank.
std::string job_id(const History& history, std::uint32_t rank, std::uint64_t id) {
  return history.size > 1 ? fmt::format("{}_{}", rank, id) : fmt::format("{}", id);
}

std::string_view starpu_mode(std::uint8_t mode) {
  constexpr std::array<std::string_view, 6> modes{"R", "W", "RW", "RWC", "REDUX", "SCRATCH"};
  return mode < modes.size() ? modes[mode] : "?";
}

struct TaskData {
  std::string handles, modes, sizes;
  std::string numa_nodes;  ///< of each piece of data; "-1": not known; empty: there are no data
  std::uint32_t footprint = 0;
};

/// Tasks whose data have equal sizes get equal footprints (FNV-1a of the sizes), as in StarPU.
TaskData data_of(const History& history, const ByTask& accesses, std::uint32_t task) {
  TaskData data;
  bool is_located = false;
  std::uint32_t hash = 2166136261U;
  for (std::uint32_t i = accesses.first[task]; i < accesses.first[task + 1]; ++i) {
    const AccessRow& access = history.accesses[accesses.rows[i]];
    const DataRow* described = history.find_data(history.tasks[task].rank, access.data);
    const std::uint64_t bytes = described != nullptr ? described->bytes : 0;
    const char* blank = data.handles.empty() ? "" : " ";
    data.handles += fmt::format("{}{:x}", blank, access.data);
    data.modes += fmt::format("{}{}", blank, starpu_mode(access.mode));
    data.sizes += fmt::format("{}{}", blank, bytes);
    const bool located = described != nullptr && described->numa_node != no_number;
    data.numa_nodes += fmt::format("{}{}", blank, located ? static_cast<std::int64_t>(described->numa_node) : -1);
    is_located = is_located || located;
    for (unsigned byte = 0; byte < 8; ++byte) hash = (hash ^ static_cast<std::uint8_t>(bytes >> 8 * byte)) * 16777619U;
  }
  data.footprint = hash;
  if (!is_located) data.numa_nodes.clear();
  return data;
}

void write_tasks(const History& history, RecordWriter& out) {
  const ByTask accesses(history.accesses, history.tasks.size()),
      dependencies(history.dependencies, history.tasks.size());
  for (std::uint32_t i = 0; i < history.tasks.size(); ++i) {
    const TaskRow& task = history.tasks[i];
    out.text("Name", history.texts[task.name]);
    out.text("Model", history.texts[task.codelet]);
    if (task.file != 0) {
      out.text("File", history.texts[task.file]);
      out.field("Line", task.line);
    }
    out.field("JobId", job_id(history, task.rank, task.id));
    if (task.submit_order != no_number) out.field("SubmitOrder", task.submit_order + 1);
    out.field("Priority", task.priority);
    std::string predecessors;
    for (std::uint32_t at = dependencies.first[i]; at < dependencies.first[i + 1]; ++at)
      predecessors += fmt::format("{}{}", predecessors.empty() ? "" : " ",
                                  job_id(history, task.rank, history.dependencies[dependencies.rows[at]].predecessor));
    out.text("DependsOn", predecessors);
    out.field("Tag", task.tag);
    if (task.worker != no_worker) {
      out.field("WorkerId", task.worker);
      out.field("MemoryNode", 0);
    }
    out.time("SubmitTime", task.submit_ns);
    out.time("ReadyTime", task.ready_ns);
    if (task.start_ns != no_time) {
      out.time("StartTime", task.start_ns);
      out.time("EndTime", task.end_ns);
    }
    const TaskData data = data_of(history, accesses, i);
    out.field("Footprint", fmt::format("{:x}", data.footprint));
    if (task.flops != 0) out.field("GFlop", task.flops / 1e9);
    if (task.iteration != no_iteration) out.field("Iteration", task.iteration);
    out.text("Parameters", history.texts[task.parameters]);
    out.text("Handles", data.handles);
    out.text("Modes", data.modes);
    out.text("Sizes", data.sizes);
    out.text("NumaNodes", data.numa_nodes);
    out.field("MPIRank", task.rank);
    out.end();
  }
}

/// The numbers in the brackets at a name's end: "1 0" of "A[1,0]" or "A(1,0)".
std::string coordinates_of(const std::string& name) {
  if (name.empty() || (name.back() != ']' && name.back() != ')')) return "";
  const std::size_t open = name.find_last_of("[(");
  if (open == std::string::npos) return "";
  std::string result;
  for (const char c : name.substr(open + 1, name.size() - open - 2)) {
    if (c == ',') result += ' ';
    else if (c >= '0' && c <= '9') result += c;
    else if (c != ' ') return "";
  }
  return result;
}

void write_data(const History& history, RecordWriter& out) {
  for (const DataRow& row : history.data) {
    const std::string& name = history.texts[row.name];
    out.field("Handle", fmt::format("{:x}", row.data));
    out.field("HomeNode", 0);
    out.field("MPIRank", row.rank);
    out.text("Name", name);
    out.field("Size", row.bytes);
    out.field("MaxSize", row.bytes);
    out.field("Description", fmt::format("{} x {}", row.rows, row.cols));
    out.text("Coordinates", coordinates_of(name));
    if (row.owner != no_number) out.field("MPIOwner", row.owner);
    out.end();
  }
}

/// The node of the buffer on one side of a message.
void write_numa_node(const History& history, RecordWriter& out, const char* name, std::uint32_t rank,
                     std::uint32_t data) {
  const DataRow* described = data != no_number ? history.find_data(rank, data) : nullptr;
  if (described != nullptr && described->numa_node != no_number) out.field(name, described->numa_node);
}

void write_communications(const History& history, RecordWriter& out) {
  for (const CommunicationRow& row : history.communications) {
    if (!row.is_whole()) continue;  // StarPU's records have both ends, too
    out.field("Src", row.source);
    out.field("Dst", row.destination);
    out.field("Tag", row.tag);
    out.time("SendTime", row.posted_ns);
    out.time("RecvTime", row.arrived_ns);
    if (row.send_data != no_number) out.field("SendHandle", fmt::format("{:x}", row.send_data));
    if (row.receive_data != no_number) out.field("RecvHandle", fmt::format("{:x}", row.receive_data));
    if (row.send_task != no_number)
      out.field("SendJobId", job_id(history, row.source, history.tasks[row.send_task].id));
    if (row.receive_task != no_number)
      out.field("RecvJobId", job_id(history, row.destination, history.tasks[row.receive_task].id));
    out.field("Size", row.bytes);
    out.field("Priority", row.priority);
    out.field("Type", row.broadcast == no_number ? "PointToPoint" : "Collective");
    write_numa_node(history, out, "SendNumaNodes", row.source, row.send_data);
    write_numa_node(history, out, "RecvNumaNodes", row.destination, row.receive_data);
    out.end();
  }
}

std::string dot_quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : line_of(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

base::Result<void> export_records(const History& history, const std::filesystem::path& folder, Exported& exported) {
  struct Part {
    const char *name, *file;
    void (*write)(const History&, RecordWriter&);
  };
  for (const Part& part : {Part{"tasks", "tasks.rec", write_tasks}, Part{"data", "data.rec", write_data},
                           Part{"communications", "comms.rec", write_communications}}) {
    auto file = OutFile::create(folder / part.file);
    if (!file) return file.error();
    RecordWriter records(file.value());
    part.write(history, records);
    std::int64_t total_ns = 0;
    if (part.write == write_tasks)
      for (const TaskRow& task : history.tasks) total_ns += task.has_run() ? task.end_ns - task.start_ns : 0;
    exported.tables.push_back({.name = part.name, .file = part.file, .rows = records.records(), .total_ns = total_ns});
    exported.files.push_back({.file = part.file, .bytes = file.value().bytes()});
    if (auto closed = file.value().close(); !closed) return closed;
  }
  return {};
}

base::Result<void> export_dag(const History& history, const std::filesystem::path& folder, Exported& exported) {
  auto opened = OutFile::create(folder / "dag.dot");
  if (!opened) return opened.error();
  OutFile& file = opened.value();
  std::uint64_t edges = 0;
  file.write("digraph tasks {\n  node [shape=box, style=filled, fillcolor=white];\n");
  for (const TaskRow& task : history.tasks)
    file.print("  \"{}_{}\" [label={}];\n", task.rank, task.id,
               dot_quoted(task.name == 0 ? "(unknown)" : history.texts[task.name]));
  for (const DependencyRow& row : history.dependencies) {
    const TaskRow& task = history.tasks[row.task];
    file.print("  \"{}_{}\" -> \"{}_{}\";\n", task.rank, row.predecessor, task.rank, task.id);
    ++edges;
  }
  for (const CommunicationRow& row : history.communications) {
    if (row.send_task == no_number || row.receive_task == no_number) continue;
    const TaskRow &from = history.tasks[row.send_task], &to = history.tasks[row.receive_task];
    file.print("  \"{}_{}\" -> \"{}_{}\" [style=dashed];\n", from.rank, from.id, to.rank, to.id);
    ++edges;
  }
  file.write("}\n");
  exported.tables.push_back({.name = "edges", .file = "dag.dot", .rows = edges, .total_ns = 0});
  exported.files.push_back({.file = "dag.dot", .bytes = file.bytes()});
  return file.close();
}

}  // namespace tandem::tools
