// tandem/analysis/history/history_program.cpp: memory, waits, the tracer, and the program's own records.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "tandem/analysis/history/history_builder.hpp"
#include "tandem/base/pu_list.hpp"

namespace tandem::analysis {

using trace::Event;
using trace::Type;

void HistoryBuilder::add_memory(const Event& event, Rank& rank) {
  const std::uint32_t data = u32(event, 0);
  switch (event.type) {
    case Type::data_allocated:
    case Type::data_freed: {
      const auto bytes = static_cast<std::int64_t>(event.number(2));
      const std::int64_t change = event.type == Type::data_allocated ? bytes : -bytes;
      std::int64_t& used = rank.used_bytes[u16(event, 1)];
      used += change;
      history_.memory.push_back({.rank = rank.rank,
                                 .data = data,
                                 .node = u16(event, 1),
                                 .time_ns = event.local_ns,
                                 .bytes = change,
                                 .used_bytes = used});
      break;
    }
    case Type::data_numa:
      if (const DataRow* const row = history_.find_data(rank.rank, data))
        history_.data[static_cast<std::size_t>(row - history_.data.data())].numa_node = u16(event, 1);
      break;
    case Type::transfer_started:
      rank.transfers[{data, u16(event, 1), u16(event, 2)}].push_back(history_.transfers.size());
      history_.transfers.push_back({.rank = rank.rank, .data = data, .from = u16(event, 1), .to = u16(event, 2),
                                    .bytes = event.number(3), .start_ns = event.local_ns});
      break;
    case Type::transfer_ended: {
      auto& open = rank.transfers[{data, u16(event, 1), u16(event, 2)}];
      if (open.empty()) {
        history_.transfers.push_back(
            {.rank = rank.rank, .data = data, .from = u16(event, 1), .to = u16(event, 2), .end_ns = event.local_ns});
        break;
      }
      history_.transfers[open.front()].end_ns = event.local_ns;
      open.pop_front();
      break;
    }
    case Type::data_staging: return stage(event, rank);
    case Type::data_page_locked: return add_page_locked(event);
    default: break;
  }
}

/// Takes maxima, since events of several threads may not be in the order of their values.
void HistoryBuilder::add_page_locked(const Event& event) {
  std::vector<PageLockedRow>& rows = history_.page_locked;
  auto row = std::ranges::lower_bound(rows, event.rank, {}, &PageLockedRow::rank);
  if (row == rows.end() || row->rank != event.rank) row = rows.insert(row, {.rank = event.rank});
  std::uint64_t* const most[] = {&row->most_used,   &row->most_locked, &row->bound,        &row->allocations,
                                 &row->from_driver, &row->refused,     &row->refused_bytes};
  for (std::size_t i = 0; i < std::size(most); ++i) *most[i] = std::max(*most[i], event.number(i + 1));
}

void HistoryBuilder::add_wait(const Event& event, Actor& actor) {
  const auto begin = [&](WaitKind kind) {
    actor.waits.push_back({history_.waits.size(), static_cast<std::uint64_t>(kind)});
    history_.waits.push_back({.rank = event.rank, .actor = event.actor, .kind = kind, .start_ns = event.local_ns});
  };
  const auto finish = [&](WaitKind kind) {
    const auto open = std::find_if(actor.waits.rbegin(), actor.waits.rend(),
                                   [&](const Interval& wait) { return wait.key == static_cast<std::uint64_t>(kind); });
    if (open == actor.waits.rend()) {
      history_.waits.push_back({.rank = event.rank, .actor = event.actor, .kind = kind, .end_ns = event.local_ns});
      return;
    }
    history_.waits[open->row].end_ns = event.local_ns;
    actor.waits.erase(std::next(open).base());
  };
  switch (event.type) {
    case Type::wait_began: return begin(WaitKind::waiting);
    case Type::wait_ended: return finish(WaitKind::waiting);
    case Type::submission_throttled: return begin(WaitKind::throttled);
    case Type::submission_resumed: return finish(WaitKind::throttled);
    default: return;
  }
}

void HistoryBuilder::add_tracer(const Event& event, Rank& rank, Actor& actor) {
  TracerRow row{.rank = event.rank, .actor = event.actor, .start_ns = event.local_ns};
  const auto finish = [&](std::vector<Interval>& open, std::uint64_t key) {
    const auto found = std::ranges::find(open, key, &Interval::key);
    if (found == open.end()) return;
    history_.tracer[found->row].end_ns = event.local_ns;
    open.erase(found);
  };
  switch (event.type) {
    case Type::flush_began:
      row.of_actor = u32(event, 0);
      row.amount = event.number(1);
      actor.flushes.push_back({history_.tracer.size(), event.number(0)});
      break;
    case Type::flush_ended: return finish(actor.flushes, event.number(0));
    case Type::quiet_began:
      row.kind = TracerKind::quiet;
      actor.quiets.push_back({history_.tracer.size(), 0});
      break;
    case Type::quiet_ended: return finish(actor.quiets, 0);
    case Type::tracer_waited:
      row.kind = TracerKind::waited;
      row.amount = event.number(0);  // until the event that needed a buffer
      row.end_ns =
          event.local_ns + static_cast<std::int64_t>(std::min<std::uint64_t>(row.amount, std::uint64_t{1} << 60));
      break;
    case Type::events_lost:
      row.kind = TracerKind::lost;
      row.amount = event.number(0);
      row.end_ns = event.local_ns;
      if (actor.last_ns != no_time) row.start_ns = actor.last_ns;
      // It is unknown what the actor did in between; the next events show its present state.
      if (actor.last_ns != no_time) close_state(rank.rank, actor, actor.last_ns);
      actor.running.clear();
      actor.base.reset();
      if (const ActorFacts* facts = history_.find_actor(rank.rank, event.actor);
          facts != nullptr && facts->kind == trace::ActorKind::submitter) {
        rank.iteration = no_iteration;
        std::ranges::fill(rank.flops, 0);
      }
      break;
    default: return;
  }
  history_.tracer.push_back(row);
}

Texts::Id HistoryBuilder::name_of_number(const Rank& rank, std::uint32_t number) {
  if (number < rank.trace->names.size() && !rank.trace->names[number].second.empty())
    return history_.texts.add(rank.trace->names[number].second);
  return history_.texts.add(fmt::format("(name {})", number));
}

void HistoryBuilder::add_declared(const Event& event, std::uint32_t task) {
  DeclaredEvents& type = history_.declared[static_cast<std::size_t>(event.type) - trace::kFirstDeclared];
  type.rows.push_back({.rank = event.rank, .actor = event.actor, .task = task, .time_ns = event.local_ns});
  for (std::size_t i = 0; i < type.kinds.size(); ++i) {
    switch (type.kinds[i]) {
      case trace::Field::i16:
      case trace::Field::i32:
      case trace::Field::i64: type.values.push_back(static_cast<std::uint64_t>(event.integer(i))); break;
      case trace::Field::f64: type.values.push_back(std::bit_cast<std::uint64_t>(event.real(i))); break;
      case trace::Field::text: type.values.push_back(history_.texts.add(event.text(i))); break;
      default: type.values.push_back(event.number(i));
    }
  }
}

/// Reads a counter, whose name is "0-3,7 package-0": its workers, and its source. The mean power of an interval is a
/// value that holds from the interval's beginning on.
void HistoryBuilder::add_energy(const Event& event, Rank& rank) {
  const std::uint32_t number = u32(event, 0);
  const auto [known, is_new] =
      rank.energy_counters.try_emplace(number, static_cast<std::uint32_t>(history_.energy_counters.size()));
  if (is_new) {
    const std::string text(history_.texts[name_of_number(rank, number)]);
    const std::size_t blank = text.find(' ');
    EnergyCounter counter{.rank = rank.rank, .name = blank != text.npos ? text.substr(blank + 1) : text};
    if (auto workers = base::parse_pu_list(text.substr(0, blank)); workers.ok())
      counter.workers = std::move(workers).value();
    history_.energy_counters.push_back(std::move(counter));
  }
  const double joules = event.real(1);
  const auto ns = static_cast<std::int64_t>(std::min<std::uint64_t>(event.number(2), INT64_MAX));
  if (ns == 0) return;
  const std::int64_t start_ns = std::max(rank.first_ns, event.local_ns - ns);
  history_.energy.push_back(
      {.rank = rank.rank, .counter = known->second, .joules = joules, .start_ns = start_ns, .end_ns = event.local_ns});
  const std::string name = "power of " + history_.energy_counters[known->second].name + ", W";
  history_.counters.push_back({.rank = event.rank, .actor = event.actor, .name = history_.texts.add(name), .task = no_number, .time_ns = start_ns,
                               .value = joules / static_cast<double>(ns) * 1e9});
}

void HistoryBuilder::add_user(const Event& event, const Rank& rank, Actor& actor) {
  const std::uint32_t task = actor.running.empty() ? no_number : actor.running.back();
  if (static_cast<std::size_t>(event.type) >= trace::kFirstDeclared) return add_declared(event, task);
  const std::uint32_t number = u32(event, 0);
  switch (event.type) {
    case Type::mark:
    case Type::counter: {
      auto& rows = event.type == Type::mark ? history_.marks : history_.counters;
      rows.push_back({.rank = event.rank, .actor = event.actor, .name = name_of_number(rank, number), .task = task,
                      .time_ns = event.local_ns, .value = event.real(1)});
      break;
    }
    case Type::span_began:
      actor.spans.push_back({history_.spans.size(), number});
      history_.spans.push_back({.rank = event.rank, .actor = event.actor, .name = name_of_number(rank, number), .task = task,
                                .start_ns = event.local_ns});
      break;
    case Type::span_ended: {
      const auto open =
          std::find_if(actor.spans.rbegin(), actor.spans.rend(),
                       [&](const Interval& span) { return span.key == number; });
      if (open == actor.spans.rend()) {
        history_.spans.push_back(
            {.rank = event.rank, .actor = event.actor, .name = name_of_number(rank, number), .end_ns = event.local_ns});
        break;
      }
      history_.spans[open->row].end_ns = event.local_ns;
      actor.spans.erase(std::next(open).base());
      break;
    }
    default: break;
  }
}

}  // namespace tandem::analysis
