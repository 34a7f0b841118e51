// tandem/analysis/history/history_messages.cpp: finds the receive of each send, over all ranks.
#include "tandem/analysis/history/history_messages.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "tandem/analysis/history/event_fields.hpp"

namespace tandem::analysis {

using trace::Event;
using trace::Type;

MessagePairing::Request* MessagePairing::find(const Event& event) {
  const auto found = requests_.find(request_key(event.rank, u32(event, 0)));
  return found == requests_.end() ? nullptr : &found->second;
}

void MessagePairing::open(const Event& event, Kind kind, std::size_t row) {
  requests_[request_key(event.rank, u32(event, 0))] = {kind, row};
}

void MessagePairing::add(const Event& event) {
  auto& rows = history_.communications;
  const auto stamp_send = [&](std::int64_t CommunicationRow::* stamp) {
    if (const Request* request = find(event); request != nullptr && request->kind == Kind::send)
      rows[request->row].*stamp = event.local_ns;
  };
  switch (event.type) {
    case Type::send_posted:
      open(event, Kind::send, rows.size());
      rows.push_back({.source = event.rank, .destination = u32(event, 1), .channel = u32(event, 2),
                      .priority = static_cast<std::int32_t>(event.integer(3)), .tag = event.number(4), .bytes = event.number(5),
                      .posted_ns = event.local_ns, .send_request = u32(event, 0)});
      break;
    case Type::receive_posted:
      open(event, Kind::receive, receives_.size());
      receives_.push_back({.rank = event.rank, .peer = u32(event, 1), .channel = u32(event, 2), .request = u32(event, 0),
                           .tag = event.number(3), .any_tag = event.number(3) == UINT64_MAX, .posted_ns = event.local_ns});
      break;
    case Type::send_announced: stamp_send(&CommunicationRow::announced_ns); break;
    case Type::send_granted: stamp_send(&CommunicationRow::granted_ns); break;
    case Type::message_sent:
      stamp_send(&CommunicationRow::sent_ns);
      if (const Request* request = find(event); request != nullptr && request->kind == Kind::broadcast)
        history_.broadcasts[request->row].sent_ns = event.local_ns;
      break;
    case Type::message_arrived: add_arrival(event); break;
    case Type::message_released: add_end(event, false); break;
    case Type::message_failed: add_end(event, true); break;
    default:
      if (event.spec().category == trace::Category::broadcast) add_broadcast(event);
      break;
  }
}

void MessagePairing::add_arrival(const Event& event) {
  Request* request = find(event);
  if (request == nullptr || request->kind != Kind::receive) {
    open(event, Kind::receive, receives_.size());
    request = find(event);
    receives_.push_back({.rank = event.rank, .request = u32(event, 0)});
  }
  Receive& receive = receives_[request->row];
  receive.peer = u32(event, 1);
  receive.channel = u32(event, 2);
  receive.tag = event.number(3);
  receive.any_tag = false;
  receive.bytes = event.number(4);
  receive.arrived_ns = event.local_ns;
}

void MessagePairing::add_end(const Event& event, bool failed) {
  const auto found = requests_.find(request_key(event.rank, u32(event, 0)));
  if (found == requests_.end()) return;
  const auto [kind, row] = found->second;
  switch (kind) {
    case Kind::send:
      history_.communications[row].failed |= failed;
      history_.communications[row].send_released_ns = event.local_ns;
      break;
    case Kind::receive:
      receives_[row].failed |= failed;
      receives_[row].released_ns = event.local_ns;
      break;
    case Kind::broadcast:
      history_.broadcasts[row].failed |= failed;
      history_.broadcasts[row].released_ns = event.local_ns;
      break;
  }
  requests_.erase(found);
}

BagRow& MessagePairing::bag_of(const Event& event) {
  const auto [at, added] = bags_.try_emplace(request_key(event.rank, u32(event, 0)), history_.bags.size());
  if (added) history_.bags.push_back({.rank = event.rank, .bag = u32(event, 0)});
  return history_.bags[at->second];
}

void MessagePairing::add_broadcast(const Event& event) {
  auto& rows = history_.broadcasts;
  switch (event.type) {
    case Type::mcast_posted:
      open(event, Kind::broadcast, rows.size());
      broadcasts_[request_key(event.rank, u32(event, 0))] = rows.size();
      rows.push_back({.root = event.rank, .request = u32(event, 0), .channel = u32(event, 1), .recipients = u32(event, 4),
                      .tag = event.number(2), .bytes = event.number(3), .posted_ns = event.local_ns});
      return;
    case Type::mcast_recipient:
      if (const auto found = broadcasts_.find(request_key(event.rank, u32(event, 0))); found != broadcasts_.end()) {
        const BroadcastRow& row = rows[found->second];
        history_.communications.push_back({.source = row.root,
                                           .destination = u32(event, 1),
                                           .channel = row.channel,
                                           .tag = row.tag,
                                           .bytes = row.bytes,
                                           .posted_ns = event.local_ns,
                                           .send_request = row.request,
                                           .broadcast = static_cast<std::uint32_t>(found->second)});
      }
      return;
    case Type::mcast_routed:
      if (const auto found = broadcasts_.find(request_key(event.rank, u32(event, 0))); found != broadcasts_.end()) {
        BroadcastRow& row = rows[found->second];
        std::string children = history_.texts[row.children];
        if (row.routed_ns != no_time) children += ";";
        for (std::size_t i = 0; i < event.list_size(4); ++i) {
          if (!children.empty() && children.back() != ';') children += ' ';
          children += std::to_string(event.list_entry(4, i));
        }
        row.children = history_.texts.add(children);
        row.tree = u32(event, 1);
        row.segment_bytes = u32(event, 2);
        row.routed_ns = event.local_ns;
      }
      return;
    case Type::mcast_forwarded:
      history_.forwards.push_back({.rank = event.rank, .root = u32(event, 0), .child = u32(event, 1), .tag = event.number(2),
                                   .bytes = event.number(3), .time_ns = event.local_ns});
      return;
    case Type::mcast_declined:
      history_.forwards.push_back({.rank = event.rank, .root = u32(event, 0), .child = u32(event, 1), .tag = event.number(2),
                                   .time_ns = event.local_ns, .declined = true});
      return;
    case Type::bag_opened: {
      bags_.erase(request_key(event.rank, u32(event, 0)));  // a number that is used again is another bag
      BagRow& bag = bag_of(event);
      bag.data = u32(event, 1);
      bag.version = u32(event, 2);
      bag.opened_ns = event.local_ns;
      return;
    }
    case Type::bag_joined:
      ++bag_of(event).recipients;
      history_.bag_recipients.push_back({.rank = event.rank, .bag = u32(event, 0), .recipient = u32(event, 1),
                                         .priority = static_cast<std::int32_t>(event.integer(2)), .joined_ns = event.local_ns});
      return;
    case Type::bag_closed: {
      BagRow& bag = bag_of(event);
      bag.closed_ns = event.local_ns;
      bag.recipients = std::max(bag.recipients, u32(event, 1));
      bag.request = u32(event, 2);
      return;
    }
    default: return;
  }
}

void MessagePairing::add_flow(const Event& event, std::int64_t task) {
  if (event.type != Type::data_sent && event.type != Type::data_received) return;
  auto& cargo = event.type == Type::data_sent ? sent_ : received_;
  cargo[request_key(event.rank, u32(event, 3))] = {.data = u32(event, 0), .version = u32(event, 1), .task = task};
}

void MessagePairing::join(CommunicationRow& row, const Receive& receive) {
  row.source = row.source == no_number ? receive.peer : row.source;
  row.destination = receive.rank;
  row.channel = receive.channel;
  row.tag = receive.tag;
  if (row.bytes == 0) row.bytes = receive.bytes;
  row.receive_posted_ns = receive.posted_ns;
  row.arrived_ns = receive.arrived_ns;
  row.receive_released_ns = receive.released_ns;
  row.receive_request = receive.request;
  row.failed |= receive.failed;
}

void MessagePairing::pair() {
  auto& rows = history_.communications;
  struct Half {
    std::uint32_t source = 0, destination = 0, channel = 0;
    std::uint64_t tag = 0;
    std::size_t row = 0;
    auto operator<=>(const Half&) const = default;
    Key key() const { return {source, destination, channel, tag}; }
  };
  SpillVector<Half> sends(history_.memory_of_tables()), receives(history_.memory_of_tables());
  SpillVector<std::size_t> left(history_.memory_of_tables());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].failed || rows[i].sent_ns != no_time)
      sends.push_back({rows[i].source, rows[i].destination, rows[i].channel, rows[i].tag, i});
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    const Receive& receive = receives_[i];
    const bool known =
        receive.peer != no_number && !receive.any_tag && (!receive.failed || receive.arrived_ns != no_time);
    if (known) receives.push_back({receive.peer, receive.rank, receive.channel, receive.tag, i});
    else left.push_back(i);
  }
  // Sorts within a key by row, that is, by the order of posting.
  std::ranges::sort(sends);
  std::ranges::sort(receives);
  std::size_t send = 0;
  for (const Half& receive : receives) {
    while (send < sends.size() && sends[send].key() < receive.key()) ++send;
    if (send < sends.size() && sends[send].key() == receive.key())
      join(rows[sends[send++].row], receives_[receive.row]);
    else left.push_back(receive.row);
  }
  pair_with_broadcasts(left);
  for (const std::size_t row : left) join(rows.emplace_back(), receives_[row]);
}

void MessagePairing::pair_with_broadcasts(SpillVector<std::size_t>& left) {
  std::set<std::uint32_t> known;  // broadcasts whose recipients are known
  for (const CommunicationRow& row : history_.communications)
    if (row.broadcast != no_number) known.insert(row.broadcast);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> unknown_recipients;
  for (std::uint32_t i = 0; i < history_.broadcasts.size(); ++i) {
    const BroadcastRow& row = history_.broadcasts[i];
    if (!known.contains(i)) unknown_recipients[{row.root, row.channel, row.tag}].push_back(i);
  }
  if (unknown_recipients.empty()) return;
  std::map<Key, std::size_t> nth;
  SpillVector<std::size_t> still_left(history_.memory_of_tables());
  std::ranges::sort(left);
  for (const std::size_t index : left) {
    const Receive& receive = receives_[index];
    const auto found = unknown_recipients.find({receive.peer, receive.channel, receive.tag});
    std::size_t& count = nth[{receive.peer, receive.rank, receive.channel, receive.tag}];
    if (receive.any_tag || receive.arrived_ns == no_time || found == unknown_recipients.end() ||
        count >= found->second.size()) {
      still_left.push_back(index);
      continue;
    }
    const std::uint32_t broadcast = found->second[count++];
    const BroadcastRow& from = history_.broadcasts[broadcast];
    CommunicationRow& row = history_.communications.emplace_back();
    row.source = from.root;
    row.bytes = from.bytes;
    row.posted_ns = from.posted_ns;
    row.send_request = from.request;
    row.broadcast = broadcast;
    join(row, receive);
  }
  left = std::move(still_left);
}

/// Stores for each message which data it carries, and for which tasks.
void MessagePairing::load(const std::unordered_map<std::uint32_t, std::int64_t>& epochs) {
  // A bag's request carries the bag's data, whether it became a broadcast or one message.
  std::unordered_map<std::uint64_t, std::uint32_t> bag_of_request;
  for (std::uint32_t i = 0; i < history_.bags.size(); ++i)
    if (history_.bags[i].request != no_number)
      bag_of_request[request_key(history_.bags[i].rank, history_.bags[i].request)] = i;
  const auto task_of = [&](std::uint32_t rank, std::int64_t task) {
    const auto epoch = epochs.find(rank);
    if (task < 0 || epoch == epochs.end()) return no_number;
    return history_.find_task(rank, static_cast<std::uint64_t>(task - epoch->second)).value_or(no_number);
  };
  for (CommunicationRow& row : history_.communications) {
    if (row.send_request != no_number) {
      if (const auto bag = bag_of_request.find(request_key(row.source, row.send_request));
          bag != bag_of_request.end()) {
        row.send_data = history_.bags[bag->second].data;
        row.version = history_.bags[bag->second].version;
      }
      if (const auto cargo = sent_.find(request_key(row.source, row.send_request)); cargo != sent_.end()) {
        row.send_data = cargo->second.data;
        row.version = cargo->second.version;
        row.send_task = task_of(row.source, cargo->second.task);
      }
    }
    if (row.receive_request == no_number) continue;
    if (const auto cargo = received_.find(request_key(row.destination, row.receive_request));
        cargo != received_.end()) {
      row.receive_data = cargo->second.data;
      row.version = cargo->second.version;
      row.receive_task = task_of(row.destination, cargo->second.task);
    }
  }
  for (BroadcastRow& row : history_.broadcasts) {
    if (const auto bag = bag_of_request.find(request_key(row.root, row.request)); bag != bag_of_request.end()) {
      row.bag = bag->second;
      row.data = history_.bags[bag->second].data;
      row.version = history_.bags[bag->second].version;
    }
  }
}

void MessagePairing::finish(const std::unordered_map<std::uint32_t, std::int64_t>& epochs) {
  pair();
  load(epochs);
}

}  // namespace tandem::analysis
