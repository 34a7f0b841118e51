// tandem/analysis/polling_neighbours.cpp: when threads of a host polled, and how long tasks took meanwhile.
#include "tandem/analysis/polling_neighbours.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/analysis/quartiles.hpp"
#include "tandem/analysis/sort_times.hpp"
#include "tandem/analysis/step_function.hpp"

namespace tandem::analysis {
namespace {

constexpr std::size_t least_quiet = 4;

bool polls(ActorState state) noexcept {
  return state == ActorState::polling || state == ActorState::progressing || state == ActorState::engine_polling;
}

/// The time in which at least one thread of a host polls.
class PollingTime {
 public:
  explicit PollingTime(const std::shared_ptr<SpillMemory>& memory) : parts_(memory), sums_(memory) {}
  void add(std::int64_t start_ns, std::int64_t end_ns) { parts_.push_back({start_ns, end_ns}); }

  /// After the last `add`.
  void merge() {
    sort_by_time(parts_, &Interval::begin_ns);
    std::size_t last = 0;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      parts_.touch();
      if (parts_[i].begin_ns <= parts_[last].end_ns) parts_[last].end_ns = std::max(parts_[last].end_ns, parts_[i].end_ns);
      else parts_[++last] = parts_[i];
    }
    if (!parts_.empty()) parts_.resize(last + 1);
    std::int64_t sum_ns = 0;
    for (const auto& [start_ns, end_ns] : parts_) {
      sums_.push_back(sum_ns);
      sum_ns += end_ns - start_ns;
    }
  }
  std::int64_t between(std::int64_t start_ns, std::int64_t end_ns) const { return until(end_ns) - until(start_ns); }

 private:
  std::int64_t until(std::int64_t ns) const {
    const auto after = std::ranges::upper_bound(parts_, ns, {}, &Interval::begin_ns);
    if (after == parts_.begin()) return 0;
    const auto part = std::prev(after);
    return sums_[static_cast<std::size_t>(part - parts_.begin())] + std::min(ns, part->end_ns) - part->begin_ns;
  }

  SpillVector<Interval> parts_;
  SpillVector<std::int64_t> sums_;  ///< of the parts before
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
  std::vector<PollingTime> polling;
  for (std::size_t i = 0; i < hosts.size(); ++i) polling.emplace_back(history.memory_of_tables());
  for (const StateRow& state : history.states)
    if (polls(state.state) && state.end_ns > state.start_ns)
      if (const auto host = hosts.find(state.rank); host != hosts.end()) polling[host->second].add(state.start_ns, state.end_ns);
  for (PollingTime& time : polling) time.merge();

  struct Group {
    explicit Group(const std::shared_ptr<SpillMemory>& memory) : quiet_ns(memory), beside(memory) {}
    SpillVector<std::int64_t> quiet_ns;
    SpillVector<std::uint32_t> beside;  ///< rows
  };
  using Place = std::tuple<std::uint32_t, std::uint16_t, Texts::Id>;  ///< rank, worker, codelet
  const TaskTable& tasks = history.tasks;
  std::map<Place, Group> groups;
  auto host = hosts.end();
  for (const std::uint32_t row : tasks.rows()) {
    const std::int64_t start_ns = tasks.start_ns[row], end_ns = tasks.end_ns[row];
    const std::uint16_t worker = tasks.worker[row];
    if (start_ns == no_time || end_ns <= start_ns || worker == no_worker) continue;
    const std::uint32_t rank = tasks.rank[row];
    if (host == hosts.end() || host->first != rank) host = hosts.find(rank);
    if (host == hosts.end()) continue;
    const std::int64_t duration_ns = end_ns - start_ns;
    const std::int64_t beside_ns = polling[host->second].between(start_ns, end_ns);
    if (10 * beside_ns > duration_ns && 2 * beside_ns < duration_ns) continue;
    Group& group = groups.try_emplace({rank, worker, tasks.codelet(row)}, history.memory_of_tables()).first->second;
    if (2 * beside_ns >= duration_ns) group.beside.push_back(row);
    else group.quiet_ns.push_back(duration_ns);
  }

  PollingNeighbours result{.slowed = SpillVector<std::uint32_t>(history.memory_of_tables())};
  SpillVector<double> multiples(history.memory_of_tables());
  for (auto& [place, group] : groups) {
    if (group.quiet_ns.size() < least_quiet) continue;
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
  if (!result.do_harm()) result.slowed.free();
  std::ranges::sort(result.slowed);
  return result;
}

}  // namespace tandem::analysis
