// tools/trace/export_perfetto.cpp: writes one file of Perfetto's TracePackets: tracks for ranks and actors, slices,
// counters, flows.
//
// Numbers of fields: perfetto/protos/perfetto/trace/trace_packet.proto and track_event/*.proto. Stamps are those of the
// history, in nanoseconds since the first event: Perfetto's own clock conversion knows no rates, so that nothing is
// left to it.
#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>

#include "tools/out_file.hpp"
#include "tools/trace/export.hpp"
#include "tools/trace/protobuf_writer.hpp"

namespace tandem::tools {
namespace {

namespace packet {
constexpr std::uint32_t timestamp = 8, sequence = 10, track_event = 11, interned_data = 12, sequence_flags = 13,
                        track_descriptor = 60;
constexpr std::uint64_t state_cleared = 1, needs_state = 2;
}  // namespace packet
namespace descriptor {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, parent = 5, counter = 8, child_ordering = 11,
                        sibling_order = 12;
constexpr std::uint32_t process_pid = 1, process_name = 6, counter_unit_name = 6;
constexpr std::uint64_t explicit_order = 3;
}  // namespace descriptor
namespace event {
constexpr std::uint32_t annotations = 4, type = 9, name_iid = 10, track = 11, categories = 22, counter_value = 30,
                        real_value = 44, flows = 47, last_flows = 48;
constexpr std::uint64_t begin = 1, end = 2, instant = 3, counter = 4;
}  // namespace event
namespace annotation {
constexpr std::uint32_t integer = 4, unsigned_integer = 3, real = 5, text = 6, name = 10;
}  // namespace annotation

/// Properties of a slice besides its name.
class Annotations {
 public:
  Annotations& add(std::string_view name, std::uint64_t value) {
    return put(ProtobufMessage().text(annotation::name, name).integer(annotation::unsigned_integer, value));
  }
  Annotations& add(std::string_view name, std::int64_t value) {
    return put(
        ProtobufMessage().text(annotation::name, name).integer(annotation::integer, static_cast<std::uint64_t>(value)));
  }
  Annotations& add(std::string_view name, double value) {
    return put(ProtobufMessage().text(annotation::name, name).real(annotation::real, value));
  }
  Annotations& add(std::string_view name, std::string_view value) {
    return put(ProtobufMessage().text(annotation::name, name).text(annotation::text, value));
  }
  const std::string& bytes() const noexcept { return message_.bytes(); }

 private:
  Annotations& put(const ProtobufMessage& one) {
    message_.message(event::annotations, one);
    return *this;
  }
  ProtobufMessage message_;
};

struct Slice {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t row = 0;
};

/// Slices of a track nest. Those that overlap otherwise go to as many lanes as it takes; each lane is a track.
std::vector<std::vector<Slice>> lanes_of(std::vector<Slice> slices, bool may_nest) {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::vector<std::vector<Slice>> lanes;
  std::vector<std::vector<std::int64_t>> open;  // ends of the open slices, by lane
  for (const Slice& slice : slices) {
    std::size_t lane = 0;
    for (; lane < lanes.size(); ++lane) {
      auto& ends = open[lane];
      while (!ends.empty() && ends.back() <= slice.start_ns) ends.pop_back();
      if (ends.empty() || (may_nest && ends.back() >= slice.end_ns)) break;
    }
    if (lane == lanes.size()) {
      lanes.emplace_back();
      open.emplace_back();
    }
    lanes[lane].push_back(slice);
    open[lane].push_back(slice.end_ns);
  }
  return lanes;
}

class PerfettoWriter {
 public:
  PerfettoWriter(const History& history, OutFile& file, Exported& exported)
      : history_(history), file_(file), exported_(exported), accesses_(history.accesses, history.tasks.size()),
        text_ids_(history.texts.size(), 0) {}

  void write() {
    put(ProtobufMessage().integer(packet::sequence, 1).integer(packet::sequence_flags, packet::state_cleared));
    for (const RankClock& clock : history_.clocks) write_rank(clock);
    write_actors();
    write_programs();
    write_messages();
    write_transfers();
    write_counters();
    write_tracer();
  }

 private:
  void put(const ProtobufMessage& one) { file_.write(ProtobufMessage().message(1, one).bytes()); }

  std::uint64_t add_track(std::uint64_t parent, std::string_view name, std::int64_t order, const char* unit = nullptr) {
    const std::uint64_t uuid = next_track_++;
    ProtobufMessage track;
    track.integer(descriptor::uuid, uuid).text(descriptor::name, name).integer(descriptor::parent, parent);
    if (order >= 0) track.integer(descriptor::sibling_order, static_cast<std::uint64_t>(order));
    if (unit != nullptr)
      track.message(descriptor::counter, ProtobufMessage().text(descriptor::counter_unit_name, unit));
    put(ProtobufMessage().integer(packet::sequence, 1).message(packet::track_descriptor, track));
    return uuid;
  }

  void write_rank(const RankClock& clock) {
    const std::uint64_t uuid = next_track_++;
    ranks_[clock.rank] = uuid;
    ProtobufMessage process;
    // Process 0 is the system's in Perfetto.
    process.integer(descriptor::process_pid, clock.rank + 1)
        .text(descriptor::process_name, fmt::format("rank {} on {}", clock.rank, clock.host));
    ProtobufMessage track;
    track.integer(descriptor::uuid, uuid)
        .text(descriptor::name, fmt::format("rank {}", clock.rank))
        .message(descriptor::process, process);
    track.integer(descriptor::child_ordering, descriptor::explicit_order);
    put(ProtobufMessage().integer(packet::sequence, 1).message(packet::track_descriptor, track));
  }
  std::uint64_t rank_track(std::uint32_t rank) const {
    const auto found = ranks_.find(rank);
    return found == ranks_.end() ? 0 : found->second;
  }

  /// Names are written once, in the packet that first needs them.
  std::uint64_t intern(std::string_view name, ProtobufMessage& into) {
    const auto [at, added] = names_.try_emplace(std::string(name), names_.size() + 1);
    if (added) {
      const ProtobufMessage entry = ProtobufMessage().integer(1, at->second).text(2, name);
      into.message(packet::interned_data, ProtobufMessage().message(2, entry));
    }
    return at->second;
  }
  std::uint64_t intern(Texts::Id name, ProtobufMessage& into) {
    if (text_ids_[name] == 0)
      text_ids_[name] = intern(std::string_view(name == 0 ? "(unknown)" : history_.texts[name]), into);
    return text_ids_[name];
  }

  template <class Name>
  void begin(std::int64_t time_ns, std::uint64_t track, std::string_view category, const Name& name,
             const std::string& annotations = {}, std::uint32_t flow_field = 0, std::uint64_t flow = 0,
             std::uint64_t type = event::begin) {
    ProtobufMessage one = stamped(time_ns);
    const std::uint64_t iid = intern(name, one);
    ProtobufMessage happening;
    happening.integer(event::type, type)
        .integer(event::track, track)
        .integer(event::name_iid, iid)
        .text(event::categories, category);
    if (flow_field != 0) happening.fixed64(flow_field, flow);
    std::string bytes = happening.bytes() + annotations;
    put(one.raw(packet::track_event, bytes));
  }
  void end(std::int64_t time_ns, std::uint64_t track) {
    put(stamped(time_ns).message(packet::track_event,
                                 ProtobufMessage().integer(event::type, event::end).integer(event::track, track)));
  }
  static ProtobufMessage stamped(std::int64_t time_ns) {
    ProtobufMessage one;
    one.integer(packet::timestamp, static_cast<std::uint64_t>(std::max<std::int64_t>(time_ns, 0)))
        .integer(packet::sequence, 1);
    one.integer(packet::sequence_flags, packet::needs_state);
    return one;
  }

  /// Writes lanes of slices: `write_begin(slice, track)` begins one, and ends are in their places.
  template <class WriteBegin>
  void write_slices(std::vector<Slice> slices, std::uint64_t parent, const std::string& name, std::int64_t order,
                    bool may_nest, const char* account, WriteBegin write_begin) {
    if (slices.empty()) return;
    for (const auto& lane : lanes_of(std::move(slices), may_nest)) {
      const std::uint64_t track = add_track(parent, name, order);
      std::vector<std::int64_t> open;
      for (const Slice& slice : lane) {
        while (!open.empty() && open.back() <= slice.start_ns) {
          end(open.back(), track);
          open.pop_back();
        }
        write_begin(slice, track);
        open.push_back(slice.end_ns);
        count(account, slice.end_ns - slice.start_ns);
      }
      for (; !open.empty(); open.pop_back()) end(open.back(), track);
    }
  }

  void count(const char* name, std::int64_t ns = 0) {
    auto at = std::ranges::find(exported_.tables, name, &ExportedTable::name);
    if (at == exported_.tables.end())
      at = exported_.tables.insert(at, {.name = name, .file = {}, .rows = 0, .total_ns = 0});
    ++at->rows;
    at->total_ns += ns;
  }

  std::string about_task(std::uint32_t row) const;
  std::string about_declared(const DeclaredEvents& type, std::size_t row) const;
  /// Rows, by start.
  using SpansOfActors = std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::uint32_t>>;
  void write_actors();
  void write_spans_inside(const StateRow& task, std::uint64_t track, std::deque<std::uint32_t>& spans);
  void write_programs();
  void write_messages();
  void write_transfers();
  void write_counters();
  void write_tracer();

  const History& history_;
  OutFile& file_;
  Exported& exported_;
  ByTask accesses_;
  std::unordered_map<std::string, std::uint64_t> names_;
  std::vector<std::uint64_t> text_ids_;  ///< numbers of interned texts; 0: not written
  std::map<std::uint32_t, std::uint64_t> ranks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> actors_;
  std::unordered_set<std::uint32_t> written_spans_;  ///< rows of spans below a task
  std::uint64_t next_track_ = 1;
};

std::string PerfettoWriter::about_task(std::uint32_t row) const {
  const TaskRow& task = history_.tasks[row];
  Annotations about;
  about.add("task", history_.number_of(task.id)).add("priority", std::int64_t{task.priority});
  if (task.submit_order != no_number) about.add("submit order", std::uint64_t{task.submit_order});
  if (task.codelet != task.name) about.add("codelet", std::string_view(history_.texts[task.codelet]));
  if (task.file != 0)
    about.add("submitted at", std::string_view(fmt::format("{}:{}", history_.texts[task.file], task.line)));
  if (task.iteration != no_iteration) about.add("iteration", std::int64_t{task.iteration});
  if (task.flops != 0) about.add("flops", std::string_view(fmt::format("{}", task.flops)));
  if (task.tag != 0) about.add("tag", task.tag);
  if (task.parameters != 0) about.add("parameters", std::string_view(history_.texts[task.parameters]));
  if (task.submit_ns != no_time) about.add("submitted ns", task.submit_ns);
  if (task.ready_ns != no_time) about.add("ready ns", task.ready_ns);
  std::string data;
  for (std::uint32_t i = accesses_.first[row]; i < accesses_.first[row + 1]; ++i) {
    const AccessRow& access = history_.accesses[accesses_.rows[i]];
    const DataRow* described = history_.find_data(task.rank, access.data);
    if (!data.empty()) data += ", ";
    data += fmt::format("{} {}", name_of_mode(access.mode),
                        described != nullptr && described->name != 0 ? history_.texts[described->name]
                                                                     : fmt::format("data {}", access.data));
  }
  if (!data.empty()) about.add("data", std::string_view(data));
  if (task.status == TaskStatus::failed) about.add("status", name_of(task.status));
  return about.bytes();
}

std::string PerfettoWriter::about_declared(const DeclaredEvents& type, std::size_t row) const {
  Annotations about;
  for (std::size_t field = 0; field < type.fields.size(); ++field) {
    const std::string& name = type.fields[field];
    const std::uint64_t value = type.value(row, field);
    switch (type.kinds[field]) {
      case trace::Field::i16:
      case trace::Field::i32:
      case trace::Field::i64: about.add(name, static_cast<std::int64_t>(value)); break;
      case trace::Field::f64: about.add(name, std::bit_cast<double>(value)); break;
      case trace::Field::text:
        about.add(name, std::string_view(history_.texts[static_cast<Texts::Id>(value)]));
        break;
      default: about.add(name, value);
    }
  }
  return about.bytes();
}

void PerfettoWriter::write_actors() {
  std::set<std::pair<std::uint32_t, std::uint32_t>> acting;
  for (const StateRow& row : history_.states) acting.emplace(row.rank, row.actor);
  for (const ValueRow& row : history_.marks) acting.emplace(row.rank, row.actor);
  for (const DeclaredEvents& type : history_.declared)
    for (const DeclaredEvents::Row& row : type.rows) acting.emplace(row.rank, row.actor);
  for (const ActorFacts& facts : history_.actors)
    if (facts.kind == trace::ActorKind::worker || acting.contains({facts.rank, facts.actor}))
      actors_[{facts.rank, facts.actor}] = add_track(rank_track(facts.rank), facts.name, 1000 + facts.actor);
  SpansOfActors spans;
  for (std::uint32_t i = 0; i < history_.spans.size(); ++i)
    if (history_.spans[i].task != no_number) spans[{history_.spans[i].rank, history_.spans[i].actor}].push_back(i);
  for (const StateRow& row : history_.states) {
    const std::uint64_t track = actors_[{row.rank, row.actor}];
    if (row.state == ActorState::executing) {
      begin(row.start_ns, track, "task", history_.tasks[row.task].name, about_task(row.task));
      write_spans_inside(row, track, spans[{row.rank, row.actor}]);
      count("executions", row.end_ns - row.start_ns);
    } else {
      begin(row.start_ns, track, "state", name_of(row.state));
      count("other states", row.end_ns - row.start_ns);
    }
    end(row.end_ns, track);
  }
  for (const ValueRow& row : history_.marks) {
    begin(row.time_ns, actors_[{row.rank, row.actor}], "user", row.name, Annotations().add("value", row.value).bytes(),
          0, 0, event::instant);
    count("marks");
  }
  for (const DeclaredEvents& type : history_.declared)
    for (std::size_t i = 0; i < type.rows.size(); ++i) {
      const DeclaredEvents::Row& row = type.rows[i];
      begin(row.time_ns, actors_[{row.rank, row.actor}], "user", std::string_view(type.name), about_declared(type, i),
            0, 0, event::instant);
      count("events of the program's own types");
    }
}

/// Writes a kernel's own spans below its task. Spans that are incomplete, or interrupted by another task, are left for
/// `write_programs`.
void PerfettoWriter::write_spans_inside(const StateRow& task, std::uint64_t track, std::deque<std::uint32_t>& spans) {
  std::vector<std::int64_t> open{task.end_ns};
  for (; !spans.empty() && history_.spans[spans.front()].start_ns < task.end_ns; spans.pop_front()) {
    const SpanRow& span = history_.spans[spans.front()];
    while (open.size() > 1 && open.back() <= span.start_ns) {
      end(open.back(), track);
      open.pop_back();
    }
    if (span.task != task.task || span.start_ns < task.start_ns || span.end_ns == no_time || span.end_ns > open.back())
      continue;
    begin(span.start_ns, track, "user", span.name);
    open.push_back(span.end_ns);
    written_spans_.insert(spans.front());
    count("spans and waits", span.end_ns - span.start_ns);
  }
  for (; open.size() > 1; open.pop_back()) end(open.back(), track);
}

/// Writes the program's own spans, and its waits.
void PerfettoWriter::write_programs() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Slice>> slices;
  const auto waits_begin = static_cast<std::uint32_t>(history_.spans.size());
  const auto add = [&](const auto& row, std::uint32_t number) {
    if (row.start_ns == no_time) return;
    slices[{row.rank, row.actor}].push_back(
        {row.start_ns, row.end_ns == no_time ? history_.duration_ns : row.end_ns, number});
  };
  for (std::uint32_t i = 0; i < history_.spans.size(); ++i)
    if (!written_spans_.contains(i)) add(history_.spans[i], i);
  for (std::uint32_t i = 0; i < history_.waits.size(); ++i) add(history_.waits[i], waits_begin + i);
  for (auto& [place, of_actor] : slices) {
    const ActorFacts* facts = history_.find_actor(place.first, place.second);
    write_slices(std::move(of_actor), rank_track(place.first),
                 fmt::format("program ({})", facts != nullptr ? facts->name : "?"), 0, true, "spans and waits",
                 [&](const Slice& slice, std::uint64_t track) {
                   if (slice.row < waits_begin)
                     begin(slice.start_ns, track, "user", history_.spans[slice.row].name);
                   else
                     begin(slice.start_ns, track, "flow", name_of(history_.waits[slice.row - waits_begin].kind));
                 });
  }
}

void PerfettoWriter::write_messages() {
  std::map<std::uint32_t, std::vector<Slice>> sends, receives;
  for (std::uint32_t i = 0; i < history_.communications.size(); ++i) {
    const CommunicationRow& row = history_.communications[i];
    if (row.has_send()) {
      const std::int64_t left_ns = std::max({row.posted_ns, row.sent_ns, row.send_released_ns});
      sends[row.source].push_back({row.posted_ns, left_ns, i});
    }
    // The receiver shows a message while it is on its way, not while it is awaited: waits may be long, and for many
    // messages at once.
    if (row.arrived_ns != no_time)
      receives[row.destination].push_back(
          {row.has_send() ? std::min(row.posted_ns, row.arrived_ns) : row.arrived_ns, row.arrived_ns, i});
  }
  const auto about = [&](const CommunicationRow& row) {
    Annotations all;
    all.add("bytes", row.bytes)
        .add("channel", std::uint64_t{row.channel})
        .add("tag", row.tag)
        .add("priority", std::int64_t{row.priority});
    if (row.receive_posted_ns != no_time) all.add("receive posted ns", row.receive_posted_ns);
    if (row.broadcast != no_number) all.add("broadcast", std::uint64_t{row.broadcast});
    if (row.send_data != no_number)
      if (const DataRow* data = history_.find_data(row.source, row.send_data))
        all.add("data", std::string_view(history_.texts[data->name]));
    return all.bytes();
  };
  const auto rank_name = [](std::uint32_t rank) { return rank == no_number ? std::string("?") : std::to_string(rank); };
  for (auto& [rank, slices] : sends)
    write_slices(std::move(slices), rank_track(rank), "sends", 5000, false, "sends",
                 [&](const Slice& slice, std::uint64_t track) {
                   const CommunicationRow& row = history_.communications[slice.row];
                   begin(slice.start_ns, track, "comm", std::string_view("to " + rank_name(row.destination)),
                         about(row), row.is_whole() ? event::flows : 0, slice.row + 1);
                   if (row.is_whole()) count("flows");
                 });
  for (auto& [rank, slices] : receives)
    write_slices(std::move(slices), rank_track(rank), "messages that come", 6000, false, "receives",
                 [&](const Slice& slice, std::uint64_t track) {
                   const CommunicationRow& row = history_.communications[slice.row];
                   begin(slice.start_ns, track, "comm", std::string_view("from " + rank_name(row.source)), about(row),
                         row.is_whole() ? event::last_flows : 0, slice.row + 1);
                 });
}

void PerfettoWriter::write_transfers() {
  std::map<std::tuple<std::uint32_t, std::uint16_t, std::uint16_t>, std::vector<Slice>> slices;
  for (std::uint32_t i = 0; i < history_.transfers.size(); ++i) {
    const TransferRow& row = history_.transfers[i];
    if (row.start_ns != no_time && row.end_ns != no_time)
      slices[{row.rank, row.from, row.to}].push_back({row.start_ns, row.end_ns, i});
  }
  for (auto& [way, of_way] : slices) {
    const auto& [rank, from, to] = way;
    write_slices(std::move(of_way), rank_track(rank),
                 fmt::format("{} to {}", history_.memory_name(rank, from), history_.memory_name(rank, to)), 7000, false,
                 "transfers", [&](const Slice& slice, std::uint64_t track) {
                   const TransferRow& row = history_.transfers[slice.row];
                   const DataRow* data = history_.find_data(row.rank, row.data);
                   begin(slice.start_ns, track, "data",
                         std::string_view(data != nullptr ? history_.texts[data->name] : "copy"),
                         Annotations().add("bytes", row.bytes).bytes());
                 });
  }
}

void PerfettoWriter::write_counters() {
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> tracks;
  const auto put_value = [&](std::uint32_t rank, const std::string& name, const char* unit, std::int64_t time_ns,
                             double value, bool whole) {
    auto [at, added] = tracks.try_emplace({rank, name}, 0);
    if (added) at->second = add_track(rank_track(rank), name, 100, unit);
    ProtobufMessage happening;
    happening.integer(event::type, event::counter).integer(event::track, at->second);
    if (whole)
      happening.integer(event::counter_value, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    else
      happening.real(event::real_value, value);
    put(stamped(time_ns).message(packet::track_event, happening));
    count("counter values");
  };
  std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> counts;
  for (const TaskCountChange& change : task_count_changes(history_)) {
    auto& [submitted, ready] = counts[change.rank];
    submitted += change.submitted;
    ready += change.ready;
    if (change.submitted != 0)
      put_value(change.rank, "submitted tasks", "tasks", change.time_ns, static_cast<double>(submitted), true);
    if (change.ready != 0)
      put_value(change.rank, "ready tasks", "tasks", change.time_ns, static_cast<double>(ready), true);
  }
  for (const MemoryRow& row : history_.memory)
    put_value(row.rank, history_.memory_name(row.rank, row.node) + " in use", "bytes", row.time_ns,
              static_cast<double>(row.used_bytes), true);
  for (const ValueRow& row : history_.counters)
    put_value(row.rank, history_.texts[row.name], "", row.time_ns, row.value, false);
}

void PerfettoWriter::write_tracer() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Slice>> slices;
  for (std::uint32_t i = 0; i < history_.tracer.size(); ++i) {
    const TracerRow& row = history_.tracer[i];
    if (row.start_ns != no_time && row.end_ns != no_time)
      slices[{row.rank, row.actor}].push_back({row.start_ns, row.end_ns, i});
  }
  for (auto& [place, of_actor] : slices) {
    const ActorFacts* facts = history_.find_actor(place.first, place.second);
    write_slices(
        std::move(of_actor), rank_track(place.first), fmt::format("tracer ({})", facts != nullptr ? facts->name : "?"),
        9000, true, "tracer", [&](const Slice& slice, std::uint64_t track) {
          const TracerRow& row = history_.tracer[slice.row];
          begin(slice.start_ns, track, "tracer", name_of(row.kind), Annotations().add("amount", row.amount).bytes());
        });
  }
}

}  // namespace

base::Result<Exported> export_perfetto(const History& history, const std::filesystem::path& out) {
  if (out.has_parent_path())
    if (auto made = make_folder(out.parent_path()); !made) return made.error();
  auto file = OutFile::create(out);
  if (!file) return file.error();
  Exported exported;
  PerfettoWriter(history, file.value(), exported).write();
  const std::string name = out.filename().string();
  for (ExportedTable& table : exported.tables) table.file = name;
  exported.files.push_back({.file = name, .bytes = file.value().bytes()});
  if (auto closed = file.value().close(); !closed) return closed.error();
  return exported;
}

}  // namespace tandem::tools
