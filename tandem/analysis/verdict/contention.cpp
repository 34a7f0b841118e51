// tandem/analysis/verdict/contention.cpp: large messages and kernels at the same time.
#include "tandem/analysis/verdict/contention.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/analysis/tables/quartiles.hpp"

namespace tandem::analysis {
namespace {

bool is_large(const CommunicationRow& row) noexcept {
  return row.is_whole() && !row.failed && row.bytes >= Contention::least_bytes && row.source != no_number &&
         row.destination != no_number;
}

Interval under_way(const CommunicationRow& row) noexcept {
  return {row.granted_ns != no_time ? std::max(row.granted_ns, row.posted_ns) : row.posted_ns, row.arrived_ns};
}

/// Number of tasks that workers of each host execute.
class Executing {
 public:
  Executing(const History& history, const Hosts& hosts) : workers_(hosts.count()) {
    std::vector<IntervalList> lists;
    for (std::size_t host = 0; host < hosts.count(); ++host) lists.emplace_back(history.memory_of_tables());
    std::vector<std::set<std::pair<std::uint32_t, std::uint16_t>>> workers(hosts.count());
    const TaskTable& tasks = history.tasks;
    for (const std::uint32_t row : tasks.rows()) {
      if (!tasks.has_run(row) || tasks.worker[row] == no_worker) continue;
      const std::size_t host = hosts.of(tasks.rank[row]);
      if (host == hosts.count()) continue;
      lists[host].add({tasks.start_ns[row], tasks.end_ns[row]});
      workers[host].emplace(tasks.rank[row], tasks.worker[row]);
    }
    for (std::size_t host = 0; host < hosts.count(); ++host) {
      counts_.push_back(StepFunction::count(std::move(lists[host])));
      workers_[host] = static_cast<double>(workers[host].size());
    }
  }
  /// The part of the host's workers' time in an interval.
  double share(std::size_t host, Interval interval) const {
    return host == workers_.size() || workers_[host] == 0 ? 0 : counts_[host].mean(interval) / workers_[host];
  }

 private:
  std::vector<StepFunction> counts_;
  std::vector<double> workers_;
};

void compare_messages(const History& history, const Hosts& hosts, Contention& result) {
  struct Group {
    std::vector<std::int64_t> quiet_ns, beside_ns;
  };
  const Executing executing(history, hosts);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Group> groups;  // by ranks and size
  for (const CommunicationRow& row : history.communications) {
    if (!is_large(row)) continue;
    const Interval time = under_way(row);
    if (time.length_ns() == 0) continue;
    const double share =
        std::max(executing.share(hosts.of(row.source), time), executing.share(hosts.of(row.destination), time));
    Group& group = groups[{row.source, row.destination, row.bytes}];
    if (share >= 0.5) group.beside_ns.push_back(time.length_ns());
    else if (share <= 0.1) group.quiet_ns.push_back(time.length_ns());
  }
  std::vector<double> multiples;
  for (auto& [key, group] : groups) {
    if (group.quiet_ns.size() < BesideTasks::least_quiet) continue;
    const auto quiet_ns = static_cast<double>(smallest(group.quiet_ns, (group.quiet_ns.size() - 1) / 2));
    for (const std::int64_t ns : group.beside_ns) multiples.push_back(static_cast<double>(ns) / quiet_ns);
  }
  result.messages = multiples.size();
  if (!multiples.empty()) result.message_slowness = smallest(multiples, (multiples.size() - 1) / 2);
}

}  // namespace

Contention contention(const History& history) {
  const Hosts hosts(history);
  TimesOfHosts messages(history, hosts);
  bool some = false;
  for (const CommunicationRow& row : history.communications) {
    if (!is_large(row)) continue;
    some = true;
    messages.add(row.source, under_way(row));
    messages.add(row.destination, under_way(row));
  }
  if (!some) return {};
  messages.merge();
  Contention result{compare_beside(history, messages)};
  if (!result.slows_tasks()) result.slowed.free();
  compare_messages(history, hosts, result);
  return result;
}

}  // namespace tandem::analysis
