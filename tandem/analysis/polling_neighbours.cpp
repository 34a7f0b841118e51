// tandem/analysis/polling_neighbours.cpp: when threads of a host polled, and how long tasks took meanwhile.
#include "tandem/analysis/polling_neighbours.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "tandem/analysis/quartiles.hpp"

namespace tandem::analysis {
namespace {

constexpr std::size_t least_quiet = 4;

bool polls(ActorState state) noexcept {
  return state == ActorState::polling || state == ActorState::progressing || state == ActorState::engine_polling;
}

/// The time in which at least one thread of a host polls.
class PollingTime {
 public:
  void add(std::int64_t start_ns, std::int64_t end_ns) { parts_.emplace_back(start_ns, end_ns); }

  /// After the last `add`.
  void merge() {
    std::ranges::sort(parts_);
    std::size_t last = 0;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      if (parts_[i].first <= parts_[last].second) parts_[last].second = std::max(parts_[last].second, parts_[i].second);
      else parts_[++last] = parts_[i];
    }
    if (!parts_.empty()) parts_.resize(last + 1);
    sums_.reserve(parts_.size());
    std::int64_t sum_ns = 0;
    for (const auto& [start_ns, end_ns] : parts_) {
      sums_.push_back(sum_ns);
      sum_ns += end_ns - start_ns;
    }
  }
  std::int64_t between(std::int64_t start_ns, std::int64_t end_ns) const { return until(end_ns) - until(start_ns); }

 private:
  std::int64_t until(std::int64_t ns) const {
    const auto after = std::ranges::upper_bound(parts_, ns, {}, &std::pair<std::int64_t, std::int64_t>::first);
    if (after == parts_.begin()) return 0;
    const auto part = std::prev(after);
    return sums_[static_cast<std::size_t>(part - parts_.begin())] + std::min(ns, part->second) - part->first;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> parts_;
  std::vector<std::int64_t> sums_;  ///< of the parts before
};

/// Of each rank, the place of its host among the hosts; a rank whose host is not known is alone.
std::map<std::uint32_t, std::size_t> hosts_of(const History& history) {
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> places;  // the number is that of a rank alone
  std::map<std::uint32_t, std::size_t> hosts;
  for (const RankClock& clock : history.clocks) {
    const std::uint32_t alone = clock.host.empty() ? clock.rank : 0;
    hosts[clock.rank] = places.try_emplace({clock.host, alone}, places.size()).first->second;
  }
  return hosts;
}

}  // namespace

PollingNeighbours polling_neighbours(const History& history) {
  const std::map<std::uint32_t, std::size_t> hosts = hosts_of(history);
  std::vector<PollingTime> polling(hosts.size());
  for (const StateRow& state : history.states)
    if (const auto host = hosts.find(state.rank); host != hosts.end() && polls(state.state) && state.end_ns > state.start_ns)
      polling[host->second].add(state.start_ns, state.end_ns);
  for (PollingTime& time : polling) time.merge();

  struct Group {
    std::vector<std::int64_t> quiet_ns;
    std::vector<std::uint32_t> beside;  ///< rows
  };
  std::map<std::tuple<std::uint32_t, std::uint16_t, Texts::Id>, Group> groups;
  for (std::uint32_t row = 0; row < history.tasks.size(); ++row) {
    const TaskRow& task = history.tasks[row];
    const auto host = hosts.find(task.rank);
    if (!task.has_run() || task.worker == no_worker || task.end_ns <= task.start_ns || host == hosts.end()) continue;
    const std::int64_t duration_ns = task.end_ns - task.start_ns;
    const std::int64_t beside_ns = polling[host->second].between(task.start_ns, task.end_ns);
    Group& group = groups[{task.rank, task.worker, task.codelet}];
    if (2 * beside_ns >= duration_ns) group.beside.push_back(row);
    else if (10 * beside_ns <= duration_ns) group.quiet_ns.push_back(duration_ns);
  }

  PollingNeighbours result;
  std::vector<double> multiples;
  for (auto& [place, group] : groups) {
    if (group.quiet_ns.size() < least_quiet) continue;
    const std::int64_t quiet_ns = smallest(group.quiet_ns, (group.quiet_ns.size() - 1) / 2);
    for (const std::uint32_t row : group.beside) {
      const std::int64_t duration_ns = history.tasks[row].end_ns - history.tasks[row].start_ns;
      multiples.push_back(static_cast<double>(duration_ns) / static_cast<double>(quiet_ns));
      result.excess_ns += duration_ns - quiet_ns;
      if (duration_ns > quiet_ns) result.slowed.push_back(row);
    }
  }
  result.tasks = multiples.size();
  if (!multiples.empty()) result.slowness = smallest(multiples, (multiples.size() - 1) / 2);
  if (!result.do_harm()) result.slowed.clear();
  std::ranges::sort(result.slowed);
  return result;
}

}  // namespace tandem::analysis
