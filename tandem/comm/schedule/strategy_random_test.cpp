// tandem/comm/schedule/strategy_random_test.cpp: what every strategy promises, over random queues and rails.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm::strategy_random_test {
namespace {

/// Pushes, becomes ready, cancels and sends at random under one strategy, and checks each plan.
class Traffic {
 public:
  Traffic(const std::string& name, std::uint64_t seed)
      : random_(seed),
        strategy_(std::move(make_strategy(name).value())),
        queue_(strategy_->order()),
        rails_(1 + below(3)) {
    for (RailState& rail : rails_) {
      rail = {.bytes_per_ns = static_cast<double>(below(8)) / 2,
              .latency_ns = static_cast<std::int64_t>(below(10'000))};
    }
    max_control_bytes_ = 256 + below(4096);
    max_payload_bytes_ = 1 + below(100'000);
    segment_bytes_ = 1 + below(100'000);
  }

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
      const std::uint64_t dice = below(100);
      if (dice < 45) push();
      else if (dice < 50) make_ready();
      else if (dice < 53) cancel();
      else send();
      queue_.check_invariants();
    }
    while (!queue_.idle() && !testing::Test::HasFatalFailure()) send();
    EXPECT_EQ(queue_.message_count(), 0u) << "every message is sent in the end";
    for (const auto& [item, bytes] : unsent_) EXPECT_EQ(bytes, 0u) << "every ready byte is sent in the end";
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void push() {
    SendItem& item = *items_.emplace_back(std::make_unique<SendItem>());
    item.priority = static_cast<std::int32_t>(below(4));
    item.tag = below(3);
    item.kind = static_cast<SendKind>(below(3));
    item.ordered = item.kind == SendKind::whole || (item.kind == SendKind::record && below(2) == 0);
    item.control_bytes = static_cast<std::uint32_t>(8 + below(item.kind == SendKind::stream ? 25 : 200));
    if (item.kind == SendKind::whole) item.bulk_bytes = 1 + below(max_payload_bytes_);
    if (item.kind == SendKind::stream) item.bulk_bytes = unsent_[&item] = below(300'000);
    queue_.push(item);
  }
  void make_ready() {
    SendItem* const item = some_queued();
    if (!item || item->kind != SendKind::stream) return;
    const std::uint64_t more = below(200'000);
    unsent_[item] += more;
    queue_.update(*item, item->bulk_bytes + more);
  }
  void cancel() {
    SendItem* const item = some_queued();
    if (!item) return;
    unsent_.erase(item);
    queue_.remove(*item);
  }
  SendItem* some_queued() {
    if (items_.empty()) return nullptr;
    SendItem* const item = items_[below(items_.size())].get();
    return item->queued() ? item : nullptr;
  }

  void send() {
    bool sent = false;
    const unsigned first_rail = static_cast<unsigned>(below(rails_.size()));
    for (unsigned i = 0; i < rails_.size() && !sent && !testing::Test::HasFatalFailure(); ++i) {
      const unsigned rail = static_cast<unsigned>((first_rail + i) % rails_.size());
      const RailView view{.rail = rail, .rails = rails_, .max_control_bytes = max_control_bytes_,
                          .max_payload_bytes = max_payload_bytes_, .segment_bytes = segment_bytes_};
      strategy_->plan(queue_, view, plan_);
      if (plan_.empty()) continue;
      check_plan(rail);
      rails_[rail].in_flight_bytes = below(3) == 0 ? plan_.bulk_bytes : 0;
      if (plan_.bulk && plan_.bulk->kind == SendKind::stream) unsent_[plan_.bulk] -= plan_.bulk_bytes;
      queue_.commit(plan_);
      sent = true;
    }
    ASSERT_TRUE(sent || queue_.idle()) << "some rail takes what is ready";
  }

  void check_plan(unsigned rail) {
    std::size_t control = 0;
    std::set<const SendItem*> planned(plan_.records.begin(), plan_.records.end());
    ASSERT_EQ(planned.size(), plan_.records.size()) << "each item once";
    for (const SendItem* record : plan_.records) {
      ASSERT_TRUE(record->queued() && record->kind == SendKind::record);
      control += record->control_bytes;
    }
    const SendItem* const bulk = plan_.bulk;
    std::vector<const SendItem*> messages(plan_.records.begin(), plan_.records.end());
    if (bulk) {
      control += bulk->control_bytes;
      ASSERT_TRUE(bulk->queued() && bulk->kind != SendKind::record && plan_.bulk_bytes > 0);
      ASSERT_LE(plan_.bulk_bytes, max_payload_bytes_);
      ASSERT_LE(plan_.bulk_bytes, bulk->bulk_bytes);
      if (bulk->kind == SendKind::stream) {
        ASSERT_LE(plan_.bulk_bytes, segment_bytes_);
      } else {
        ASSERT_EQ(plan_.bulk_bytes, bulk->bulk_bytes);
        messages.push_back(bulk);
      }
    }
    ASSERT_EQ(control, plan_.control_bytes);
    ASSERT_LE(control, max_control_bytes_);
    ASSERT_TRUE(rail == 0 || messages.empty());
    check_order(rail, messages);
  }

  /// Checks that the messages are the first ones of the queue, in its order, and none is less important than the
  /// planned stream.
  void check_order(unsigned rail, const std::vector<const SendItem*>& messages) {
    const bool by_priority = strategy_->order() == SendOrder::priority;
    SendQueue::Cursor at = queue_.messages();
    for (const SendItem* message : messages) {
      ASSERT_EQ(message, &*at);
      if (message->ordered) check_key(*message);
      if (by_priority && plan_.bulk && plan_.bulk->kind == SendKind::stream) {
        ASSERT_GE(at.priority(), plan_.bulk->priority);
      }
      at.advance();
    }
    if (by_priority && rail == 0 && at && messages.empty()) {
      ASSERT_TRUE(at.priority() <= plan_.bulk->priority) << "a segment goes alone past a more important message";
    }
  }
  void check_key(const SendItem& message) {
    std::uint64_t& last = last_sent_[message.tag];
    ASSERT_LE(last, message.sequence) << "messages of a key leave in their order";
    last = message.sequence;
  }

  std::mt19937_64 random_;
  std::unique_ptr<Strategy> strategy_;
  SendQueue queue_;
  std::vector<RailState> rails_;
  std::size_t max_control_bytes_, max_payload_bytes_, segment_bytes_;
  std::vector<std::unique_ptr<SendItem>> items_;
  std::map<const SendItem*, std::uint64_t> unsent_;
  std::map<std::uint64_t, std::uint64_t> last_sent_;
  PacketPlan plan_;
};

TEST(Strategy, PromisesHoldOverRandomTraffic) {
  for (const char* name : {"fifo", "aggregate", "priority", "split"}) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      SCOPED_TRACE(testing::Message() << name << ", seed " << seed);
      Traffic(name, seed).run(200);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tandem::comm::strategy_random_test
