// tandem/analysis/broadcasts.cpp: how many broadcasts there were, how long they took, and what went to several ranks without one.
#include "tandem/analysis/broadcasts.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>
#include <tuple>
#include <vector>

namespace tandem::analysis {
namespace {

/// What is known of the recipients of a broadcast.
struct Reached {
  std::uint32_t recipients = 0, arrived = 0;
  std::int64_t last_ns = no_time;
};

void count_recipients(const History& history, Broadcasts& result) {
  std::vector<Reached> reached(history.broadcasts.size());
  std::map<std::uint64_t, std::vector<std::int64_t>> delays_of_size;
  for (const CommunicationRow& row : history.communications) {
    if (row.broadcast == no_number) continue;
    const BroadcastRow& broadcast = history.broadcasts[row.broadcast];
    Reached& all = reached[row.broadcast];
    ++all.recipients;
    if (broadcast.failed || row.failed || row.arrived_ns == no_time || broadcast.posted_ns == no_time) continue;
    ++all.arrived;
    all.last_ns = std::max(all.last_ns, row.arrived_ns);
    delays_of_size[broadcast.bytes].push_back(std::max<std::int64_t>(row.arrived_ns - broadcast.posted_ns, 0));
    ++result.arrivals;
    if (row.receive_posted_ns != no_time && row.receive_posted_ns < broadcast.posted_ns) ++result.awaited;
  }
  std::vector<std::int64_t> recipients, durations;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const BroadcastRow& broadcast = history.broadcasts[i];
    if (broadcast.failed) continue;
    const Reached& all = reached[i];
    // More may have joined after it was posted; where recipients were not recorded, the number at its posting has to do.
    const std::uint32_t count = std::max(all.recipients, broadcast.recipients);
    ++result.count;
    result.bytes += broadcast.bytes * count;
    recipients.push_back(count);
    if (all.arrived > 0 && all.arrived == all.recipients) durations.push_back(std::max<std::int64_t>(all.last_ns - broadcast.posted_ns, 0));
  }
  result.recipients = quartiles(recipients);
  result.durations = quartiles(durations);
  for (std::vector<std::int64_t>& delays : delays_of_size | std::views::values) {
    const Quartiles ns = quartiles(delays).value();
    for (const std::int64_t delay : delays) {
      if (!ns.is_outlier(delay)) continue;
      ++result.late;
      result.late_excess_ns += delay - ns.median;
    }
  }
}

/// A recipient of a version of data, and how it came. Those of a version follow each other when sorted, plain messages last.
struct Delivery {
  std::uint32_t source = 0, data = 0, version = 0, destination = 0;
  std::uint32_t broadcast = no_number;
  std::uint64_t bytes = 0;

  auto version_key() const { return std::tuple(source, data, version); }
  auto key() const { return std::tuple(source, data, version, destination, broadcast); }
};

void add_version(std::span<const Delivery> deliveries, SharedData& shared) {
  std::uint64_t recipients = 0, by_broadcast = 0;
  std::vector<std::uint32_t> ways;
  for (std::size_t i = 0; i < deliveries.size(); ++i) {
    if (i > 0 && deliveries[i].destination == deliveries[i - 1].destination) continue;
    ++recipients;
    by_broadcast += deliveries[i].broadcast != no_number;
    ways.push_back(deliveries[i].broadcast);
  }
  if (recipients < 2) return;
  ++shared.versions;
  shared.recipients += recipients;
  shared.by_broadcast += by_broadcast;
  shared.bytes += recipients * deliveries.front().bytes;
  shared.bytes_by_broadcast += by_broadcast * deliveries.front().bytes;
  std::ranges::sort(ways);
  if (by_broadcast > 0 && ways.front() != ways.back()) ++shared.split;
}

SharedData shared_data(const History& history) {
  std::vector<Delivery> deliveries;
  for (const CommunicationRow& row : history.communications) {
    if (row.failed || row.source == no_number || row.destination == no_number || row.send_data == no_number || row.version == no_number) continue;
    deliveries.push_back({.source = row.source, .data = row.send_data, .version = row.version, .destination = row.destination,
                          .broadcast = row.broadcast, .bytes = row.bytes});
  }
  std::ranges::sort(deliveries, {}, &Delivery::key);
  SharedData shared;
  for (auto first = deliveries.begin(); first != deliveries.end();) {
    const auto last = std::find_if(first, deliveries.end(), [&](const Delivery& other) { return other.version_key() != first->version_key(); });
    add_version({first, last}, shared);
    first = last;
  }
  return shared;
}

}  // namespace

Broadcasts broadcasts(const History& history) {
  Broadcasts result;
  count_recipients(history, result);
  for (const ForwardRow& row : history.forwards) result.declined += row.declined;
  result.shared = shared_data(history);
  return result;
}

}  // namespace tandem::analysis
