// tandem/analysis/verdict/communication.cpp: the traffic between ranks, its speed, and how long workers waited for it.
#include "tandem/analysis/verdict/communication.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <ranges>
#include <utility>

#include "tandem/analysis/tables/step_function.hpp"

namespace tandem::analysis {
namespace {

bool counts(const CommunicationRow& row) {
  return !row.failed && row.source != no_number && row.destination != no_number &&
         (row.has_send() || row.arrived_ns != no_time);
}

std::vector<RankPair> matrix_of(const History& history) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, RankPair> pairs;
  for (const CommunicationRow& row : history.communications) {
    if (!counts(row)) continue;
    RankPair& pair =
        pairs.try_emplace({row.source, row.destination}, RankPair{.source = row.source, .destination = row.destination})
            .first->second;
    ++pair.messages;
    pair.bytes += row.bytes;
    if (row.is_whole()) pair.total_ns += std::max<std::int64_t>(row.arrived_ns - row.posted_ns, 0);
  }
  std::vector<RankPair> matrix;
  for (const RankPair& pair : pairs | std::views::values) matrix.push_back(pair);
  return matrix;
}

/// The start of the first task that runs and depends on a node, directly or through nodes that do not run. no_time:
/// none. O(n).
class FirstUses {
 public:
  FirstUses(const History& history, const TaskGraph& graph) : uses_(history.memory_of_tables()) {
    if (history.communications.empty()) return;
    const TaskTable& tasks = history.tasks;
    uses_.resize(tasks.size(), no_time);
    for (const std::uint32_t row : graph.in_order() | std::views::reverse) {
      uses_.touch();
      const std::int64_t use_ns = tasks.has_run(row) ? tasks.start_ns[row] : uses_[row];
      if (use_ns == no_time) continue;
      for (const TaskGraph::Edge& edge : graph.into(row)) {
        if (edge.message != no_number) continue;
        std::int64_t& use_before_ns = uses_[edge.from];
        use_before_ns = use_before_ns == no_time ? use_ns : std::min(use_before_ns, use_ns);
      }
    }
  }
  std::int64_t operator[](std::uint32_t row) const noexcept { return uses_[row]; }

 private:
  SpillVector<std::int64_t> uses_;
};

/// The messages of a rank, in one direction, while they are counted.
struct Direction {
  explicit Direction(const std::shared_ptr<SpillMemory>& memory) : under_way(memory) {}

  Traffic traffic;
  IntervalList under_way;
  StepFunction count;

  void add(const CommunicationRow& row) {
    ++traffic.messages;
    traffic.bytes += row.bytes;
    if (row.is_whole()) under_way.add({row.posted_ns, row.arrived_ns});
  }
  void finish() {
    count = StepFunction::count(std::move(under_way));
    if (count.steps().empty()) return;
    const Interval all{count.steps().front().at_ns, count.steps().back().at_ns};
    traffic.busy_ns = count.positive_ns(all);
    traffic.most_at_once = count.max(all);
  }
};

struct Rank {
  explicit Rank(const std::shared_ptr<SpillMemory>& memory) : in(memory), out(memory) {}

  Direction in, out;
  RankCommunication times;
};

}  // namespace

Communication communication(const History& history, const TaskGraph& graph, const TimeSplit& split) {
  Communication result;
  result.matrix = matrix_of(history);
  std::map<std::uint32_t, Rank> ranks;
  const auto rank_of = [&](std::uint32_t rank) -> Rank& {
    return ranks.try_emplace(rank, history.memory_of_tables()).first->second;
  };
  for (const WorkerTimes& worker : split.workers) rank_of(worker.rank);
  const FirstUses uses(history, graph);
  SpillVector<std::int64_t> sent_to_arrived(history.memory_of_tables()), arrived_to_used(history.memory_of_tables());
  for (const CommunicationRow& row : history.communications) {
    if (!counts(row)) continue;
    rank_of(row.source).out.add(row);
    rank_of(row.destination).in.add(row);
    if (row.is_whole()) sent_to_arrived.push_back(std::max<std::int64_t>(row.arrived_ns - row.posted_ns, 0));
    const std::int64_t used_ns = row.receive_task == no_number ? no_time : uses[row.receive_task];
    if (row.arrived_ns != no_time && used_ns != no_time)
      arrived_to_used.push_back(std::max<std::int64_t>(used_ns - row.arrived_ns, 0));
  }
  result.sent_to_arrived = quartiles({sent_to_arrived.data(), sent_to_arrived.size()});
  result.arrived_to_used = quartiles({arrived_to_used.data(), arrived_to_used.size()});
  for (Rank& rank : ranks | std::views::values) {
    rank.in.finish();
    rank.out.finish();
  }
  for_each_stretch(history, split, [&](const Stretch& stretch) {
    if (stretch.spent != Spent::executing && stretch.spent != Spent::awaiting_message) return;
    Rank& rank = ranks.at(stretch.rank);
    const Interval interval{stretch.start_ns, stretch.end_ns};
    const std::int64_t under_way_ns = rank.in.count.steps().empty() ? 0 : rank.in.count.positive_ns(interval);
    if (stretch.spent == Spent::executing) {
      rank.times.overlapped_ns += under_way_ns;
    } else {
      rank.times.awaiting_ns += interval.length_ns();
      rank.times.exposed_ns += under_way_ns;
    }
  });
  for (auto& [number, rank] : ranks) {
    rank.times.rank = number;
    rank.times.in = rank.in.traffic;
    rank.times.out = rank.out.traffic;
    result.ranks.push_back(rank.times);
  }
  return result;
}

std::uint64_t Communication::messages() const noexcept {
  std::uint64_t sum = 0;
  for (const RankPair& pair : matrix) sum += pair.messages;
  return sum;
}

std::uint64_t Communication::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const RankPair& pair : matrix) sum += pair.bytes;
  return sum;
}

std::optional<double> Communication::overlap() const noexcept {
  double overlapped_ns = 0, exposed_ns = 0;
  for (const RankCommunication& rank : ranks) {
    overlapped_ns += static_cast<double>(rank.overlapped_ns);
    exposed_ns += static_cast<double>(rank.exposed_ns);
  }
  return overlapped_ns + exposed_ns == 0 ? std::nullopt : std::optional(overlapped_ns / (overlapped_ns + exposed_ns));
}

}  // namespace tandem::analysis
