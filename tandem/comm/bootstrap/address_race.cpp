// tandem/comm/bootstrap/address_race.cpp: a state and a time for each address.
#include "tandem/comm/bootstrap/address_race.hpp"

#include <algorithm>

namespace tandem::comm::internal {

void AddressRace::grow(std::size_t count) {
  if (count > entries_.size()) entries_.resize(count);
}

std::size_t AddressRace::first_fresh() const {
  const auto is_fresh = [](const Entry& entry) { return entry.state == State::fresh; };
  return static_cast<std::size_t>(std::find_if(entries_.begin(), entries_.end(), is_fresh) - entries_.begin());
}

std::optional<std::size_t> AddressRace::next(Time now) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].state != State::pausing || entries_[i].again > now) continue;
    entries_[i].state = State::under_way;
    return i;
  }
  const std::size_t fresh = first_fresh();
  if (fresh == entries_.size() || fresh_from_ > now) return std::nullopt;
  entries_[fresh].state = State::under_way;
  fresh_from_ = now + stagger;
  return fresh;
}

AddressRace::Time AddressRace::wake() const {
  Time earliest = first_fresh() == entries_.size() ? Time::max() : fresh_from_;
  for (const Entry& entry : entries_)
    if (entry.state == State::pausing) earliest = std::min(earliest, entry.again);
  return earliest;
}

void AddressRace::failed(std::size_t address, Failure failure, Time now) {
  Entry& entry = entries_.at(address);
  entry.state = State::pausing;
  entry.failure = failure;
  entry.again = now + entry.pause;
  entry.pause = std::min(2 * entry.pause, longest_pause);
  fresh_from_ = std::min(fresh_from_, now);
}

bool AddressRace::is_hopeless() const {
  return !entries_.empty() && std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.state == State::pausing && entry.failure == Failure::lasts;
  });
}

}  // namespace tandem::comm::internal
