// tests/comm_traffic/hostile_peer_test.cpp: a peer that has the job's secret, and uses it against one engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tandem/base/sanitizers.hpp"
#include "tandem/comm/mcast/route.hpp"
#include "tests/comm_traffic/hostile_world.hpp"

namespace tandem::comm::hostile::hostile_peer_test {
namespace {

constexpr Rank kPeer{1};
constexpr Channel kChannel{1};

/// A control block, aligned as transports align it.
class Block {
 public:
  Block() { writer.put_head({}); }
  std::span<const std::byte> bytes() const { return writer.block(); }
  alignas(64) std::array<std::byte, 8192> room{};
  wire::Writer writer{room};
};

Block eager(std::size_t bytes, std::uint64_t tag = 1) {
  Block block;
  block.writer.put(wire::Eager{.bytes = static_cast<std::uint32_t>(bytes), .channel = kChannel.value(), .tag = tag});
  block.writer.put_bytes(std::vector<std::byte>(bytes));
  return block;
}

Block announcement(std::uint32_t stream, Channel channel = kChannel, std::uint64_t bytes = 100'000) {
  Block block;
  block.writer.put(wire::Announce{.stream = stream, .channel = channel.value(), .tag = 1, .bytes = bytes});
  return block;
}

/// A small broadcast of the peer's to this rank alone, which it sends against our credit.
Block broadcast(std::uint32_t id, std::uint32_t bytes) {
  Block block;
  wire::Mcast record{.stream = id,
                     .root = kPeer.value(),
                     .id = id,
                     .low_id = 1,
                     .channel = kChannel.value(),
                     .route_entries = 1,
                     .bytes = bytes,
                     .strand_bytes = bytes,
                     .segment_bytes = 16384};
  record.prefix.flags = wire::flag_credited | wire::flag_unasked;
  block.writer.put(record);
  std::array<std::byte, route_entry_bytes> route;
  write_route_entry({.rank = Rank{0}}, route);
  block.writer.put_bytes(route);
  return block;
}

EndpointOptions little() {
  EndpointOptions options;
  options.credit_bytes = 64 * 1024;
  options.credit_messages = 100;
  options.credit_announcements = 10;
  return options;
}

/// How often a peer can say something before its links are closed.
template <class Say>
unsigned accepted(HostileWorld& world, Say say) {
  unsigned count = 0;
  while (count < 10'000 && say(count + 1)) ++count;
  EXPECT_EQ(world.failure(), "more messages than this rank allows (comm.credit_...)");
  return count;
}

TEST(HostilePeer, MoreMessagesThanAllowedAreRefused) {
  HostileWorld world(little());
  EXPECT_EQ(accepted(world, [&](unsigned) { return world.say(kPeer, eager(8).bytes()); }), 100u);
}

TEST(HostilePeer, MoreDataThanAllowedIsRefused) {
  HostileWorld world(little());
  EXPECT_EQ(accepted(world, [&](unsigned) { return world.say(kPeer, eager(1024).bytes()); }), 64u);
}

TEST(HostilePeer, MoreHeadersThanAllowedAreRefused) {
  HostileWorld world(little());
  Block block;
  wire::Eager record{.channel = kChannel.value(), .tag = 1};
  record.prefix.header_bytes = 1024;
  block.writer.put(record);
  block.writer.put_bytes(std::vector<std::byte>(1024));
  EXPECT_EQ(accepted(world, [&](unsigned) { return world.say(kPeer, block.bytes()); }), 64u);
}

TEST(HostilePeer, APayloadThatNoCreditCoversIsRefusedBeforeItIsKept) {
  HostileWorld world(little());
  Block block;
  wire::Eager record{.bytes = 16384, .channel = kChannel.value(), .tag = 1};
  record.prefix.flags = wire::flag_payload;
  block.writer.put(record);
  const std::vector<std::byte> payload(16384);
  EXPECT_EQ(accepted(world, [&](unsigned) { return world.say(kPeer, block.bytes(), payload); }), 4u);
}

TEST(HostilePeer, MoreAnnouncementsThanCanBeMeantAreRefused) {
  HostileWorld world(little());
  EXPECT_EQ(accepted(world, [&](unsigned i) { return world.say(kPeer, announcement(i).bytes()); }),
            10u + 100 + internal::Occupancy::kBeforeCard);
}

TEST(HostilePeer, MoreBroadcastsThanAllowedAreRefused) {
  HostileWorld world(little());
  EXPECT_LE(
      accepted(world,
               [&](unsigned i) { return world.say(kPeer, broadcast(i, 4096).bytes(), std::vector<std::byte>()); }),
      16u);
}

TEST(HostilePeer, TooLargeAHeaderIsRefused) {
  for (const bool announced : {false, true}) {
    HostileWorld world;
    Block block;
    if (announced) {
      wire::Announce record{.stream = 1, .channel = kChannel.value(), .tag = 1, .bytes = 100'000};
      record.prefix.header_bytes = 1032;
      block.writer.put(record);
    } else {
      wire::Eager record{.channel = kChannel.value(), .tag = 1};
      record.prefix.header_bytes = 1032;
      block.writer.put(record);
    }
    block.writer.put_bytes(std::vector<std::byte>(1032));
    EXPECT_FALSE(world.say(kPeer, block.bytes()));
    EXPECT_EQ(world.failure(), "a message with too large a header");
  }
}

/// What is received makes room for more: a peer that keeps to the credit is never refused.
TEST(HostilePeer, WhatIsReceivedCountsNoMore) {
  HostileWorld world(little());
  std::array<std::byte, 1024> room;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 60; ++i) ASSERT_TRUE(world.say(kPeer, eager(1024).bytes())) << world.failure();
    for (int i = 0; i < 60; ++i) EXPECT_EQ(world.receive(kPeer, Tag{1}, room, kChannel).ending, Ending::done);
    for (std::uint32_t i = 1; i <= 100; ++i) {
      ASSERT_TRUE(world.say(kPeer, announcement(i).bytes())) << world.failure();
      world.receive(kPeer, Tag{1}, room, kChannel);
      Block data;
      data.writer.put(wire::Data{.stream = i});
      ASSERT_TRUE(world.say(kPeer, data.bytes(), room)) << world.failure();
    }
  }
}

/// A handler takes whatever is announced to it, as many at once as a rank announces.
TEST(HostilePeer, AnnouncementsForAHandlerAreBounded) {
  HostileWorld world(little());
  const std::uint32_t most = 10 + 100 + internal::Occupancy::kBeforeCard + 4 * internal::kMostCalls;
  for (std::uint32_t i = 1; i <= most; ++i) {
    ASSERT_TRUE(world.say(kPeer, announcement(i, HostileWorld::kCalls, 1'000).bytes())) << world.failure();
  }
  EXPECT_FALSE(world.say(kPeer, announcement(most + 1, HostileWorld::kCalls, 1'000).bytes()));
  EXPECT_EQ(world.failure(), "more active messages at once than a rank may announce");
}

TEST(HostilePeer, ActiveMessagesThatHaveComeCountNoMore) {
  HostileWorld world(little());
  const std::uint32_t most = 10 + 100 + internal::Occupancy::kBeforeCard + 4 * internal::kMostCalls;
  const std::vector<std::byte> data(1000);
  for (std::uint32_t i = 1; i <= most + 100; ++i) {
    Block block;
    block.writer.put(
        wire::Announce{.stream = i, .channel = HostileWorld::kCalls.value(), .tag = 1, .bytes = data.size()});
    ASSERT_TRUE(world.say(kPeer, block.bytes())) << world.failure();
    Block segment;
    segment.writer.put(wire::Data{.stream = i});
    ASSERT_TRUE(world.say(kPeer, segment.bytes(), data)) << world.failure();
  }
}

/// The engine holds messages back for a peer, which tells of ever more receives.
TEST(HostilePeer, MoreWantsThanReceivesCanBeAreRefused) {
  for (const std::uint8_t flags : {std::uint8_t{0}, wire::flag_all}) {
    HostileWorld world(little());
    std::vector<std::byte> message(100'000);
    for (std::uint64_t i = 0; i < 20; ++i) world.send(kPeer, Tag{i}, message, kChannel);
    ASSERT_EQ(world.engine().deferred_messages(), 10u);
    constexpr unsigned kPerBlock = 500;
    std::uint32_t wants = 0;
    bool open = true;
    while (open && wants < 8 * internal::kMostWants) {
      Block block;
      for (unsigned i = 0; i < kPerBlock; ++i) {
        wire::Want want{.channel = 100 + wants, .tag = 1};
        want.prefix.flags = flags;
        block.writer.put(want);
        ++wants;
      }
      open = world.say(kPeer, block.bytes());
    }
    EXPECT_EQ(world.failure(), "more receives that wait for held messages than a rank may tell (wants)");
    EXPECT_GE(wants, 4 * internal::kMostWants);
    EXPECT_LE(wants, 4 * internal::kMostWants + kPerBlock);
  }
}

/// A large broadcast of the peer's to this rank alone, of which nothing is sent unasked.
Block offer(std::uint32_t id, std::uint64_t bytes, std::uint32_t stream, std::uint16_t deaths = 0) {
  Block block;
  block.writer.put(wire::Mcast{.stream = stream,
                               .root = kPeer.value(),
                               .id = id,
                               .low_id = 1,
                               .channel = kChannel.value(),
                               .route_entries = 1,
                               .tag = 1,
                               .bytes = bytes,
                               .strand_bytes = bytes,
                               .segment_bytes = 16384,
                               .deaths = deaths});
  std::array<std::byte, route_entry_bytes> route;
  write_route_entry({.rank = Rank{0}}, route);
  block.writer.put_bytes(route);
  return block;
}

Block segment(std::uint32_t stream, std::uint64_t offset = 0) {
  Block block;
  block.writer.put(wire::Data{.stream = stream, .offset = offset});
  return block;
}

TEST(HostilePeer, MoreOffersOfBroadcastsThanARootMakesAreRefused) {
  HostileWorld world(little());
  std::uint32_t offers = 0;
  while (offers < 4 * internal::kMostBroadcasts && world.say(kPeer, offer(offers + 1, 1 << 30, offers + 1).bytes()))
    ++offers;
  EXPECT_EQ(world.failure(), "more broadcasts of one root at once than it may have under way");
  EXPECT_LE(offers, 2 * internal::kMostBroadcasts);
  EXPECT_GT(offers, internal::kMostBroadcasts);
}

TEST(HostilePeer, MoreLostOrEmptyBroadcastsThanCanBeAreRefused) {
  for (const bool empty : {false, true}) {
    HostileWorld world(little());
    std::uint32_t said = 0;
    for (bool open = true; open && said < 8 * internal::kMostBroadcasts; said += open) {
      if (empty) {
        open = world.say(kPeer, offer(said + 1, 0, said + 1).bytes());
        continue;
      }
      Block block;
      block.writer.put(
          wire::McastLost{.root = kPeer.value(), .id = said + 1, .low_id = 1, .channel = kChannel.value(), .dead = 2});
      open = world.say(kPeer, block.bytes());
    }
    EXPECT_EQ(world.failure(), "more broadcasts of one root at once than it may have under way") << empty;
    EXPECT_LE(said, 5 * internal::kMostBroadcasts);
  }
}

/// What is kept beside the data of a small broadcast counts, too.
TEST(HostilePeer, SmallBroadcastsWithoutCreditTakeTheMemoryForBroadcasts) {
  EndpointOptions options = little();
  options.forward_bytes = 100'000;
  HostileWorld world(options);
  for (std::uint32_t id = 1; id <= 1000; ++id)
    ASSERT_TRUE(world.say(kPeer, offer(id, 8, id).bytes())) << world.failure();
  const std::string state = world.engine().describe();
  unsigned declined = 0;
  for (std::size_t at = 0; (at = state.find(", declined", at)) != std::string::npos; ++at) ++declined;
  EXPECT_GE(declined, 800u);
}

/// Each rail has room for one payload at a time.
TEST(HostilePeer, APacketWithinThePayloadBeforeItIsRefused) {
  for (const bool with_payload : {false, true}) {
    HostileWorld world;
    std::array<std::byte, 1000> room;
    for (std::uint32_t stream = 1; stream <= 2; ++stream) {
      world.receive(kPeer, Tag{1}, room, kChannel);
      ASSERT_TRUE(world.say(kPeer, announcement(stream).bytes()));
    }
    ASSERT_TRUE(world.begin(kPeer, segment(1).bytes(), 500, 0));
    if (with_payload) EXPECT_FALSE(world.begin(kPeer, segment(2).bytes(), 500, 0));
    else EXPECT_FALSE(world.say(kPeer, announcement(3).bytes()));
    EXPECT_EQ(world.failure(), "a packet within the payload of the one before it");
  }
}

/// The user may free a receive's memory when it has ended. Until then no rail writes there.
TEST(HostilePeer, BytesThatComeTwiceDoNotEndAReceiveThatStillLands) {
  for (const bool dies : {false, true}) {
    HostileWorld world;
    auto room = std::make_unique<std::array<std::byte, 1000>>();
    auto& receive = world.receive(kPeer, Tag{1}, *room, kChannel);
    ASSERT_TRUE(world.say(kPeer, announcement(1).bytes()));
    ASSERT_TRUE(world.begin(kPeer, segment(1).bytes(), 500, 1));
    ASSERT_TRUE(world.say(kPeer, segment(1).bytes(), *room, 0));
    EXPECT_EQ(receive.ending, Ending::pending);
    if (dies) world.die(kPeer);
    else world.finish(kPeer, 1, std::byte{1});
    EXPECT_EQ(receive.ending, dies ? Ending::peer_dead : Ending::truncated);
  }
}

TEST(HostilePeer, BytesThatComeTwiceDoNotEndABroadcastThatStillLands) {
  HostileWorld world;
  auto room = std::make_unique<std::array<std::byte, 1000>>();
  auto& receive = world.receive(kPeer, Tag{1}, *room, kChannel);
  ASSERT_TRUE(world.say(kPeer, offer(1, 1000, 1).bytes()));
  ASSERT_TRUE(world.begin(kPeer, segment(1).bytes(), 500, 1));
  ASSERT_TRUE(world.say(kPeer, segment(1).bytes(), *room, 0));
  EXPECT_EQ(receive.ending, Ending::pending);
  world.finish(kPeer, 1, std::byte{1});
  EXPECT_EQ(receive.ending, Ending::done);
}

/// A parent that is said to be dead may still be writing, and may do so for as long as its link is open.
TEST(HostilePeer, ABroadcastWithANewParentWaitsForWhatStillLandsFromTheOldOne) {
  for (const bool dies : {false, true}) {
    HostileWorld world;
    auto room = std::make_unique<std::array<std::byte, 1000>>();
    auto& receive = world.receive(kPeer, Tag{1}, *room, kChannel);
    ASSERT_TRUE(world.say(kPeer, offer(1, 1000, 1).bytes()));
    ASSERT_TRUE(world.begin(kPeer, segment(1).bytes(), 500, 1));
    ASSERT_TRUE(world.say(Rank{2}, offer(1, 1000, 7, 1).bytes()));
    ASSERT_TRUE(world.say(Rank{2}, segment(7).bytes(), *room));
    EXPECT_EQ(receive.ending, Ending::pending);
    if (dies) world.die(kPeer);
    else world.finish(kPeer, 1, std::byte{1});
    EXPECT_EQ(receive.ending, Ending::done);
  }
}

/// Two peers begin and finish payloads on two rails in random orders, and say everything twice. Memory is freed as soon
/// as its receive has ended, so that AddressSanitizer sees what is written later.
TEST(HostilePeer, NothingIsWrittenBehindTheEndOfAReceive) {
  unsigned ended = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    HostileWorld world;
    struct Waiting {
      std::unique_ptr<std::array<std::byte, 1000>> room = std::make_unique<std::array<std::byte, 1000>>();
      internal::RequestCore* receive = nullptr;
    };
    std::vector<Waiting> waiting(6);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      waiting[i].receive = &world.receive(Rank{i < 4 ? 1u : 2u}, Tag{1}, *waiting[i].room, kChannel);
    }
    std::array<std::uint32_t, 3> announced{};  // of each peer, streams from 1 on
    std::uint16_t deaths = 0;                  // each offer replaces the one before; its stream is 100 more than this
    for (int action = 0; action < 80 && world.failure().empty(); ++action) {
      const Rank peer{below(4) == 0 ? 2u : 1u};
      const unsigned rail = below(2);
      const std::size_t bytes = 500 * (1 + below(2));
      const bool of_broadcast = announced[peer.value()] == 0 || below(2) == 0;
      const Block block = segment(of_broadcast ? 100u + deaths : 1 + below(announced[peer.value()]),
                                  bytes == 1000 ? 0 : 500 * below(2));
      switch (below(8)) {
        case 0: world.say(peer, announcement(++announced[peer.value()]).bytes()); break;
        case 1:
          ++deaths;
          world.say(peer, offer(1 + deaths / 4, 1000, 100u + deaths, deaths).bytes());
          break;
        case 2:
        case 3: world.finish(peer, rail, std::byte{1}); break;
        case 4:
        case 5:
          world.finish(peer, rail, std::byte{2});
          world.begin(peer, block.bytes(), bytes, rail);
          break;
        default:
          world.finish(peer, rail, std::byte{3});
          world.say(peer, block.bytes(), std::vector<std::byte>(bytes), rail);
      }
      if (below(80) == 0) world.die(peer);
      for (Waiting& one : waiting) {
        if (one.room == nullptr || one.receive->ending == Ending::pending || !one.receive->ended()) continue;
        one.room = nullptr;
        ++ended;
      }
    }
  }
  EXPECT_GT(ended, 100u) << "the test sees ends";
}

/// Segments that leave a gap each: what is noted of them is bounded.
TEST(HostilePeer, ABroadcastInTooManyPiecesIsRefused) {
  HostileWorld world;
  std::vector<std::byte> room(100'000);
  world.receive(kPeer, Tag{1}, room, kChannel);
  ASSERT_TRUE(world.say(kPeer, offer(1, room.size(), 1).bytes()));
  const std::array<std::byte, 1> one{};
  EXPECT_LE(
      [&] {
        std::uint64_t pieces = 0;
        while (pieces < 1000 && world.say(kPeer, segment(1, 1 + 2 * pieces).bytes(), one)) ++pieces;
        return pieces;
      }(),
      256u);
  EXPECT_EQ(world.failure(), "a strand that comes in too many pieces");
}

/// Pieces that touch are one, in whatever order they come.
TEST(HostilePeer, PiecesThatTouchAreOne) {
  HostileWorld world;
  std::vector<std::byte> room(10'000);
  auto& receive = world.receive(kPeer, Tag{1}, room, kChannel);
  ASSERT_TRUE(world.say(kPeer, offer(1, room.size(), 1).bytes()));
  const std::array<std::byte, 2> two{};
  const std::uint64_t count = room.size() / 2;
  for (std::uint64_t i = count; i-- > 0;)
    ASSERT_TRUE(world.say(kPeer, segment(1, 2 * i).bytes(), two)) << world.failure();
  EXPECT_EQ(receive.ending, Ending::done);
}

/// Says one block over and over while another thread changes a word of it, for as long as it takes to meet between a
/// check and a use. A wrong way to read crashes, or is found by a sanitizer; no time makes a right one fail.
template <class Word, class Say>
void change_while_read(Word* at, Word one, Word other, Say say) {
  std::atomic<bool> over = false;
  std::thread changer([&] {
    auto* const word = reinterpret_cast<volatile Word*>(at);
    while (!over.load(std::memory_order_relaxed)) {
      for (int i = 0; i < 100; ++i) {
        *word = one;
        *word = other;
      }
    }
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  for (int i = 0; i < 1'000'000 && std::chrono::steady_clock::now() < until; ++i) say();
  over = true;
  changer.join();
}

TEST(HostilePeer, ALengthThatChangesAfterItsCheckIsNotUsed) {
  if (base::under_thread_sanitizer) GTEST_SKIP() << "the race is the point: the thread stands for another process";
  Block block = eager(8);
  const wire::Eager is{.bytes = 8, .channel = kChannel.value()};
  const wire::Eager becomes{.bytes = 0x7fffff00, .channel = kChannel.value()};
  std::uint64_t one, other;
  std::memcpy(&one, &is, sizeof one);
  std::memcpy(&other, &becomes, sizeof other);
  auto world = std::make_unique<HostileWorld>();
  std::byte room[16];
  change_while_read(reinterpret_cast<std::uint64_t*>(block.room.data() + sizeof(wire::BlockHead)), one, other, [&] {
    if (!world->say(kPeer, block.bytes())) world = std::make_unique<HostileWorld>();
    if (world->engine().statistics().unexpected_messages > 100) {
      while (world->receive(any_source, any_tag, room, kChannel).ending != Ending::pending) {}
      world = std::make_unique<HostileWorld>();
    }
  });
}

TEST(HostilePeer, ARouteThatChangesAfterItsCheckIsNotUsed) {
  if (base::under_thread_sanitizer) GTEST_SKIP() << "the race is the point: the thread stands for another process";
  // Rank 0 with rank 2 below it; or with a subtree that the route does not have.
  Block block;
  wire::Mcast record{.stream = 1,
                     .root = kPeer.value(),
                     .id = 1,
                     .low_id = 1,
                     .channel = kChannel.value(),
                     .route_entries = 2,
                     .bytes = 8,
                     .strand_bytes = 8,
                     .segment_bytes = 16384};
  record.prefix.flags = wire::flag_credited | wire::flag_unasked;
  block.writer.put(record);
  std::array<std::byte, 2 * route_entry_bytes> route;
  write_route_entry({.rank = Rank{0}, .subtree_size = 2}, route);
  write_route_entry({.rank = Rank{2}}, std::span(route).subspan(route_entry_bytes));
  const std::size_t second = block.writer.used() + route_entry_bytes;
  block.writer.put_bytes(route);
  std::uint64_t one, other;
  std::memcpy(&one, route.data() + route_entry_bytes, sizeof one);
  write_route_entry({.rank = Rank{2}, .subtree_size = 65'000}, std::span(route).subspan(route_entry_bytes));
  std::memcpy(&other, route.data() + route_entry_bytes, sizeof other);
  auto world = std::make_unique<HostileWorld>();
  unsigned said = 0;
  change_while_read(reinterpret_cast<std::uint64_t*>(block.room.data() + second), one, other, [&] {
    const std::uint32_t number = ++said;
    std::memcpy(block.room.data() + sizeof(wire::BlockHead) + offsetof(wire::Mcast, id), &number, sizeof number);
    std::memcpy(block.room.data() + sizeof(wire::BlockHead) + offsetof(wire::Mcast, stream), &number, sizeof number);
    const std::vector<std::byte> none;
    if (!world->say(kPeer, block.bytes(), none) || said % 500 == 0) world = std::make_unique<HostileWorld>();
  });
}

}  // namespace
}  // namespace tandem::comm::hostile::hostile_peer_test
