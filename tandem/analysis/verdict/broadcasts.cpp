// tandem/analysis/verdict/broadcasts.cpp: how many broadcasts there were, how long they took, and what went to several
// ranks without one.
#include "tandem/analysis/verdict/broadcasts.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tandem::analysis {
namespace {

/// The known recipients of a broadcast.
struct Reached {
  std::uint32_t recipients = 0, arrived = 0;
  std::int64_t last_ns = no_time;
};

/// Time of an arrival from the posting of its broadcast; empty if that failed or is not known.
std::optional<std::int64_t> delay_of(const History& history, const CommunicationRow& row) {
  if (row.broadcast == no_number) return std::nullopt;
  const BroadcastRow& broadcast = history.broadcasts[row.broadcast];
  if (broadcast.failed || row.failed || row.arrived_ns == no_time || broadcast.posted_ns == no_time)
    return std::nullopt;
  return std::max<std::int64_t>(row.arrived_ns - broadcast.posted_ns, 0);
}

BroadcastDelays delays_by_size(const History& history) {
  std::map<std::uint64_t, std::vector<std::int64_t>> delays_of_size;
  for (const CommunicationRow& row : history.communications)
    if (const auto delay = delay_of(history, row))
      delays_of_size[history.broadcasts[row.broadcast].bytes].push_back(*delay);
  BroadcastDelays result;
  for (auto& [bytes, delays] : delays_of_size) result.emplace(bytes, quartiles(delays).value());
  return result;
}

void count_recipients(const History& history, Broadcasts& result) {
  std::vector<Reached> reached(history.broadcasts.size());
  for (const CommunicationRow& row : history.communications) {
    if (row.broadcast == no_number) continue;
    const BroadcastRow& broadcast = history.broadcasts[row.broadcast];
    Reached& all = reached[row.broadcast];
    ++all.recipients;
    const auto delay = delay_of(history, row);
    if (!delay) continue;
    ++all.arrived;
    all.last_ns = std::max(all.last_ns, row.arrived_ns);
    ++result.arrivals;
    if (row.receive_posted_ns != no_time && row.receive_posted_ns < broadcast.posted_ns) ++result.awaited;
    if (const Quartiles& ns = result.delays.at(broadcast.bytes); ns.is_outlier(*delay)) {
      ++result.late;
      result.late_excess_ns += *delay - ns.median;
    }
  }
  const FastestMessage fastest = fastest_message(history);
  std::vector<std::int64_t> recipients, durations;
  std::vector<double> gains;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const BroadcastRow& broadcast = history.broadcasts[i];
    if (broadcast.failed) continue;
    const Reached& all = reached[i];
    // More recipients may have joined after the posting; if they were not recorded, the number at its posting counts.
    const std::uint32_t count = std::max(all.recipients, broadcast.recipients);
    ++result.count;
    result.bytes += broadcast.bytes * count;
    recipients.push_back(count);
    if (all.arrived == 0 || all.arrived != all.recipients) continue;
    const std::int64_t duration_ns = std::max<std::int64_t>(all.last_ns - broadcast.posted_ns, 0);
    durations.push_back(duration_ns);
    if (fastest.bytes_per_ns > 0 && duration_ns > 0)
      gains.push_back(static_cast<double>(broadcast.bytes * count) / fastest.bytes_per_ns /
                      static_cast<double>(duration_ns));
  }
  if (!gains.empty()) result.gain = smallest(gains, gains.size() / 2);
  result.recipients = quartiles(recipients);
  result.durations = quartiles(durations);
}

/// A recipient of a version of data, and how it came. Sorting puts those of a version together, plain messages last.
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

/// Whether `children`, numbers with blanks and ";" between them, contains a rank.
bool is_child(std::string_view children, std::uint32_t rank) {
  const std::string wanted = std::to_string(rank);
  for (std::size_t at = 0; at < children.size();) {
    const std::size_t end = std::min(children.find_first_of(" ;", at), children.size());
    if (children.substr(at, end - at) == wanted) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

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
    const auto last = std::find_if(first, deliveries.end(),
                                   [&](const Delivery& other) { return other.version_key() != first->version_key(); });
    add_version({first, last}, shared);
    first = last;
  }
  return shared;
}

Broadcasts broadcasts(const History& history) {
  Broadcasts result;
  result.delays = delays_by_size(history);
  count_recipients(history, result);
  for (const ForwardRow& row : history.forwards) result.declined += row.declined;
  result.shared = shared_data(history);
  return result;
}

std::vector<BroadcastEdge> broadcast_edges(const History& history, const BroadcastDelays& delays) {
  struct Arrival {
    std::uint32_t root = 0, child = 0;
    std::uint64_t tag = 0;
    std::uint32_t row = 0;
    auto key() const { return std::tuple(root, child, tag); }
  };
  const auto& rows = history.communications;
  std::vector<Arrival> arrivals;
  for (std::uint32_t i = 0; i < rows.size(); ++i)
    if (delay_of(history, rows[i]))
      arrivals.push_back({.root = rows[i].source, .child = rows[i].destination, .tag = rows[i].tag, .row = i});
  if (arrivals.empty()) return {};
  std::ranges::stable_sort(arrivals, {}, [](const Arrival& arrival) { return std::tuple(arrival.key(), arrival.row); });

  std::vector<const ForwardRow*> forwards;
  for (const ForwardRow& forward : history.forwards)
    if (!forward.declined) forwards.push_back(&forward);
  std::ranges::stable_sort(forwards, {}, &ForwardRow::time_ns);
  std::map<std::uint32_t, std::vector<const ForwardRow*>> sent_by;  // of each row of an arrival
  for (const ForwardRow* const forward : forwards) {
    const auto same =
        std::ranges::equal_range(arrivals, std::tuple(forward->root, forward->child, forward->tag), {}, &Arrival::key);
    for (const Arrival& arrival : same) {
      if (rows[arrival.row].arrived_ns < forward->time_ns) continue;
      auto& senders = sent_by[arrival.row];
      if (std::ranges::any_of(senders, [&](const ForwardRow* other) { return other->rank == forward->rank; })) continue;
      senders.push_back(forward);
      break;
    }
  }

  std::vector<BroadcastEdge> edges;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const auto delay = delay_of(history, rows[i]);
    if (!delay) continue;
    const BroadcastRow& broadcast = history.broadcasts[rows[i].broadcast];
    const bool late = delays.at(broadcast.bytes).is_outlier(*delay);
    const auto senders = sent_by.find(i);
    if (senders == sent_by.end() || is_child(history.texts[broadcast.children], rows[i].destination))
      edges.push_back({.communication = i,
                       .parent = broadcast.root,
                       .begun_ns = broadcast.routed_ns != no_time ? broadcast.routed_ns : broadcast.posted_ns,
                       .late = late});
    if (senders == sent_by.end()) continue;
    for (const ForwardRow* const forward : senders->second)
      edges.push_back({.communication = i, .parent = forward->rank, .begun_ns = forward->time_ns, .late = late});
  }
  return edges;
}

FastestMessage fastest_message(const History& history) {
  FastestMessage fastest;
  for (const CommunicationRow& row : history.communications) {
    if (!row.is_whole() || row.failed || row.source == row.destination || row.arrived_ns <= row.posted_ns) continue;
    const std::int64_t took_ns = row.arrived_ns - row.posted_ns;
    fastest.shortest_ns = fastest.shortest_ns == no_time ? took_ns : std::min(fastest.shortest_ns, took_ns);
    fastest.bytes_per_ns =
        std::max(fastest.bytes_per_ns, static_cast<double>(row.bytes) / static_cast<double>(took_ns));
  }
  return fastest;
}

double FastestMessage::bound_ns(std::uint64_t bytes) const noexcept {
  if (shortest_ns == no_time) return 0;
  const double by_rate = bytes_per_ns > 0 ? static_cast<double>(bytes) / bytes_per_ns : 0;
  return std::max(static_cast<double>(shortest_ns), by_rate);
}

}  // namespace tandem::analysis
