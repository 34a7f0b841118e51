// tools/report/run_tables.cpp: fills the tables of a report.
#include "tools/report/run_tables.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/analysis/verdict/iterations.hpp"
#include "tandem/analysis/verdict/task_waits.hpp"
#include "tandem/comm/mcast/tree_kind.hpp"

namespace tandem::tools {
namespace {

using namespace analysis;
using Numbers = std::vector<std::int64_t>;
using Coding = Columns::Coding;

/// The used texts, with new numbers.
class Names {
 public:
  explicit Names(const Texts& texts) : texts_(texts) { number(0); }
  std::int64_t number(Texts::Id id) {
    const auto [at, fresh] = numbers_.try_emplace(id, static_cast<std::int64_t>(numbers_.size()));
    if (fresh) list_.push_back(texts_[id]);
    return at->second;
  }
  const Json& list() const noexcept { return list_; }

 private:
  const Texts& texts_;
  std::unordered_map<Texts::Id, std::int64_t> numbers_;
  Json list_ = Json::array();
};

std::int64_t unit_of(const History& history) {
  Numbers durations;
  for (const TaskRow& task : history.tasks)
    if (task.has_run()) durations.push_back(task.end_ns - task.start_ns);
  if (durations.empty()) return 1;
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::ranges::nth_element(durations, middle);
  std::int64_t unit = 1;
  while (unit * 10 * 1000 <= *middle) unit *= 10;
  return unit;
}

class Tables {
 public:
  Tables(const History& history, const TaskGraph& graph, const Summary& summary, const Broadcasts& broadcasts)
      : history_(history), graph_(graph), summary_(summary), broadcasts_(broadcasts), names_(history.texts), unit_ns_(unit_of(history)) {}

  RunTables made() && {
    add_messages();
    add_tasks();
    add_stretches();
    if (!history_.broadcasts.empty()) add_broadcasts();
    add_memory();
    add_tracer();
    add_path();
    Json& facts = tables_.facts;
    facts["unit_ns"] = unit_ns_;
    facts["readied"] = std::ranges::any_of(history_.tasks,
                                           [](const TaskRow& task) { return task.ready_ns != no_time; });
    facts["makespan"] = in_units(summary_.split.makespan_ns);
    facts["names"] = names_.list();
    facts["sites"] = sites_;
    facts["data_names"] = data_names_;
    facts["columns"] = tables_.columns.index();
    Json spent = Json::array(), statuses = Json::array(), modes = Json::array(), steps = Json::array();
    for (std::size_t i = 0; i < spent_kinds; ++i) spent.push_back(name_of(static_cast<Spent>(i)));
    for (unsigned i = 0; i <= static_cast<unsigned>(TaskStatus::cancelled); ++i)
      statuses.push_back(name_of(static_cast<TaskStatus>(i)));
    for (std::uint8_t i = 0; i < 6; ++i) modes.push_back(name_of_mode(i));
    for (std::size_t i = 0; i < step_kinds; ++i) steps.push_back(name_of(static_cast<StepKind>(i)));
    facts["spent"] = spent;
    facts["statuses"] = statuses;
    facts["modes"] = modes;
    facts["steps"] = steps;
    Json workers = Json::array();
    for (const WorkerTimes& worker : summary_.split.workers) {
      const ActorFacts* const actor = history_.find_actor(worker.rank, worker.actor);
      workers.push_back({{"rank", worker.rank},
                         {"worker", worker.worker},
                         {"core", actor != nullptr ? actor->core : -1}});
    }
    facts["workers"] = workers;
    return std::move(tables_);
  }

 private:
  bool detailed() const noexcept { return history_.tasks.size() <= detailed_tasks; }
  /// A time in units of the page, rounded down, also before the beginning.
  std::int64_t in_units(std::int64_t ns) const noexcept {
    return ns >= 0 ? ns / unit_ns_ : -((-ns + unit_ns_ - 1) / unit_ns_);
  }
  std::int64_t time(std::int64_t ns) const noexcept { return in_units(ns - summary_.split.begin_ns); }
  /// The time from `of_ns` to `ns` in units; -1: not known.
  std::int64_t between(std::int64_t ns, std::int64_t of_ns) const noexcept {
    return ns == no_time || of_ns == no_time ? -1 : std::max<std::int64_t>(0, time(of_ns) - time(ns));
  }
  void add(std::string_view name, const Numbers& values, Coding coding = Coding::plain) {
    tables_.columns.add(name, values, coding);
  }
  /// What `value`, a function or a member, is of each row.
  template <class Rows, class Value>
  static Numbers numbers_of(const Rows& rows, Value value) {
    Numbers numbers;
    for (const auto& row : rows) numbers.push_back(static_cast<std::int64_t>(std::invoke(value, row)));
    return numbers;
  }
  template <class Rows, class Value>
  void add(std::string_view name, const Rows& rows, Value value, Coding coding = Coding::plain) {
    add(name, numbers_of(rows, value), coding);
  }
  /// Adds the column unless all of its values are 0.
  template <class Rows, class Value>
  void add_some(std::string_view name, const Rows& rows, Value value, Coding coding = Coding::plain) {
    const Numbers numbers = numbers_of(rows, value);
    if (std::ranges::any_of(numbers, [](std::int64_t number) { return number != 0; })) add(name, numbers, coding);
  }
  /// For `add`: the time, or the number from 1 on (0: none), that a row has in a member.
  template <class Row>
  auto time_of(std::int64_t Row::*member) const {
    return [this, member](const auto& row) { return time(std::invoke(member, row)); };
  }
  template <class Row>
  static auto from_one(std::uint32_t Row::*member) {
    return [member](const auto& row) {
      const std::uint32_t number = std::invoke(member, row);
      return number == no_number ? 0 : std::int64_t{number} + 1;
    };
  }

  void add_tasks() {
    const TaskTable& tasks = history_.tasks;
    const auto rows = tasks.rows();
    using Row = std::uint32_t;
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::int64_t> lanes;
    for (std::size_t i = 0; i < summary_.split.workers.size(); ++i)
      lanes[{summary_.split.workers[i].rank, summary_.split.workers[i].worker}] = static_cast<std::int64_t>(i) + 1;
    add("task.lane", rows, [&](Row row) {
      const auto place = lanes.find({tasks.rank[row], tasks.worker[row]});
      return tasks.has_run(row) && place != lanes.end() ? place->second : 0;
    });
    add("task.rank", rows, [&](Row row) { return tasks.rank[row]; }, Coding::delta);
    Numbers start, from;
    for (const Row row : rows) {
      const std::int64_t begin_ns = tasks.start_ns[row] != no_time ? tasks.start_ns[row] : tasks.ready_ns[row];
      start.push_back(begin_ns != no_time ? time(begin_ns) : start.empty() ? 0 : start.back());
    }
    add("task.start", start, Coding::delta);
    add("task.duration", rows,
        [&](Row row) { return tasks.has_run(row) ? time(tasks.end_ns[row]) - time(tasks.start_ns[row]) : -1; });
    const UsualDurations usual(history_, summary_.kernels);
    add("task.outlier", rows, [&](Row row) { return tasks.has_run(row) && usual.is_outlier(row); });
    add("task.submit", rows, [&](Row row) {
      return tasks.submit_ns[row] != no_time ? time(tasks.submit_ns[row]) : start[row];
    }, Coding::delta);
    add("task.waited", rows, [&](Row row) {
      const std::int64_t ready_ns = tasks.ready_ns[row];
      return ready_ns == no_time ? -1 : std::max<std::int64_t>(0, start[row] - time(ready_ns));
    });
    add("task.codelet", rows, [&](Row row) { return names_.number(tasks.codelet(row)); });
    add("task.name", rows,
        [&](Row row) { return tasks.name(row) == tasks.codelet(row) ? 0 : names_.number(tasks.name(row)); });
    std::map<std::pair<Texts::Id, std::uint32_t>, std::int64_t> sites;
    add("task.site", rows, [&](Row row) {
      const TaskPlace& place = tasks.place(row);
      const auto [at, fresh] = sites.try_emplace({place.file, place.line}, static_cast<std::int64_t>(sites.size()));
      if (fresh)
        sites_.push_back(place.line == 0 ? "" : history_.texts[place.file] + ":" + std::to_string(place.line));
      return at->second;
    });
    add("task.priority", rows, [&](Row row) { return tasks.priority[row]; }, Coding::delta);
    add("task.id", rows, [&](Row row) { return history_.number_of(tasks.id[row]); }, Coding::delta);
    add("task.status", rows, [&](Row row) { return tasks.status(row); });
    // The victim, from 1 on.
    add("task.stolen", rows, [&](Row row) { return tasks.stolen(row) ? 1 + std::int64_t{tasks.stolen_from[row]} : 0; });
    add("task.into", rows, [&](Row row) {
      const std::size_t before = from.size();
      for (const TaskGraph::Edge& edge : graph_.into(row))  // the table of messages has the others
        if (edge.message == no_number) from.push_back(static_cast<std::int64_t>(row) - edge.from);
      return from.size() - before;
    });
    add("task.from", from);
    add_waits();
    add_facts();
    if (detailed()) add_accesses();
  }

  /// A number from 1 on; 0: none.
  std::int64_t message_number(std::uint32_t communication) const {
    return communication == no_number ? 0 : message_numbers_[communication] + 1;
  }

  /// Adds what each task waited for. `task.last` is counted back from the task; parts that no task has get no column.
  void add_waits() {
    const std::vector<TaskWait> waits = task_waits(history_, graph_);
    add("task.last", history_.tasks.rows(), [&](std::uint32_t row) {
      return waits[row].last == no_number ? 0 : std::int64_t{row} - waits[row].last;
    });
    add_some("task.message", waits, [&](const TaskWait& wait) { return message_number(wait.message); });
    add_some("task.turn", waits, [&](const TaskWait& wait) { return in_units(wait.turn_ns); });
    add_some("task.memory", waits, [&](const TaskWait& wait) { return in_units(wait.memory_ns); });
    add_some("task.copies", waits, [&](const TaskWait& wait) { return in_units(wait.copies_ns); });
  }

  /// Adds the program's properties of its tasks; without any, no columns.
  void add_facts() {
    const auto& tasks = history_.tasks;
    if (std::ranges::any_of(tasks, [](const TaskRow& task) { return task.iteration >= 0; })) {
      add("task.iteration", tasks.rows(), [&](std::uint32_t row) { return std::max(tasks.iteration[row], -1); },
          Coding::delta);  // negative: none
      add_iterations();
    }
    if (std::ranges::any_of(tasks, [](const TaskRow& task) { return task.flops != 0; })) {
      std::map<double, std::int64_t> places;
      Json amounts = Json::array();
      add("task.flops", tasks.rows(), [&](std::uint32_t row) {
        const auto [at, fresh] = places.try_emplace(tasks.flops(row), static_cast<std::int64_t>(places.size()));
        if (fresh) amounts.push_back(tasks.flops(row));
        return at->second;
      });
      tables_.facts["flops"] = amounts;
    }
    if (std::ranges::any_of(tasks, [](const TaskRow& task) { return task.tag != 0 || task.parameters != 0; })) {
      // Two columns, since numbers of the page have 53 bits.
      add("task.tag", tasks.rows(), [&](std::uint32_t row) { return tasks.tag[row] & 0xffff'ffff; }, Coding::delta);
      add_some("task.tag_high", tasks.rows(), [&](std::uint32_t row) { return tasks.tag[row] >> 32; }, Coding::delta);
      add("task.parameters", tasks.rows(), [&](std::uint32_t row) { return names_.number(tasks.parameters[row]); });
    }
  }

  /// Adds the iterations in flight.
  void add_iterations() {
    const std::vector<IterationPass> passes = iterations(history_);
    add("pass.iteration", passes, &IterationPass::iteration, Coding::delta);
    add("pass.start", passes, time_of(&IterationPass::begin_ns), Coding::delta);
    add("pass.duration", passes, [&](const IterationPass& pass) { return time(pass.end_ns) - time(pass.begin_ns); });
  }

  std::int64_t data_name(std::uint32_t rank, std::uint32_t data) {
    const DataRow* const row = history_.find_data(rank, data);
    std::string text = row != nullptr ? history_.texts[row->name] : std::string();
    if (text.empty()) text = "data " + std::to_string(data);
    const auto [at, fresh] = data_numbers_.try_emplace(text, static_cast<std::int64_t>(data_numbers_.size()));
    if (fresh) data_names_.push_back(text);
    return at->second;
  }

  void add_accesses() {
    add("access.task", history_.accesses, &AccessRow::task, Coding::delta);
    add("access.data", history_.accesses,
        [&](const AccessRow& access) { return data_name(history_.tasks.rank[access.task], access.data); });
    add("access.mode", history_.accesses, &AccessRow::mode);
    const std::vector<Delivery> brought = deliveries(history_);
    add_some("access.message", brought, [&](const Delivery& delivery) { return message_number(delivery.message); });
    std::vector<TransferRow> copies;  // to a waiting task, in the order of the accesses that needed them
    add_some("access.copy", brought, [&](const Delivery& delivery) -> std::int64_t {
      if (delivery.transfer == no_number) return 0;
      copies.push_back(history_.transfers[delivery.transfer]);
      return std::ssize(copies);
    });
    if (copies.empty()) return;
    add("copy.from", copies, &TransferRow::from);
    add("copy.to", copies, &TransferRow::to);
    add("copy.duration", copies, [&](const TransferRow& copy) { return time(copy.end_ns) - time(copy.start_ns); });
  }

  void add_stretches() {
    // At most some 400,000 for any run: shorter ones could not be seen.
    const auto workers = static_cast<std::int64_t>(summary_.split.workers.size());
    const std::int64_t shortest_ns = std::max(unit_ns_, summary_.split.makespan_ns * workers / 400'000);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> places;
    for (const WorkerTimes& worker : summary_.split.workers)
      places.emplace(std::pair(worker.rank, worker.actor), static_cast<std::int64_t>(places.size()));
    std::vector<std::pair<std::int64_t, Stretch>> found;
    for_each_stretch(history_, summary_.split, [&](const Stretch& stretch) {
      if (stretch.spent == Spent::executing) return;
      const std::int64_t place = places.at({stretch.rank, stretch.actor});
      if (!found.empty() && found.back().first == place && found.back().second.spent == stretch.spent &&
          found.back().second.end_ns == stretch.start_ns)
        found.back().second.end_ns = stretch.end_ns;
      else
        found.emplace_back(place, stretch);
    });
    std::erase_if(found, [&](const auto& entry) { return entry.second.end_ns - entry.second.start_ns < shortest_ns; });
    std::ranges::stable_sort(found, {},
                             [](const auto& entry) { return std::pair(entry.first, entry.second.start_ns); });
    add("idle.worker", found, [](const auto& entry) { return entry.first; }, Coding::delta);
    add("idle.spent", found, [](const auto& entry) { return entry.second.spent; });
    add("idle.start", found, [&](const auto& entry) { return time(entry.second.start_ns); }, Coding::delta);
    add("idle.duration", found,
        [&](const auto& entry) { return time(entry.second.end_ns) - time(entry.second.start_ns); });
  }

  void add_messages() {
    using Row = CommunicationRow;
    std::vector<const Row*> rows;
    message_numbers_.assign(history_.communications.size(), -1);
    for (const Row& row : history_.communications) {
      if (!row.is_whole() || row.source == no_number || row.destination == no_number) continue;
      message_numbers_[static_cast<std::size_t>(&row - history_.communications.data())] = std::ssize(rows);
      rows.push_back(&row);
    }
    add("message.source", rows, &Row::source);
    add("message.destination", rows, &Row::destination);
    add("message.bytes", rows, &Row::bytes);
    add("message.posted", rows, time_of(&Row::posted_ns), Coding::delta);
    add("message.arrived", rows, [&](const Row* row) { return between(row->posted_ns, row->arrived_ns); });
    add("message.sender", rows, from_one(&Row::send_task), Coding::delta);
    add("message.receiver", rows, from_one(&Row::receive_task), Coding::delta);
    add("message.data", rows, [&](const Row* row) {
      if (row->receive_data != no_number) return data_name(row->destination, row->receive_data) + 1;
      return row->send_data != no_number ? data_name(row->source, row->send_data) + 1 : 0;
    });
    add("message.broadcast", rows, from_one(&Row::broadcast), Coding::delta);
  }

  /// Adds broadcasts and their edges: one for each arrival, from the sender of the data, or two where the tree has two
  /// strands.
  void add_broadcasts() {
    const FastestMessage fastest = fastest_message(history_);
    using Row = BroadcastRow;
    const auto& rows = history_.broadcasts;
    add("broadcast.root", rows, &Row::root);
    add("broadcast.posted", rows, [&](const Row& row) { return row.posted_ns == no_time ? 0 : time(row.posted_ns); },
        Coding::delta);
    add("broadcast.bytes", rows, &Row::bytes, Coding::delta);
    add("broadcast.routed", rows, [&](const Row& row) { return between(row.posted_ns, row.routed_ns); });
    add("broadcast.recipients", rows, &Row::recipients);
    add("broadcast.tree", rows, from_one(&Row::tree));
    add("broadcast.segment", rows, &Row::segment_bytes, Coding::delta);
    add("broadcast.data", rows, [&](const Row& row) {
      return row.data == no_number ? 0 : data_name(row.root, row.data) + 1;
    }, Coding::delta);
    add("broadcast.bound", rows, [&](const Row& row) {
      return static_cast<std::int64_t>(fastest.bound_ns(row.bytes)) / unit_ns_;
    }, Coding::delta);
    std::vector<BroadcastEdge> edges = broadcast_edges(history_, broadcasts_.delays);
    std::erase_if(edges, [&](const BroadcastEdge& edge) { return message_numbers_[edge.communication] < 0; });
    add("edge.message", edges, [&](const BroadcastEdge& edge) { return message_numbers_[edge.communication]; },
        Coding::delta);
    add("edge.parent", edges, &BroadcastEdge::parent);
    add("edge.start", edges, time_of(&BroadcastEdge::begun_ns), Coding::delta);
    add("edge.end", edges, [&](const BroadcastEdge& edge) {
      const CommunicationRow& row = history_.communications[edge.communication];
      return time(std::max(row.posted_ns, row.arrived_ns));
    }, Coding::delta);
    add("edge.late", edges, &BroadcastEdge::late);
    Json trees = Json::array();
    for (unsigned i = 0; i < comm::tree_kind_count; ++i)
      trees.push_back(comm::tree_name(static_cast<comm::TreeKind>(i)));
    tables_.facts["trees"] = trees;
  }

  void add_memory() {
    // Sorted by rank and node, since the page draws a line for each.
    std::vector<const MemoryRow*> rows;
    for (const MemoryRow& row : history_.memory) rows.push_back(&row);
    std::ranges::stable_sort(rows, {},
                             [](const MemoryRow* row) { return std::tuple(row->rank, row->node, row->time_ns); });
    Json names = Json::array();
    for (const auto& [place, name] : history_.memories)
      names.push_back({{"rank", place.first}, {"node", place.second}, {"name", name}});
    tables_.facts["memories"] = names;
    add("memory.rank", rows, &MemoryRow::rank, Coding::delta);
    add("memory.node", rows, &MemoryRow::node, Coding::delta);
    add("memory.time", rows, time_of(&MemoryRow::time_ns), Coding::delta);
    add("memory.used", rows, &MemoryRow::used_bytes, Coding::delta);
  }

  /// Writing the trace, and waiting for room in it, where that was while tasks ran; else no columns.
  void add_tracer() {
    std::vector<const TracerRow*> rows;
    for (const TracerRow& row : history_.tracer) {
      const bool takes_time = row.kind == TracerKind::flush || row.kind == TracerKind::waited;
      if (takes_time && row.end_ns != no_time && row.start_ns < summary_.split.end_ns()) rows.push_back(&row);
    }
    if (rows.empty()) return;
    add("tracer.kind", rows, &TracerRow::kind);
    add("tracer.start", rows, time_of(&TracerRow::start_ns), Coding::delta);
    add("tracer.duration", rows, [&](const TracerRow* row) { return time(row->end_ns) - time(row->start_ns); });
  }

  void add_path() {
    // Steps follow each other without gaps.
    const auto& steps = summary_.realised.steps;
    add("path.kind", steps, &PathStep::kind);
    add("path.task", steps, from_one(&PathStep::task), Coding::delta);
    add("path.end", steps, time_of(&PathStep::end_ns), Coding::delta);
  }

  const History& history_;
  const TaskGraph& graph_;
  const Summary& summary_;
  const Broadcasts& broadcasts_;
  Names names_;
  const std::int64_t unit_ns_;
  RunTables tables_;
  Json sites_ = Json::array(), data_names_ = Json::array();
  std::unordered_map<std::string, std::int64_t> data_numbers_;
  Numbers message_numbers_;  ///< place of each row of communications in the table of messages; -1: none
};

}  // namespace

RunTables tables_of(const History& history, const TaskGraph& graph, const Summary& summary,
                    const Broadcasts& broadcasts) {
  return Tables(history, graph, summary, broadcasts).made();
}

}  // namespace tandem::tools
