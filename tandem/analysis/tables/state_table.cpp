// tandem/analysis/tables/state_table.cpp: what each actor did, stretch by stretch.
#include "tandem/analysis/tables/state_table.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace tandem::analysis {

std::string_view name_of(ActorState state) noexcept {
  constexpr std::array<std::string_view, actor_states> names{
      "absent",    "scheduling",     "polling",        "sleeping",        "fetching", "progressing", "holding",
      "executing", "engine_working", "engine_polling", "engine_sleeping", "other"};
  return names[static_cast<std::size_t>(state)];
}

StateTable::Actor& StateTable::actor(std::uint32_t rank, std::uint32_t actor, std::uint16_t worker) {
  const auto [at, added] = actors_.try_emplace({rank, actor});
  if (added) {
    at->second.rank = rank;
    at->second.number = actor;
    at->second.worker = worker;
  }
  return at->second;
}

void StateTable::add(Actor& actor, const StateRow& row) {
  if ((actor.count & (chunk_rows - 1)) == 0) {
    const std::size_t rows = start_ns_.size() + chunk_rows;
    actor.chunks.push_back(static_cast<std::uint32_t>(start_ns_.size() >> chunk_bits));
    start_ns_.resize(rows);
    end_ns_.resize(rows);
    task_.resize(rows);
    kind_.resize(rows);
  }
  put(slot(actor, actor.count++), row);
  ++size_;
}

void StateTable::put(std::size_t slot, const StateRow& row) noexcept {
  start_ns_[slot] = row.start_ns;
  end_ns_[slot] = row.end_ns;
  task_[slot] = row.task;
  kind_[slot] = static_cast<std::uint16_t>(static_cast<unsigned>(row.state) | static_cast<unsigned>(row.depth) << 8);
}

void StateTable::finish() {
  in_order_.clear();
  last_ = nullptr;
  std::size_t begin = 0;
  for (auto& [place, actor] : actors_) {
    actor.begin = begin;
    begin += actor.count;
    if (actor.count > 0) in_order_.push_back(&actor);
  }
}

void StateTable::sort() {
  const auto time = [](const StateRow& row) { return std::pair(row.start_ns, row.end_ns); };
  for (auto& [place, actor] : actors_) {
    bool in_order = true;
    for (std::size_t i = 1; i < actor.count && in_order; ++i) {
      memory_->touch();
      in_order = time(row_at(actor, i - 1)) <= time(row_at(actor, i));
    }
    if (in_order) continue;
    SpillVector<StateRow> rows(memory_);
    for (std::size_t i = 0; i < actor.count; ++i) rows.push_back(row_at(actor, i));
    std::ranges::sort(rows, {}, time);
    for (std::size_t i = 0; i < actor.count; ++i) put(slot(actor, i), rows[i]);
  }
}

StateRow StateTable::operator[](std::size_t row) const noexcept {
  if (last_ == nullptr || row < last_->begin || row - last_->begin >= last_->count)
    last_ = *std::prev(std::ranges::upper_bound(in_order_, row, {}, &Actor::begin));
  return row_at(*last_, row - last_->begin);
}

std::pair<StateTable::Iterator, StateTable::Iterator> StateTable::of_rank(std::uint32_t rank) const noexcept {
  const auto range = std::ranges::equal_range(in_order_, rank, {}, &Actor::rank);
  const auto at = [&](const auto& place) {
    return Iterator(*this, static_cast<std::size_t>(place - in_order_.begin()));
  };
  return {at(range.begin()), at(range.end())};
}

}  // namespace tandem::analysis
