// tools/trace/export_paje.cpp: writes paje.trace for ViTE: states of actors, messages as arrows, counts as curves.
//
// Containers: the run, its ranks, and in each rank its workers, other actors, network engine, memory nodes and, where
// the program has named parts of itself, a line for those. States are set, not pushed: ViTE wants one line of states
// per container, and a state whose end was lost would stay on a stack. Times are in milliseconds, as StarPU's, with all
// digits.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "tandem/base/utf8.hpp"
#include "tools/counted.hpp"
#include "tools/out_file.hpp"
#include "tools/trace/export.hpp"

namespace tandem::tools {

std::vector<TaskCountChange> task_count_changes(const History& history) {
  std::vector<TaskCountChange> changes;
  for (const TaskRow& task : history.tasks) {
    if (task.submit_ns == no_time) continue;
    const bool ready = task.ready_ns != no_time && task.start_ns != no_time;
    const auto add = [&](std::int64_t time_ns, int submitted, int now_ready) {
      changes.push_back({time_ns, task.rank, static_cast<std::int8_t>(submitted), static_cast<std::int8_t>(now_ready)});
    };
    add(task.submit_ns, 1, 0);
    if (ready) {
      add(task.ready_ns, -1, 1);
      add(task.start_ns, 0, -1);
    } else if (const std::int64_t left_ns = task.start_ns != no_time   ? task.start_ns
                                            : task.ready_ns != no_time ? task.ready_ns
                                                                       : task.end_ns;
               left_ns != no_time) {
      add(left_ns, -1, 0);
    }
  }
  std::ranges::stable_sort(changes, {}, &TaskCountChange::time_ns);
  return changes;
}

namespace {

constexpr std::string_view header = R"(%EventDef	PajeDefineContainerType	1
%	Alias	string
%	Type	string
%	Name	string
%EndEventDef
%EventDef	PajeDefineEventType	2
%	Alias	string
%	Type	string
%	Name	string
%EndEventDef
%EventDef	PajeDefineStateType	3
%	Alias	string
%	Type	string
%	Name	string
%EndEventDef
%EventDef	PajeDefineVariableType	4
%	Alias	string
%	Type	string
%	Name	string
%	Color	color
%EndEventDef
%EventDef	PajeDefineLinkType	5
%	Alias	string
%	Type	string
%	StartContainerType	string
%	EndContainerType	string
%	Name	string
%EndEventDef
%EventDef	PajeDefineEntityValue	6
%	Alias	string
%	Type	string
%	Name	string
%	Color	color
%EndEventDef
%EventDef	PajeCreateContainer	7
%	Time	date
%	Alias	string
%	Type	string
%	Container	string
%	Name	string
%EndEventDef
%EventDef	PajeDestroyContainer	8
%	Time	date
%	Name	string
%	Type	string
%EndEventDef
%EventDef	PajeNewEvent	9
%	Time	date
%	Type	string
%	Container	string
%	Value	string
%EndEventDef
%EventDef	PajeSetState	10
%	Time	date
%	Type	string
%	Container	string
%	Value	string
%EndEventDef
%EventDef	PajeSetVariable	13
%	Time	date
%	Type	string
%	Container	string
%	Value	double
%EndEventDef
%EventDef	PajeStartLink	18
%	Time	date
%	Type	string
%	Container	string
%	StartContainer	string
%	Value	string
%	Key	string
%EndEventDef
%EventDef	PajeEndLink	19
%	Time	date
%	Type	string
%	Container	string
%	EndContainer	string
%	Value	string
%	Key	string
%EndEventDef
%EventDef	PajeSetState	20
%	Time	date
%	Type	string
%	Container	string
%	Value	string
%	JobId	string
%	SubmitOrder	string
%	Priority	string
%EndEventDef
)";

/// Okabe and Ito's colours, then hues that go round by the golden ratio, in two lightnesses: neighbours differ.
std::string colour(std::size_t index) {
  constexpr std::array<std::string_view, 8> first{"0.00 0.45 0.70", "0.90 0.62 0.00", "0.00 0.62 0.45",
                                                  "0.80 0.47 0.65", "0.84 0.37 0.00", "0.34 0.71 0.91",
                                                  "0.55 0.43 0.10", "0.94 0.89 0.26"};
  if (index < first.size()) return std::string(first[index]);
  const double hue = std::fmod(0.11 + 0.618033988749895 * static_cast<double>(index), 1.0) * 6;
  const double value = index % 2 == 0 ? 0.85 : 0.6;
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + hue, 6);
    return value - value * 0.7 * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
  };
  return fmt::format("{:.2f} {:.2f} {:.2f}", channel(5), channel(3), channel(1));
}

std::string colour_of_rgb(std::uint32_t rgb) {
  const auto part = [rgb](unsigned shift) { return static_cast<double>(rgb >> shift & 255) / 255; };
  return fmt::format("{:.2f} {:.2f} {:.2f}", part(16), part(8), part(0));
}

std::string_view colour_of(ActorState state) {
  constexpr std::array<std::string_view, actor_states> colours{
      "0.93 0.93 0.93", "0.70 0.36 0.00", "0.95 0.45 0.40", "0.90 0.10 0.10", "1.00 0.50 1.00", "0.20 0.10 1.00",
      "0.60 0.20 0.60", "0.00 0.60 0.40", "0.10 0.60 0.20", "0.95 0.75 0.40", "0.90 0.10 0.10", "0.50 0.50 0.50"};
  return colours[static_cast<std::size_t>(state)];
}

/// A quoted UTF-8 string without characters that would end it.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : base::as_utf8(text)) result += c == '"' ? '\'' : c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
  return result + '"';
}

/// Events of one instant, whose kinds are written in the order of their declaration.
enum class Kind : std::uint8_t { state_ends, span_ends, wait_ends, state, span, wait, mark, declared, counter, counts, memory,
                                 message, message_end, transfer, transfer_end };
struct Line {
  std::int64_t time_ns = 0;
  std::uint32_t row = 0;
  Kind kind = Kind::state;
};

class PajeWriter {
 public:
  PajeWriter(const History& history, OutFile& file, Exported& exported)
      : history_(history), file_(file), exported_(exported), changes_(task_count_changes(history)) {}

  void write() {
    file_.write(header);
    gather_kernels();
    define_types();
    create_containers();
    gather_lines();
    std::ranges::sort(lines_, [](const Line& a, const Line& b) {
      return std::tuple(a.time_ns, a.kind, a.row) < std::tuple(b.time_ns, b.kind, b.row);
    });
    for (const Line& line : lines_) print(line);
    destroy_containers();
    account();
  }

 private:
  struct Container {
    std::string alias, type;
  };

  static std::string time(std::int64_t ns) { return fmt::format("{}.{:06}", ns / 1'000'000, ns % 1'000'000); }
  static std::string rank_alias(std::uint32_t rank) { return fmt::format("r{}", rank); }
  static std::string actor_alias(std::uint32_t rank, std::uint32_t actor) { return fmt::format("r{}a{}", rank, actor); }
  static std::string engine_alias(std::uint32_t rank) { return fmt::format("r{}n", rank); }
  static std::string node_alias(std::uint32_t rank, std::uint16_t node) { return fmt::format("r{}m{}", rank, node); }
  static std::string span_alias(std::uint32_t rank, std::uint32_t actor) { return fmt::format("r{}a{}p", rank, actor); }

  Texts::Id kernel_of(const TaskRow& task) const { return task.codelet != 0 ? task.codelet : task.name; }

  void gather_kernels();
  void define_types();
  void create_containers();
  void create(const std::string& alias, const std::string& type, const std::string& parent, std::string_view name);
  void destroy_containers();
  void gather_lines();
  void print(const Line& line);
  void set_state(std::int64_t time_ns, const std::string& container, std::string_view type, std::string_view value);
  void print_state(const Line& line);
  void print_inner(const Line& line, std::uint32_t row, std::map<std::string, std::vector<std::uint32_t>>& open,
                   const std::string& container, std::string_view type, const std::string& value, bool ends);
  void account();

  const History& history_;
  OutFile& file_;
  Exported& exported_;
  std::vector<TaskCountChange> changes_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> declared_;  ///< types and ranks of the program's own events
  std::map<Texts::Id, std::size_t> kernels_, marks_, counters_, spans_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Container> actors_;
  std::vector<std::pair<std::string, std::string>> created_;  ///< aliases and types
  std::vector<Line> lines_;
  std::map<std::string, std::vector<std::uint32_t>> open_spans_, open_waits_;
  std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> counts_;
  std::int64_t executing_ns_ = 0;
  std::uint64_t messages_ = 0, transfers_ = 0, backward_ = 0;
};

void PajeWriter::gather_kernels() {
  for (const TaskRow& task : history_.tasks) kernels_.try_emplace(kernel_of(task), 0);
  for (const ValueRow& row : history_.marks) marks_.try_emplace(row.name, 0);
  for (const ValueRow& row : history_.counters) counters_.try_emplace(row.name, 0);
  for (const SpanRow& row : history_.spans) spans_.try_emplace(row.name, 0);
  for (auto* names : {&kernels_, &marks_, &counters_, &spans_}) {
    std::size_t next = 0;
    for (auto& [name, index] : *names) index = next++;
  }
}

void PajeWriter::define_types() {
  file_.print("1\trun\t0\t\"run\"\n1\trank\trun\t\"rank\"\n");
  for (const std::string_view type : {"worker", "thread", "engine", "node", "program"})
    file_.print("1\t{}\trank\t\"{}\"\n", type, type);
  file_.print(
      "3\tWS\tworker\t\"worker state\"\n3\tTS\tthread\t\"thread state\"\n3\tES\tengine\t\"network engine state\"\n"
      "3\tPS\tprogram\t\"part of the program\"\n");
  file_.print("2\tMARK\trank\t\"mark\"\n2\tOWN\trank\t\"event of the program's own\"\n");
  file_.print(
      "4\tREADY\trank\t\"ready tasks\"\t\"0.00 0.60 0.40\"\n4\tSUBMITTED\trank\t\"submitted tasks\"\t\"0.00 0.45 "
      "0.70\"\n"
      "4\tUSED\tnode\t\"bytes in use\"\t\"0.80 0.47 0.65\"\n");
  for (const auto& [name, index] : counters_)
    file_.print("4\tV{}\trank\t{}\t\"{}\"\n", index, in_quotes(history_.texts[name]), colour(index));
  file_.print("5\tMSG\trun\tengine\tengine\t\"message\"\n5\tCOPY\trun\tnode\tnode\t\"copy between memory nodes\"\n");
  for (const auto& [name, index] : kernels_) {
    const std::string shown = in_quotes(name == 0 ? "(unknown)" : history_.texts[name]);
    const auto own = history_.colours.find(name);  // a colour that the program gave
    const std::string shown_in = own == history_.colours.end() ? colour(index) : colour_of_rgb(own->second);
    for (const std::string_view type : {"WS", "TS", "ES"})
      file_.print("6\t{}k{}\t{}\t{}\t\"{}\"\n", type, index, type, shown, shown_in);
  }
  for (std::size_t state = 0; state < actor_states; ++state)
    for (const std::string_view type : {"WS", "TS", "ES"})
      file_.print("6\t{}s{}\t{}\t\"{}\"\t\"{}\"\n", type, state, type, name_of(static_cast<ActorState>(state)),
                  colour_of(static_cast<ActorState>(state)));
  for (const std::string_view type : {"WS", "TS", "ES"})
    file_.print("6\t{}run\t{}\t\"running\"\t\"0.80 0.90 0.80\"\n6\t{}w0\t{}\t\"waiting\"\t\"0.90 0.60 0.10\"\n"
                "6\t{}w1\t{}\t\"throttled\"\t\"0.90 0.30 0.10\"\n6\t{}no\t{}\t\"not known\"\t\"1.00 1.00 1.00\"\n",
                type, type, type, type, type, type, type, type);
  for (const auto& [name, index] : spans_)
    file_.print("6\tPSp{}\tPS\t{}\t\"{}\"\n", index, in_quotes(history_.texts[name]), colour(index));
  file_.print("6\tPSno\tPS\t\"none\"\t\"1.00 1.00 1.00\"\n");
  for (const auto& [name, index] : marks_)
    file_.print("6\tMARKm{}\tMARK\t{}\t\"{}\"\n", index, in_quotes(history_.texts[name]), colour(index));
  for (std::size_t i = 0; i < history_.declared.size(); ++i)
    file_.print("6\tOWNe{}\tOWN\t{}\t\"{}\"\n", i, in_quotes(history_.declared[i].name), colour(i));
}

void PajeWriter::create(const std::string& alias, const std::string& type, const std::string& parent,
                        std::string_view name) {
  file_.print("7\t{}\t{}\t{}\t{}\t{}\n", time(0), alias, type, parent, in_quotes(name));
  created_.emplace_back(alias, type);
}

void PajeWriter::create_containers() {
  std::set<std::pair<std::uint32_t, std::uint32_t>> acting;  // actors that have a line of their own
  std::set<std::pair<std::uint32_t, std::uint32_t>> programs;
  std::set<std::pair<std::uint32_t, std::uint16_t>> nodes;
  for (const StateRow& row : history_.states) acting.emplace(row.rank, row.actor);
  for (const WaitRow& row : history_.waits) acting.emplace(row.rank, row.actor);
  for (const SpanRow& row : history_.spans) programs.emplace(row.rank, row.actor);
  for (const MemoryRow& row : history_.memory) nodes.emplace(row.rank, row.node);
  for (const TransferRow& row : history_.transfers) {
    nodes.emplace(row.rank, row.from);
    nodes.emplace(row.rank, row.to);
  }
  std::set<std::uint32_t> ranks;
  for (const RankClock& clock : history_.clocks) ranks.insert(clock.rank);
  create("run", "run", "0",
         history_.program.empty() ? "run" : std::filesystem::path(history_.program).filename().string());
  for (const std::uint32_t rank : ranks) {
    create(rank_alias(rank), "rank", "run", fmt::format("rank {}", rank));
    bool has_engine = false;
    for (const ActorFacts& facts : history_.actors) {
      if (facts.rank != rank) continue;
      const bool is_worker = facts.kind == trace::ActorKind::worker;
      const bool is_engine = facts.kind == trace::ActorKind::progress && !has_engine;
      if (!is_worker && !is_engine && !acting.contains({rank, facts.actor})) continue;
      has_engine |= is_engine;
      const Container container{is_engine ? engine_alias(rank) : actor_alias(rank, facts.actor),
                                is_engine ? "ES" : is_worker ? "WS" : "TS"};
      create(container.alias, is_engine ? "engine" : is_worker ? "worker" : "thread", rank_alias(rank), facts.name);
      actors_[{rank, facts.actor}] = container;
    }
    if (!has_engine && !history_.communications.empty())
      create(engine_alias(rank), "engine", rank_alias(rank), "network");
    for (const auto& [of_rank, actor] : programs)
      if (of_rank == rank) create(span_alias(rank, actor), "program", rank_alias(rank), "program");
    for (const auto& [of_rank, node] : nodes)
      if (of_rank == rank) create(node_alias(rank, node), "node", rank_alias(rank), history_.memory_name(rank, node));
  }
}

void PajeWriter::gather_lines() {
  const auto add = [this](std::int64_t time_ns, Kind kind, std::size_t row) {
    lines_.push_back({time_ns, static_cast<std::uint32_t>(row), kind});
  };
  std::set<std::pair<std::uint32_t, std::uint32_t>> with_states;
  for (std::size_t i = 0; i < history_.states.size(); ++i) {
    const StateRow row = history_.states[i];
    with_states.emplace(row.rank, row.actor);
    add(row.start_ns, Kind::state, i);
    const auto next = i + 1 < history_.states.size() ? std::optional(history_.states[i + 1]) : std::nullopt;
    // The next state replaces it by itself.
    if (!next || next->rank != row.rank || next->actor != row.actor || next->start_ns != row.end_ns)
      add(row.end_ns, Kind::state_ends, i);
  }
  const auto intervals = [&](const auto& rows, Kind begin, Kind end, const auto& wanted) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].start_ns == no_time || !wanted(rows[i])) continue;
      add(rows[i].start_ns, begin, i);
      add(rows[i].end_ns == no_time ? history_.duration_ns : rows[i].end_ns, end, i);
    }
  };
  intervals(history_.spans, Kind::span, Kind::span_ends, [](const SpanRow&) { return true; });
  // An actor with states shows in them what it does while it waits.
  intervals(history_.waits, Kind::wait, Kind::wait_ends,
            [&](const WaitRow& row) { return !with_states.contains({row.rank, row.actor}); });
  for (std::size_t i = 0; i < history_.marks.size(); ++i) add(history_.marks[i].time_ns, Kind::mark, i);
  for (std::uint32_t type = 0; type < history_.declared.size(); ++type)
    for (const DeclaredEvents::Row& row : history_.declared[type].rows) {
      add(row.time_ns, Kind::declared, declared_.size());
      declared_.emplace_back(type, row.rank);
    }
  for (std::size_t i = 0; i < history_.counters.size(); ++i) add(history_.counters[i].time_ns, Kind::counter, i);
  for (std::size_t i = 0; i < history_.memory.size(); ++i) add(history_.memory[i].time_ns, Kind::memory, i);
  for (std::size_t i = 0; i < changes_.size(); ++i) add(changes_[i].time_ns, Kind::counts, i);
  const auto here = [this](std::uint32_t rank) {
    return std::ranges::find(history_.clocks, rank, &RankClock::rank) != history_.clocks.end();
  };
  for (std::size_t i = 0; i < history_.communications.size(); ++i) {
    const CommunicationRow& row = history_.communications[i];
    if (!row.is_whole() || !here(row.source) || !here(row.destination)) continue;
    ++messages_;
    if (row.arrived_ns < row.posted_ns) ++backward_;
    add(row.posted_ns, Kind::message, i);
    add(std::max(row.arrived_ns, row.posted_ns), Kind::message_end, i);
  }
  for (std::size_t i = 0; i < history_.transfers.size(); ++i) {
    const TransferRow& row = history_.transfers[i];
    if (row.start_ns == no_time || row.end_ns == no_time) continue;
    ++transfers_;
    add(row.start_ns, Kind::transfer, i);
    add(row.end_ns, Kind::transfer_end, i);
  }
}

void PajeWriter::set_state(std::int64_t time_ns, const std::string& container, std::string_view type,
                           std::string_view value) {
  file_.print("10\t{}\t{}\t{}\t{}{}\n", time(time_ns), type, container, type, value);
}

void PajeWriter::print_state(const Line& line) {
  const StateRow row = history_.states[line.row];
  const auto actor = actors_.find({row.rank, row.actor});
  if (actor == actors_.end()) return;
  const auto& [alias, type] = actor->second;
  if (line.kind == Kind::state_ends) return set_state(line.time_ns, alias, type, "no");
  if (row.state != ActorState::executing)
    return set_state(line.time_ns, alias, type, fmt::format("s{}", static_cast<int>(row.state)));
  const TaskRow& task = history_.tasks[row.task];
  executing_ns_ += row.end_ns - row.start_ns;
  file_.print("20\t{}\t{}\t{}\t{}k{}\t{}_{}\t{}\t{}\n", time(line.time_ns), type, alias, type,
              kernels_.at(kernel_of(task)), task.rank, task.id, task.submit_order == no_number ? 0 : task.submit_order,
              task.priority);
}

/// Nested intervals on one line: after an inner one ends, the line shows the outer one.
void PajeWriter::print_inner(const Line& line, std::uint32_t row,
                             std::map<std::string, std::vector<std::uint32_t>>& open, const std::string& container,
                             std::string_view type, const std::string& value, bool ends) {
  auto& stack = open[container];
  if (!ends) {
    stack.push_back(row);
    return set_state(line.time_ns, container, type, value);
  }
  if (const auto found = std::ranges::find(stack, row); found != stack.end()) stack.erase(found);
}

void PajeWriter::print(const Line& line) {
  switch (line.kind) {
    case Kind::state:
    case Kind::state_ends: return print_state(line);
    case Kind::span:
    case Kind::span_ends: {
      const SpanRow& row = history_.spans[line.row];
      const std::string container = span_alias(row.rank, row.actor);
      print_inner(line, line.row, open_spans_, container, "PS", fmt::format("p{}", spans_.at(row.name)),
                  line.kind == Kind::span_ends);
      if (line.kind == Kind::span) return;
      const auto& stack = open_spans_[container];
      return set_state(line.time_ns, container, "PS",
                       stack.empty() ? "no" : fmt::format("p{}", spans_.at(history_.spans[stack.back()].name)));
    }
    case Kind::wait:
    case Kind::wait_ends: {
      const WaitRow& row = history_.waits[line.row];
      const auto actor = actors_.find({row.rank, row.actor});
      if (actor == actors_.end()) return;
      const auto& [alias, type] = actor->second;
      print_inner(line, line.row, open_waits_, alias, type, fmt::format("w{}", static_cast<int>(row.kind)),
                  line.kind == Kind::wait_ends);
      if (line.kind == Kind::wait) return;
      const auto& stack = open_waits_[alias];
      return set_state(line.time_ns, alias, type,
                       stack.empty() ? "run" : fmt::format("w{}", static_cast<int>(history_.waits[stack.back()].kind)));
    }
    case Kind::mark: {
      const ValueRow& row = history_.marks[line.row];
      file_.print("9\t{}\tMARK\t{}\tMARKm{}\n", time(line.time_ns), rank_alias(row.rank), marks_.at(row.name));
      return;
    }
    case Kind::declared: {
      const auto& [type, rank] = declared_[line.row];
      file_.print("9\t{}\tOWN\t{}\tOWNe{}\n", time(line.time_ns), rank_alias(rank), type);
      return;
    }
    case Kind::counter: {
      const ValueRow& row = history_.counters[line.row];
      if (std::isfinite(row.value))
        file_.print("13\t{}\tV{}\t{}\t{}\n", time(line.time_ns), counters_.at(row.name), rank_alias(row.rank),
                    row.value);
      return;
    }
    case Kind::counts: {
      const TaskCountChange& change = changes_[line.row];
      auto& [submitted, ready] = counts_[change.rank];
      submitted += change.submitted;
      ready += change.ready;
      if (change.submitted != 0)
        file_.print("13\t{}\tSUBMITTED\t{}\t{}\n", time(line.time_ns), rank_alias(change.rank), submitted);
      if (change.ready != 0) file_.print("13\t{}\tREADY\t{}\t{}\n", time(line.time_ns), rank_alias(change.rank), ready);
      return;
    }
    case Kind::memory: {
      const MemoryRow& row = history_.memory[line.row];
      file_.print("13\t{}\tUSED\t{}\t{}\n", time(line.time_ns), node_alias(row.rank, row.node), row.used_bytes);
      return;
    }
    case Kind::message:
    case Kind::message_end: {
      const CommunicationRow& row = history_.communications[line.row];
      const bool ends = line.kind == Kind::message_end;
      file_.print("{}\t{}\tMSG\trun\t{}\t{}\tm{}\n", ends ? 19 : 18, time(line.time_ns),
                  engine_alias(ends ? row.destination : row.source), row.bytes, line.row);
      return;
    }
    case Kind::transfer:
    case Kind::transfer_end: {
      const TransferRow& row = history_.transfers[line.row];
      const bool ends = line.kind == Kind::transfer_end;
      file_.print("{}\t{}\tCOPY\trun\t{}\t{}\tc{}\n", ends ? 19 : 18, time(line.time_ns),
                  node_alias(row.rank, ends ? row.to : row.from), row.bytes, line.row);
      return;
    }
  }
}

void PajeWriter::destroy_containers() {
  for (auto container = created_.rbegin(); container != created_.rend(); ++container)
    file_.print("8\t{}\t{}\t{}\n", time(history_.duration_ns), container->first, container->second);
}

void PajeWriter::account() {
  const auto add = [this](const char* name, std::uint64_t rows, std::int64_t total_ns = 0) {
    exported_.tables.push_back({.name = name, .file = "paje.trace", .rows = rows, .total_ns = total_ns});
  };
  std::uint64_t executing = 0;
  for (const StateRow& row : history_.states) executing += row.state == ActorState::executing ? 1 : 0;
  add("containers", created_.size());
  add("executions", executing, executing_ns_);
  add("other states", history_.states.size() - executing);
  add("messages", messages_);
  add("transfers", transfers_);
  add("marks", history_.marks.size());
  if (!declared_.empty()) add("events of the program's own types", declared_.size());
  add("counter values", history_.counters.size() + history_.memory.size());
  if (backward_ > 0)
    exported_.notes.push_back(fmt::format(
        "by the clocks, {} {} before the send; paje.trace has vertical arrows there", counted(backward_, "message"),
        backward_ == 1 ? "arrives" : "arrive"));
}

}  // namespace

base::Result<void> export_paje_trace(const History& history, const std::filesystem::path& folder, Exported& exported) {
  auto file = OutFile::create(folder / "paje.trace");
  if (!file) return file.error();
  PajeWriter(history, file.value(), exported).write();
  exported.files.push_back({.file = "paje.trace", .bytes = file.value().bytes()});
  return file.value().close();
}

base::Result<Exported> export_paje(const History& history, const std::filesystem::path& out) {
  if (auto made = make_folder(out); !made) return made.error();
  Exported exported;
  for (const auto part : {export_paje_trace, export_records, export_dag})
    if (auto written = part(history, out, exported); !written) return written.error();
  return exported;
}

}  // namespace tandem::tools
