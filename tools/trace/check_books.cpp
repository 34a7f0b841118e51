// tools/trace/check_books.cpp: checks that requests, copies, memory and bags of one rank balance.
#include "tools/trace/check_books.hpp"

#include <fmt/format.h>

#include "tandem/analysis/history/event_fields.hpp"

namespace tandem::tools {

using namespace analysis;

using trace::Event;
using trace::Type;

namespace {

constexpr const char* request_accounts[] = {"sends", "receives", "broadcasts"};
constexpr const char* moved_words[] = {"sent", "arrived"};

}  // namespace

RequestBook::RequestBook(const trace::RankTrace& rank, const Recorded& recorded) : rank_(rank), recorded_(recorded) {
  using enum Type;
  gap_ = recorded.gap(
      {send_posted, receive_posted, message_sent, message_arrived, message_released, message_failed, mcast_posted});
}

std::string RequestBook::name(const Event& event) const {
  return fmt::format("rank {}: request {}: {}", rank_.rank, u32(event, 0), event.spec().name);
}

void RequestBook::post(const Event& event, Kind kind, Findings& findings) {
  ++posted_[static_cast<int>(kind)];
  const auto [at, added] = requests_.try_emplace(u32(event, 0));
  if (!added && !at->second.released) findings.add("no two requests that are under way have one number", name(event));
  at->second = {.kind = kind};
}

void RequestBook::step(const Event& event, Findings& findings) {
  const auto found = requests_.find(u32(event, 0));
  if (found == requests_.end()) return findings.add("what a message's events name was posted", name(event));
  Request& request = found->second;
  const bool arrives = event.type == Type::message_arrived;
  switch (event.type) {
    case Type::message_sent:
    case Type::message_arrived:
      if (arrives != (request.kind == Kind::receive))
        return findings.add("sends are sent, and receives receive", name(event));
      if (request.moved) return findings.add("each message is sent once, and arrives once", name(event));
      request.moved = true;
      ++moved_[static_cast<int>(request.kind)];
      return;
    case Type::message_released:
    case Type::message_failed:
      if (request.released) return findings.add("each request is released once, or fails once", name(event));
      request.released = true;
      if (event.type == Type::message_failed) {
        ++failed_[static_cast<int>(request.kind)];
        request.moved = true;
        return;
      }
      ++released_[static_cast<int>(request.kind)];
      if (request.kind == Kind::receive && !request.moved)
        findings.add("a receive is released after its message has arrived", name(event));
      return;
    default: return;
  }
}

void RequestBook::add(const Event& event, Findings& findings) {
  if (!gap_.empty()) return;
  switch (event.type) {
    case Type::send_posted: return post(event, Kind::send, findings);
    case Type::receive_posted: return post(event, Kind::receive, findings);
    case Type::mcast_posted: return post(event, Kind::broadcast, findings);
    case Type::send_announced:
    case Type::send_granted:
    case Type::message_sent:
    case Type::message_arrived:
    case Type::message_released:
    case Type::message_failed: return step(event, findings);
    default: return;
  }
}

void RequestBook::finish(TraceCheck& result, Findings& findings) const {
  for (int kind = 0; kind < 3; ++kind) {
    if (!gap_.empty()) {
      skip_account(result, request_accounts[kind], rank_.rank, gap_);
      continue;
    }
    if (posted_[kind] == 0) continue;
    std::vector<std::pair<std::string, std::uint64_t>> counts{
        {"posted", posted_[kind]}, {"released", released_[kind]}, {"failed", failed_[kind]}};
    if (kind != static_cast<int>(Kind::broadcast)) counts.insert(counts.begin() + 1, {moved_words[kind], moved_[kind]});
    add_to_account(result, request_accounts[kind], counts);
  }
  if (!gap_.empty() || !recorded_.ended()) return;
  for (const auto& [number, request] : requests_) {
    if (!request.released)
      findings.add("each request that is posted is released or fails",
                   fmt::format("rank {}: request {}, one of the {}", rank_.rank, number,
                               request_accounts[static_cast<int>(request.kind)]));
    else if (!request.moved && request.kind == Kind::send)
      findings.add("each send that is posted is sent or fails", fmt::format("rank {}: request {}", rank_.rank, number));
  }
}

MemoryBook::MemoryBook(const trace::RankTrace& rank, const Recorded& recorded) : rank_(rank), recorded_(recorded) {
  using enum Type;
  memory_gap_ = recorded.gap({data_allocated, data_freed});
  transfer_gap_ = recorded.gap({transfer_started, transfer_ended});
  bag_gap_ = recorded.gap({bag_opened, bag_joined, bag_closed});
}

void MemoryBook::add_memory(const Event& event, Findings& findings) {
  if (!memory_gap_.empty()) return;
  const std::uint64_t bytes = event.number(2);
  Amount& alive = alive_[{u32(event, 0), u32(event, 1)}];
  if (event.type == Type::data_allocated) {
    ++alive.count;
    alive.bytes += bytes;
    ++allocated_.count;
    allocated_.bytes += bytes;
    return;
  }
  ++freed_.count;
  freed_.bytes += bytes;
  if (alive.count == 0 || alive.bytes < bytes)
    return findings.add("no memory is freed that was not allocated",
                        fmt::format("rank {}: {} bytes of data {} on node {}, while {} are allocated", rank_.rank,
                                    bytes, u32(event, 0), u32(event, 1), alive.bytes));
  --alive.count;
  alive.bytes -= bytes;
}

void MemoryBook::add_transfer(const Event& event, Findings& findings) {
  if (!transfer_gap_.empty()) return;
  std::uint64_t& under_way = under_way_[{u32(event, 0), u32(event, 1), u32(event, 2)}];
  if (event.type == Type::transfer_started) {
    ++under_way;
    ++transfers_started_;
    return;
  }
  ++transfers_ended_;
  if (under_way == 0)
    return findings.add("no transfer ends that was not started",
                        fmt::format("rank {}: data {} from node {} to node {}", rank_.rank, u32(event, 0),
                                    u32(event, 1), u32(event, 2)));
  --under_way;
}

/// The submitting thread records recipients, and the bag's sender records that it is closed; a recipient that joins a
/// broadcast that has not left yet is recorded after that. So only the numbers of these events are compared, not their
/// order.
void MemoryBook::add_bag(const Event& event) {
  if (!bag_gap_.empty()) return;
  Bag& bag = bags_[u32(event, 0)];
  if (event.type == Type::bag_opened) {
    ++bag.opened;
    ++bags_opened_;
  } else if (event.type == Type::bag_closed) {
    ++bag.closed;
    ++bags_closed_;
  }
}

void MemoryBook::check_bags(Findings& findings) const {
  for (const auto& [number, bag] : bags_) {
    const std::string example = fmt::format("rank {}: bag {}", rank_.rank, number);
    if (bag.opened > 1) findings.add("a bag is opened once", example);
    if (bag.opened == 0 || bag.closed > 1)
      findings.add("recipients join bags that were opened, and bags are closed once", example);
    if (recorded_.ended() && bag.opened > 0 && bag.closed == 0)
      findings.add("each bag that was opened is closed", example);
  }
}

void MemoryBook::add(const Event& event, Findings& findings) {
  switch (event.type) {
    case Type::data_allocated:
    case Type::data_freed: return add_memory(event, findings);
    case Type::transfer_started:
    case Type::transfer_ended: return add_transfer(event, findings);
    case Type::bag_opened:
    case Type::bag_joined:
    case Type::bag_closed: return add_bag(event);
    default: return;
  }
}

void MemoryBook::finish(TraceCheck& result, Findings& findings) const {
  if (!memory_gap_.empty()) {
    skip_account(result, "memory", rank_.rank, memory_gap_);
  } else if (allocated_.count + freed_.count > 0) {
    std::uint64_t alive = 0;
    for (const auto& [place, amount] : alive_) alive += amount.bytes;
    add_to_account(result, "memory",
                   {{"allocated", allocated_.count},
                    {"given back", freed_.count},
                    {"bytes allocated", allocated_.bytes},
                    {"bytes given back", freed_.bytes},
                    {"bytes left", alive}});
  }
  if (!transfer_gap_.empty())
    skip_account(result, "transfers", rank_.rank, transfer_gap_);
  else if (transfers_started_ + transfers_ended_ > 0)
    add_to_account(result, "transfers", {{"started", transfers_started_}, {"ended", transfers_ended_}});
  if (!bag_gap_.empty())
    skip_account(result, "bags", rank_.rank, bag_gap_);
  else if (bags_opened_ + bags_closed_ > 0)
    add_to_account(result, "bags", {{"opened", bags_opened_}, {"closed", bags_closed_}});
  check_bags(findings);
  if (!recorded_.ended()) return;
  for (const auto& [place, count] : under_way_)
    if (count > 0)
      findings.add("each transfer that was started ends",
                   fmt::format("rank {}: data {} from node {} to node {}: {} have not", rank_.rank, std::get<0>(place),
                               std::get<1>(place), std::get<2>(place), count));
}

}  // namespace tandem::tools
