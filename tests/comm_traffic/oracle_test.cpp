// tests/comm_traffic/oracle_test.cpp: the oracle accepts what a plain model of matching does, and refuses it with one
// mistake.
#include "oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>

namespace tandem::comm_traffic::oracle_test {
namespace {

/// A world without a network library: deliveries of one (source, rank) arrive in order, everything else in any order.
class Model {
 public:
  Model(Plan& plan, std::uint64_t seed) : plan_(plan), random_(seed), next_step_(plan.steps.size()) {
    outcomes_.resize(plan.receives.size());
  }

  std::vector<Outcome> run() {
    while (step()) {}
    for (std::size_t i = 0; i < outcomes_.size(); ++i) std::erase(posted_[plan_.receives[i].rank], i);  // cancelled
    for (auto& [rank, messages] : arrived_) {
      for (const std::size_t message : std::vector(messages)) {
        plan_.receives.push_back({.rank = rank,
                                  .channel = plan_.messages[message].channel,
                                  .any_source = true,
                                  .any_tag = true,
                                  .sweep = true,
                                  .capacity_bytes = plan_.shape.largest_bytes + plan_.shape.eager_bytes});
        outcomes_.push_back({});
        post(plan_.receives.size() - 1);
      }
    }
    return outcomes_;
  }

 private:
  bool step() {
    std::vector<std::function<void()>> possible;
    for (std::uint32_t rank = 0; rank < plan_.steps.size(); ++rank) {
      if (next_step_[rank] < plan_.steps[rank].size()) possible.push_back([this, rank] { play(rank); });
    }
    for (auto& [path, messages] : flying_) {
      if (!messages.empty()) possible.push_back([this, rank = path.second, &queue = messages] { arrive(rank, queue); });
    }
    if (possible.empty()) return false;
    possible[random_() % possible.size()]();
    return true;
  }
  void play(std::uint32_t rank) {
    const Step step = plan_.steps[rank][next_step_[rank]++];
    if (!step.is_message) return post(step.index);
    for (const Delivery& to : plan_.messages[step.index].to) flying_[{rank, to.rank}].push_back(step.index);
  }
  void arrive(std::uint32_t rank, std::deque<std::size_t>& queue) {
    const std::size_t message = queue.front();
    queue.pop_front();
    for (const std::size_t receive : posted_[rank]) {
      if (plan_.receives[receive].matches(plan_.messages[message])) {
        std::erase(posted_[rank], receive);
        return match(receive, message);
      }
    }
    arrived_[rank].push_back(message);
  }
  void post(std::size_t receive) {
    auto& messages = arrived_[plan_.receives[receive].rank];
    for (const std::size_t message : messages) {
      if (plan_.receives[receive].matches(plan_.messages[message])) {
        std::erase(messages, message);
        return match(receive, message);
      }
    }
    posted_[plan_.receives[receive].rank].push_back(receive);
  }
  void match(std::size_t receive, std::size_t number) {
    const PlannedMessage& message = plan_.messages[number];
    const bool short_buffer = !plan_.receives[receive].owned && plan_.receives[receive].capacity_bytes < message.bytes;
    outcomes_[receive] = {.message = number, .source = message.source, .tag = message.tag, .bytes = message.bytes,
                          .truncated = short_buffer};
  }

  Plan& plan_;
  std::mt19937_64 random_;
  std::vector<std::size_t> next_step_;
  std::vector<Outcome> outcomes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::size_t>> flying_;
  std::map<std::uint32_t, std::vector<std::size_t>> posted_, arrived_;
};

TEST(TrafficOracle, AcceptsWhatMatchingDoes) {
  std::size_t cancelled = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Plan plan = draw_plan(draw_shape(seed), seed);
    const std::vector<Outcome> outcomes = Model(plan, seed).run();
    ASSERT_EQ(broken_rule(plan, outcomes), "") << "seed " << seed;
    for (const Outcome& outcome : outcomes) cancelled += !outcome.message;
  }
  EXPECT_GT(cancelled, 0u) << "the plans never leave a receive";
}

TEST(TrafficOracle, RefusesOneMistake) {
  std::map<std::string, int> refused;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Plan plan = draw_plan(draw_shape(seed), seed);
    const std::vector<Outcome> right = Model(plan, seed).run();
    std::mt19937_64 random(seed);
    if (right.size() < 2) continue;
    const std::size_t a = random() % right.size(), b = random() % right.size();
    if (!right[a].message || !right[b].message || right[a].message == right[b].message) continue;
    std::vector<Outcome> lost = right, twice = right, damaged = right, resized = right;
    lost[a].message.reset();
    twice[a] = right[b];
    damaged[a].content_right = false;
    ++resized[a].bytes;
    for (const auto* wrong : {&lost, &twice, &damaged, &resized})
      ASSERT_NE(broken_rule(plan, *wrong), "") << "seed " << seed;
    std::vector<Outcome> swapped = right;
    std::swap(swapped[a], swapped[b]);
    const PlannedMessage &first = plan.messages[*right[a].message], &second = plan.messages[*right[b].message];
    const bool same_key = plan.receives[a].rank == plan.receives[b].rank && first.source == second.source &&
                          first.tag == second.tag && first.channel == second.channel;
    if (!same_key) continue;
    ++refused["overtaking"];
    ASSERT_NE(broken_rule(plan, swapped), "") << "seed " << seed;
  }
  EXPECT_GT(refused["overtaking"], 3);
}

}  // namespace
}  // namespace tandem::comm_traffic::oracle_test
