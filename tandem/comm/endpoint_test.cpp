// tandem/comm/endpoint_test.cpp: messages between ranks of one process, in the test world and with threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tandem/base/attendance.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/comm/bootstrap/thread_job.hpp"
#include "tandem/comm/endpoint_test_support.hpp"
#include "tandem/comm/engine/core.hpp"

namespace tandem::comm::endpoint_test {
namespace {

using endpoint_test::Bytes;
using endpoint_test::pattern;
using endpoint_test::seeds;
using endpoint_test::World;
using testing::ElementsAre;

TEST(Endpoint, MessageArrivesWithItsTagSizeAndHeader) {
  World world(2);
  const Bytes sent = pattern(100, 1);
  const Bytes header = pattern(10, 2);
  Bytes got(200);
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{7}, got);
  const Request send = world.at[0]->isend(Rank{1}, Tag{7}, sent, {.header = std::as_bytes(std::span(header))});
  const Status status = world.at[1]->wait(receive);
  EXPECT_EQ(status.ending, Ending::done);
  EXPECT_EQ(status.source, Rank{0});
  EXPECT_EQ(status.tag, Tag{7});
  EXPECT_EQ(status.bytes, 100u);
  EXPECT_EQ(0, std::memcmp(status.header.data(), header.data(), 10));
  EXPECT_EQ(0, std::memcmp(got.data(), sent.data(), 100));
  EXPECT_EQ(world.at[0]->wait(send).ending, Ending::done);
}

TEST(Endpoint, AllSizesArriveExpectedAndUnexpected) {
  for (const std::size_t bytes : {0u, 1u, 63u, 1024u, 1025u, 4096u, 4097u, 16384u, 16385u, 100000u, 1000000u}) {
    for (const bool expected : {true, false}) {
      World world(2);
      const Bytes sent = pattern(bytes, 3);
      Bytes got(bytes);
      Request receive;
      if (expected) receive = world.at[1]->irecv(Rank{0}, Tag{1}, got);
      const Request send = world.at[0]->isend(Rank{1}, Tag{1}, sent);
      if (!expected) {
        world.settle();
        receive = world.at[1]->irecv(any_source, any_tag, got);
      }
      EXPECT_EQ(world.at[1]->wait(receive).ending, Ending::done) << bytes;
      EXPECT_EQ(world.at[0]->wait(send).ending, Ending::done) << bytes;
      EXPECT_EQ(got, sent) << bytes;
    }
  }
}

TEST(Endpoint, MessagesOfOneTagKeepTheirOrderWhateverTheirSizeAndPriority) {
  World world(2);
  std::vector<Bytes> sent;
  std::vector<Request> requests;
  for (unsigned i = 0; i < 50; ++i) sent.push_back(pattern(i % 3 == 0 ? 50000 : i % 3 == 1 ? 10 : 3000, i));
  for (unsigned i = 0; i < 50; ++i)
    requests.push_back(world.at[0]->isend(Rank{1}, Tag{5}, sent[i], {.priority = static_cast<int>(i * 17 % 5)}));
  for (unsigned i = 0; i < 50; ++i) {
    Bytes got(60000);
    const Status status = world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{5}, got));
    got.resize(status.bytes);
    EXPECT_EQ(got, sent[i]) << i;
  }
}

TEST(Endpoint, ShortBufferTruncatesThatReceiveAlone) {
  for (const std::size_t bytes : {100u, 3000u, 50000u}) {
    World world(2);
    const Bytes sent = pattern(bytes, 1);
    Bytes small(10);
    Bytes next(bytes);
    const Request first = world.at[1]->irecv(Rank{0}, Tag{1}, small);
    const Request second = world.at[1]->irecv(Rank{0}, Tag{1}, next);
    const Request a = world.at[0]->isend(Rank{1}, Tag{1}, sent);
    const Request b = world.at[0]->isend(Rank{1}, Tag{1}, sent);
    EXPECT_EQ(world.at[1]->wait(first).ending, Ending::truncated);
    EXPECT_EQ(first.status().bytes, bytes);
    EXPECT_TRUE(std::equal(small.begin(), small.end(), sent.begin()));
    EXPECT_EQ(world.at[1]->wait(second).ending, Ending::done);
    EXPECT_EQ(next, sent);
    EXPECT_EQ(world.at[0]->wait(a).ending, Ending::done);
    EXPECT_EQ(world.at[0]->wait(b).ending, Ending::done);
  }
}

TEST(Endpoint, BytesThatComeLaterAreAskedForOnceTheirReceiverTakesThem) {
  for (const bool remote : {false, true})
    for (const std::size_t bytes : {1u, 100u, 5000u, 300'000u}) {
      World world(2, {.remote_copy = remote, .copies = remote});
      const Bytes sent = pattern(bytes, 1);
      unsigned due = 0, released = 0;
      const Request send = world.at[0]->isend_later(
          Rank{1}, Tag{1}, bytes,
          {.callbacks = {.released = [&](const Status&) { ++released; }, .leaving = [&] { ++due; }}});
      world.settle();
      EXPECT_EQ(due, 0U) << "nobody waits for it";
      Bytes got(bytes), next(3);
      const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, got),
                    after = world.at[1]->irecv(Rank{0}, Tag{1}, next);
      world.at[0]->isend(Rank{1}, Tag{1}, Bytes{1, 2, 3});
      world.settle();
      EXPECT_EQ(due, 1U);
      EXPECT_TRUE(after.released()) << "matched behind it";
      EXPECT_FALSE(receive.arrived());
      EXPECT_TRUE(world.at[0]->supply(send, sent));
      EXPECT_EQ(world.at[1]->wait(receive).ending, Ending::done);
      EXPECT_EQ(world.at[0]->wait(send).ending, Ending::done);
      EXPECT_EQ(got, sent);
      EXPECT_EQ(released, 1U);
      EXPECT_FALSE(world.at[0]->supply(send, sent)) << "it has ended";
      EXPECT_TRUE(world.at[0]->statistics().remote_copies == 0 && world.at[1]->statistics().remote_copies == 0)
          << "nothing to read yet";
    }
}

TEST(Endpoint, BytesThatComeLaterMeetShortReceivesDeathsAndWrongWords) {
  World world(3);
  const Bytes sent = pattern(50'000, 1);
  const Request truncated = world.at[0]->isend_later(Rank{1}, Tag{1}, sent.size());
  Bytes small(10);
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, small);
  EXPECT_THROW(world.at[0]->supply(truncated, sent), UsageError) << "before it is due";
  world.settle();
  EXPECT_THROW(world.at[0]->supply(truncated, small), UsageError) << "too few";
  EXPECT_TRUE(world.at[0]->supply(truncated, sent));
  EXPECT_EQ(world.at[1]->wait(receive).ending, Ending::truncated);
  EXPECT_EQ(world.at[0]->wait(truncated).ending, Ending::done);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), sent.begin()));
  EXPECT_THROW(world.at[0]->isend_later(Rank{0}, Tag{1}, 5), UsageError) << "to itself";
  EXPECT_THROW(world.at[0]->isend_later(Rank{7}, Tag{1}, 5), UsageError);

  const Request untaken = world.at[0]->isend_later(Rank{2}, Tag{1}, 5),
                due = world.at[0]->isend_later(Rank{2}, Tag{2}, sent.size());
  Bytes got(sent.size());
  world.at[2]->irecv(Rank{0}, Tag{2}, got);
  world.settle();
  world.network->kill(Rank{2});
  EXPECT_EQ(world.at[0]->wait(untaken).ending, Ending::peer_dead);
  EXPECT_EQ(world.at[0]->wait(due).ending, Ending::peer_dead);
  EXPECT_FALSE(world.at[0]->supply(due, sent));
}

TEST(Endpoint, ALinkIsGivenMemoryOfDevicesOnlyIfItReadsIt) {
  for (const bool reads : {false, true})
    for (const unsigned rails : {1u, 3u}) {
      World world(2, {.rails = rails, .cuda_memory = reads});
      const Bytes sent = pattern(200'000, 1);
      const Request send = world.at[0]->isend_later(Rank{1}, Tag{1}, sent.size());
      Bytes got(sent.size());
      const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, got);
      world.settle();
      EXPECT_EQ(world.at[0]->reads(Rank{1}, BufferMemory::cuda), reads);
      EXPECT_TRUE(world.at[0]->reads(Rank{1}, BufferMemory::host));
      EXPECT_EQ(world.at[0]->supply(send, sent, BufferMemory::cuda), reads);
      world.settle();
      EXPECT_EQ(receive.arrived(), reads);
      if (!reads) {
        EXPECT_TRUE(world.at[0]->supply(send, sent)) << "brought to main memory";
      }
      EXPECT_EQ(world.at[1]->wait(receive).ending, Ending::done);
      EXPECT_EQ(got, sent);
    }
}

TEST(Endpoint, OwnedReceiveBringsItsMemory) {
  for (const std::size_t bytes : {0u, 5u, 3000u, 50000u}) {
    World world(2);
    const Bytes sent = pattern(bytes, 1);
    const Request send = world.at[0]->isend(Rank{1}, Tag{1}, sent);
    world.loop.step_some(20);
    const Request receive = world.at[1]->irecv_owned(any_source, Tag{1});
    const Status status = world.at[1]->wait(receive);
    ASSERT_EQ(status.owned.size(), bytes);
    EXPECT_TRUE(std::ranges::equal(status.owned, std::as_bytes(std::span(sent))));
  }
}

TEST(Endpoint, StridedBuffersOfDifferentShapeMeet) {
  World world(2);
  Bytes matrix = pattern(200 * 100, 1);
  Bytes other(150 * 200);
  const Request send = world.at[0]->isend(Rank{1}, Tag{1}, Strided{matrix.data(), 60, 100, 200});
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, MutableStrided{other.data(), 120, 150, 100});
  world.at[1]->wait(receive);
  world.at[0]->wait(send);
  for (std::size_t i = 0; i < 12000; ++i) ASSERT_EQ(matrix[i / 60 * 100 + i % 60], other[i / 120 * 150 + i % 120]) << i;
}

TEST(Endpoint, RankSendsToItself) {
  World world(1);
  const Bytes sent = pattern(100000, 1);
  Bytes got(100000);
  const Request early = world.at[0]->irecv(Rank{0}, Tag{1}, got);
  world.at[0]->isend(Rank{0}, Tag{1}, sent);
  EXPECT_EQ(world.at[0]->wait(early).ending, Ending::done);
  EXPECT_EQ(got, sent);
  world.at[0]->isend(Rank{0}, Tag{2}, sent);
  EXPECT_EQ(world.at[0]->wait(world.at[0]->irecv_owned(Rank{0}, Tag{2})).bytes, 100000u);
}

TEST(Endpoint, CancelTakesBackWhatNobodyMatched) {
  World world(2);
  Bytes got(10);
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, got);
  EXPECT_TRUE(world.at[1]->cancel(receive));
  EXPECT_EQ(receive.status().ending, Ending::cancelled);
  EXPECT_FALSE(world.at[1]->cancel(receive));
  const Bytes sent = pattern(10, 1);
  world.at[0]->isend(Rank{1}, Tag{1}, sent);
  EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
}

TEST(Endpoint, ProbeSeesWhatAReceiveWouldTake) {
  World world(2);
  EXPECT_FALSE(world.at[1]->probe(any_source, any_tag).has_value());
  const Bytes sent = pattern(100000, 1);
  world.at[0]->isend(Rank{1}, Tag{9}, sent);
  world.settle();
  const auto seen = world.at[1]->probe(Rank{0}, any_tag);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->bytes, 100000u);
  EXPECT_EQ(seen->tag, Tag{9});
  EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv_owned(Rank{0}, Tag{9})).bytes, 100000u);
}

TEST(Endpoint, CallbacksAndQueueReportTheSame) {
  World world(2);
  CompletionQueue queue;
  std::vector<std::string> reported;
  const Bytes sent = pattern(100000, 1);
  Bytes got(100000);
  ReceiveOptions options;
  options.callbacks.arrived = [&](const Status&) { reported.push_back("arrived"); };
  options.callbacks.released = [&](const Status&) { reported.push_back("released"); };
  options.queue = &queue;
  options.user = 42;
  world.at[1]->irecv(Rank{0}, Tag{1}, got, options);
  SendOptions send_options;
  send_options.callbacks.released = [&](const Status& status) {
    reported.push_back("sent " + std::to_string(status.bytes));
  };
  world.at[0]->isend(Rank{1}, Tag{1}, sent, send_options);
  world.settle();
  EXPECT_THAT(reported, testing::UnorderedElementsAre("arrived", "released", "sent 100000"));
  EXPECT_EQ(queue.pop()->event, CompletionQueue::Event::arrived);
  EXPECT_EQ(queue.pop()->user, 42u);
  EXPECT_FALSE(queue.pop().has_value());
}

TEST(Endpoint, ActiveMessageChoosesItsPlaceAndIsCalledAgain) {
  World world(2);
  const Channel channel = world.at[1]->channel("work");
  ASSERT_EQ(channel, world.at[0]->channel("work"));
  Bytes place(100000);
  std::vector<std::uint64_t> arrived;
  std::vector<std::uint64_t> done;
  world.at[1]->register_rpc(
      channel, {.arrived =
                    [&](const RpcArrival& arrival) {
                      arrived.push_back(arrival.bytes);
                      if (arrival.tag == Tag{2}) return RpcAnswer{.wanted = false};
                      return RpcAnswer{.buffer = arrival.bytes > 10 ? ReceiveBuffer(place) : ReceiveBuffer()};
                    },
                .done = [&](const Status& status) { done.push_back(status.bytes); }});
  const Bytes large = pattern(100000, 1);
  const Bytes small = pattern(10, 1);
  for (const auto* data : {&small, &large}) world.at[0]->wait(world.at[0]->rpc(Rank{1}, channel, Tag{1}, {}, *data));
  world.at[0]->wait(world.at[0]->rpc(Rank{1}, channel, Tag{2}, {}, large));
  world.settle();
  EXPECT_THAT(arrived, ElementsAre(10, 100000, 100000));
  EXPECT_THAT(done, ElementsAre(10, 100000));
  EXPECT_EQ(place, large);
}

TEST(Endpoint, UnexpectedMessagesAreBoundedByCredit) {
  World world(2, {}, {.credit_bytes = 65536, .credit_messages = 100});
  const Bytes sent = pattern(1000, 1);
  std::vector<Request> sends;
  for (unsigned i = 0; i < 2000; ++i) sends.push_back(world.at[0]->isend(Rank{1}, Tag{i}, sent));
  world.settle();
  EXPECT_LE(world.at[1]->statistics().unexpected_bytes, 65536u);
  for (unsigned i = 2000; i-- > 0;)
    EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv_owned(Rank{0}, Tag{i})).bytes, 1000u);
  world.at[0]->wait_all(sends);
}

TEST(Endpoint, MessagesThatWaitForTheirRailTakeNoCredit) {
  World world(2, {}, {.credit_messages = 4000});
  unsigned announced = 0;
  world.at[1]->on_incoming([&](Rank, Channel, Tag, std::uint64_t, std::int64_t) { ++announced; });
  const Bytes sent = pattern(100, 1);
  std::vector<Bytes> got(12'000, Bytes(100));
  std::vector<Request> receives, sends;
  for (unsigned i = 0; i < got.size(); ++i) receives.push_back(world.at[1]->irecv(Rank{0}, Tag{i}, got[i]));
  for (unsigned i = 0; i < got.size(); ++i) sends.push_back(world.at[0]->isend(Rank{1}, Tag{i}, sent));
  world.at[1]->wait_all(receives);
  world.at[0]->wait_all(sends);
  for (const Bytes& bytes : got) ASSERT_EQ(bytes, sent);
  EXPECT_EQ(announced, 0u);
}

TEST(Endpoint, WhatIsKnownOfTheNetworkCountsUntilAMessageHasShownItsRate) {
  EndpointOptions options;
  const auto largest_of_three = [&] {
    World world(2, {.latency_min_ns = 1'000, .latency_max_ns = 1'000, .bytes_per_ns = 0.1}, options);
    std::vector<std::int64_t> expected_ns;
    world.at[1]->on_incoming(
        [&](Rank, Channel, Tag, std::uint64_t, std::int64_t in_ns) { expected_ns.push_back(in_ns); });
    const Bytes sent = pattern(1'000'000, 1);
    Bytes got(sent.size());
    for (unsigned i = 0; i < 3; ++i) {
      const Request receive = world.at[1]->irecv(Rank{0}, Tag{i}, got);
      const Request send = world.at[0]->isend(Rank{1}, Tag{i}, sent);
      world.at[1]->wait(receive);
      world.at[0]->wait(send);
    }
    return expected_ns;
  };
  const auto guessed = largest_of_three();
  options.networks = {{.transport = "tcp", .latency_ns = 1, .bytes_per_ns = 1, .message_ns = {}},
                      {.transport = "loop", .latency_ns = 500'000, .bytes_per_ns = 0.02, .message_ns = {}}};
  const auto by_rate = largest_of_three();
  options.networks.back().message_ns = [](std::uint64_t bytes) { return 30.0 * static_cast<double>(bytes); };
  const auto by_curve = largest_of_three();
  for (const auto* expected : {&guessed, &by_rate, &by_curve}) {
    ASSERT_EQ(expected->size(), 3U);
    EXPECT_NEAR(static_cast<double>(expected->back()), 10e6, 2e6) << "as the first one has shown";
  }
  EXPECT_NEAR(static_cast<double>(guessed[0]), 10e6, 1e6) << "the transport says so";
  EXPECT_NEAR(static_cast<double>(by_rate[0]), 51e6, 1e6);
  EXPECT_NEAR(static_cast<double>(by_curve[0]), 30e6, 1e6);
}

TEST(Endpoint, ASmallUnexpectedMessageLiesInItsEnvelope) {
  World world(2, {}, {.credit_bytes = 4096});
  unsigned announced = 0;
  world.at[1]->on_incoming([&](Rank, Channel, Tag, std::uint64_t, std::int64_t) { ++announced; });
  std::vector<Bytes> sent;
  std::vector<Request> sends;
  for (unsigned i = 0; i < 1000; ++i) sent.push_back(pattern(i % 17, i));
  for (unsigned i = 0; i < 1000; ++i) sends.push_back(world.at[0]->isend(Rank{1}, Tag{i}, sent[i]));
  world.settle();
  EXPECT_EQ(announced, 0u);
  EXPECT_EQ(world.at[1]->statistics().unexpected_messages, 1000u);
  EXPECT_EQ(world.at[1]->statistics().unexpected_bytes, 0u);
  for (unsigned i = 1000; i-- > 0;) {
    Bytes got(8);
    const bool owned = i % 2 == 0;
    const Request receive =
        owned ? world.at[1]->irecv_owned(Rank{0}, Tag{i}) : world.at[1]->irecv(Rank{0}, Tag{i}, got);
    const Status status = world.at[1]->wait(receive);
    ASSERT_EQ(status.bytes, i % 17);
    ASSERT_EQ(status.ending, !owned && i % 17 > 8 ? Ending::truncated : Ending::done);
    const std::size_t checked = owned ? status.bytes : std::min<std::size_t>(8, status.bytes);
    const auto there = owned ? std::span<const std::byte>(status.owned) : std::as_bytes(std::span(got));
    ASSERT_TRUE(std::ranges::equal(there.first(checked), std::as_bytes(std::span(sent[i])).first(checked))) << i;
  }
  world.at[0]->wait_all(sends);
}

/// Exchanges large messages and checks their bytes. Returns how many of them both sides copied.
std::uint64_t exchange_large(const LoopOptions& network, std::uint64_t seed) {
  World world(2, network, {}, seed, true);
  unsigned count = 0;
  for (const std::size_t bytes : {33'000, 70'000, 100'000, 439'296, 1'000'001}) {
    for (unsigned i = 0; i < 12; ++i) {
      const std::uint32_t from = i % 2;
      std::vector<std::byte> sent(bytes), got(i % 5 == 4 ? bytes - 12'345 : bytes);
      for (std::size_t at = 0; at < bytes; ++at) sent[at] = static_cast<std::byte>(at * 7 + at / 4096 + count);
      const Request send = world.at[from]->isend(Rank{1 - from}, Tag{count}, sent);
      const Request receive = world.at[1 - from]->irecv(Rank{from}, Tag{count}, got);
      const Ending expected = got.size() < bytes ? Ending::truncated : Ending::done;
      EXPECT_EQ(world.at[1 - from]->wait(receive).ending, expected) << world.describe();
      EXPECT_EQ(world.at[from]->wait(send).ending, Ending::done) << world.describe();
      EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()))
          << bytes << ", message " << count << ", seed " << seed;
      ++count;
    }
  }
  return world.at[0]->statistics().shared_copies + world.at[1]->statistics().shared_copies;
}

TEST(Endpoint, LargeMessagesOnOneHostAreCopiedFromBothEnds) {
  std::uint64_t shared = 0;
  for (std::uint64_t seed = 1; seed <= seeds(30); ++seed) shared += exchange_large({.remote_copy = true}, seed);
  EXPECT_GE(shared, seeds(30));
}

TEST(Endpoint, CopiesThatAreRefusedAtAnyPointLoseNothing) {
  for (unsigned allowed = 0; allowed < 12; ++allowed) {
    for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
      exchange_large({.remote_copy = true, .remote_copies_allowed = allowed}, seed);
    }
  }
}

constexpr std::int64_t kFastRoundTripNs = 20'000;
const LoopOptions kFastNetwork{.segment_bytes = 4096,
                               .payload_bytes = 400'000,
                               .packets_in_flight = 64,
                               .latency_min_ns = kFastRoundTripNs / 2,
                               .latency_max_ns = kFastRoundTripNs / 2,
                               .bytes_per_ns = 10};

/// A world that sends one large message after the other.
struct FastWorld : World {
  explicit FastWorld(EndpointOptions options = {}) : World(2, kFastNetwork, options) {
    at[1]->on_incoming([this](Rank, Channel, Tag, std::uint64_t, std::int64_t) { ++announced; });
  }
  /// Time from posting both the send and the receive to the arrival.
  std::int64_t send_one(std::size_t bytes, bool late = false) { return send_one(bytes, bytes, late); }
  std::int64_t send_one(std::size_t bytes, std::size_t room, bool late) {
    const Bytes sent = pattern(bytes, static_cast<unsigned>(loop.now_ns()));
    Bytes got(room);
    Request receive;
    if (!late) receive = at[1]->irecv(Rank{0}, Tag{1}, got);
    std::int64_t posted_ns = loop.now_ns();
    const Request send = at[0]->isend(Rank{1}, Tag{1}, sent);
    if (late) {
      settle();
      posted_ns = loop.now_ns();
      receive = at[1]->irecv(Rank{0}, Tag{1}, got);
    }
    EXPECT_EQ(at[1]->wait(receive).ending, room < bytes ? Ending::truncated : Ending::done);
    const std::int64_t took_ns = loop.now_ns() - posted_ns;
    EXPECT_EQ(at[0]->wait(send).ending, Ending::done);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
    return took_ns;
  }

  unsigned announced = 0;
};

TEST(Endpoint, WhatGoesInOneSegmentOfAFastNetworkGoesUnasked) {
  FastWorld world;
  const std::int64_t asked_ns = world.send_one(100'000);
  EXPECT_EQ(world.announced, 1u);
  const std::int64_t unasked_ns = world.send_one(100'000);
  EXPECT_EQ(world.announced, 1u);
  EXPECT_LE(unasked_ns, asked_ns - kFastRoundTripNs);
  world.send_one(100'000, true);
  world.send_one(100'000, 1000, false);
  EXPECT_EQ(world.announced, 1u);
}

TEST(Endpoint, WhoSaysWhatGoesUnaskedIsObeyed) {
  FastWorld world({.eager_bytes = 50'000});
  for (int i = 0; i < 3; ++i) world.send_one(100'000);
  EXPECT_EQ(world.announced, 3u);
}

TEST(Endpoint, TheBeginningComesWithTheAnnouncementWhereReceivesWait) {
  FastWorld world;
  const auto packets_of_one = [&world](bool late = false) {
    const std::uint64_t before = world.at[0]->statistics().packets_sent;
    world.send_one(1'000'000, late);
    return world.at[0]->statistics().packets_sent - before;
  };
  packets_of_one();  // measures
  constexpr std::uint64_t segments = 3;
  EXPECT_EQ(packets_of_one(), segments);
  // A late receive gets the dropped beginning again; the next message is announced without its beginning, the one after
  // it is not.
  EXPECT_EQ(packets_of_one(true), segments + 1);
  EXPECT_EQ(packets_of_one(), segments + 1);
  EXPECT_EQ(packets_of_one(), segments);
  EXPECT_EQ(world.announced, 5u);
}

TEST(Endpoint, AShortReceiveOfAnAnnouncementWithItsBeginningIsTruncated) {
  for (const std::size_t room : {0u, 1000u, 300'000u, 999'999u}) {
    for (const bool late : {false, true}) {
      FastWorld world;
      world.send_one(1'000'000);
      world.send_one(1'000'000, room, late);
      world.send_one(1'000'000);
    }
  }
}

TEST(Endpoint, LargeMessagesOfAFastNetworkArriveWhateverWaits) {
  struct Talk {
    unsigned from;
    Bytes sent, got;
    Request send, receive;
  };
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    LoopOptions network = kFastNetwork;
    network.copies = seed % 2 == 0;
    network.in_flight_until_left = seed % 4 == 0;
    if (seed % 8 == 0) network.bytes_per_ns = 1;
    network.rails = seed % 5 == 0 ? 2 : 1;
    network.packets_in_flight = seed % 3 == 0 ? 1 : 64;
    World world(2, network, {.strategy = seed % 7 == 0 ? "split" : "priority", .credit_bytes = 400'000}, seed);
    const auto below = [&world](std::uint64_t bound) { return world.loop.random() % bound; };
    std::vector<std::unique_ptr<Talk>> talks;
    const auto post_receive = [&](Talk& talk, Tag tag) {
      if (!talk.receive.valid()) talk.receive = world.at[1 - talk.from]->irecv(Rank{talk.from}, tag, talk.got);
    };
    for (unsigned i = 0; i < 100; ++i) {
      auto& talk = *talks.emplace_back(std::make_unique<Talk>());
      talk.from = static_cast<unsigned>(below(2));
      talk.sent = pattern(below(4) == 0 ? below(1000) : below(800'000), i);
      talk.got.resize(below(8) == 0 ? below(talk.sent.size() + 1) : talk.sent.size());
      if (below(3) > 0) post_receive(talk, Tag{i});
      talk.send = world.at[talk.from]->isend(Rank{1 - talk.from}, Tag{i}, talk.sent);
      if (below(2) == 0) world.settle();
      else world.loop.step_some(static_cast<unsigned>(below(20)));
      if (below(2) == 0) post_receive(talk, Tag{i});
    }
    for (unsigned i = 0; i < talks.size(); ++i) {
      Talk& talk = *talks[i];
      post_receive(talk, Tag{i});
      const bool fits = talk.got.size() == talk.sent.size();
      EXPECT_EQ(world.at[1 - talk.from]->wait(talk.receive).ending, fits ? Ending::done : Ending::truncated);
      EXPECT_EQ(world.at[talk.from]->wait(talk.send).ending, Ending::done);
      EXPECT_TRUE(std::equal(talk.got.begin(), talk.got.end(), talk.sent.begin()))
          << "seed " << seed << ", message " << i;
    }
  }
}

TEST(Endpoint, ARestingEndpointFreesWhatABurstHasLeft) {
  LoopNetwork network({.ranks = 1});
  base::Log log{base::LogLevel::error};
  const auto endpoint = Endpoint::open_loop(network, Rank{0}, {}, log, nullptr);
  std::vector<Request> receives;
  for (unsigned i = 0; i < 50'000; ++i) receives.push_back(endpoint->irecv_owned(Rank{0}, Tag{i}));
  for (const Request& receive : receives) EXPECT_TRUE(endpoint->cancel(receive));
  receives.clear();
  for (int i = 0; i < 10'000 && endpoint->statistics().spare_bytes > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(endpoint->statistics().spare_bytes, 0u);
}

/// Two ranks with threads, of which rank 1 counts what arrives.
struct CountingPair {
  explicit CountingPair(const std::string& progress) {
    sender = Endpoint::open_loop(network, Rank{0}, {}, log, nullptr);
    receiver = Endpoint::open_loop(network, Rank{1}, {.progress = progress}, log, nullptr);
  }
  ~CountingPair() {
    std::thread other([this] { sender->close(); });
    receiver->close();
    other.join();
  }
  void post_receive() {
    receiver->irecv_owned(Rank{0}, Tag{0}, {.callbacks = {.arrived = [this](const Status&) {
                            ++arrived;
                            receiver->idle_work()->wake();
                          }}});
  }
  void send() { sender->isend(Rank{1}, Tag{0}, SendBuffer()); }

  LoopNetwork network{{.ranks = 2}};
  base::Log log{base::LogLevel::error};
  std::atomic<int> arrived{0};
  std::unique_ptr<Endpoint> sender, receiver;
};

TEST(Endpoint, WhoAttendsMakesProgressAndSleeps) {
  for (const char* progress : {"inline", "thread"}) {
    CountingPair pair(progress);
    base::IdleWork& work = *pair.receiver->idle_work();
    work.enter();
    for (int count = 1; count <= 200; ++count) {
      pair.post_receive();
      std::thread other([&] { pair.send(); });
      struct Awaited {
        const std::atomic<int>& arrived;
        int count;
      } awaited{pair.arrived, count};
      const auto there = [](void* what) {
        const auto& it = *static_cast<Awaited*>(what);
        return it.arrived.load() >= it.count;
      };
      while (!there(&awaited))
        if (work.look() == base::IdleWork::Found::nothing_for_long) work.sleep(there, &awaited, base::kNever);
      other.join();
    }
    work.leave();
  }
}

TEST(Endpoint, BehindAnAttendantThatHasLeftTheThreadMakesProgress) {
  CountingPair pair("thread");
  base::IdleWork& work = *pair.receiver->idle_work();
  for (int count = 1; count <= 300; ++count) {
    pair.post_receive();
    work.enter();
    for (int i = 0; i < count % 7; ++i) work.look();
    if (count % 3 == 0) work.sleep([](void*) { return true; }, nullptr, base::kNever);
    if (count % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));  // the thread lies below
    if (count % 2 == 0) pair.send();
    work.leave();
    if (count % 2 != 0) pair.send();
    if (count % 11 == 0) pair.sender->wait(pair.sender->isend(Rank{0}, Tag{1}, SendBuffer()));
    while (pair.arrived.load() < count) std::this_thread::yield();
  }
}

TEST(Endpoint, WhoAttendsAndWhoWaitsShareTheProgress) {
  CountingPair pair("thread");
  std::atomic<bool> stop{false};
  std::thread attendant([&] {
    base::IdleWork& work = *pair.receiver->idle_work();
    for (int turn = 0; !stop.load(); ++turn) {
      work.enter();
      for (int i = 0; i < turn % 50; ++i)
        if (work.look() == base::IdleWork::Found::nothing_for_long)
          work.sleep([](void* over) { return static_cast<std::atomic<bool>*>(over)->load(); }, &stop, base::kNever);
      work.leave();
    }
  });
  for (int count = 0; count < 500; ++count) {
    const Request receive = pair.receiver->irecv_owned(Rank{0}, Tag{0});
    if (count % 3 == 0) std::this_thread::yield();
    pair.send();
    EXPECT_EQ(pair.receiver->wait(receive).ending, Ending::done);
  }
  stop.store(true);
  pair.receiver->idle_work()->wake();
  attendant.join();
}

TEST(Endpoint, AWaiterThatSleepsCallsWhatAnotherThreadsPostCompletes) {
  for (const char* progress : {"inline", "thread"}) {
    CountingPair pair(progress);
    const Request last = pair.receiver->irecv_owned(Rank{0}, Tag{9});
    std::atomic<bool> waits{true};
    std::thread waiter([&] {
      EXPECT_EQ(pair.receiver->wait(last).ending, Ending::done);
      waits.store(false);
    });
    pair.send();  // nobody has posted a receive for it
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the message arrives, and the waiter sleeps
    pair.post_receive();
    const auto begin = std::chrono::steady_clock::now();
    while (pair.arrived.load() == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(pair.arrived.load(), 1) << progress;
    EXPECT_TRUE(waits.load());
    pair.sender->wait(pair.sender->isend(Rank{1}, Tag{9}, SendBuffer()));
    waiter.join();
  }
}

/// Rank 0 has megabytes for ranks 1 to 3, then something urgent for rank 4, on a port of 25 bytes per us. The times, in
/// ms since it was posted, when the urgent message had arrived, and when all had.
struct BesideBulk {
  double urgent_ms, all_ms;
};
BesideBulk beside_bulk(const EndpointOptions& options, std::int64_t announced_ns, bool late_receiver = false) {
  World world(5, {.segment_bytes = 16384, .packets_in_flight = 8, .copies = true, .bytes_per_ns = 0.025}, options);
  const Bytes bulk = pattern(2'000'000, 1), urgent = pattern(400'000, 2);
  std::vector<Bytes> got(5, Bytes(bulk.size()));
  std::vector<Request> receives(5);
  for (std::uint32_t to = 1; to < 5; ++to) {
    if (to < 4 || !late_receiver) receives[to] = world.at[to]->irecv(Rank{0}, Tag{1}, got[to]);
    if (to < 4) world.at[0]->isend(Rank{to}, Tag{1}, SendBuffer(bulk.data(), bulk.size()), {.priority = 0});
  }
  const auto pass = [&](std::int64_t ns) {
    world.loop.run_until([](void*) { return false; }, nullptr, world.loop.now_ns() + ns);
  };
  pass(20'000'000);
  std::uint64_t announced = 0;
  if (announced_ns > 0) {
    announced = world.at[0]->announce(Rank{4}, urgent.size(), announced_ns, 5);
    EXPECT_NE(announced, 0u);
    pass(announced_ns);
  }
  const std::int64_t posted_ns = world.loop.now_ns();
  const auto since_ms = [&] { return static_cast<double>(world.loop.now_ns() - posted_ns) / 1e6; };
  world.at[0]->isend(Rank{4}, Tag{1}, SendBuffer(urgent.data(), urgent.size()), {.priority = 5});
  if (announced != 0) world.at[0]->withdraw(Rank{4}, announced);
  BesideBulk times{};
  if (late_receiver) {
    for (std::uint32_t to = 1; to < 4; ++to) world.at[to]->wait(receives[to]);
    times.all_ms = since_ms();
    receives[4] = world.at[4]->irecv(Rank{0}, Tag{1}, got[4]);
  }
  EXPECT_EQ(world.at[4]->wait(receives[4]).bytes, urgent.size());
  times.urgent_ms = since_ms();
  for (std::uint32_t to = 1; to < 4; ++to) world.at[to]->wait(receives[to]);
  if (!late_receiver) times.all_ms = since_ms();
  for (std::uint32_t to = 1; to < 4; ++to) EXPECT_EQ(got[to], bulk);
  got[4].resize(urgent.size());
  EXPECT_EQ(got[4], urgent);
  return times;
}

TEST(Endpoint, LargeMessagesWaitWhileMoreUrgentOnesGoToOtherRanks) {
  const BesideBulk shared = beside_bulk({.port_priorities = false}, 0);
  const BesideBulk urgent_first = beside_bulk({}, 0);
  const BesideBulk announced = beside_bulk({}, 20'000'000);
  // The urgent message alone takes 16 ms, and what the rails have queued 16 more at most.
  EXPECT_GT(shared.urgent_ms, 50);
  EXPECT_LT(urgent_first.urgent_ms, 37);
  EXPECT_LT(announced.urgent_ms, 20);
  // 6.4 MB take 256 ms, and no sender is idle for long.
  EXPECT_LT(urgent_first.all_ms, shared.all_ms + 3);
  EXPECT_LT(announced.all_ms, shared.all_ms - 20 + 20);
}

TEST(Endpoint, LargeMessagesDoNotWaitForAnUrgentOneWhoseReceiverIsLate) {
  const BesideBulk times = beside_bulk({}, 0, true);
  EXPECT_LT(times.all_ms, 240 + 10);  // 6 MB, of which 20 ms are over
  EXPECT_LT(times.urgent_ms, times.all_ms + 20);
}

TEST(Endpoint, WhatIsAnnouncedAndNeverPostedHoldsNobodyForLong) {
  World world(3, {.segment_bytes = 16384, .packets_in_flight = 2, .bytes_per_ns = 0.025});
  const Bytes bulk = pattern(1'000'000, 1);
  Bytes got(bulk.size());
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, ReceiveBuffer(got.data(), got.size()));
  world.at[0]->isend(Rank{1}, Tag{1}, SendBuffer(bulk.data(), bulk.size()), {});
  EXPECT_TRUE(world.at[0]->uses_announcements(Rank{2}));
  EXPECT_FALSE(world.at[0]->uses_announcements(Rank{0})) << "to itself nothing waits for a port";
  EXPECT_EQ(world.at[0]->announce(Rank{2}, 100, 1'000'000, 5), 0u) << "too small to be in the way of anything";
  EXPECT_NE(world.at[0]->announce(Rank{2}, 400'000, 8'000'000, 5), 0u);
  const std::int64_t start_ns = world.loop.now_ns();
  world.at[1]->wait(receive);
  EXPECT_EQ(got, bulk);
  EXPECT_LT(world.loop.now_ns() - start_ns, 40'000'000 + 4'000'000);
}

TEST(Endpoint, ReceivesWhoseRequestWasDroppedGetTheirMessagesAndAreFreed) {
  const std::size_t before = internal::RequestCore::orphans();
  {
    World world(2);
    const std::vector<std::size_t> sizes{0, 4, 3000, 50'000};
    std::vector<Bytes> got;
    for (const std::size_t bytes : sizes) {
      got.emplace_back(bytes);
      world.at[1]->irecv(Rank{0}, Tag{bytes}, got.back());
    }
    world.at[1]->irecv(Rank{0}, Tag{1}, got[0]);  // never met
    EXPECT_EQ(internal::RequestCore::orphans(), before + sizes.size() + 1);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Bytes sent = pattern(sizes[i], 1);
      world.at[0]->wait(world.at[0]->isend(Rank{1}, Tag{sizes[i]}, sent));
      world.settle();
      EXPECT_EQ(got[i], sent);
    }
    internal::RequestCore::free_orphans();
    EXPECT_EQ(internal::RequestCore::orphans(), before + 1) << "the one that goes on";
  }
  EXPECT_EQ(internal::RequestCore::orphans(), before);
}

TEST(Endpoint, RequestsMayBeDroppedWhileTheirOperationsEnd) {
  const std::size_t before = internal::RequestCore::orphans();
  {
    LoopNetwork network({.ranks = 2});
    base::Log log{base::LogLevel::error};
    const auto sender = Endpoint::open_loop(network, Rank{0}, {}, log, nullptr);
    const auto receiver = Endpoint::open_loop(network, Rank{1}, {}, log, nullptr);
    constexpr std::uint32_t kMessages = 5000;
    std::vector<std::uint32_t> got(kMessages);
    std::thread other([&sender] {
      for (std::uint32_t i = 0; i < kMessages; ++i) {
        const std::uint32_t value = i + 1;
        sender->wait(sender->isend(Rank{1}, Tag{0}, std::span(&value, 1)));
      }
    });
    Request last;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      // the one before is dropped, whether it has ended or not
      last = receiver->irecv(Rank{0}, Tag{0}, std::span(&got[i], 1));
      const Request copy = last;
      if (i % 64 == 0) receiver->wait(last);
    }
    receiver->wait(last);
    other.join();
    for (std::uint32_t i = 0; i < kMessages; ++i) EXPECT_EQ(got[i], i + 1);
  }
  EXPECT_EQ(internal::RequestCore::orphans(), before);
}

/// A directory that knows this rank alone: the others died before they could be found.
class EmptyDirectory final : public Directory {
 public:
  base::Result<void> publish(const PeerCard&) override { return {}; }
  base::Result<PeerCard> lookup(Rank rank) override {
    if (rank == Rank{0}) return PeerCard{};
    return base::Error{base::ErrorCode::io, "it is dead"};
  }
};

TEST(Endpoint, ARankThatCannotBeFoundIsDeadForAll) {
  base::Log log(base::LogLevel::error, [](base::LogLevel, std::string_view) {});
  Job job{.rank = Rank{0}, .size = 3, .source = "test", .directory = std::make_shared<EmptyDirectory>()};
  EndpointOptions options;
  options.transports = {"tcp"};
  options.interface = "lo";
  options.progress = "inline";
  auto opened = Endpoint::open(std::move(job), options, log);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Endpoint& endpoint = *opened.value();
  std::vector<Rank> reported;
  endpoint.on_peer_death([&](Rank dead, std::string_view) { reported.push_back(dead); });
  Bytes bytes(10);
  const Recipient recipients[] = {{Rank{1}, 1}, {Rank{2}, 0}};
  for (const Request& request : {endpoint.irecv(Rank{1}, Tag{1}, bytes), endpoint.isend(Rank{1}, Tag{1}, bytes),
                                 endpoint.mcast(recipients, Tag{1}, bytes, {.tree = TreeKind::chain})}) {
    EXPECT_EQ(endpoint.wait(request).ending, Ending::peer_dead);
  }
  while (endpoint.progress()) {}
  EXPECT_THAT(reported, testing::UnorderedElementsAre(Rank{1}, Rank{2}));
}

TEST(Endpoint, DeadPeerFailsItsRequestsAndNoOthers) {
  World world(3);
  Bytes got(100000);
  Bytes other(10);
  const Bytes sent = pattern(100000, 1);
  std::vector<std::uint32_t> deaths;
  world.at[0]->on_peer_death([&](Rank rank, std::string_view) { deaths.push_back(rank.value()); });
  const Request lost = world.at[0]->irecv(Rank{1}, Tag{1}, got);
  const Request lost_send = world.at[0]->isend(Rank{1}, Tag{2}, sent);
  const Request fine = world.at[0]->irecv(Rank{2}, Tag{1}, other);
  world.loop.step_some(5);
  world.network->kill(Rank{1});
  EXPECT_EQ(world.at[0]->wait(lost).ending, Ending::peer_dead);
  EXPECT_EQ(lost.status().culprit, Rank{1});
  EXPECT_EQ(world.at[0]->wait(lost_send).ending, Ending::peer_dead);
  world.at[2]->isend(Rank{0}, Tag{1}, std::span<const std::uint8_t>(sent.data(), 10));
  EXPECT_EQ(world.at[0]->wait(fine).ending, Ending::done);
  EXPECT_THAT(deaths, ElementsAre(1));
  EXPECT_EQ(world.at[0]->isend(Rank{1}, Tag{3}, sent).status().ending, Ending::peer_dead);
}

template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Endpoint, WrongArgumentsAreRefusedInWordsAndHaveNoEffect) {
  World world(2);
  Endpoint& endpoint = *world.at[0];
  Bytes bytes(10);
  const std::vector<std::byte> header(5000);
  const Recipient nobody[] = {{Rank{1}, 0}, {Rank{2}, 0}};
  const auto no_rank = testing::HasSubstr("there is no rank 17; this job has ranks 0 to 1");
  EXPECT_THAT(refusal_of([&] { endpoint.isend(Rank{17}, Tag{1}, bytes); }), no_rank);
  EXPECT_THAT(refusal_of([&] { endpoint.irecv(Rank{17}, Tag{1}, bytes); }), no_rank);
  EXPECT_THAT(refusal_of([&] { endpoint.irecv_owned(Rank{17}, Tag{1}); }), no_rank);
  EXPECT_THAT(refusal_of([&] { (void)endpoint.probe(Rank{17}, Tag{1}); }), no_rank);
  EXPECT_THAT(refusal_of([&] { endpoint.rpc(Rank{17}, Channel{4}, Tag{1}, {}, bytes); }), no_rank);
  EXPECT_THAT(refusal_of([&] { endpoint.mcast(nobody, Tag{1}, bytes); }), testing::HasSubstr("there is no rank 2"));
  const auto too_long = testing::HasSubstr("at most 1024 bytes, and this one has 5000");
  EXPECT_THAT(refusal_of([&] { endpoint.isend(Rank{1}, Tag{1}, bytes, {.header = header}); }), too_long);
  EXPECT_THAT(refusal_of([&] { endpoint.mcast(std::span(nobody).first(1), Tag{1}, bytes, {.header = header}); }),
              too_long);
  EXPECT_THAT(refusal_of([&] { endpoint.rpc(Rank{1}, Channel{4}, Tag{1}, header, bytes); }), too_long);
  const Channel calls = endpoint.channel("calls");
  endpoint.register_rpc(calls, {});
  EXPECT_THAT(refusal_of([&] { endpoint.register_rpc(calls, {}); }),
              testing::HasSubstr("channel 'calls' has a handler already"));
  // Two names with one FNV-1a hash.
  endpoint.channel("costarring");
  EXPECT_THAT(refusal_of([&] { endpoint.channel("liquid"); }), testing::HasSubstr("'liquid' and 'costarring'"));

  const Bytes sent = pattern(10, 1);
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, bytes);
  EXPECT_EQ(endpoint.wait(endpoint.isend(Rank{1}, Tag{1}, sent)).ending, Ending::done);
  EXPECT_EQ(world.at[1]->wait(receive).ending, Ending::done);
  EXPECT_EQ(bytes, sent);
}

// ---- Broadcasts.

class McastTest : public testing::TestWithParam<TreeKind> {};

TEST_P(McastTest, EveryRecipientGetsEveryByte) {
  for (const std::uint32_t ranks : {2u, 3u, 8u, 17u}) {
    for (const std::size_t bytes : {0u, 1u, 1000u, 40000u, 400000u}) {
      World world(ranks, {}, {}, ranks * 1000 + bytes);
      const Bytes sent = pattern(bytes, ranks);
      std::vector<Recipient> recipients;
      std::vector<Bytes> got(ranks, Bytes(bytes));
      std::vector<Request> receives;
      for (std::uint32_t r = 0; r < ranks; ++r) recipients.push_back({Rank{r}, static_cast<int>(r % 3)});
      recipients.push_back({Rank{1}, 9});  // again: counts once
      for (std::uint32_t r = 1; r < ranks; r += 2) receives.push_back(world.at[r]->irecv(Rank{0}, Tag{3}, got[r]));
      const Request mcast = world.at[0]->mcast(recipients, Tag{3}, sent, {.tree = GetParam()});
      world.loop.step_some(30);
      for (std::uint32_t r = 2; r < ranks; r += 2) receives.push_back(world.at[r]->irecv(Rank{0}, Tag{3}, got[r]));
      EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::done);
      for (std::size_t i = 0; i < receives.size(); ++i) EXPECT_EQ(world.at[0]->wait(receives[i]).ending, Ending::done);
      for (std::uint32_t r = 1; r < ranks; ++r) ASSERT_EQ(got[r], sent) << r << " of " << ranks << ", " << bytes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Trees, McastTest,
                         testing::Values(TreeKind::flat, TreeKind::chain, TreeKind::binary, TreeKind::kary,
                                         TreeKind::binomial, TreeKind::knomial, TreeKind::two_tree, TreeKind::delegate,
                                         TreeKind::two_groups, TreeKind::automatic, TreeKind::ordered),
                         [](const auto& tested) { return std::string(tree_name(tested.param)); });

/// Checks that the recipients of a broadcast, each of which has posted its receive, get its bytes.
void expect_broadcast(World& world, std::size_t bytes, TreeKind tree) {
  const auto ranks = static_cast<std::uint32_t>(world.at.size());
  const Bytes sent = pattern(bytes, ranks);
  std::vector<Recipient> recipients;
  std::vector<Bytes> got(ranks, Bytes(bytes));
  std::vector<Request> receives;
  for (std::uint32_t r = 1; r < ranks; ++r) {
    recipients.push_back({Rank{r}, 0});
    receives.push_back(world.at[r]->irecv(Rank{0}, Tag{3}, got[r]));
  }
  const Request mcast = world.at[0]->mcast(recipients, Tag{3}, sent, {.tree = tree});
  for (std::uint32_t r = 1; r < ranks; ++r) EXPECT_EQ(world.at[r]->wait(receives[r - 1]).ending, Ending::done);
  EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::done);
  for (std::uint32_t r = 1; r < ranks; ++r) EXPECT_EQ(got[r], sent) << "rank " << r;
}

TEST_P(McastTest, RecipientsReadTheirParentsMemoryWhereTheyMay) {
  World world(9, {.remote_copy = true});
  expect_broadcast(world, 800'000, GetParam());
  std::uint64_t copies = 0, packets = 0;
  for (const auto& endpoint : world.at) {
    copies += endpoint->statistics().remote_copies;
    packets += endpoint->statistics().packets_sent;
  }
  EXPECT_GE(copies, 8u);
  EXPECT_LE(packets, copies * 6);  // an offer, notes and goodbyes; in segments they would be 50 for each recipient
}

TEST_P(McastTest, RecipientsThatMayNotReadOrNotToTheEndGetSegments) {
  World forbidden(9, {.remote_copy = true}, {.cross_memory = false});
  expect_broadcast(forbidden, 800'000, GetParam());
  for (const auto& endpoint : forbidden.at) EXPECT_EQ(endpoint->statistics().remote_copies, 0u);
  for (const unsigned allowed : {0u, 1u, 2u}) {
    World refused(9, {.remote_copy = true, .remote_copies_allowed = allowed});
    expect_broadcast(refused, 800'000, GetParam());
  }
}

/// When each of 7 recipients had its 400,000 bytes, in multiples of the time that these take at the rate of each rank.
std::vector<double> arrivals(const TreeOptions& tree, bool copies, int priority_by_rank = -1, std::uint32_t ranks = 8,
                             std::int64_t latency_ns = 0) {
  constexpr double bytes_per_ns = 0.025;
  World world(ranks, {.copies = copies,
                      .latency_min_ns = latency_ns,
                      .latency_max_ns = latency_ns,
                      .bytes_per_ns = bytes_per_ns});
  const Bytes sent = pattern(400'000, 4);
  std::vector<Bytes> got(ranks, Bytes(sent.size()));
  std::vector<Recipient> recipients;
  std::vector<double> at(ranks);
  std::vector<Request> receives;
  for (std::uint32_t r = 1; r < ranks; ++r) {
    recipients.push_back({Rank{r}, priority_by_rank * static_cast<int>(r)});
    const auto note = [&world, &sent, &place = at[r]](const Status&) {
      place = static_cast<double>(world.loop.now_ns()) * bytes_per_ns / static_cast<double>(sent.size());
    };
    receives.push_back(world.at[r]->irecv(Rank{0}, Tag{1}, got[r], {.callbacks = {.arrived = note}}));
  }
  world.settle();
  for (double& place : at)
    place = static_cast<double>(world.loop.now_ns()) * bytes_per_ns / static_cast<double>(sent.size());
  const double start = at[0];
  world.at[0]->wait(world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = tree}));
  for (std::uint32_t r = 1; r < ranks; ++r) {
    world.at[r]->wait(receives[r - 1]);
    EXPECT_EQ(got[r], sent);
    at[r] -= start;
  }
  at.erase(at.begin());
  return at;
}

TEST(Mcast, AFlatTreeServesOneAfterTheOther) {
  for (const bool copies : {false, true}) {
    const std::vector<double> at = arrivals(TreeKind::flat, copies);
    for (std::size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(at[i], static_cast<double>(i + 1), 0.5) << i;
  }
}

TEST(Mcast, AnUrgentMessageWaitsForSegmentsNotForTheBroadcast) {
  constexpr double bytes_per_ns = 0.025;
  World world(4, {.segment_bytes = 16384, .packets_in_flight = 2, .bytes_per_ns = bytes_per_ns},
              {.credit_bytes = 4'000'000});
  const Bytes sent = pattern(400'000, 4), urgent = pattern(100, 5);
  std::vector<Bytes> got(4, Bytes(sent.size()));
  Bytes now(urgent.size());
  std::vector<Request> receives;
  for (std::uint32_t r = 1; r < 4; ++r) receives.push_back(world.at[r]->irecv(Rank{0}, Tag{1}, got[r]));
  const Request awaited = world.at[3]->irecv(Rank{0}, Tag{2}, now);
  world.settle();
  const std::vector<Recipient> recipients{{Rank{1}, 0}, {Rank{2}, 0}, {Rank{3}, 0}};
  const Request mcast =
      world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = {TreeKind::flat, sent.size()}});
  world.loop.step_some(20);
  const std::int64_t posted_ns = world.loop.now_ns();
  const Request send = world.at[0]->isend(Rank{3}, Tag{2}, urgent, {.priority = 10});
  world.at[3]->wait(awaited);
  EXPECT_LT(static_cast<double>(world.loop.now_ns() - posted_ns) * bytes_per_ns, 4 * 16384);
  EXPECT_FALSE(receives[0].arrived()) << "the broadcast was over before";
  world.at[0]->wait(mcast);
  for (const Request& receive : receives) world.at[1]->wait(receive);
  EXPECT_EQ(got[3], sent);
}

/// A packet of tcp may be much larger than what its rail is to send at once.
TEST(Mcast, TheFirstPacketOfAWholeStrandIsCutOverTcp) {
  base::Log log{base::LogLevel::error};
  std::vector<std::unique_ptr<Endpoint>> at;
  for (Job& job : make_thread_job(3)) {
    EndpointOptions options;
    options.transports = {"tcp"};
    options.interface = "lo";
    auto opened = Endpoint::open(std::move(job), options, log);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    at.push_back(std::move(opened).value());
  }
  const Bytes sent = pattern(10 * (384 << 10), 4);
  std::vector<Bytes> got(3, Bytes(sent.size()));
  std::vector<Request> receives;
  for (std::uint32_t r = 1; r < 3; ++r) receives.push_back(at[r]->irecv(Rank{0}, Tag{1}, got[r]));
  const Recipient recipients[] = {{Rank{1}, 0}, {Rank{2}, 0}};
  at[0]->wait(at[0]->mcast(recipients, Tag{1}, sent, {.tree = {TreeKind::flat, sent.size()}}));
  for (std::uint32_t r = 1; r < 3; ++r) {
    EXPECT_EQ(at[r]->wait(receives[r - 1]).ending, Ending::done);
    EXPECT_EQ(got[r], sent);
  }
  // Each recipient is sent ten segments of 384 KiB (`TcpOptions::host_segment_bytes`) at least.
  EXPECT_GE(at[0]->statistics().packets_sent, 20u);
}

TEST(Mcast, ABinomialTreeTakesItsDepth) {
  for (const bool copies : {false, true}) {
    const std::vector<double> at = arrivals(TreeKind::binomial, copies);
    EXPECT_NEAR(at[0], 1, 0.3);
    EXPECT_NEAR(*std::max_element(at.begin(), at.end()), 3, 0.6);
  }
}

TEST(Mcast, RecipientsAreServedByPriorityOrAsTheyWereGiven) {
  TreeOptions tree(TreeKind::flat);
  const std::vector<double> by_priority = arrivals(tree, false, 1);
  EXPECT_TRUE(std::ranges::is_sorted(by_priority, std::greater()));
  tree.by_priority = false;
  const std::vector<double> as_given = arrivals(tree, false, 1);
  EXPECT_TRUE(std::ranges::is_sorted(as_given));
}

TEST(Mcast, WholeSegmentsAreStoredBeforeTheyAreForwarded) {
  const std::vector<double> whole = arrivals({TreeKind::chain, std::size_t{1} << 30}, false);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], static_cast<double>(i) + 1, 0.3);
  EXPECT_LT(arrivals({TreeKind::chain, 8192}, false).back(), 2);
}

TEST(Mcast, ADelegateServesByTheTreeBelowIt) {
  TreeOptions tree(TreeKind::delegate, std::size_t{1} << 30);
  tree.below = TreeKind::chain;
  EXPECT_EQ(arrivals(tree, false), arrivals({TreeKind::chain, std::size_t{1} << 30}, false));
  tree.below = TreeKind::flat;
  EXPECT_NEAR(arrivals(tree, false).back(), 7, 0.5);
}

TEST(Mcast, TwoGroupsTakeTheirTreesAndTheirSize) {
  TreeOptions tree(TreeKind::two_groups, std::size_t{1} << 30);
  tree.above = TreeKind::chain, tree.below = TreeKind::chain, tree.first_group = 2;
  // The root sends to the first one of each, one after the other.
  const std::vector<double> chains = arrivals(tree, false);
  for (const auto& [rank, at] : {std::pair(0, 1), {1, 2}, {2, 2}, {3, 3}, {6, 6}})
    EXPECT_NEAR(chains[static_cast<std::size_t>(rank)], at, 0.5) << rank;
  tree.first_group = 3;
  EXPECT_NEAR(arrivals(tree, false)[2], 3, 0.5);
}

/// Where all have one priority, no order is broken by a tree that breaks orders.
TEST(Mcast, OrderedIsAsFastAsAutomaticWherePrioritiesAreEqual) {
  const auto all_at = [](TreeKind tree, int priority_by_rank) {
    return arrivals(tree, false, priority_by_rank, 39, 50'000);
  };
  EXPECT_EQ(all_at(TreeKind::ordered, 0), all_at(TreeKind::automatic, 0));
  EXPECT_NE(all_at(TreeKind::ordered, -1), all_at(TreeKind::automatic, -1));
}

TEST(Mcast, WithoutRecipientsItIsDoneAtOnce) {
  World world(2);
  const Bytes sent = pattern(10, 1);
  EXPECT_EQ(world.at[0]->wait(world.at[0]->mcast({}, Tag{1}, sent)).ending, Ending::done);
  const Recipient self[] = {{Rank{0}, 0}};
  EXPECT_EQ(world.at[0]->wait(world.at[0]->mcast(self, Tag{1}, sent)).ending, Ending::done);
}

TEST(Mcast, LateRecipientJoinsWhileNothingWasSent) {
  World world(3);
  const Bytes sent = pattern(1000, 1);
  const Recipient first[] = {{Rank{1}, 0}};
  const Request mcast = world.at[0]->mcast(first, Tag{1}, sent, {.hold_ns = 1'000'000});
  EXPECT_TRUE(world.at[0]->append(mcast, {Rank{2}, 5}));
  EXPECT_FALSE(world.at[0]->append(mcast, {Rank{2}, 5}));
  EXPECT_EQ(world.at[2]->wait(world.at[2]->irecv_owned(Rank{0}, Tag{1})).bytes, 1000u);
  EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv_owned(Rank{0}, Tag{1})).bytes, 1000u);
  world.at[0]->wait(mcast);
  EXPECT_FALSE(world.at[0]->append(mcast, {Rank{1}, 0}));
}

TEST(Mcast, NodeWithoutRoomDeclinesAndItsChildrenAreServed) {
  World world(6, {}, {.forward_bytes = 1000});
  const Bytes sent = pattern(2000000, 1);
  std::vector<Recipient> recipients;
  for (std::uint32_t r = 1; r < 6; ++r) recipients.push_back({Rank{r}, -static_cast<int>(r)});
  const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = {TreeKind::chain, 16384}});
  Bytes got(sent.size());
  EXPECT_EQ(world.at[5]->wait(world.at[5]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
  EXPECT_EQ(got, sent);
  for (std::uint32_t r = 1; r < 5; ++r) {
    Bytes mine(sent.size());
    EXPECT_EQ(world.at[r]->wait(world.at[r]->irecv(Rank{0}, Tag{1}, mine)).ending, Ending::done);
    EXPECT_EQ(mine, sent);
  }
  EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::done);
}

TEST(Mcast, DeadInteriorNodeHangsNobody) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    World world(8, {.remote_copy = seed >= 200}, {}, seed);
    const Bytes sent = pattern(seed % 2 == 0 ? 300000 : 900, 1);
    std::vector<Recipient> recipients;
    std::vector<Bytes> got(8, Bytes(sent.size()));
    std::vector<Request> receives(8);
    for (std::uint32_t r = 1; r < 8; ++r) {
      recipients.push_back({Rank{r}, -static_cast<int>(r)});
      receives[r] = world.at[r]->irecv(Rank{0}, Tag{1}, got[r]);
    }
    const TreeKind tree = seed % 3 == 0 ? TreeKind::chain : seed % 3 == 1 ? TreeKind::binomial : TreeKind::two_tree;
    const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = {tree, 8192}});
    world.loop.step_some(100);
    const Rank dead{static_cast<std::uint32_t>(1 + seed % 4)};
    world.network->kill(dead);
    for (std::uint32_t r = 1; r < 8; ++r) {
      if (Rank{r} == dead) continue;
      const Status status = world.at[r]->wait(receives[r]);
      EXPECT_TRUE(status.ending == Ending::done || status.ending == Ending::peer_dead)
          << "rank " << r << " seed " << seed << ": " << name_of(status.ending);
      if (status.ending == Ending::done) { EXPECT_EQ(got[r], sent); }
      if (status.ending == Ending::peer_dead) { EXPECT_EQ(status.culprit, dead); }
    }
    EXPECT_NE(world.at[0]->wait(mcast).ending, Ending::pending) << seed;
  }
}

/// A rank that notifies others that the data will not come may die before they receive it. The first of two deaths is
/// the root's in half of the worlds.
TEST(Mcast, TwoDeathsHangNobody) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    World world(10, {.remote_copy = seed % 4 == 3, .deaths_are_seen_by_all = seed % 16 < 8}, {}, seed);
    const Bytes sent = pattern(seed % 2 == 0 ? 300000 : 900, 1);
    std::vector<Recipient> recipients;
    std::vector<Bytes> got(10, Bytes(sent.size()));
    std::vector<Request> receives(10);
    for (std::uint32_t r = 1; r < 10; ++r) {
      recipients.push_back({Rank{r}, -static_cast<int>(r)});
      receives[r] = world.at[r]->irecv(Rank{0}, Tag{1}, got[r]);
    }
    const TreeKind tree = seed % 3 == 0 ? TreeKind::chain : seed % 3 == 1 ? TreeKind::binomial : TreeKind::two_tree;
    const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = {tree, 8192}});
    world.loop.step_some(static_cast<unsigned>(50 + seed % 97));
    const bool of_root = seed % 8 >= 4;
    const Rank first{of_root ? 0 : static_cast<std::uint32_t>(1 + seed % 4)},
        second{static_cast<std::uint32_t>(5 + seed % 3)};
    world.network->kill(seed % 5 < 3 ? first : second);
    world.loop.step_some(static_cast<unsigned>(seed * 7 % 401));
    world.network->kill(seed % 5 < 3 ? second : first);
    for (std::uint32_t r = 1; r < 10; ++r) {
      if (Rank{r} == first || Rank{r} == second) continue;
      const Status status = world.at[r]->wait(receives[r]);
      EXPECT_TRUE(status.ending == Ending::done || status.ending == Ending::peer_dead)
          << "rank " << r << " seed " << seed << ": " << name_of(status.ending) << "\n" << world.describe();
      if (status.ending == Ending::done) { EXPECT_EQ(got[r], sent); }
    }
    if (!of_root) { EXPECT_NE(world.at[0]->wait(mcast).ending, Ending::pending) << seed; }
  }
}

/// A rank is adopted though it and those below it have everything: it reports that, and is not treated as faulty.
/// Nothing has left for another child yet, so that the root still has what it would serve.
TEST(Mcast, ARankThatHasAllDataMayBeAdoptedInVain) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    World world(8, {}, {}, seed);
    const Rank slow{static_cast<std::uint32_t>(2 + seed % 4)};
    world.network->stop(slow, true);
    const Bytes nothing;
    for (unsigned i = 0; i < 20; ++i) world.at[0]->isend(slow, Tag{2}, nothing);
    const Bytes sent = pattern(seed % 3 == 0 ? 900 : 0, 1);
    std::vector<Recipient> recipients;
    std::vector<Bytes> got(8, Bytes(sent.size()));
    std::vector<Request> receives(8);
    std::vector<Rank> reported;
    for (std::uint32_t r = 1; r < 8; ++r) {
      recipients.push_back({Rank{r}, -static_cast<int>(r)});
      receives[r] = world.at[r]->irecv(Rank{0}, Tag{1}, got[r]);
    }
    world.at[0]->on_peer_death([&](Rank dead, std::string_view) { reported.push_back(dead); });
    const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = TreeKind::binary});
    world.loop.step_some(static_cast<unsigned>(20 + seed % 200));
    world.network->kill(Rank{1});
    world.settle();
    world.network->stop(slow, false);
    for (std::uint32_t r = 2; r < 8; ++r) EXPECT_NE(world.at[r]->wait(receives[r]).ending, Ending::pending) << seed;
    world.settle();
    EXPECT_TRUE(mcast.released()) << seed;
    EXPECT_THAT(reported, ElementsAre(Rank{1})) << seed;
  }
}

/// Receives that are posted when their broadcast is there already, in part, and whose rank has never spoken to the
/// root: it dies together with all ranks through which the rest was to come.
TEST(Mcast, ReceiversThatNeverSpokeToTheRootHearOfItsDeath) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    World world(10, {.remote_copy = seed % 4 == 3, .deaths_are_seen_by_all = false},
                {.forward_bytes = seed % 5 == 0 ? 0 : std::size_t{64} << 20}, seed);
    const Bytes sent = pattern(seed % 7 < 6 ? 300000 : 900, 1);
    std::vector<Recipient> recipients;
    std::vector<Bytes> got(10, Bytes(sent.size()));
    std::vector<Request> receives(10);
    for (std::uint32_t r = 1; r < 10; ++r) recipients.push_back({Rank{r}, -static_cast<int>(r)});
    const TreeKind tree = seed % 3 == 0 ? TreeKind::chain : seed % 3 == 1 ? TreeKind::binary : TreeKind::two_tree;
    const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = {tree, 8192}});
    const auto receive_where_it_is = [&] {
      for (std::uint32_t r = 1; r < 10; ++r) {
        if (receives[r].valid() || !world.at[r]->probe(Rank{0}, Tag{1})) continue;
        const Source from = r % 2 == 0 ? Source(any_source) : Source(Rank{0});
        receives[r] = world.at[r]->irecv(from, Tag{1}, got[r]);
      }
    };
    for (unsigned i = 0; i < 5 + seed % 11; ++i) {
      world.loop.step_some(60);
      receive_where_it_is();
    }
    // The root, and a few consecutive ranks of every tree.
    std::vector<Rank> dead;
    for (std::uint32_t i = 0; i < 2 + seed % 3; ++i)
      dead.push_back(Rank{i == 0 ? 0 : static_cast<std::uint32_t>(seed % 4 + i)});
    for (const Rank rank : dead) world.network->kill(rank);
    world.settle();
    for (std::uint32_t r = 1; r < 10; ++r) {
      if (std::ranges::find(dead, Rank{r}) != dead.end() || !receives[r].valid()) continue;
      ASSERT_TRUE(receives[r].released()) << "rank " << r << " seed " << seed << '\n' << world.describe();
      const Status status = receives[r].status();
      if (status.ending == Ending::done) { EXPECT_EQ(got[r], sent); }
      else { EXPECT_EQ(status.ending, Ending::peer_dead) << "rank " << r << " seed " << seed; }
    }
  }
}

/// Rank 3 cannot say that it has the second broadcast, since the first one of this key died with its root and with rank
/// 4. Rank 2, from which it has the second one, never spoke to that root.
TEST(Mcast, ALeavingRankDoesNotWaitForRanksThatADeadRootHolds) {
  World world(5, {.deaths_are_seen_by_all = false});
  const Bytes sent = pattern(900, 1);
  Bytes got(900);
  const Recipient first[] = {{Rank{4}, 2}, {Rank{3}, 1}}, second[] = {{Rank{1}, 3}, {Rank{2}, 2}, {Rank{3}, 1}};
  world.network->stop(Rank{4}, true);
  world.at[0]->mcast(first, Tag{1}, sent, {.tree = TreeKind::chain});
  world.at[0]->mcast(second, Tag{1}, sent, {.tree = TreeKind::chain});
  while (!world.at[2]->probe(Rank{0}, Tag{1})) world.loop.step_some(10);
  EXPECT_EQ(world.at[2]->wait_arrived(world.at[2]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
  world.settle();
  EXPECT_FALSE(world.at[3]->probe(Rank{0}, Tag{1})) << "it should wait for the first one";
  world.network->kill(Rank{0});
  world.network->kill(Rank{4});
  world.settle();
  const std::int64_t late_ns = world.loop.now_ns() + 10'000'000'000;
  world.loop.at(late_ns, [] {});  // so that time passes for a waiting thread
  world.at[2]->close();
  EXPECT_LT(world.loop.now_ns(), late_ns);
}

TEST(Endpoint, AfterGivingUpRanksNotMetBeforeAreDead) {
  World world(3);
  world.at[0]->abandon();
  world.settle();
  const Bytes sent = pattern(2'000'000, 1);  // waits for an answer
  Bytes got(8);
  const Request send = world.at[0]->isend(Rank{2}, Tag{1}, sent);
  const Request receive = world.at[0]->irecv(Rank{1}, Tag{1}, got);
  const Request own = world.at[0]->isend(Rank{0}, Tag{1}, std::span<const std::uint8_t>(sent.data(), 8));
  world.settle();
  EXPECT_TRUE(send.released());
  EXPECT_TRUE(receive.released());
  EXPECT_TRUE(own.released());
}

/// A job's reason for ending arrives before its rank is gone, also behind payloads that the receiver has not read yet.
TEST(Endpoint, WhatHasLeftBeforeGivingUpArrives) {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    World world(2, {.latency_min_ns = 100, .latency_max_ns = 3000}, {}, seed);
    const Bytes large = pattern(200'000, 1), sent = pattern(8, 2);
    Bytes got_large(large.size()), got(8);
    const Request receive_large = world.at[1]->irecv(Rank{0}, Tag{1}, got_large);
    const Request receive = world.at[1]->irecv(Rank{0}, Tag{2}, got);
    const Request send_large = world.at[0]->isend(Rank{1}, Tag{1}, large);
    world.loop.step_some(static_cast<unsigned>(seed));
    const Request send = world.at[0]->isend(Rank{1}, Tag{2}, sent, {.priority = 1});
    while (!send.released()) world.loop.step_some(1);
    world.at[0]->abandon();
    world.settle();
    EXPECT_TRUE(send_large.released());
    EXPECT_TRUE(receive_large.released());
    EXPECT_EQ(receive.status().ending, Ending::done) << "seed " << seed;
    EXPECT_EQ(got, sent);
  }
}

/// A rank gives up with a broadcast at each stage: one that waits for its time, one under way, one that it forwards.
TEST(Mcast, WhatIsPostedAfterGivingUpEndsToo) {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    World world(4, {.copies = true}, {}, seed);
    const Bytes sent = pattern(40000, 1);
    std::vector<Recipient> others;
    for (std::uint32_t r = 1; r < 4; ++r) others.push_back({Rank{r}, 0});
    const Recipient back[] = {{Rank{0}, 1}, {Rank{2}, 0}};
    const Request forwarded = world.at[3]->mcast(back, Tag{1}, sent, {.tree = TreeKind::chain});
    const Request under_way = world.at[0]->mcast(others, Tag{1}, sent);
    const Request held = world.at[0]->mcast(others, Tag{1}, sent, {.hold_ns = 1'000'000'000});
    world.loop.step_some(static_cast<unsigned>(seed));
    world.at[0]->abandon();
    world.settle();
    EXPECT_TRUE(under_way.released());
    EXPECT_TRUE(held.released());
    std::vector<Request> later;
    later.push_back(world.at[0]->mcast(others, Tag{1}, sent));
    for (std::uint32_t r = 1; r < 4; ++r) later.push_back(world.at[0]->isend(Rank{r}, Tag{1}, sent));
    world.settle();
    for (const Request& request : later) EXPECT_TRUE(request.released()) << "seed " << seed << '\n' << world.describe();
    world.at[3]->wait(forwarded);
  }
}

/// A fence has nine bits: what waits for messages must not mistake hundreds that passed it for hundreds that are
/// missing.
TEST(Mcast, HundredsOfMessagesPassAForwardedBroadcast) {
  World world(3);
  const Bytes sent = pattern(1000, 1);
  const Recipient recipients[] = {{Rank{1}, 1}, {Rank{2}, 0}};
  world.network->stop(Rank{1}, true);
  const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent, {.tree = TreeKind::chain});
  Bytes got(1000);
  for (unsigned i = 0; i < 400; ++i) {
    world.at[0]->isend(Rank{2}, Tag{2}, std::span<const std::uint8_t>(sent.data(), 8));
    world.at[2]->wait(world.at[2]->irecv(Rank{0}, Tag{2}, got));
  }
  world.network->stop(Rank{1}, false);
  EXPECT_EQ(world.at[2]->wait(world.at[2]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
  EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::done);
}

TEST(Mcast, BroadcastsAndSendsOfOneKeyArriveInTheOrderOfPosting) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    World world(5, {.latency_max_ns = 50'000}, {}, seed);
    std::vector<Bytes> sent;
    std::vector<Request> posted;
    const std::size_t sizes[] = {10, 3000, 30000, 200000};
    std::vector<Recipient> recipients;
    for (std::uint32_t r = 1; r < 5; ++r) recipients.push_back({Rank{r}, static_cast<int>((seed * r) % 4)});
    for (unsigned i = 0; i < 12; ++i) sent.push_back(pattern(sizes[(seed + i * 7) % 4], i));
    std::vector<Request> receives;
    std::vector<Bytes> got;
    got.reserve(100);
    for (unsigned i = 0; i < 12; ++i) {
      if ((seed >> (i % 8)) % 2 == 0) {
        posted.push_back(world.at[0]->mcast(recipients, Tag{1}, sent[i]));
      } else {
        for (std::uint32_t r = 1; r < 5; ++r) posted.push_back(world.at[0]->isend(Rank{r}, Tag{1}, sent[i]));
      }
      world.loop.step_some(static_cast<unsigned>(seed % 30));
    }
    for (unsigned i = 0; i < 12; ++i) {
      for (std::uint32_t r = 1; r < 5; ++r) {
        got.push_back(Bytes(200000));
        const Status status = world.at[r]->wait(world.at[r]->irecv(Rank{0}, Tag{1}, got.back()));
        ASSERT_EQ(status.ending, Ending::done) << "seed " << seed << '\n' << world.describe();
        got.back().resize(status.bytes);
        ASSERT_EQ(got.back(), sent[i]) << "seed " << seed << " message " << i << " rank " << r;
      }
    }
    world.at[0]->wait_all(posted);
  }
}

}  // namespace
}  // namespace tandem::comm::endpoint_test
