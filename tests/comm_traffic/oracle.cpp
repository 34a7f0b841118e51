// tests/comm_traffic/oracle.cpp: the rules, one function each.
#include "oracle.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace tandem::comm_traffic {
namespace {

std::string name_of(const Plan& plan, std::size_t receive) {
  return "receive " + std::to_string(receive) + " of rank " + std::to_string(plan.receives[receive].rank);
}

std::string wrong_message(const Plan& plan, std::size_t index, const Outcome& outcome) {
  const PlannedReceive& receive = plan.receives[index];
  if (*outcome.message >= plan.messages.size()) return name_of(plan, index) + " got a message that nobody sent";
  const PlannedMessage& message = plan.messages[*outcome.message];
  const std::string what = name_of(plan, index) + ", message " + std::to_string(*outcome.message) + ": ";
  const bool meant = std::any_of(message.to.begin(), message.to.end(),
                                 [&](const Delivery& d) { return d.rank == receive.rank; });
  if (!meant) return what + "it was not sent to this rank";
  if (!receive.matches(message)) return what + "the pattern does not match";
  if (outcome.source != message.source || outcome.tag != message.tag)
    return what + "the reported source or tag is wrong";
  if (outcome.bytes != message.bytes) return what + "the reported size is wrong: " + std::to_string(outcome.bytes);
  if (outcome.truncated != (!receive.owned && receive.capacity_bytes < message.bytes))
    return what + "the truncation is wrong";
  if (!outcome.content_right) return what + "the bytes are wrong";
  return "";
}

std::string wrong_count(const Plan& plan, const std::vector<Outcome>& outcomes) {
  std::map<std::pair<std::size_t, std::uint32_t>, int> count;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].message) ++count[{*outcomes[i].message, plan.receives[i].rank}];
  }
  for (std::size_t m = 0; m < plan.messages.size(); ++m) {
    for (const Delivery& delivery : plan.messages[m].to) {
      const int times = count[{m, delivery.rank}];
      if (times == 1) continue;
      const std::string by = " times by rank " + std::to_string(delivery.rank);
      return "message " + std::to_string(m) + " was received " + std::to_string(times) + by;
    }
  }
  return "";
}

std::string overtaking(const Plan& plan, const std::vector<Outcome>& outcomes) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>, std::size_t> last;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].message) continue;
    const PlannedMessage& message = plan.messages[*outcomes[i].message];
    const std::tuple key(plan.receives[i].rank, message.source, message.channel, message.tag);
    const auto [entry, is_first] = last.try_emplace(key, *outcomes[i].message);
    if (!is_first && entry->second > *outcomes[i].message) {
      return name_of(plan, i) + " got message " + std::to_string(*outcomes[i].message) +
             ", and an older receive got message " + std::to_string(entry->second) + " of the same key";
    }
    entry->second = *outcomes[i].message;
  }
  return "";
}

std::string passed_over(const Plan& plan, const std::vector<Outcome>& outcomes) {
  for (std::size_t left = 0; left < outcomes.size(); ++left) {
    if (outcomes[left].message) continue;
    if (!plan.receives[left].may_starve) return name_of(plan, left) + " was left without a message";
    for (std::size_t later = left + 1; later < outcomes.size(); ++later) {
      const PlannedReceive& other = plan.receives[later];
      if (!outcomes[later].message || other.sweep || other.rank != plan.receives[left].rank) continue;
      if (!plan.receives[left].matches(plan.messages[*outcomes[later].message])) continue;
      return name_of(plan, left) + " was overtaken by " + name_of(plan, later);
    }
  }
  return "";
}

}  // namespace

std::string broken_rule(const Plan& plan, const std::vector<Outcome>& outcomes) {
  if (outcomes.size() != plan.receives.size()) return "there are not as many outcomes as receives";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].message) continue;
    if (std::string broken = wrong_message(plan, i, outcomes[i]); !broken.empty()) return broken;
  }
  for (const auto rule : {wrong_count, overtaking, passed_over}) {
    if (std::string broken = rule(plan, outcomes); !broken.empty()) return broken;
  }
  return "";
}

}  // namespace tandem::comm_traffic
