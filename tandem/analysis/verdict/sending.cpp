// tandem/analysis/verdict/sending.cpp: counts messages while they are sent, and while they are under way.
#include "tandem/analysis/verdict/sending.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "tandem/analysis/tables/step_function.hpp"

namespace tandem::analysis {
namespace {

/// Traffic of messages with their times.
struct TimedTraffic {
  explicit TimedTraffic(const std::shared_ptr<SpillMemory>& memory) : times(memory) {}

  void add(const CommunicationRow& row, Interval time) {
    if (time.length_ns() == 0) return;
    ++traffic.messages;
    traffic.bytes += row.bytes;
    times.add(time);
  }
  Traffic counted() {
    const StepFunction count = StepFunction::count(std::move(times));
    if (count.steps().empty()) return traffic;
    const Interval all{count.steps().front().at_ns, count.steps().back().at_ns};
    traffic.busy_ns = count.positive_ns(all);
    traffic.most_at_once = count.max(all);
    return traffic;
  }

  Traffic traffic;
  IntervalList times;
};

/// When the sender could begin: an announced message waits for its receiver.
std::int64_t begin_of_sending(const CommunicationRow& row) {
  if (row.granted_ns != no_time) return row.granted_ns;
  const bool waited = row.announced_ns != no_time && row.receive_posted_ns != no_time;
  return waited ? std::max(row.posted_ns, row.receive_posted_ns) : row.posted_ns;
}

struct Both {
  explicit Both(const std::shared_ptr<SpillMemory>& memory) : sent(memory), delivered(memory) {}
  TimedTraffic sent, delivered;
};

}  // namespace

bool counts(const CommunicationRow& row, Sent which) noexcept {
  return !row.failed && row.has_send() && row.broadcast == no_number &&
         (which == Sent::all || row.send_data != no_number);
}

std::vector<RankSending> sending(const History& history, Sent which) {
  std::map<std::uint32_t, Both> ranks;
  for (const CommunicationRow& row : history.communications) {
    if (!counts(row, which)) continue;
    Both& rank = ranks.try_emplace(row.source, history.memory_of_tables()).first->second;
    if (row.sent_ns != no_time) rank.sent.add(row, {begin_of_sending(row), row.sent_ns});
    if (row.is_whole()) rank.delivered.add(row, {row.posted_ns, row.arrived_ns});
  }
  std::vector<RankSending> all;
  for (auto& [rank, both] : ranks)
    all.push_back({.rank = rank, .sent = both.sent.counted(), .delivered = both.delivered.counted()});
  return all;
}

}  // namespace tandem::analysis
