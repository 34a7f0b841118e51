// tandem/comm/bootstrap/job_roll.cpp: counts that change with each event.
#include "tandem/comm/bootstrap/job_roll.hpp"

#include <utility>

namespace tandem::comm::internal {
namespace {

/// Moves one of those counted under `from` to `from` + 1.
void move_up(std::map<std::uint32_t, std::uint32_t>& counts, std::uint32_t from) {
  if (const auto found = counts.find(from); --found->second == 0) counts.erase(found);
  ++counts[from + 1];
}

}  // namespace

JobRoll::Generation& JobRoll::at(std::uint32_t number) {
  const auto [found, is_new] = generations_.try_emplace(number);
  if (is_new) found->second.ended_unpublished = static_cast<std::uint32_t>(ended_.size());
  return found->second;
}

std::uint32_t JobRoll::join(std::uint32_t rank) {
  const std::uint32_t generation = joined_.at(rank)++;
  move_up(ranks_by_joins_, generation);
  if (ended_.contains(rank)) move_up(ended_by_joins_, generation);  // a process that it left behind
  ++at(generation).members;
  return generation;
}

void JobRoll::leave(std::uint32_t rank, std::uint32_t generation) {
  const auto found = generations_.find(generation);
  if (found == generations_.end()) return;
  --found->second.members;
  if (found->second.published.contains(rank)) --found->second.published_members;
}

void JobRoll::publish(std::uint32_t rank, std::uint32_t generation) {
  Generation& in = at(generation);
  if (!in.published.insert(rank).second) return;
  ++in.published_members;
  if (ended_.contains(rank)) --in.ended_unpublished;
}

void JobRoll::end(std::uint32_t rank, std::string reason) {
  if (!ended_.emplace(rank, std::move(reason)).second) return;
  ++ended_by_joins_[joined_.at(rank)];
  for (auto& [number, generation] : generations_)
    if (!generation.published.contains(rank)) ++generation.ended_unpublished;
}

const std::string* JobRoll::reason_of_end(std::uint32_t rank) const {
  const auto found = ended_.find(rank);
  return found != ended_.end() ? &found->second : nullptr;
}

bool JobRoll::is_missing(std::uint32_t rank, std::uint32_t number, const Generation& generation) const {
  ++steps_;
  if (generation.members == 0) return false;
  return joined_[rank] <= number || (generation.published_members > 0 && !generation.published.contains(rank));
}

std::optional<std::uint32_t> JobRoll::never_came() const {
  if (ended_.empty()) return std::nullopt;
  for (const auto& [number, generation] : generations_) {
    ++steps_;
    if (generation.members == 0) continue;
    const bool some_did_not_join = ended_by_joins_.begin()->first <= number;
    const bool some_did_not_publish = generation.published_members > 0 && generation.ended_unpublished > 0;
    if (!some_did_not_join && !some_did_not_publish) continue;
    for (const auto& [rank, reason] : ended_)  // this loop runs once in a job, which ends then
      if (is_missing(rank, number, generation)) return rank;
  }
  return std::nullopt;
}

std::uint32_t JobRoll::oldest_generation() const {
  const std::uint32_t fewest = ranks_by_joins_.begin()->first;
  return fewest == 0 ? 0 : fewest - 1;
}

void JobRoll::forget_before(std::uint32_t generation) {
  generations_.erase(generations_.begin(), generations_.lower_bound(generation));
}

}  // namespace tandem::comm::internal
