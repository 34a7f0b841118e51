// tandem/dist/agreement.cpp: sends values up the tree, and the outcome down.
#include "tandem/dist/agreement.hpp"
#include "tandem/base/narrow.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace tandem::dist {

Agreement::Agreement(comm::Endpoint& endpoint, std::string_view name)
    : endpoint_(endpoint),
      up_(endpoint.channel(std::string(name) + ".up")),
      down_(endpoint.channel(std::string(name) + ".down")) {
  const auto listen = [this](comm::Channel channel, bool up) {
    endpoint_.register_rpc(channel, {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                                     .done =
                                         [this, up](const comm::Status& status) {
                                           if (status.ending == comm::Ending::done)
                                             arrived(up, status.source.value(), status.tag.value(), status.owned);
                                         }});
  };
  listen(up_, true);
  listen(down_, false);
}

/// Binomial tree: rank r has the children r + 2^j with 2^j below r's lowest set bit.
std::vector<std::uint32_t> Agreement::children_of(std::uint32_t rank, std::uint32_t size) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t step = 1; rank + step < size && (rank == 0 || step < (rank & -rank)); step *= 2)
    result.push_back(rank + step);
  return result;
}

std::vector<std::uint32_t> Agreement::neighbours_of(std::uint32_t rank, std::uint32_t size) {
  std::vector<std::uint32_t> result = children_of(rank, size);
  if (rank != 0) result.push_back(rank & (rank - 1));
  return result;
}

/// The subtree of a child has the ranks up to its lowest set bit.
std::vector<Agreement::Missing> Agreement::missing() {
  const std::lock_guard guard(mutex_);
  const auto at = std::find_if(rounds_.begin(), rounds_.end(), [](const auto& round) { return round.second.begun; });
  if (at == rounds_.end()) return {};
  std::vector<Missing> missing;
  const std::vector<std::uint32_t>& heard = at->second.heard_from;
  for (const std::uint32_t child : children())
    if (std::find(heard.begin(), heard.end(), child) == heard.end())
      missing.push_back({child, std::min(child + (child & -child), endpoint_.size()) - 1, false});
  const std::uint32_t rank = endpoint_.rank().value();
  if (missing.empty() && rank != 0) missing.push_back({rank & (rank - 1), rank & (rank - 1), true});
  return missing;
}

void Agreement::begin(Bytes mine, Merge merge, std::function<void(std::span<const std::byte>)> done) {
  std::uint64_t number = 0;
  {
    const std::lock_guard guard(mutex_);
    number = begun_++;
    Round& round = rounds_[number];
    round.begun = true;
    round.merged = std::move(mine);
    round.merge = std::move(merge);
    round.done = std::move(done);
    for (const auto& [from, value] : round.early) {
      round.merge(round.merged, value);
      round.heard_from.push_back(from);
    }
    round.heard = base::narrow<unsigned>(round.early.size());
    round.early.clear();
  }
  advance(number);
}

void Agreement::arrived(bool up, std::uint32_t from, std::uint64_t number, std::span<const std::byte> bytes) {
  if (!up) return finish(number, bytes);
  {
    const std::lock_guard guard(mutex_);
    Round& round = rounds_[number];
    if (!round.begun) {
      round.early.emplace_back(from, Bytes(bytes.begin(), bytes.end()));
      return;
    }
    round.merge(round.merged, bytes);
    round.heard_from.push_back(from);
    ++round.heard;
  }
  advance(number);
}

/// Sends the result up once all children's values are merged; at the root the round is decided.
void Agreement::advance(std::uint64_t number) {
  Bytes merged;
  {
    const std::lock_guard guard(mutex_);
    const auto at = rounds_.find(number);
    if (at == rounds_.end()) return;  // the round was decided meanwhile
    Round& round = at->second;
    if (!round.begun || round.heard != children().size()) return;
    ++round.heard;  // counted once
    merged = std::move(round.merged);
  }
  const std::uint32_t rank = endpoint_.rank().value();
  if (rank == 0) finish(number, merged);
  else send(rank & (rank - 1), true, number, merged);
}

void Agreement::finish(std::uint64_t number, std::span<const std::byte> outcome) {
  std::function<void(std::span<const std::byte>)> done;
  {
    const std::lock_guard guard(mutex_);
    const auto at = rounds_.find(number);
    if (at == rounds_.end() || !at->second.begun) return;  // the message is malformed
    done = std::move(at->second.done);
    rounds_.erase(at);
  }
  const Bytes copy(outcome.begin(), outcome.end());
  for (const std::uint32_t child : children()) send(child, false, number, copy);
  done(copy);
}

void Agreement::send(std::uint32_t to, bool up, std::uint64_t number, const Bytes& bytes) {
  const auto kept = std::make_shared<Bytes>(bytes);
  const auto drop = [kept](const comm::Status&) {};
  endpoint_.isend(
      comm::Rank(to), comm::Tag(number), comm::SendBuffer(kept->data(), kept->size()),
      {.channel = up ? up_ : down_, .priority = kPriority, .callbacks = {.released = drop, .failed = drop}});
}

}  // namespace tandem::dist
