// tools/report/run_tables.cpp: fills the tables of a report.
#include "tools/report/run_tables.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/analysis/iterations.hpp"
#include "tandem/analysis/task_waits.hpp"
#include "tandem/comm/mcast/tree_kind.hpp"

namespace tandem::tools {
namespace {

using namespace analysis;
using Numbers = std::vector<std::int64_t>;
using Coding = Columns::Coding;

/// The page's numbers hold whole numbers up to 2^53.

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

  void add_tasks() {
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::int64_t> lanes;
    for (std::size_t i = 0; i < summary_.split.workers.size(); ++i)
      lanes[{summary_.split.workers[i].rank, summary_.split.workers[i].worker}] = static_cast<std::int64_t>(i) + 1;
    std::map<std::pair<Texts::Id, std::uint32_t>, std::int64_t> sites;
    const UsualDurations usual(history_, summary_.kernels);
    Numbers lane, rank, start, duration, outlier, submit, waited, codelet, name, site, priority, id, status, stolen;
    Numbers into, from;
    for (std::uint32_t row = 0; row < history_.tasks.size(); ++row) {
      const TaskRow& task = history_.tasks[row];
      const auto place = lanes.find({task.rank, task.worker});
      lane.push_back(task.has_run() && place != lanes.end() ? place->second : 0);
      rank.push_back(task.rank);
      const std::int64_t begin_ns = task.start_ns != no_time ? task.start_ns : task.ready_ns;
      start.push_back(begin_ns != no_time ? time(begin_ns) : start.empty() ? 0 : start.back());
      duration.push_back(task.has_run() ? time(task.end_ns) - time(task.start_ns) : -1);
      outlier.push_back(task.has_run() && usual.is_outlier(row) ? 1 : 0);
      submit.push_back(task.submit_ns != no_time ? time(task.submit_ns) : start.back());
      waited.push_back(task.ready_ns == no_time ? -1 : std::max<std::int64_t>(0, start.back() - time(task.ready_ns)));
      codelet.push_back(names_.number(task.codelet));
      name.push_back(task.name == task.codelet ? 0 : names_.number(task.name));
      const auto [at, fresh] = sites.try_emplace({task.file, task.line}, static_cast<std::int64_t>(sites.size()));
      if (fresh)
        sites_.push_back(task.line == 0 ? std::string() : history_.texts[task.file] + ":" + std::to_string(task.line));
      site.push_back(at->second);
      priority.push_back(task.priority);
      id.push_back(static_cast<std::int64_t>(history_.number_of(task.id)));
      status.push_back(static_cast<std::int64_t>(task.status));
      stolen.push_back(task.stolen ? 1 + std::int64_t{task.stolen_from} : 0);  // the victim, from 1 on
      std::int64_t edges = 0;
      for (const TaskGraph::Edge& edge : graph_.into(row)) {
        if (edge.message != no_number) continue;  // the table of messages has it
        ++edges;
        from.push_back(static_cast<std::int64_t>(row) - edge.from);
      }
      into.push_back(edges);
    }
    add("task.lane", lane);
    add("task.rank", rank, Coding::delta);
    add("task.start", start, Coding::delta);
    add("task.duration", duration);
    add("task.outlier", outlier);
    add("task.submit", submit, Coding::delta);
    add("task.waited", waited);
    add("task.codelet", codelet);
    add("task.name", name);
    add("task.site", site);
    add("task.priority", priority, Coding::delta);
    add("task.id", id, Coding::delta);
    add("task.status", status);
    add("task.stolen", stolen);
    add("task.into", into);
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
    Numbers last, message, turn, memory, copies;
    const std::vector<TaskWait> waits = task_waits(history_, graph_);
    for (std::uint32_t row = 0; row < waits.size(); ++row) {
      const TaskWait& wait = waits[row];
      last.push_back(wait.last == no_number ? 0 : std::int64_t{row} - wait.last);
      message.push_back(message_number(wait.message));
      turn.push_back(in_units(wait.turn_ns));
      memory.push_back(in_units(wait.memory_ns));
      copies.push_back(in_units(wait.copies_ns));
    }
    add("task.last", last);
    const std::pair<std::string_view, const Numbers*> others[] = {
        {"task.message", &message}, {"task.turn", &turn}, {"task.memory", &memory}, {"task.copies", &copies}};
    for (const auto& [name, values] : others)
      if (std::ranges::any_of(*values, [](std::int64_t value) { return value != 0; })) add(name, *values);
  }

  /// Adds the program's properties of its tasks; without any, no columns.
  void add_facts() {
    const auto& tasks = history_.tasks;
    if (std::ranges::any_of(tasks, [](const TaskRow& task) { return task.iteration >= 0; })) {
      Numbers iteration;
      for (const TaskRow& task : tasks) iteration.push_back(std::max(task.iteration, -1));  // negative: none
      add("task.iteration", iteration, Coding::delta);
      add_iterations();
    }
    if (std::ranges::any_of(tasks, [](const TaskRow& task) { return task.flops != 0; })) {
      std::map<double, std::int64_t> places;
      Numbers place;
      Json amounts = Json::array();
      for (const TaskRow& task : tasks) {
        const auto [at, fresh] = places.try_emplace(task.flops, static_cast<std::int64_t>(places.size()));
        if (fresh) amounts.push_back(task.flops);
        place.push_back(at->second);
      }
      add("task.flops", place);
      tables_.facts["flops"] = amounts;
    }
    if (std::ranges::any_of(tasks, [](const TaskRow& task) { return task.tag != 0 || task.parameters != 0; })) {
      // Two columns, since numbers of the page have 53 bits.
      Numbers tag, high, parameters;
      for (const TaskRow& task : tasks) {
        tag.push_back(static_cast<std::int64_t>(task.tag & 0xffff'ffff));
        high.push_back(static_cast<std::int64_t>(task.tag >> 32));
        parameters.push_back(names_.number(task.parameters));
      }
      add("task.tag", tag, Coding::delta);
      if (std::ranges::any_of(high, [](std::int64_t part) { return part != 0; }))
        add("task.tag_high", high, Coding::delta);
      add("task.parameters", parameters);
    }
  }

  /// Adds the iterations in flight.
  void add_iterations() {
    Numbers number, start, duration;
    for (const IterationPass& pass : iterations(history_)) {
      number.push_back(pass.iteration);
      start.push_back(time(pass.begin_ns));
      duration.push_back(time(pass.end_ns) - time(pass.begin_ns));
    }
    add("pass.iteration", number, Coding::delta);
    add("pass.start", start, Coding::delta);
    add("pass.duration", duration);
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
    Numbers task, data, mode, message, copy;
    const std::vector<Delivery> brought = deliveries(history_);
    std::vector<std::uint32_t> copies;
    for (std::size_t i = 0; i < brought.size(); ++i) {
      const AccessRow& access = history_.accesses[i];
      task.push_back(access.task);
      data.push_back(data_name(history_.tasks[access.task].rank, access.data));
      mode.push_back(access.mode);
      message.push_back(message_number(brought[i].message));
      const bool was_copied = brought[i].transfer != no_number;
      if (was_copied) copies.push_back(brought[i].transfer);
      copy.push_back(was_copied ? std::ssize(copies) : 0);
    }
    add("access.task", task, Coding::delta);
    add("access.data", data);
    add("access.mode", mode);
    if (std::ranges::any_of(message, [](std::int64_t number) { return number > 0; })) add("access.message", message);
    if (!copies.empty()) {
      add("access.copy", copy);
      add_copies(copies);
    }
  }

  /// Adds transfers of data to a waiting task, in the order of the accesses that needed them.
  void add_copies(const std::vector<std::uint32_t>& rows) {
    Numbers from, to, duration;
    for (const std::uint32_t row : rows) {
      const TransferRow& copy = history_.transfers[row];
      from.push_back(copy.from);
      to.push_back(copy.to);
      duration.push_back(time(copy.end_ns) - time(copy.start_ns));
    }
    add("copy.from", from);
    add("copy.to", to);
    add("copy.duration", duration);
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
    Numbers worker, spent, start, duration;
    for (const auto& [place, stretch] : found) {
      worker.push_back(place);
      spent.push_back(static_cast<std::int64_t>(stretch.spent));
      start.push_back(time(stretch.start_ns));
      duration.push_back(time(stretch.end_ns) - time(stretch.start_ns));
    }
    add("idle.worker", worker, Coding::delta);
    add("idle.spent", spent);
    add("idle.start", start, Coding::delta);
    add("idle.duration", duration);
  }

  void add_messages() {
    Numbers source, destination, bytes, posted, arrived, sender, receiver, data, broadcast;
    message_numbers_.assign(history_.communications.size(), -1);
    for (const CommunicationRow& row : history_.communications) {
      if (!row.is_whole() || row.source == no_number || row.destination == no_number) continue;
      message_numbers_[static_cast<std::size_t>(&row - history_.communications.data())] = std::ssize(source);
      source.push_back(row.source);
      destination.push_back(row.destination);
      bytes.push_back(static_cast<std::int64_t>(row.bytes));
      posted.push_back(time(row.posted_ns));
      arrived.push_back(between(row.posted_ns, row.arrived_ns));
      sender.push_back(row.send_task == no_number ? 0 : std::int64_t{row.send_task} + 1);
      receiver.push_back(row.receive_task == no_number ? 0 : std::int64_t{row.receive_task} + 1);
      const bool named = row.receive_data != no_number || row.send_data != no_number;
      data.push_back(!named ? 0 : row.receive_data != no_number ? data_name(row.destination, row.receive_data) + 1
                                                                : data_name(row.source, row.send_data) + 1);
      broadcast.push_back(row.broadcast == no_number ? 0 : std::int64_t{row.broadcast} + 1);
    }
    add("message.source", source);
    add("message.destination", destination);
    add("message.bytes", bytes);
    add("message.posted", posted, Coding::delta);
    add("message.arrived", arrived);
    add("message.sender", sender, Coding::delta);
    add("message.receiver", receiver, Coding::delta);
    add("message.data", data);
    add("message.broadcast", broadcast, Coding::delta);
  }

  /// Adds broadcasts and their edges: one for each arrival, from the sender of the data, or two where the tree has two
  /// strands.
  void add_broadcasts() {
    const FastestMessage fastest = fastest_message(history_);
    Numbers root, posted, bytes, routed, recipients, tree, segment, data, bound;
    for (const BroadcastRow& row : history_.broadcasts) {
      root.push_back(row.root);
      posted.push_back(row.posted_ns == no_time ? 0 : time(row.posted_ns));
      bytes.push_back(static_cast<std::int64_t>(row.bytes));
      routed.push_back(between(row.posted_ns, row.routed_ns));
      recipients.push_back(row.recipients);
      tree.push_back(row.tree == no_number ? 0 : std::int64_t{row.tree} + 1);
      segment.push_back(row.segment_bytes);
      data.push_back(row.data == no_number ? 0 : data_name(row.root, row.data) + 1);
      bound.push_back(static_cast<std::int64_t>(fastest.bound_ns(row.bytes)) / unit_ns_);
    }
    add("broadcast.root", root);
    add("broadcast.posted", posted, Coding::delta);
    add("broadcast.bytes", bytes, Coding::delta);
    add("broadcast.routed", routed);
    add("broadcast.recipients", recipients);
    add("broadcast.tree", tree);
    add("broadcast.segment", segment, Coding::delta);
    add("broadcast.data", data, Coding::delta);
    add("broadcast.bound", bound, Coding::delta);
    Numbers message, parent, start, end, late;
    for (const BroadcastEdge& edge : broadcast_edges(history_, broadcasts_.delays)) {
      const std::int64_t number = message_numbers_[edge.communication];
      if (number < 0) continue;
      message.push_back(number);
      parent.push_back(edge.parent);
      const CommunicationRow& row = history_.communications[edge.communication];
      start.push_back(time(edge.begun_ns));
      end.push_back(time(std::max(row.posted_ns, row.arrived_ns)));
      late.push_back(edge.late ? 1 : 0);
    }
    add("edge.message", message, Coding::delta);
    add("edge.parent", parent);
    add("edge.start", start, Coding::delta);
    add("edge.end", end, Coding::delta);
    add("edge.late", late);
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
    Numbers rank, node, time_, used;
    for (const MemoryRow* const row : rows) {
      rank.push_back(row->rank);
      node.push_back(row->node);
      time_.push_back(time(row->time_ns));
      used.push_back(row->used_bytes);
    }
    Json names = Json::array();
    for (const auto& [place, name] : history_.memories)
      names.push_back({{"rank", place.first}, {"node", place.second}, {"name", name}});
    tables_.facts["memories"] = names;
    add("memory.rank", rank, Coding::delta);
    add("memory.node", node, Coding::delta);
    add("memory.time", time_, Coding::delta);
    add("memory.used", used, Coding::delta);
  }

  void add_path() {
    // Steps follow each other without gaps.
    Numbers kind, task, end;
    for (const PathStep& step : summary_.realised.steps) {
      kind.push_back(static_cast<std::int64_t>(step.kind));
      task.push_back(step.task == no_number ? 0 : std::int64_t{step.task} + 1);
      end.push_back(time(step.end_ns));
    }
    add("path.kind", kind);
    add("path.task", task, Coding::delta);
    add("path.end", end, Coding::delta);
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
