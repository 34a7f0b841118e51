// tandem/analysis/tables.cpp: which columns each table has.
#include "tandem/analysis/tables.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "tandem/analysis/tables/last_rows.hpp"
#include "tandem/analysis/verdict/task_waits.hpp"

namespace tandem::analysis {

std::string_view name_of(ColumnKind kind) noexcept {
  constexpr std::array<std::string_view, 10> names{"time", "id",  "number", "worker", "u64",
                                                   "i64",  "i32", "flag",   "real",   "text"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

using enum ColumnKind;

/// A table of rows; columns are members, or values that a function computes of a row.
template <class Rows>
class TableOf {
 public:
  using Row = std::remove_cvref_t<decltype(std::declval<const Rows&>()[0])>;

  TableOf(std::string_view name, const Rows& rows) : rows_(rows) {
    table_.name = name;
    table_.rows = rows.size();
  }
  /// A column of a constant member, for which the compiler need not assemble whole rows.
  template <auto member>
  TableOf& add(std::string_view name, ColumnKind kind) {
    return of(name, kind, [](const Row& row) { return row.*member; });
  }
  template <class Function>
  TableOf& of(std::string_view name, ColumnKind kind, Function function) {
    Column column{.name = std::string(name), .kind = kind, .integer = {}, .real = {}};
    const Rows* rows = &rows_;
    if (kind == ColumnKind::real)
      column.real = [rows, function](std::size_t row) { return static_cast<double>(function((*rows)[row])); };
    else
      column.integer = [rows, function](std::size_t row) { return static_cast<std::int64_t>(function((*rows)[row])); };
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

/// Adds a column of whole numbers that `value` makes of a row.
template <class Function>
void add_column(Table& table, std::string_view name, ColumnKind kind, Function value) {
  table.columns.push_back({.name = std::string(name), .kind = kind,
                           .integer = [value](std::size_t row) { return static_cast<std::int64_t>(value(row)); },
                           .real = {}});
}

/// Columns of what each task waited for, computed on the first access to one of them.
void add_waits(History& history, Table& table) {
  const auto causes = names<WaitCause>(history, wait_causes);
  auto waits = std::make_shared<std::optional<std::vector<TaskWait>>>();
  const auto of = [&history, waits](std::size_t row) -> const TaskWait& {
    if (!*waits) waits->emplace(task_waits(history, TaskGraph(history)));
    return (**waits)[row];
  };
  const auto has = [&history](std::size_t row) {
    return history.tasks[row].has_run() && history.tasks[row].submit_ns != no_time;
  };
  const Texts::Id none = history.texts.add("");
  add_column(table, "waited_for", text,
             [=](std::size_t row) { return has(row) ? (*causes)[static_cast<std::size_t>(of(row).cause())] : none; });
  add_column(table, "last_predecessor", id, [=, &history](std::size_t row) {
    const std::uint32_t last = of(row).last;
    return last == no_number || history.tasks[last].rank != history.tasks[row].rank
               ? no_time
               : static_cast<std::int64_t>(history.tasks[last].id);
  });
  add_column(table, "last_message", number, [=](std::size_t row) { return of(row).message; });
  const std::pair<std::string_view, std::int64_t TaskWait::*> parts[] = {{"wait_graph_ns", &TaskWait::graph_ns},
                                                                         {"wait_turn_ns", &TaskWait::turn_ns},
                                                                         {"wait_memory_ns", &TaskWait::memory_ns},
                                                                         {"wait_copies_ns", &TaskWait::copies_ns},
                                                                         {"wait_worker_ns", &TaskWait::worker_ns}};
  for (const auto& [name, member] : parts)
    add_column(table, name, time,
               [=, member = member](std::size_t row) { return has(row) ? of(row).*member : no_time; });
}

/// Columns of what is known of some tasks, in `rows`, the last one for each task; none where there are no rows.
template <class Row, class Value, std::size_t count>
void add_facts(const SpillVector<Row>& rows, std::size_t tasks,
               const std::pair<std::string_view, Value Row::*> (&columns)[count], Value unknown, Table& table) {
  if (rows.empty()) return;
  const auto places = std::make_shared<const std::vector<std::uint32_t>>(last_rows(rows, tasks));
  for (const auto& [name, member] : columns)
    add_column(table, name, time, [&rows, places, unknown, member = member](std::size_t task) {
      const std::uint32_t place = (*places)[task];
      const Value value = place == no_number ? unknown : rows[place].*member;
      return value == unknown ? no_time : static_cast<std::int64_t>(value);
    });
}

/// Columns of the processor's counts.
void add_counts(const History& history, Table& table) {
  const std::pair<std::string_view, std::uint64_t CountsRow::*> columns[] = {{"cycles", &CountsRow::cycles},
                                                                             {"instructions", &CountsRow::instructions},
                                                                             {"stalled_cycles", &CountsRow::stalled},
                                                                             {"cache_misses", &CountsRow::misses}};
  add_facts(history.counts, history.tasks.size(), columns, CountsRow::not_counted, table);
}

/// Columns of the scheduler's expectations.
void add_expected(const History& history, Table& table) {
  const std::pair<std::string_view, std::int64_t ExpectedRow::*> columns[] = {
      {"expected_ns", &ExpectedRow::kernel_ns}, {"expected_copies_ns", &ExpectedRow::copies_ns}};
  add_facts(history.expected, history.tasks.size(), columns, no_time, table);
}

Table tasks_of(History& history) {
  const auto status = names<TaskStatus>(history, 7);
  Table table = TableOf("tasks", history.tasks)
      .add<&TaskRow::rank>("rank", number)
      .add<&TaskRow::id>("task", u64)
      .of("number", u64, [&history](const TaskRow& row) { return history.number_of(row.id); })
      .add<&TaskRow::name>("name", text)
      .add<&TaskRow::codelet>("codelet", text)
      .add<&TaskRow::file>("file", text)
      .add<&TaskRow::line>("line", number)
      .add<&TaskRow::submit_order>("submit_order", number)
      .add<&TaskRow::priority>("priority", i32)
      .of("iteration", time,
          [](const TaskRow& row) { return row.iteration == no_iteration ? no_time : std::int64_t{row.iteration}; })
      .of("flops", real, [](const TaskRow& row) { return row.flops; })
      .add<&TaskRow::tag>("tag", u64)
      .add<&TaskRow::parameters>("parameters", text)
      .add<&TaskRow::graph>("graph", number)
      .add<&TaskRow::worker>("worker", worker)
      .add<&TaskRow::pushed_to>("pushed_to", worker)
      .add<&TaskRow::stolen>("stolen", flag)
      .add<&TaskRow::stolen_from>("stolen_from", worker)
      .add<&TaskRow::ready_by>("ready_by", worker)
      .of("status", text, [status](const TaskRow& row) { return (*status)[static_cast<std::size_t>(row.status)]; })
      .add<&TaskRow::submit_ns>("submit_ns", time)
      .add<&TaskRow::ready_ns>("ready_ns", time)
      .add<&TaskRow::pushed_ns>("pushed_ns", time)
      .add<&TaskRow::popped_ns>("popped_ns", time)
      .add<&TaskRow::start_ns>("start_ns", time)
      .add<&TaskRow::end_ns>("end_ns", time)
      .of("duration_ns", time, [](const TaskRow& row) { return difference(row.end_ns, row.start_ns); })
      .take();
  add_counts(history, table);
  add_expected(history, table);
  add_waits(history, table);
  return table;
}

Table accesses_of(History& history) {
  auto modes = std::make_shared<std::vector<Texts::Id>>();
  for (std::uint8_t mode = 0; mode < 8; ++mode) modes->push_back(history.texts.add(name_of_mode(mode)));
  Table table = TableOf("accesses", history.accesses)
      .of("rank", number, [&history](const AccessRow& row) { return history.tasks[row.task].rank; })
      .of("task", u64, [&history](const AccessRow& row) { return history.tasks[row.task].id; })
      .add<&AccessRow::data>("data", number)
      .of("mode", text, [modes](const AccessRow& row) { return (*modes)[row.mode & 7]; })
      .take();
  auto brought = std::make_shared<std::optional<std::vector<Delivery>>>();
  const auto of = [&history, brought](std::size_t row) -> const Delivery& {
    if (!*brought) brought->emplace(deliveries(history));
    return (**brought)[row];
  };
  add_column(table, "message", number, [of](std::size_t row) { return of(row).message; });
  add_column(table, "transfer", number, [of](std::size_t row) { return of(row).transfer; });
  return table;
}

Table dependencies_of(History& history) {
  return TableOf("dependencies", history.dependencies)
      .of("rank", number, [&history](const DependencyRow& row) { return history.tasks[row.task].rank; })
      .of("task", u64, [&history](const DependencyRow& row) { return history.tasks[row.task].id; })
      .add<&DependencyRow::predecessor>("predecessor", u64)
      .take();
}

Table states_of(History& history) {
  const auto states = names<ActorState>(history, actor_states);
  return TableOf("states", history.states)
      .add<&StateRow::rank>("rank", number)
      .add<&StateRow::actor>("actor", number)
      .add<&StateRow::worker>("worker", worker)
      .of("state", text, [states](const StateRow& row) { return (*states)[static_cast<std::size_t>(row.state)]; })
      .add<&StateRow::start_ns>("start_ns", time)
      .add<&StateRow::end_ns>("end_ns", time)
      .of("duration_ns", time, [](const StateRow& row) { return row.end_ns - row.start_ns; })
      .of("depth", number, [](const StateRow& row) { return row.depth; })
      .of("task", id, task_around<StateRow>(history))
      .of("name", text,
          [&history](const StateRow& row) { return row.task == no_number ? 0 : history.tasks[row.task].name; })
      .of("codelet", text,
          [&history](const StateRow& row) { return row.task == no_number ? 0 : history.tasks[row.task].codelet; })
      .take();
}

Table communications_of(History& history) {
  const Texts::Id message = history.texts.add("message"), broadcast = history.texts.add("broadcast");
  const auto task_id = [&history](std::uint32_t row) {
    return row == no_number ? no_time : static_cast<std::int64_t>(history.tasks[row].id);
  };
  return TableOf("communications", history.communications)
      .add<&CommunicationRow::source>("source", number)
      .add<&CommunicationRow::destination>("destination", number)
      .add<&CommunicationRow::channel>("channel", number)
      .add<&CommunicationRow::tag>("tag", u64)
      .add<&CommunicationRow::bytes>("bytes", u64)
      .add<&CommunicationRow::priority>("priority", i32)
      .of("type", text, [=](const CommunicationRow& row) { return row.broadcast == no_number ? message : broadcast; })
      .add<&CommunicationRow::broadcast>("broadcast", number)
      .add<&CommunicationRow::failed>("failed", flag)
      .add<&CommunicationRow::posted_ns>("posted_ns", time)
      .add<&CommunicationRow::announced_ns>("announced_ns", time)
      .add<&CommunicationRow::granted_ns>("granted_ns", time)
      .add<&CommunicationRow::sent_ns>("sent_ns", time)
      .add<&CommunicationRow::send_released_ns>("send_released_ns", time)
      .add<&CommunicationRow::receive_posted_ns>("receive_posted_ns", time)
      .add<&CommunicationRow::arrived_ns>("arrived_ns", time)
      .add<&CommunicationRow::receive_released_ns>("receive_released_ns", time)
      .of("duration_ns", time, [](const CommunicationRow& row) { return difference(row.arrived_ns, row.posted_ns); })
      .add<&CommunicationRow::send_request>("send_request", number)
      .add<&CommunicationRow::receive_request>("receive_request", number)
      .add<&CommunicationRow::send_data>("send_data", number)
      .add<&CommunicationRow::receive_data>("receive_data", number)
      .add<&CommunicationRow::version>("version", number)
      .of("send_task", id, [=](const CommunicationRow& row) { return task_id(row.send_task); })
      .of("receive_task", id, [=](const CommunicationRow& row) { return task_id(row.receive_task); })
      .take();
}

Table broadcasts_of(History& history) {
  return TableOf("broadcasts", history.broadcasts)
      .add<&BroadcastRow::root>("root", number)
      .add<&BroadcastRow::request>("request", number)
      .add<&BroadcastRow::channel>("channel", number)
      .add<&BroadcastRow::tag>("tag", u64)
      .add<&BroadcastRow::bytes>("bytes", u64)
      .add<&BroadcastRow::recipients>("recipients", number)
      .add<&BroadcastRow::tree>("tree", number)
      .add<&BroadcastRow::segment_bytes>("segment_bytes", number)
      .add<&BroadcastRow::children>("children", text)
      .add<&BroadcastRow::bag>("bag", number)
      .add<&BroadcastRow::data>("data", number)
      .add<&BroadcastRow::version>("version", number)
      .add<&BroadcastRow::failed>("failed", flag)
      .add<&BroadcastRow::posted_ns>("posted_ns", time)
      .add<&BroadcastRow::routed_ns>("routed_ns", time)
      .add<&BroadcastRow::sent_ns>("sent_ns", time)
      .add<&BroadcastRow::released_ns>("released_ns", time)
      .take();
}

Table bags_of(History& history) {
  return TableOf("bags", history.bags)
      .add<&BagRow::rank>("rank", number)
      .add<&BagRow::bag>("bag", number)
      .add<&BagRow::data>("data", number)
      .add<&BagRow::version>("version", number)
      .add<&BagRow::recipients>("recipients", number)
      .add<&BagRow::request>("request", number)
      .add<&BagRow::opened_ns>("opened_ns", time)
      .add<&BagRow::closed_ns>("closed_ns", time)
      .take();
}

Table bag_recipients_of(History& history) {
  return TableOf("bag_recipients", history.bag_recipients)
      .add<&BagRecipientRow::rank>("rank", number)
      .add<&BagRecipientRow::bag>("bag", number)
      .add<&BagRecipientRow::recipient>("recipient", number)
      .add<&BagRecipientRow::priority>("priority", i32)
      .add<&BagRecipientRow::joined_ns>("joined_ns", time)
      .take();
}

Table forwards_of(History& history) {
  return TableOf("forwards", history.forwards)
      .add<&ForwardRow::rank>("rank", number)
      .add<&ForwardRow::root>("root", number)
      .add<&ForwardRow::child>("child", number)
      .add<&ForwardRow::tag>("tag", u64)
      .add<&ForwardRow::bytes>("bytes", u64)
      .add<&ForwardRow::declined>("declined", flag)
      .add<&ForwardRow::time_ns>("time_ns", time)
      .take();
}

Table data_of(History& history) {
  return TableOf("data", history.data)
      .add<&DataRow::rank>("rank", number)
      .add<&DataRow::data>("data", number)
      .add<&DataRow::owner>("owner", number)
      .add<&DataRow::bytes>("bytes", u64)
      .add<&DataRow::rows>("rows", u64)
      .add<&DataRow::cols>("cols", u64)
      .add<&DataRow::name>("name", text)
      .add<&DataRow::file>("file", text)
      .add<&DataRow::line>("line", number)
      .add<&DataRow::numa_node>("numa_node", number)
      .take();
}

Table transfers_of(History& history) {
  return TableOf("transfers", history.transfers)
      .add<&TransferRow::rank>("rank", number)
      .add<&TransferRow::data>("data", number)
      .add<&TransferRow::from>("from", worker)
      .add<&TransferRow::to>("to", worker)
      .add<&TransferRow::bytes>("bytes", u64)
      .add<&TransferRow::start_ns>("start_ns", time)
      .add<&TransferRow::end_ns>("end_ns", time)
      .take();
}

Table memory_of(History& history) {
  return TableOf("memory", history.memory)
      .add<&MemoryRow::rank>("rank", number)
      .add<&MemoryRow::data>("data", number)
      .add<&MemoryRow::node>("node", worker)
      .add<&MemoryRow::time_ns>("time_ns", time)
      .add<&MemoryRow::bytes>("bytes", i64)
      .add<&MemoryRow::used_bytes>("used_bytes", i64)
      .take();
}

Table stagings_of(History& history) {
  const std::vector<Texts::Id> names{history.texts.add("memory"), history.texts.add("copies")};
  return TableOf("stagings", history.stagings)
      .of("rank", number, [&history](const StagingRow& row) { return history.tasks[row.task].rank; })
      .of("task", u64, [&history](const StagingRow& row) { return history.tasks[row.task].id; })
      .of("waits_for", text,
          [names](const StagingRow& row) { return names[row.stage == trace::StagingState::memory ? 0 : 1]; })
      .add<&StagingRow::start_ns>("start_ns", time)
      .add<&StagingRow::end_ns>("end_ns", time)
      .take();
}

/// Colours that the program gave: red * 65536 + green * 256 + blue.
Table colours_of(History& history) {
  auto rows = std::make_shared<std::vector<std::pair<Texts::Id, std::uint32_t>>>(history.colours.begin(),
                                                                                 history.colours.end());
  std::ranges::sort(*rows);
  Table table{.name = "colours", .rows = rows->size(), .columns = {}};
  add_column(table, "codelet", text, [rows](std::size_t row) { return (*rows)[row].first; });
  add_column(table, "rgb", number, [rows](std::size_t row) { return (*rows)[row].second; });
  return table;
}

Table values_of(std::string_view name, const History& history, const SpillVector<ValueRow>& rows) {
  return TableOf(name, rows)
      .add<&ValueRow::rank>("rank", number)
      .add<&ValueRow::actor>("actor", number)
      .of("task", id, task_around<ValueRow>(history))
      .add<&ValueRow::name>("name", text)
      .add<&ValueRow::time_ns>("time_ns", time)
      .add<&ValueRow::value>("value", real)
      .take();
}

Table spans_of(History& history) {
  return TableOf("spans", history.spans)
      .add<&SpanRow::rank>("rank", number)
      .add<&SpanRow::actor>("actor", number)
      .of("task", id, task_around<SpanRow>(history))
      .add<&SpanRow::name>("name", text)
      .add<&SpanRow::start_ns>("start_ns", time)
      .add<&SpanRow::end_ns>("end_ns", time)
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

/// The events of a type declared by the program: time, rank, actor, and their fields; a field with a column's name is
/// renamed.
Table declared_of(const History& history, const DeclaredEvents& type) {
  Table table = TableOf("user." + type.name, type.rows)
                    .add<&DeclaredEvents::Row::rank>("rank", number)
                    .add<&DeclaredEvents::Row::actor>("actor", number)
                    .of("task", id, task_around<DeclaredEvents::Row>(history))
                    .add<&DeclaredEvents::Row::time_ns>("time_ns", time)
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
      .add<&WaitRow::rank>("rank", number)
      .add<&WaitRow::actor>("actor", number)
      .of("kind", text, [kinds](const WaitRow& row) { return (*kinds)[static_cast<std::size_t>(row.kind)]; })
      .add<&WaitRow::start_ns>("start_ns", time)
      .add<&WaitRow::end_ns>("end_ns", time)
      .take();
}

Table tracer_of(History& history) {
  const auto kinds = names<TracerKind>(history, 4);
  return TableOf("tracer", history.tracer)
      .add<&TracerRow::rank>("rank", number)
      .add<&TracerRow::actor>("actor", number)
      .of("kind", text, [kinds](const TracerRow& row) { return (*kinds)[static_cast<std::size_t>(row.kind)]; })
      .add<&TracerRow::of_actor>("of_actor", number)
      .add<&TracerRow::start_ns>("start_ns", time)
      .add<&TracerRow::end_ns>("end_ns", time)
      .add<&TracerRow::amount>("amount", u64)
      .take();
}

Table actors_of(History& history) {
  // The catalogue is no actor of the program, so the kinds begin after it; each kind still needs a name.
  const auto kinds = names<trace::ActorKind>(history, 8);
  auto name_ids = std::make_shared<std::vector<Texts::Id>>();
  for (const ActorFacts& facts : history.actors) name_ids->push_back(history.texts.add(facts.name));
  const ActorFacts* first = history.actors.data();
  return TableOf("actors", history.actors)
      .add<&ActorFacts::rank>("rank", number)
      .add<&ActorFacts::actor>("actor", number)
      .of("kind", text, [kinds](const ActorFacts& facts) { return (*kinds)[static_cast<std::size_t>(facts.kind) & 7]; })
      .add<&ActorFacts::index>("index", worker)
      .add<&ActorFacts::core>("core", i32)
      .of("name", text,
          [name_ids, first](const ActorFacts& facts) { return (*name_ids)[static_cast<std::size_t>(&facts - first)]; })
      .add<&ActorFacts::events>("events", u64)
      .add<&ActorFacts::bytes>("bytes", u64)
      .add<&ActorFacts::lost_events>("lost_events", u64)
      .take();
}

Table clocks_of(History& history) {
  constexpr std::array<std::string_view, 3> methods{"none", "linear", "piecewise"};
  const Texts::Id method = history.texts.add(methods[static_cast<std::size_t>(history.method)]);
  auto hosts = std::make_shared<std::vector<Texts::Id>>();
  for (const RankClock& clock : history.clocks) hosts->push_back(history.texts.add(clock.host));
  const RankClock* first = history.clocks.data();
  return TableOf("clocks", history.clocks)
      .add<&RankClock::rank>("rank", number)
      .of("host", text,
          [hosts, first](const RankClock& clock) { return (*hosts)[static_cast<std::size_t>(&clock - first)]; })
      .of("method", text, [method](const RankClock&) { return method; })
      .add<&RankClock::points>("points", u64)
      .add<&RankClock::corrected>("corrected", flag)
      .add<&RankClock::by_date>("by_date", flag)
      .add<&RankClock::residual_rms_ns>("residual_rms_ns", real)
      .add<&RankClock::residual_max_ns>("residual_max_ns", real)
      .add<&RankClock::first_offset_ns>("first_offset_ns", i64)
      .add<&RankClock::last_offset_ns>("last_offset_ns", i64)
      .add<&RankClock::first_ns>("first_ns", time)
      .add<&RankClock::last_ns>("last_ns", time)
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
  tables.push_back(stagings_of(history));
  tables.push_back(colours_of(history));
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
