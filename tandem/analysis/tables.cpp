// tandem/analysis/tables.cpp: which columns each table has.
#include "tandem/analysis/tables.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <type_traits>
#include <utility>

namespace tandem::analysis {

std::string_view name_of(ColumnKind kind) noexcept {
  constexpr std::array<std::string_view, 10> names{"time", "id", "number", "worker", "u64", "i64", "i32", "flag", "real", "text"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

using enum ColumnKind;

/// A table of rows; columns are members, or what a function makes of a row.
template <class Rows>
class TableOf {
 public:
  using Row = std::remove_cvref_t<decltype(std::declval<const Rows&>()[0])>;

  TableOf(std::string_view name, const Rows& rows) : rows_(rows) {
    table_.name = name;
    table_.rows = rows.size();
  }
  template <class Value>
  TableOf& add(std::string_view name, ColumnKind kind, Value Row::* member) {
    return of(name, kind, [member](const Row& row) { return row.*member; });
  }
  template <class Function>
  TableOf& of(std::string_view name, ColumnKind kind, Function function) {
    Column column{.name = std::string(name), .kind = kind, .integer = {}, .real = {}};
    const Rows* rows = &rows_;
    if (kind == ColumnKind::real)
      column.real = [rows, function](std::size_t row) { return static_cast<double>(function((*rows)[row])); };
    else column.integer = [rows, function](std::size_t row) { return static_cast<std::int64_t>(function((*rows)[row])); };
    table_.columns.push_back(std::move(column));
    return *this;
  }
  Table take() { return std::move(table_); }

 private:
  const Rows& rows_;
  Table table_;
};

/// Texts for the values of an enumeration, so that a column holds names.
template <class Enum>
std::shared_ptr<std::vector<Texts::Id>> names(History& history, std::size_t count) {
  auto ids = std::make_shared<std::vector<Texts::Id>>();
  for (std::size_t i = 0; i < count; ++i) ids->push_back(history.texts.add(name_of(static_cast<Enum>(i))));
  return ids;
}

std::int64_t difference(std::int64_t end_ns, std::int64_t start_ns) {
  return end_ns == no_time || start_ns == no_time ? no_time : end_ns - start_ns;
}

/// The id of the task in whose kernel an event was recorded, or nothing.
template <class Row>
auto task_around(const History& history) {
  return [&history](const Row& row) {
    return row.task == no_number ? no_time : static_cast<std::int64_t>(history.tasks[row.task].id);
  };
}

Table tasks_of(History& history) {
  const auto status = names<TaskStatus>(history, 7);
  return TableOf("tasks", history.tasks)
      .add("rank", number, &TaskRow::rank)
      .add("task", u64, &TaskRow::id)
      .add("name", text, &TaskRow::name)
      .add("codelet", text, &TaskRow::codelet)
      .add("file", text, &TaskRow::file)
      .add("line", number, &TaskRow::line)
      .add("submit_order", number, &TaskRow::submit_order)
      .add("priority", i32, &TaskRow::priority)
      .of("iteration", time, [](const TaskRow& row) { return row.iteration == no_iteration ? no_time : std::int64_t{row.iteration}; })
      .of("flops", real, [](const TaskRow& row) { return row.flops; })
      .add("tag", u64, &TaskRow::tag)
      .add("parameters", text, &TaskRow::parameters)
      .add("graph", number, &TaskRow::graph)
      .add("worker", worker, &TaskRow::worker)
      .add("pushed_to", worker, &TaskRow::pushed_to)
      .add("stolen", flag, &TaskRow::stolen)
      .add("stolen_from", worker, &TaskRow::stolen_from)
      .add("ready_by", worker, &TaskRow::ready_by)
      .of("status", text, [status](const TaskRow& row) { return (*status)[static_cast<std::size_t>(row.status)]; })
      .add("submit_ns", time, &TaskRow::submit_ns)
      .add("ready_ns", time, &TaskRow::ready_ns)
      .add("pushed_ns", time, &TaskRow::pushed_ns)
      .add("popped_ns", time, &TaskRow::popped_ns)
      .add("start_ns", time, &TaskRow::start_ns)
      .add("end_ns", time, &TaskRow::end_ns)
      .of("duration_ns", time, [](const TaskRow& row) { return difference(row.end_ns, row.start_ns); })
      .take();
}

Table accesses_of(History& history) {
  auto modes = std::make_shared<std::vector<Texts::Id>>();
  for (std::uint8_t mode = 0; mode < 8; ++mode) modes->push_back(history.texts.add(name_of_mode(mode)));
  return TableOf("accesses", history.accesses)
      .of("rank", number, [&history](const AccessRow& row) { return history.tasks[row.task].rank; })
      .of("task", u64, [&history](const AccessRow& row) { return history.tasks[row.task].id; })
      .add("data", number, &AccessRow::data)
      .of("mode", text, [modes](const AccessRow& row) { return (*modes)[row.mode & 7]; })
      .take();
}

Table dependencies_of(History& history) {
  return TableOf("dependencies", history.dependencies)
      .of("rank", number, [&history](const DependencyRow& row) { return history.tasks[row.task].rank; })
      .of("task", u64, [&history](const DependencyRow& row) { return history.tasks[row.task].id; })
      .add("predecessor", u64, &DependencyRow::predecessor)
      .take();
}

Table states_of(History& history) {
  const auto states = names<ActorState>(history, actor_states);
  return TableOf("states", history.states)
      .add("rank", number, &StateRow::rank)
      .add("actor", number, &StateRow::actor)
      .add("worker", worker, &StateRow::worker)
      .of("state", text, [states](const StateRow& row) { return (*states)[static_cast<std::size_t>(row.state)]; })
      .add("start_ns", time, &StateRow::start_ns)
      .add("end_ns", time, &StateRow::end_ns)
      .of("duration_ns", time, [](const StateRow& row) { return row.end_ns - row.start_ns; })
      .of("depth", number, [](const StateRow& row) { return row.depth; })
      .of("task", id, task_around<StateRow>(history))
      .of("name", text, [&history](const StateRow& row) { return row.task == no_number ? 0 : history.tasks[row.task].name; })
      .of("codelet", text, [&history](const StateRow& row) { return row.task == no_number ? 0 : history.tasks[row.task].codelet; })
      .take();
}

Table communications_of(History& history) {
  const Texts::Id message = history.texts.add("message"), broadcast = history.texts.add("broadcast");
  const auto task_id = [&history](std::uint32_t row) {
    return row == no_number ? no_time : static_cast<std::int64_t>(history.tasks[row].id);
  };
  return TableOf("communications", history.communications)
      .add("source", number, &CommunicationRow::source)
      .add("destination", number, &CommunicationRow::destination)
      .add("channel", number, &CommunicationRow::channel)
      .add("tag", u64, &CommunicationRow::tag)
      .add("bytes", u64, &CommunicationRow::bytes)
      .add("priority", i32, &CommunicationRow::priority)
      .of("type", text, [=](const CommunicationRow& row) { return row.broadcast == no_number ? message : broadcast; })
      .add("broadcast", number, &CommunicationRow::broadcast)
      .add("failed", flag, &CommunicationRow::failed)
      .add("posted_ns", time, &CommunicationRow::posted_ns)
      .add("announced_ns", time, &CommunicationRow::announced_ns)
      .add("granted_ns", time, &CommunicationRow::granted_ns)
      .add("sent_ns", time, &CommunicationRow::sent_ns)
      .add("send_released_ns", time, &CommunicationRow::send_released_ns)
      .add("receive_posted_ns", time, &CommunicationRow::receive_posted_ns)
      .add("arrived_ns", time, &CommunicationRow::arrived_ns)
      .add("receive_released_ns", time, &CommunicationRow::receive_released_ns)
      .of("duration_ns", time, [](const CommunicationRow& row) { return difference(row.arrived_ns, row.posted_ns); })
      .add("send_request", number, &CommunicationRow::send_request)
      .add("receive_request", number, &CommunicationRow::receive_request)
      .add("send_data", number, &CommunicationRow::send_data)
      .add("receive_data", number, &CommunicationRow::receive_data)
      .add("version", number, &CommunicationRow::version)
      .of("send_task", id, [=](const CommunicationRow& row) { return task_id(row.send_task); })
      .of("receive_task", id, [=](const CommunicationRow& row) { return task_id(row.receive_task); })
      .take();
}

Table broadcasts_of(History& history) {
  return TableOf("broadcasts", history.broadcasts)
      .add("root", number, &BroadcastRow::root)
      .add("request", number, &BroadcastRow::request)
      .add("channel", number, &BroadcastRow::channel)
      .add("tag", u64, &BroadcastRow::tag)
      .add("bytes", u64, &BroadcastRow::bytes)
      .add("recipients", number, &BroadcastRow::recipients)
      .add("tree", number, &BroadcastRow::tree)
      .add("segment_bytes", number, &BroadcastRow::segment_bytes)
      .add("children", text, &BroadcastRow::children)
      .add("bag", number, &BroadcastRow::bag)
      .add("data", number, &BroadcastRow::data)
      .add("version", number, &BroadcastRow::version)
      .add("failed", flag, &BroadcastRow::failed)
      .add("posted_ns", time, &BroadcastRow::posted_ns)
      .add("routed_ns", time, &BroadcastRow::routed_ns)
      .add("sent_ns", time, &BroadcastRow::sent_ns)
      .add("released_ns", time, &BroadcastRow::released_ns)
      .take();
}

Table bags_of(History& history) {
  return TableOf("bags", history.bags)
      .add("rank", number, &BagRow::rank)
      .add("bag", number, &BagRow::bag)
      .add("data", number, &BagRow::data)
      .add("version", number, &BagRow::version)
      .add("recipients", number, &BagRow::recipients)
      .add("request", number, &BagRow::request)
      .add("opened_ns", time, &BagRow::opened_ns)
      .add("closed_ns", time, &BagRow::closed_ns)
      .take();
}

Table bag_recipients_of(History& history) {
  return TableOf("bag_recipients", history.bag_recipients)
      .add("rank", number, &BagRecipientRow::rank)
      .add("bag", number, &BagRecipientRow::bag)
      .add("recipient", number, &BagRecipientRow::recipient)
      .add("priority", i32, &BagRecipientRow::priority)
      .add("joined_ns", time, &BagRecipientRow::joined_ns)
      .take();
}

Table forwards_of(History& history) {
  return TableOf("forwards", history.forwards)
      .add("rank", number, &ForwardRow::rank)
      .add("root", number, &ForwardRow::root)
      .add("child", number, &ForwardRow::child)
      .add("tag", u64, &ForwardRow::tag)
      .add("bytes", u64, &ForwardRow::bytes)
      .add("declined", flag, &ForwardRow::declined)
      .add("time_ns", time, &ForwardRow::time_ns)
      .take();
}

Table data_of(History& history) {
  return TableOf("data", history.data)
      .add("rank", number, &DataRow::rank)
      .add("data", number, &DataRow::data)
      .add("owner", number, &DataRow::owner)
      .add("bytes", u64, &DataRow::bytes)
      .add("rows", u64, &DataRow::rows)
      .add("cols", u64, &DataRow::cols)
      .add("name", text, &DataRow::name)
      .add("file", text, &DataRow::file)
      .add("line", number, &DataRow::line)
      .add("numa_node", number, &DataRow::numa_node)
      .take();
}

Table transfers_of(History& history) {
  return TableOf("transfers", history.transfers)
      .add("rank", number, &TransferRow::rank)
      .add("data", number, &TransferRow::data)
      .add("from", worker, &TransferRow::from)
      .add("to", worker, &TransferRow::to)
      .add("bytes", u64, &TransferRow::bytes)
      .add("start_ns", time, &TransferRow::start_ns)
      .add("end_ns", time, &TransferRow::end_ns)
      .take();
}

Table memory_of(History& history) {
  return TableOf("memory", history.memory)
      .add("rank", number, &MemoryRow::rank)
      .add("data", number, &MemoryRow::data)
      .add("node", worker, &MemoryRow::node)
      .add("time_ns", time, &MemoryRow::time_ns)
      .add("bytes", i64, &MemoryRow::bytes)
      .add("used_bytes", i64, &MemoryRow::used_bytes)
      .take();
}

Table values_of(std::string_view name, const History& history, const SpillVector<ValueRow>& rows) {
  return TableOf(name, rows)
      .add("rank", number, &ValueRow::rank)
      .add("actor", number, &ValueRow::actor)
      .of("task", id, task_around<ValueRow>(history))
      .add("name", text, &ValueRow::name)
      .add("time_ns", time, &ValueRow::time_ns)
      .add("value", real, &ValueRow::value)
      .take();
}

Table spans_of(History& history) {
  return TableOf("spans", history.spans)
      .add("rank", number, &SpanRow::rank)
      .add("actor", number, &SpanRow::actor)
      .of("task", id, task_around<SpanRow>(history))
      .add("name", text, &SpanRow::name)
      .add("start_ns", time, &SpanRow::start_ns)
      .add("end_ns", time, &SpanRow::end_ns)
      .of("duration_ns", time, [](const SpanRow& row) { return difference(row.end_ns, row.start_ns); })
      .take();
}

ColumnKind column_kind(trace::Field field) {
  switch (field) {
    case trace::Field::i16:
    case trace::Field::i32:
    case trace::Field::i64: return i64;
    case trace::Field::f64: return real;
    case trace::Field::text: return text;
    default: return u64;
  }
}

/// The events of a type of the program's own: time, rank, actor, and their fields; a field of a column's name is renamed.
Table declared_of(const History& history, const DeclaredEvents& type) {
  Table table = TableOf("user." + type.name, type.rows)
                    .add("rank", number, &DeclaredEvents::Row::rank)
                    .add("actor", number, &DeclaredEvents::Row::actor)
                    .of("task", id, task_around<DeclaredEvents::Row>(history))
                    .add("time_ns", time, &DeclaredEvents::Row::time_ns)
                    .take();
  for (std::size_t field = 0; field < type.fields.size(); ++field) {
    std::string name = type.fields[field];
    while (std::ranges::find(table.columns, name, &Column::name) != table.columns.end()) name += '_';
    const auto value = [&type, field](std::size_t row) { return type.value(row, field); };
    Column column{.name = name, .kind = column_kind(type.kinds[field]), .integer = {}, .real = {}};
    if (column.kind == real) column.real = [value](std::size_t row) { return std::bit_cast<double>(value(row)); };
    else column.integer = [value](std::size_t row) { return static_cast<std::int64_t>(value(row)); };
    table.columns.push_back(std::move(column));
  }
  return table;
}

Table waits_of(History& history) {
  const auto kinds = names<WaitKind>(history, 2);
  return TableOf("waits", history.waits)
      .add("rank", number, &WaitRow::rank)
      .add("actor", number, &WaitRow::actor)
      .of("kind", text, [kinds](const WaitRow& row) { return (*kinds)[static_cast<std::size_t>(row.kind)]; })
      .add("start_ns", time, &WaitRow::start_ns)
      .add("end_ns", time, &WaitRow::end_ns)
      .take();
}

Table tracer_of(History& history) {
  const auto kinds = names<TracerKind>(history, 4);
  return TableOf("tracer", history.tracer)
      .add("rank", number, &TracerRow::rank)
      .add("actor", number, &TracerRow::actor)
      .of("kind", text, [kinds](const TracerRow& row) { return (*kinds)[static_cast<std::size_t>(row.kind)]; })
      .add("of_actor", number, &TracerRow::of_actor)
      .add("start_ns", time, &TracerRow::start_ns)
      .add("end_ns", time, &TracerRow::end_ns)
      .add("amount", u64, &TracerRow::amount)
      .take();
}

Table actors_of(History& history) {
  // The catalogue is no actor of the program's, so that the kinds begin behind it; all the same a name for each.
  const auto kinds = names<trace::ActorKind>(history, 8);
  auto name_ids = std::make_shared<std::vector<Texts::Id>>();
  for (const ActorFacts& facts : history.actors) name_ids->push_back(history.texts.add(facts.name));
  const ActorFacts* first = history.actors.data();
  return TableOf("actors", history.actors)
      .add("rank", number, &ActorFacts::rank)
      .add("actor", number, &ActorFacts::actor)
      .of("kind", text, [kinds](const ActorFacts& facts) { return (*kinds)[static_cast<std::size_t>(facts.kind) & 7]; })
      .add("index", worker, &ActorFacts::index)
      .add("core", i32, &ActorFacts::core)
      .of("name", text,
          [name_ids, first](const ActorFacts& facts) { return (*name_ids)[static_cast<std::size_t>(&facts - first)]; })
      .add("events", u64, &ActorFacts::events)
      .add("bytes", u64, &ActorFacts::bytes)
      .add("lost_events", u64, &ActorFacts::lost_events)
      .take();
}

Table clocks_of(History& history) {
  constexpr std::array<std::string_view, 3> methods{"none", "linear", "piecewise"};
  const Texts::Id method = history.texts.add(methods[static_cast<std::size_t>(history.method)]);
  auto hosts = std::make_shared<std::vector<Texts::Id>>();
  for (const RankClock& clock : history.clocks) hosts->push_back(history.texts.add(clock.host));
  const RankClock* first = history.clocks.data();
  return TableOf("clocks", history.clocks)
      .add("rank", number, &RankClock::rank)
      .of("host", text, [hosts, first](const RankClock& clock) { return (*hosts)[static_cast<std::size_t>(&clock - first)]; })
      .of("method", text, [method](const RankClock&) { return method; })
      .add("points", u64, &RankClock::points)
      .add("corrected", flag, &RankClock::corrected)
      .add("by_date", flag, &RankClock::by_date)
      .add("residual_rms_ns", real, &RankClock::residual_rms_ns)
      .add("residual_max_ns", real, &RankClock::residual_max_ns)
      .add("first_offset_ns", i64, &RankClock::first_offset_ns)
      .add("last_offset_ns", i64, &RankClock::last_offset_ns)
      .add("first_ns", time, &RankClock::first_ns)
      .add("last_ns", time, &RankClock::last_ns)
      .take();
}

}  // namespace

std::vector<Table> tables_of(History& history) {
  std::vector<Table> tables;
  tables.push_back(tasks_of(history));
  tables.push_back(accesses_of(history));
  tables.push_back(dependencies_of(history));
  tables.push_back(states_of(history));
  tables.push_back(communications_of(history));
  tables.push_back(broadcasts_of(history));
  tables.push_back(bags_of(history));
  tables.push_back(bag_recipients_of(history));
  tables.push_back(forwards_of(history));
  tables.push_back(data_of(history));
  tables.push_back(transfers_of(history));
  tables.push_back(memory_of(history));
  tables.push_back(values_of("counters", history, history.counters));
  tables.push_back(values_of("marks", history, history.marks));
  tables.push_back(spans_of(history));
  for (const DeclaredEvents& type : history.declared) {
    Table table = declared_of(history, type);
    // Ranks may have declared one name with different fields.
    while (std::ranges::find(tables, table.name, &Table::name) != tables.end()) table.name += '_';
    tables.push_back(std::move(table));
  }
  tables.push_back(waits_of(history));
  tables.push_back(tracer_of(history));
  tables.push_back(actors_of(history));
  tables.push_back(clocks_of(history));
  return tables;
}

}  // namespace tandem::analysis
