// tandem/analysis/verdict/beside.cpp: the times of an activity on hosts, and how long tasks took meanwhile.
#include "tandem/analysis/verdict/beside.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "tandem/analysis/tables/quartiles.hpp"
#include "tandem/analysis/tables/sort_times.hpp"

namespace tandem::analysis {

void CoveredTime::merge() {
  sort_by_time(parts_, &Interval::begin_ns);
  std::size_t last = 0;
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    parts_.touch();
    if (parts_[i].begin_ns <= parts_[last].end_ns)
      parts_[last].end_ns = std::max(parts_[last].end_ns, parts_[i].end_ns);
    else parts_[++last] = parts_[i];
  }
  if (!parts_.empty()) parts_.resize(last + 1);
  std::int64_t sum_ns = 0;
  for (const Interval& part : parts_) {
    sums_.push_back(sum_ns);
    sum_ns += part.length_ns();
  }
}

std::int64_t CoveredTime::until(std::int64_t ns) const {
  const auto after = std::ranges::upper_bound(parts_, ns, {}, &Interval::begin_ns);
  if (after == parts_.begin()) return 0;
  const auto part = std::prev(after);
  return sums_[static_cast<std::size_t>(part - parts_.begin())] + std::min(ns, part->end_ns) - part->begin_ns;
}

Hosts::Hosts(const History& history) {
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> places;  // a host without a name has its rank's number
  for (const RankClock& clock : history.clocks) {
    const std::uint32_t alone = clock.host.empty() ? clock.rank : 0;
    of_ranks_[clock.rank] = places.try_emplace({clock.host, alone}, places.size()).first->second;
  }
  count_ = places.size();
}

BesideTasks compare_beside(const History& history, const TimesOfHosts& going_on) {
  struct Group {
    explicit Group(const std::shared_ptr<SpillMemory>& memory) : quiet_ns(memory), beside(memory) {}
    SpillVector<std::int64_t> quiet_ns;
    SpillVector<std::uint32_t> beside;  ///< rows
  };
  using Place = std::tuple<std::uint32_t, std::uint16_t, Texts::Id>;  ///< rank, worker, codelet
  const TaskTable& tasks = history.tasks;
  std::map<Place, Group> groups;
  const Hosts& hosts = going_on.hosts();
  std::uint32_t rank = no_number;
  std::size_t host = hosts.count();
  for (const std::uint32_t row : tasks.rows()) {
    const std::int64_t start_ns = tasks.start_ns[row], end_ns = tasks.end_ns[row];
    const std::uint16_t worker = tasks.worker[row];
    if (start_ns == no_time || end_ns <= start_ns || worker == no_worker) continue;
    if (tasks.rank[row] != rank) {
      rank = tasks.rank[row];
      host = hosts.of(rank);
    }
    if (host == hosts.count()) continue;
    const std::int64_t duration_ns = end_ns - start_ns;
    const std::int64_t beside_ns = going_on[host].within({start_ns, end_ns});
    if (10 * beside_ns > duration_ns && 2 * beside_ns < duration_ns) continue;
    Group& group = groups.try_emplace({rank, worker, tasks.codelet(row)}, history.memory_of_tables()).first->second;
    if (2 * beside_ns >= duration_ns) group.beside.push_back(row);
    else group.quiet_ns.push_back(duration_ns);
  }

  BesideTasks result{.slowed = SpillVector<std::uint32_t>(history.memory_of_tables())};
  SpillVector<double> multiples(history.memory_of_tables());
  for (auto& [place, group] : groups) {
    if (group.quiet_ns.size() < BesideTasks::least_quiet) continue;
    const std::int64_t quiet_ns = smallest(group.quiet_ns, (group.quiet_ns.size() - 1) / 2);
    for (const std::uint32_t row : group.beside) {
      const std::int64_t duration_ns = tasks.end_ns[row] - tasks.start_ns[row];
      multiples.push_back(static_cast<double>(duration_ns) / static_cast<double>(quiet_ns));
      result.excess_ns += duration_ns - quiet_ns;
      if (duration_ns > quiet_ns) result.slowed.push_back(row);
    }
  }
  result.tasks = multiples.size();
  if (!multiples.empty()) result.slowness = smallest(multiples, (multiples.size() - 1) / 2);
  std::ranges::sort(result.slowed);
  return result;
}

}  // namespace tandem::analysis
