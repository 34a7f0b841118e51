// tandem/analysis/history/history.cpp: reads the events of a run, and makes tables of tasks, states, data and marks of
// them.
#include "tandem/analysis/history/history.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tandem/analysis/history/history_builder.hpp"

namespace tandem::analysis {

using trace::Event;
using trace::RankTrace;
using trace::Type;

std::string_view name_of_mode(std::uint8_t mode) noexcept {
  constexpr std::array<std::string_view, 6> names{"read", "write", "read_write", "commute", "reduce", "scratch"};
  return mode < names.size() ? names[mode] : "unknown";
}

std::string_view ActorFacts::kind_of_worker() const noexcept {
  const std::size_t end = name.find(" worker");
  return end == std::string::npos ? "cpu" : std::string_view(name).substr(0, end);
}

std::string_view name_of(WaitKind kind) noexcept { return kind == WaitKind::waiting ? "waiting" : "throttled"; }

std::string_view name_of(TracerKind kind) noexcept {
  constexpr std::array<std::string_view, 4> names{"flush", "waited", "lost", "quiet"};
  return names[static_cast<std::size_t>(kind)];
}

std::uint32_t* TaskIndex::find_or_add(std::int64_t id) {
  const std::int64_t number = id >> page_bits;
  if (number != last_number_ || last_ == nullptr) {
    auto& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_number_ = number;
    last_ = page.get();
  }
  return &last_->rows[id & ((std::int64_t{1} << page_bits) - 1)];
}

std::uint32_t TaskIndex::find(std::int64_t id) const {
  const auto page = pages_.find(id >> page_bits);
  return page == pages_.end() ? no_number : page->second->rows[id & ((std::int64_t{1} << page_bits) - 1)];
}

std::optional<std::uint32_t> History::find_task(std::uint32_t rank, std::uint64_t id) const {
  const auto index = task_index_.find(rank);
  if (index == task_index_.end()) return std::nullopt;
  const std::uint32_t row = index->second.find(static_cast<std::int64_t>(id) + index->second.epoch);
  return row == no_number ? std::nullopt : std::optional(row);
}

namespace {

template <class Rows, class Key, class KeyOf>
auto find_sorted(const Rows& rows, const Key& key, KeyOf key_of) -> decltype(rows.data()) {
  const auto found = std::ranges::lower_bound(rows, key, {}, key_of);
  return found != rows.end() && key_of(*found) == key ? &*found : nullptr;
}

}  // namespace

std::string History::memory_name(std::uint32_t rank, std::uint32_t node) const {
  const auto found = memories.find({rank, node});
  return found != memories.end() ? found->second : fmt::format("memory {}", node);
}

const DataRow* History::find_data(std::uint32_t rank, std::uint32_t number) const {
  return find_sorted(data, std::pair(rank, number), [](const DataRow& row) { return std::pair(row.rank, row.data); });
}

const ActorFacts* History::find_actor(std::uint32_t rank, std::uint32_t actor) const {
  return find_sorted(actors, std::pair(rank, actor),
                     [](const ActorFacts& facts) { return std::pair(facts.rank, facts.actor); });
}

void HistoryBuilder::open_rank(const RankTrace& trace) {
  Rank& rank = ranks_[trace.rank];
  rank.trace = &trace;
  rank.rank = trace.rank;
  rank.index = &history_.task_index_[trace.rank];
  for (const trace::Site& site : trace.sites) {
    const Texts::Id codelet = history_.texts.add(site.codelet), file = history_.texts.add(site.file);
    rank.places.push_back(history_.tasks.add_place({.codelet = codelet, .file = file, .line = site.line}));
  }
  rank.flops.resize(trace.sites.size());
  for (const auto& [codelet, rgb] : trace.colours) history_.colours.try_emplace(history_.texts.add(codelet), rgb);
  std::uint64_t records = 0, cut = 0;
  bool was_overwritten = false;
  for (const auto& stream : trace.streams) {
    const trace::StreamSummary& summary = stream->summary();
    history_.cut_files += summary.truncated;
    cut += summary.cut_events;
    records += summary.records;
    was_overwritten = was_overwritten || summary.missing_packets > 0;
    if (summary.kind == trace::ActorKind::catalogue) continue;
    history_.actors.push_back({.rank = trace.rank, .actor = summary.actor, .kind = summary.kind, .index = summary.index,
                               .core = summary.core, .name = summary.name, .bytes = summary.bytes, .lost_events = summary.lost_events,
                               .has_first = summary.missing_packets == 0});
  }
  // A file that is missing, or ends behind a packet, shows only in the program's own count.
  if (!was_overwritten && trace.written_events > records) cut = std::max(cut, trace.written_events - records);
  history_.cut_events += cut;
  history_.lost_events += trace.lost_events;
  describe_data(trace);
}

void HistoryBuilder::describe_data(const RankTrace& trace) {
  for (std::size_t i = 0; i < trace.data.size(); ++i) {
    const trace::DataDescription& datum = trace.data[i];
    if (datum.name.empty() && datum.owner == no_number && datum.bytes == 0) continue;  // it was never described
    DataRow& row = history_.data.emplace_back(DataRow{.rank = trace.rank,
                                                      .data = static_cast<std::uint32_t>(i),
                                                      .owner = datum.owner,
                                                      .bytes = datum.bytes,
                                                      .rows = datum.rows,
                                                      .cols = datum.cols,
                                                      .name = history_.texts.add(datum.name)});
    if (datum.site >= trace.sites.size()) continue;
    row.file = history_.texts.add(trace.sites[datum.site].file);
    row.line = trace.sites[datum.site].line;
  }
}

/// Reads the own names of tasks. The catalogue has no stamps, but names tasks as they are submitted.
void HistoryBuilder::name_tasks(RankTrace& trace, const Rank& rank) {
  trace::StreamReader* catalogue = trace.stream_of(0);
  if (catalogue == nullptr) return;
  // The beginning of the ids, so that the first name is taken to be of a task near the first one.
  Unwrapper ids;
  for (const std::uint32_t row : history_.tasks.rows()) {
    if (history_.tasks.rank[row] != rank.rank) continue;
    ids.go_on_from(history_.tasks.id[row] - Unwrapper::first_epoch);
    break;
  }
  catalogue->rewind();
  for (auto event = catalogue->next(); event && event.value(); event = catalogue->next()) {
    if (event.value()->type != Type::task_name) continue;
    memory_.touch();
    std::int64_t id = ids.near(u32(*event.value(), 0));
    while (rank.index->find(id) == no_number && id < rank.ids.last()) id += Unwrapper::first_epoch;
    const std::uint32_t row = rank.index->find(id);
    if (row == no_number) continue;
    ids.go_on_from(static_cast<std::uint64_t>(id - Unwrapper::first_epoch));
    history_.tasks.set_name(row, history_.texts.add(event.value()->text(1)));
  }
  catalogue->rewind();
}

void HistoryBuilder::finish(trace::TraceReader& run) {
  for (const auto& trace : run.ranks) {
    Rank& rank = ranks_.at(trace->rank);
    for (const auto& [row, open] : rank.stagings) history_.stagings[open].end_ns = rank.last_ns;
    for (auto& [number, actor] : rank.actors) close_state(rank.rank, actor, rank.last_ns);
    name_tasks(*trace, rank);
    history_.clocks.push_back({.rank = rank.rank,
                               .host = trace->host,
                               .pus = trace->pus,
                               .points = trace->clock_points.size(),
                               .first_ns = rank.first_ns,
                               .last_ns = rank.last_ns});
    for (ActorFacts& facts : history_.actors) {
      if (facts.rank != rank.rank) continue;
      const auto actor = rank.actors.find(facts.actor);
      if (actor != rank.actors.end()) facts.events = actor->second.events;
    }
    // The least id is known now: for most traces, ids are their low 32 bits.
    rank.index->epoch = rank.ids.epoch();
  }
  history_.states.finish();
  std::unordered_map<std::uint32_t, std::int64_t> epochs;
  for (const auto& [rank, index] : history_.task_index_) epochs[rank] = index.epoch;
  messages_.finish(epochs);
  TaskTable& tasks = history_.tasks;
  for (const std::uint32_t row : tasks.rows()) {
    const Rank& rank = rank_of(tasks.rank[row]);
    tasks.id.set(row, tasks.id[row] - static_cast<std::uint64_t>(rank.index->epoch));
    // A task that waited for nothing at its submission has no event that it is ready.
    if (rank.tells_ready && tasks.ready_ns[row] == no_time && tasks.start_ns[row] != no_time &&
        tasks.submit_ns[row] != no_time)
      tasks.ready(row, tasks.submit_ns[row]);
  }
}

namespace {

/// Reads `text`, "1 the memory of a device"; anything else names nothing.
void name_memory(History& history, std::uint32_t rank, std::string_view text) {
  std::uint32_t node = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  const auto name = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error == std::errc() && name.starts_with(' ') && name.size() > 1) history.memories[{rank, node}] = name.substr(1);
}

}  // namespace

base::Result<std::unique_ptr<History>> History::read(trace::TraceReader& run, const HistoryOptions& options) {
  auto history = std::make_unique<History>(options.memory);
  if (!run.ranks.empty()) {
    history->program = run.ranks.front()->program;
    history->arguments = run.ranks.front()->arguments;
    history->job = run.ranks.front()->job;
    history->size = run.ranks.front()->size;
  }
  for (const auto& rank : run.ranks)
    for (const auto& [kind, text] : rank->names)
      if (kind == trace::NameKind::node) name_memory(*history, rank->rank, text);
  HistoryBuilder builder(*history, run, options.content);
  const auto read = run.in_order([](const Event& event) { return event.local_ns; }, [&](const Event& event,
                                                                                        std::int64_t) {
    builder.add(event);
    return true;
  });
  if (!read) return read.error();
  builder.finish(run);
  correct_history(*history, run, options);
  return history;
}

}  // namespace tandem::analysis
