// tandem/analysis/tables/state_table.hpp: what each actor did, stretch by stretch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/analysis/tables/spill_vector.hpp"
#include "tandem/analysis/tables/unknown.hpp"

namespace tandem::analysis {

/// What an actor does. The first states are those of `trace::WorkerState`, in their order.
enum class ActorState : std::uint8_t {
  absent, scheduling, polling, sleeping, fetching, progressing, holding,
  executing,
  engine_working, engine_polling, engine_sleeping,
  other,  ///< a number that this version does not know
};
inline constexpr std::size_t actor_states = 12;
std::string_view name_of(ActorState state) noexcept;

/// A stretch of time of one actor. Those of an actor do not overlap: a task that runs within another one interrupts it.
struct StateRow {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t rank = 0, actor = 0;
  std::uint32_t task = no_number;  ///< row; only with `executing`
  std::uint16_t worker = no_worker;
  ActorState state = ActorState::other;
  std::uint8_t depth = 0;  ///< tasks around this one
};

/// The states of all actors, by rank, actor and time. They are added in the order of each actor's time, and stored in
/// chunks of one actor each, so that nothing is sorted later. One thread at a time, also for reading.
class StateTable {
 public:
  explicit StateTable(const std::shared_ptr<SpillMemory>& memory)
      : memory_(memory), start_ns_(memory, SpillUse::table), end_ns_(memory, SpillUse::table), task_(memory, SpillUse::table),
        kind_(memory, SpillUse::table) {}

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  struct Actor;
  /// The list of an actor; its address does not change.
  Actor& actor(std::uint32_t rank, std::uint32_t actor, std::uint16_t worker);
  void add(Actor& actor, const StateRow& row);
  /// Numbers the rows, after the last `add`.
  void finish();
  /// Replaces each time by `time(rank, ns)`, which keeps their order.
  template <class Time>
  void correct(Time time);
  /// Sorts by start and end the states of actors that are out of order, as in damaged traces.
  void sort();

  /// The row. O(log actors), and O(1) for the actor of the row before.
  StateRow operator[](std::size_t row) const noexcept;
  StateRow at(std::size_t row) const {
    if (row >= size_) throw std::out_of_range("StateTable::at");
    return (*this)[row];
  }

  class Iterator;
  Iterator begin() const noexcept;
  Iterator end() const noexcept;
  /// The states of a rank: their beginning and end.
  std::pair<Iterator, Iterator> of_rank(std::uint32_t rank) const noexcept;

 private:
  static constexpr unsigned chunk_bits = 8;
  static constexpr std::size_t chunk_rows = std::size_t{1} << chunk_bits;

  std::size_t slot(const Actor& actor, std::size_t index) const noexcept;
  StateRow row_at(const Actor& actor, std::size_t index) const noexcept;
  void put(std::size_t slot, const StateRow& row) noexcept;

  std::shared_ptr<SpillMemory> memory_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Actor> actors_;  ///< by rank and number
  std::vector<const Actor*> in_order_;                               ///< those that have states; after `finish`
  mutable const Actor* last_ = nullptr;                              ///< actor of the last query
  std::size_t size_ = 0;
  SpillVector<std::int64_t> start_ns_, end_ns_;
  SpillVector<std::uint32_t> task_;
  SpillVector<std::uint16_t> kind_;  ///< the state, and 256 times the depth
};

struct StateTable::Actor {
  std::uint32_t rank = 0, number = 0;
  std::uint16_t worker = no_worker;
  std::size_t begin = 0;  ///< the number of its first row; after `finish`
  std::size_t count = 0;
  std::vector<std::uint32_t> chunks;
};

inline std::size_t StateTable::slot(const Actor& actor, std::size_t index) const noexcept {
  return (static_cast<std::size_t>(actor.chunks[index >> chunk_bits]) << chunk_bits) + (index & (chunk_rows - 1));
}

inline StateRow StateTable::row_at(const Actor& actor, std::size_t index) const noexcept {
  const std::size_t at = slot(actor, index);
  return {.start_ns = start_ns_[at], .end_ns = end_ns_[at], .rank = actor.rank, .actor = actor.number, .task = task_[at], .worker = actor.worker,
          .state = static_cast<ActorState>(kind_[at] & 0xFF), .depth = static_cast<std::uint8_t>(kind_[at] >> 8)};
}

template <class Time>
void StateTable::correct(Time time) {
  for (auto& [place, actor] : actors_) {
    for (std::size_t i = 0; i < actor.count; ++i) {
      memory_->touch();
      const std::size_t at = slot(actor, i);
      start_ns_[at] = time(actor.rank, start_ns_[at]);
      end_ns_[at] = time(actor.rank, end_ns_[at]);
    }
  }
}

class StateTable::Iterator {
 public:
  using value_type = StateRow;
  using reference = StateRow;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::forward_iterator_tag;

  Iterator() = default;
  StateRow operator*() const noexcept { return table_->row_at(*table_->in_order_[actor_], index_); }
  Iterator& operator++() noexcept {
    table_->memory_->touch();
    if (++index_ == table_->in_order_[actor_]->count) {
      ++actor_;
      index_ = 0;
    }
    return *this;
  }
  Iterator operator++(int) noexcept {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) noexcept {
    return a.actor_ == b.actor_ && a.index_ == b.index_;
  }

 private:
  friend class StateTable;
  Iterator(const StateTable& table, std::size_t actor) noexcept : table_(&table), actor_(actor) {}

  const StateTable* table_ = nullptr;
  std::size_t actor_ = 0;  ///< in in_order_
  std::size_t index_ = 0;  ///< among its states
};

inline StateTable::Iterator StateTable::begin() const noexcept { return {*this, 0}; }
inline StateTable::Iterator StateTable::end() const noexcept { return {*this, in_order_.size()}; }

}  // namespace tandem::analysis
