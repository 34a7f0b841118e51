// tandem/comm/engine/deferral_test.cpp: messages that are deferred until their receiver wants them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tandem/comm/endpoint_test_support.hpp"
#include "tandem/comm/engine/allowance.hpp"

namespace tandem::comm::deferral_test {
namespace {

using endpoint_test::Bytes;
using endpoint_test::pattern;
using endpoint_test::World;

constexpr std::uint32_t kLimit = 10;
const EndpointOptions kFew{.credit_bytes = 4096, .credit_messages = 4, .credit_announcements = kLimit};

/// Rank 0 sends to rank 1, which expects nothing: message i has tag `tag_of(i)`.
struct Flood {
  template <class TagOf>
  Flood(World& among, unsigned count, std::size_t bytes, TagOf tag_of) : world(among) {
    for (unsigned i = 0; i < count; ++i) sent.push_back(pattern(bytes, i));
    for (unsigned i = 0; i < count; ++i) sends.push_back(sender().isend(Rank{1}, Tag{tag_of(i)}, sent[i]));
    world.settle();
  }
  Endpoint& sender() { return *world.at[0]; }
  Endpoint& receiver() { return *world.at[1]; }
  void expect_all_sent() {
    sender().wait_all(sends);
    for (const Request& send : sends) EXPECT_EQ(send.status().ending, Ending::done);
    world.settle();
    EXPECT_EQ(sender().statistics().deferred_messages, 0u);
    EXPECT_EQ(receiver().statistics().unexpected_messages, 0u);
  }

  World& world;
  std::vector<Bytes> sent;
  std::vector<Request> sends;
};

unsigned own_tag(unsigned i) { return i; }
unsigned one_tag(unsigned) { return 7; }

TEST(Deferral, AReceiverKeepsAsManyAnnouncementsAsWasSaid) {
  for (const std::size_t bytes : {100u, 100'000u}) {
    World world(2, {}, kFew);
    Flood flood(world, 1000, bytes, own_tag);
    const EndpointStatistics at_receiver = flood.receiver().statistics();
    EXPECT_LE(at_receiver.unexpected_messages, kLimit + kFew.credit_messages);
    EXPECT_EQ(flood.sender().statistics().deferred_messages, 1000 - at_receiver.unexpected_messages);
    for (unsigned i = 1000; i-- > 0;) {  // the opposite order: each message is wanted
      Bytes got(bytes);
      ASSERT_EQ(flood.receiver().wait(flood.receiver().irecv(Rank{0}, Tag{i}, got)).ending, Ending::done)
          << world.describe();
      ASSERT_EQ(got, flood.sent[i]) << bytes;
    }
    flood.expect_all_sent();
  }
}

TEST(Deferral, MessagesOfOneTagComeInTheirOrderWhateverTheirSize) {
  World world(2, {}, kFew);
  std::vector<Bytes> sent;
  std::vector<Request> sends;
  for (unsigned i = 0; i < 500; ++i) sent.push_back(pattern(i % 3 == 0 ? 0 : i % 3 == 1 ? 200 : 50'000, i));
  for (unsigned i = 0; i < 500; ++i)
    sends.push_back(world.at[0]->isend(Rank{1}, Tag{7}, sent[i], {.priority = static_cast<int>(i % 5)}));
  world.settle();
  EXPECT_GT(world.at[0]->statistics().deferred_messages, 0u);
  for (unsigned i = 0; i < 500; ++i) {
    const Request receive = world.at[1]->irecv_owned(i % 2 == 0 ? Source(Rank{0}) : Source(any_source), Tag{7});
    const Status status = world.at[1]->wait(receive);
    ASSERT_EQ(status.bytes, sent[i].size()) << i;
    ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(sent[i])), status.owned)) << i;
  }
  world.at[0]->wait_all(sends);
}

TEST(Deferral, ReceivesOfAnyTagAndFromAnySourceAreServed) {
  World world(3, {}, kFew);
  Flood flood(world, 200, 20'000, own_tag);
  std::vector<unsigned> seen(200);
  for (unsigned i = 0; i < 200; ++i) {
    Bytes got(20'000);
    const Source from = i % 2 == 0 ? Source(Rank{0}) : Source(any_source);
    const Status status = flood.receiver().wait(flood.receiver().irecv(from, any_tag, got));
    ASSERT_LT(status.tag.value(), 200u);
    ++seen[status.tag.value()];
    ASSERT_EQ(got, flood.sent[status.tag.value()]);
  }
  EXPECT_EQ(std::ranges::count(seen, 1u), 200);
  flood.expect_all_sent();
}

TEST(Deferral, WhatIsWantedAlreadyIsNotHeldBack) {
  World world(2, {}, kFew);
  std::vector<Bytes> got(100, Bytes(20'000));
  std::vector<Request> receives;
  for (unsigned i = 0; i < 100; ++i) receives.push_back(world.at[1]->irecv(Rank{0}, Tag{1000 + i}, got[i]));
  Flood flood(world, 100, 20'000, own_tag);
  const Bytes wanted = pattern(20'000, 1);
  std::vector<Request> sends;
  for (unsigned i = 0; i < 100; ++i) sends.push_back(world.at[0]->isend(Rank{1}, Tag{1000 + i}, wanted));
  world.at[1]->wait_all(receives);
  for (const Bytes& bytes : got) EXPECT_EQ(bytes, wanted);
  EXPECT_EQ(world.at[0]->statistics().deferred_messages, 100 - kLimit);
  for (unsigned i = 0; i < 100; ++i) flood.receiver().wait(flood.receiver().irecv_owned(Rank{0}, Tag{i}));
  world.at[0]->wait_all(sends);
  flood.expect_all_sent();
}

TEST(Deferral, AProbeFindsWhatIsHeldBack) {
  World world(2, {}, kFew);
  Flood flood(world, 100, 20'000, own_tag);
  const auto probed = [&] { return flood.receiver().probe(Rank{0}, Tag{99}); };
  EXPECT_FALSE(probed().has_value());
  EXPECT_FALSE(probed().has_value());
  world.settle();
  ASSERT_TRUE(probed().has_value());
  EXPECT_EQ(probed()->bytes, 20'000u);
  EXPECT_EQ(flood.receiver().statistics().unexpected_messages, kLimit + 1) << "asked once";
  for (unsigned i = 0; i < 100; ++i) flood.receiver().wait(flood.receiver().irecv_owned(Rank{0}, Tag{i}));
  flood.expect_all_sent();
}

TEST(Deferral, AHandlerTakesAll) {
  World world(2, {}, kFew);
  const Channel early = world.at[1]->channel("early"), late = world.at[1]->channel("late");
  unsigned done = 0;
  const RpcHandler handler{.arrived = [](const RpcArrival&) { return RpcAnswer{}; },
                           .done = [&](const Status&) { ++done; }};
  world.at[1]->register_rpc(early, handler);
  Flood flood(world, 100, 20'000, own_tag);
  const Bytes call = pattern(20'000, 1);
  std::vector<Request> calls;
  for (unsigned i = 0; i < 50; ++i) calls.push_back(world.at[0]->rpc(Rank{1}, early, Tag{i}, {}, call));
  world.at[0]->wait_all(calls);
  EXPECT_EQ(world.at[0]->statistics().deferred_messages, 100 - kLimit);
  for (unsigned i = 0; i < 50; ++i) calls.push_back(world.at[0]->rpc(Rank{1}, late, Tag{i}, {}, call));
  world.settle();
  EXPECT_EQ(done, 50u);
  world.at[1]->register_rpc(late, handler);
  world.at[0]->wait_all(calls);
  world.settle();
  EXPECT_EQ(done, 100u);
  for (unsigned i = 0; i < 100; ++i) flood.receiver().wait(flood.receiver().irecv_owned(Rank{0}, Tag{i}));
  flood.expect_all_sent();
}

/// Wants of receives from any source that others have met stay with the ranks that defer messages, until all are told
/// anew.
TEST(Deferral, WantsAreToldAnewAfterMany) {
  World world(3, {}, kFew);
  Flood flood(world, 100, 20'000, own_tag);
  const Bytes small = pattern(1, 1);
  for (unsigned i = 0; i < internal::kMostWants + 1000; ++i) {
    Bytes got(1);
    const Request receive = world.at[1]->irecv(any_source, Tag{1000}, got);
    world.at[2]->wait(world.at[2]->isend(Rank{1}, Tag{1000}, small));
    ASSERT_EQ(world.at[1]->wait(receive).ending, Ending::done) << i;
  }
  for (unsigned i = 100; i-- > 0;) {
    Bytes got(20'000);
    ASSERT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{i}, got)).ending, Ending::done) << world.describe();
    ASSERT_EQ(got, flood.sent[i]);
  }
  flood.expect_all_sent();
}

/// A rank with more receives than it may tell of asks for everything, and keeps it.
TEST(Deferral, MoreReceivesThanCanBeToldGetTheirMessages) {
  World world(2, {}, kFew);
  Flood flood(world, 100, 200, own_tag);
  EXPECT_GT(world.at[0]->statistics().deferred_messages, 0u);
  std::vector<std::byte> room(200);
  std::vector<Request> receives;
  for (unsigned i = 0; i < internal::kMostWants + 10; ++i)
    receives.push_back(world.at[1]->irecv(Rank{0}, Tag{1000 + i}, room));
  world.settle();
  EXPECT_EQ(world.at[0]->statistics().deferred_messages, 0u);
  EXPECT_EQ(world.at[1]->statistics().unexpected_messages, 100u);
  const Request last = world.at[0]->isend(Rank{1}, Tag{1000 + internal::kMostWants + 9}, flood.sent[1]);
  EXPECT_EQ(world.at[1]->wait(receives.back()).ending, Ending::done);
  world.at[0]->wait(last);
  for (const Request& receive : receives) world.at[1]->cancel(receive);
  for (unsigned i = 100; i-- > 0;) {
    Bytes got(200);
    world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{i}, got));
    ASSERT_EQ(got, flood.sent[i]);
  }
  flood.expect_all_sent();
}

/// More active messages than may be announced at once: the others follow.
TEST(Deferral, MoreActiveMessagesThanMayBeAnnouncedAllCome) {
  World world(2, {}, kFew);
  const Channel channel = world.at[1]->channel("calls");
  Flood flood(world, 20, 20'000, own_tag);
  const unsigned count = internal::kMostCalls + 5000;
  const Bytes call = pattern(200, 1);
  std::vector<Request> calls;
  for (unsigned i = 0; i < count; ++i) calls.push_back(world.at[0]->rpc(Rank{1}, channel, Tag{i % 7}, {}, call));
  world.settle();
  unsigned done = 0;
  world.at[1]->register_rpc(channel, {.done = [&](const Status&) { ++done; }});
  world.at[0]->wait_all(calls);
  world.settle();
  EXPECT_EQ(done, count);
  for (unsigned i = 0; i < 20; ++i) flood.receiver().wait(flood.receiver().irecv_owned(Rank{0}, Tag{i}));
  flood.expect_all_sent();
}

TEST(Deferral, WhatIsHeldBackCanBeCancelled) {
  World world(2, {}, kFew);
  Flood flood(world, 100, 20'000, one_tag);
  unsigned cancelled = 0;
  for (unsigned i = 0; i < 100; ++i) cancelled += i % 2 == 1 && flood.sender().cancel(flood.sends[i]);
  EXPECT_EQ(cancelled, (100 - kLimit) / 2);
  for (unsigned i = 0; i < 100; ++i) {
    if (flood.sends[i].released() && flood.sends[i].status().ending == Ending::cancelled) continue;
    Bytes got(20'000);
    flood.receiver().wait(flood.receiver().irecv(Rank{0}, Tag{7}, got));
    ASSERT_EQ(got, flood.sent[i]) << i;
  }
  world.settle();
  EXPECT_EQ(flood.sender().statistics().deferred_messages, 0u);
}

TEST(Deferral, BroadcastsAndMessagesOfOneTagKeepTheirOrder) {
  World world(4, {}, kFew);
  Flood flood(world, 50, 20'000, one_tag);
  const Bytes broadcast = pattern(5000, 200);
  const std::vector<Recipient> all{{Rank{1}}, {Rank{2}}, {Rank{3}}};
  const Request mcast = world.at[0]->mcast(all, Tag{7}, broadcast);
  const Bytes last = pattern(10, 201);
  const Request behind = world.at[0]->isend(Rank{1}, Tag{7}, last);
  for (unsigned i = 0; i < 52; ++i) {
    const Bytes& expected = i < 50 ? flood.sent[i] : i == 50 ? broadcast : last;
    Bytes got(20'000);
    ASSERT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{7}, got)).bytes, expected.size()) << i;
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), got.begin())) << i;
  }
  for (unsigned rank = 2; rank < 4; ++rank) world.at[rank]->wait(world.at[rank]->irecv_owned(Rank{0}, Tag{7}));
  EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::done);
  world.at[0]->wait(behind);
  flood.expect_all_sent();
}

TEST(Deferral, ADeathFailsWhatIsHeldBack) {
  World world(3, {}, kFew);
  Flood flood(world, 100, 20'000, own_tag);
  world.network->kill(Rank{1});
  world.settle();
  for (const Request& send : flood.sends) EXPECT_EQ(send.status().ending, Ending::peer_dead);
  EXPECT_EQ(flood.sender().statistics().deferred_messages, 0u);
}

TEST(Deferral, ItEndsWhenTheReceiverHasCaughtUp) {
  World world(2, {}, kFew);
  Flood flood(world, 100, 20'000, one_tag);
  for (unsigned i = 0; i < 100; ++i) flood.receiver().wait(flood.receiver().irecv_owned(Rank{0}, Tag{7}));
  flood.expect_all_sent();
  const std::uint64_t before = flood.sender().statistics().packets_sent;
  const Bytes one = pattern(1, 1);
  flood.sender().wait(flood.sender().isend(Rank{1}, Tag{8}, one));
  EXPECT_EQ(flood.sender().statistics().packets_sent, before + 1) << "straight to the rail again";
}

}  // namespace
}  // namespace tandem::comm::deferral_test
