// tandem/comm/schedule/strategy_test.cpp: each strategy by example, by its promises over random queues, and in a model
// of rails.
#include "tandem/comm/schedule/strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tandem/comm/schedule/rail_share.hpp"

namespace tandem::comm::strategy_test {
namespace {

constexpr std::size_t segment_bytes = 64 << 10;

struct Item : SendItem {
  static Item message(std::int32_t priority, std::uint64_t tag = 0, std::uint32_t bytes = 32) {
    return Item(SendKind::record, priority, tag, bytes, 0);
  }
  static Item whole(std::int32_t priority, std::uint64_t bytes) {
    return Item(SendKind::whole, priority, 0, 32, bytes);
  }
  static Item stream(std::int32_t priority, std::uint64_t bytes) {
    return Item(SendKind::stream, priority, 0, 24, bytes);
  }

  Item(SendKind of_kind, std::int32_t with_priority, std::uint64_t with_tag, std::uint32_t control,
       std::uint64_t bulk) {
    kind = of_kind;
    ordered = of_kind != SendKind::stream;
    priority = with_priority;
    tag = with_tag;
    control_bytes = control;
    bulk_bytes = bulk;
  }
};

std::unique_ptr<Strategy> strategy(std::string_view name) { return std::move(make_strategy(name).value()); }

/// One rail with usual limits.
struct OneRail {
  std::array<RailState, 1> states{RailState{.bytes_per_ns = 1, .latency_ns = 1000}};
  RailView view{.rail = 0,
                .rails = states,
                .max_control_bytes = 4096,
                .max_payload_bytes = 1 << 20,
                .segment_bytes = segment_bytes};
};

using Records = std::vector<SendItem*>;

TEST(Strategy, FifoSendsOneItemAfterTheOther) {
  const auto fifo = strategy("fifo");
  SendQueue queue(fifo->order());
  Item a = Item::message(0), s = Item::stream(0, 100'000), b = Item::message(9);
  for (Item* item : {&a, &s, &b}) queue.push(*item);
  OneRail rail;
  PacketPlan plan;
  fifo->plan(queue, rail.view, plan);
  EXPECT_EQ(plan.records, (Records{&a}));
  EXPECT_EQ(plan.bulk, nullptr);
  queue.commit(plan);
  for (const std::uint64_t bytes : {segment_bytes, 100'000 - segment_bytes}) {
    fifo->plan(queue, rail.view, plan);
    EXPECT_TRUE(plan.records.empty());
    EXPECT_EQ(plan.bulk, &s);
    EXPECT_EQ(plan.bulk_bytes, bytes);
    queue.commit(plan);
  }
  fifo->plan(queue, rail.view, plan);
  EXPECT_EQ(plan.records, (Records{&b}));
}

TEST(Strategy, AggregateFillsThePacketInTheOrderOfPosting) {
  const auto aggregate = strategy("aggregate");
  SendQueue queue(aggregate->order());
  std::vector<std::unique_ptr<Item>> messages;
  Item s = Item::stream(0, 1000);
  queue.push(s);
  for (int i = 0; i < 10; ++i) {
    messages.push_back(std::make_unique<Item>(Item::message(i, 0, 1000).kind, i, 0, 1000, 0));
    queue.push(*messages.back());
  }
  OneRail rail;
  PacketPlan plan;
  aggregate->plan(queue, rail.view, plan);
  EXPECT_EQ(plan.records, (Records{messages[0].get(), messages[1].get(), messages[2].get(), messages[3].get()}));
  EXPECT_EQ(plan.bulk, &s);
  EXPECT_EQ(plan.control_bytes, 4024u);
}

TEST(Strategy, AnUrgentMessageRidesInTheNextPacketAndTheRestWaits) {
  for (const char* name : {"priority", "split"}) {
    const auto priority = strategy(name);
    SendQueue queue(priority->order());
    Item low = Item::stream(0, 64 << 20), large = Item::stream(9, 1 << 20);
    Item small = Item::message(-1, 1), urgent = Item::message(9, 2);
    OneRail rail;
    PacketPlan plan;
    queue.push(low);
    queue.push(small);
    priority->plan(queue, rail.view, plan);
    EXPECT_EQ(plan.bulk, &low);
    EXPECT_TRUE(plan.records.empty()) << "what is less important than the stream waits for it";
    queue.commit(plan);
    queue.push(urgent);
    priority->plan(queue, rail.view, plan);
    EXPECT_EQ(plan.records, (Records{&urgent}));
    EXPECT_EQ(plan.bulk, &low);
    EXPECT_EQ(plan.bulk_bytes, segment_bytes);
    queue.commit(plan);
    queue.push(large);
    priority->plan(queue, rail.view, plan);
    EXPECT_EQ(plan.bulk, &large);
  }
}

TEST(Strategy, WholeMessagesAndSegmentsOfOnePriorityTakeTurns) {
  for (const char* name : {"aggregate", "priority", "split"}) {
    const auto chosen = strategy(name);
    SendQueue queue(chosen->order());
    Item s = Item::stream(0, 1 << 20), a = Item::whole(0, 9000), b = Item::whole(0, 9000), c = Item::whole(0, 9000);
    for (Item* item : {&s, &a, &b, &c}) queue.push(*item);
    OneRail rail;
    PacketPlan plan;
    std::vector<SendItem*> payloads;
    for (int i = 0; i < 6; ++i) {
      chosen->plan(queue, rail.view, plan);
      payloads.push_back(plan.bulk);
      queue.commit(plan);
    }
    EXPECT_EQ(payloads, (Records{&a, &s, &b, &s, &c, &s})) << name;
  }
}

TEST(Strategy, AnUnknownNameIsRefusedWithTheNearest) {
  const auto refused = make_strategy("agregate");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::not_found);
  EXPECT_EQ(
      refused.error().message,
      "no packet strategy is called 'agregate'; did you mean 'aggregate'? Known: aggregate, fifo, priority, split");
}

TEST(Strategy, UsersRegisterTheirOwn) {
  StrategyRegistry registry;
  EXPECT_TRUE(registry.add("mine", [] { return strategy("fifo"); }).ok());
  EXPECT_EQ(registry.make("mine").value()->name(), "fifo");
  EXPECT_FALSE(registry.add("mine", [] { return strategy("fifo"); }).ok());
  EXPECT_FALSE(registry.add("", [] { return strategy("fifo"); }).ok());
  EXPECT_EQ(registry.names().size(), 5u);
}

TEST(RailShare, AllRailsEndTogether) {
  const std::array<RailState, 2> rails{RailState{.bytes_per_ns = 2}, RailState{.bytes_per_ns = 1, .latency_ns = 600}};
  EXPECT_DOUBLE_EQ(internal::share_of_rail(rails, 0, 3000, 1), 2400);
  EXPECT_DOUBLE_EQ(internal::share_of_rail(rails, 1, 3000, 1), 600);
  EXPECT_DOUBLE_EQ(internal::share_of_rail(rails, 0, 1000, 1), 1000);
  EXPECT_DOUBLE_EQ(internal::share_of_rail(rails, 1, 1000, 1), 0);
}

TEST(RailShare, ARailIsNotBotheredForLessThanTheLeast) {
  const std::array<RailState, 2> rails{RailState{.bytes_per_ns = 2}, RailState{.bytes_per_ns = 1, .latency_ns = 600}};
  EXPECT_DOUBLE_EQ(internal::share_of_rail(rails, 0, 3000, 601), 3000);
  EXPECT_DOUBLE_EQ(internal::share_of_rail(rails, 1, 3000, 601), 0);
}

TEST(RailShare, PartsAddUp) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<RailState> rails(1 + random() % 6);
    for (RailState& rail : rails) {
      rail = {.bytes_per_ns = static_cast<double>(random() % 20) / 4,
              .latency_ns = static_cast<std::int64_t>(random() % 20'000),
              .in_flight_bytes = random() % 3 == 0 ? random() % 1'000'000 : 0};
    }
    const std::uint64_t bytes = 1 + random() % 10'000'000, least = random() % 100'000;
    double sum = 0;
    for (unsigned r = 0; r < rails.size(); ++r) {
      const double share = internal::share_of_rail(rails, r, bytes, least);
      ASSERT_GE(share, 0);
      sum += share;
    }
    ASSERT_NEAR(sum, static_cast<double>(bytes), 1e-6 * static_cast<double>(bytes) + 1e-6);
  }
}

/// Rails that send packets one after the other in model time, and ask the strategy when they are free.
double time_to_send_ns(std::vector<RailState> states, std::uint64_t bytes,
                       std::vector<std::uint64_t>* carried = nullptr) {
  const auto split = strategy("split");
  SendQueue queue(split->order());
  Item stream = Item::stream(0, bytes);
  queue.push(stream);
  std::vector<double> free_ns(states.size(), 0);
  double end_ns = 0;
  PacketPlan plan;
  while (queue.ready_stream_count() > 0) {
    std::vector<unsigned> by_time(states.size());
    std::iota(by_time.begin(), by_time.end(), 0);
    std::sort(by_time.begin(), by_time.end(), [&](unsigned a, unsigned b) { return free_ns[a] < free_ns[b]; });
    bool took = false;
    for (const unsigned rail : by_time) {  // what other rails have still queued when this one is free
      for (unsigned r = 0; r < states.size(); ++r) {
        const double busy_ns = std::max(0.0, free_ns[r] - free_ns[rail]);
        states[r].in_flight_bytes = static_cast<std::uint64_t>(busy_ns * states[r].bytes_per_ns);
      }
      const RailView view{.rail = rail,
                          .rails = states,
                          .max_control_bytes = 4096,
                          .max_payload_bytes = 1 << 20,
                          .segment_bytes = segment_bytes};
      split->plan(queue, view, plan);
      if (plan.empty()) continue;
      free_ns[rail] += static_cast<double>(plan.bulk_bytes) / states[rail].bytes_per_ns;
      end_ns = std::max(end_ns, free_ns[rail] + static_cast<double>(states[rail].latency_ns));
      if (carried) (*carried)[rail] += plan.bulk_bytes;
      queue.commit(plan);
      took = true;
      break;
    }
    if (!took) {
      ADD_FAILURE() << "no rail takes what is ready";
      break;
    }
  }
  return end_ns;
}

TEST(Split, RailsShareALargeStreamByTheirBandwidth) {
  for (const auto& [fast, slow] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {10.0, 1.0}, {3.0, 0.1}}) {
    std::vector<std::uint64_t> carried(2);
    const double bytes = 64 << 20;
    const std::vector<RailState> rails{{.bytes_per_ns = slow, .latency_ns = 5000},
                                       {.bytes_per_ns = fast, .latency_ns = 1000}};
    const double ns = time_to_send_ns(rails, 64 << 20, &carried);
    EXPECT_LE(ns, 1.02 * bytes / (fast + slow) + 6000) << fast << " and " << slow;
    EXPECT_NEAR(static_cast<double>(carried[1]) / bytes, fast / (fast + slow), 0.02);
  }
}

TEST(Split, NeverLaterThanTheBestRailAlone) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<RailState> rails(1 + random() % 4);
    double alone_ns = 1e30;
    const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << (1 + random() % 25));
    for (RailState& rail : rails) {
      rail = {.bytes_per_ns = static_cast<double>(1 + random() % 40) / 4,
              .latency_ns = static_cast<std::int64_t>(100 + random() % 20'000)};
      alone_ns =
          std::min(alone_ns, static_cast<double>(bytes) / rail.bytes_per_ns + static_cast<double>(rail.latency_ns));
    }
    ASSERT_LE(time_to_send_ns(rails, bytes), alone_ns + 512)  // parts are cut to whole cache lines
        << bytes << " bytes over " << rails.size() << " rails, round " << round;
  }
}

TEST(Split, ASmallStreamStaysWholeOnTheRailThatEndsFirst) {
  std::vector<std::uint64_t> carried(2);
  time_to_send_ns({{.bytes_per_ns = 1, .latency_ns = 20'000}, {.bytes_per_ns = 0.5, .latency_ns = 1000}}, 8000,
                  &carried);
  EXPECT_EQ(carried, (std::vector<std::uint64_t>{0, 8000}));
}

}  // namespace
}  // namespace tandem::comm::strategy_test
