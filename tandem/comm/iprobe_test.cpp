// tandem/comm/iprobe_test.cpp: requests that end once a message is there, and receives that are posted then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "tandem/base/exceptions.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/endpoint_test_support.hpp"

namespace tandem::comm::iprobe_test {
namespace {

using endpoint_test::Bytes;
using endpoint_test::pattern;
using endpoint_test::World;

TEST(Iprobe, EndsOnceAMessageIsThereAndLeavesItToItsReceive) {
  for (const bool early : {false, true})
    for (const std::size_t bytes : {0u, 5u, 3000u, 300'000u}) {
      World world(2);
      const Bytes sent = pattern(bytes, 1);
      unsigned calls = 0;
      std::optional<Request> probe;
      const auto post = [&] {
        probe = world.at[1]->iprobe(Rank{0}, Tag{4}, {.callbacks = {.released = [&](const Status& status) {
          ++calls;
          EXPECT_EQ(status.bytes, bytes);
          EXPECT_EQ(status.source, Rank{0});
          EXPECT_EQ(status.tag, Tag{4});
        }}});
      };
      if (early) post();
      const Bytes other(3);
      world.at[0]->isend(Rank{1}, Tag{5}, other);
      world.settle();
      const Request send = world.at[0]->isend(Rank{1}, Tag{4}, sent);
      world.settle();
      if (!early) post();
      EXPECT_EQ(world.at[1]->wait(*probe).ending, Ending::done);
      world.settle();
      EXPECT_EQ(calls, 1U);
      const auto seen = world.at[1]->probe(Rank{0}, Tag{4});
      ASSERT_TRUE(seen.has_value());
      EXPECT_EQ(seen->announced, bytes == 300'000u);
      EXPECT_FALSE(seen->placed) << "the network does not know memory of devices";
      Bytes got(bytes);
      EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{4}, got)).ending, Ending::done);
      EXPECT_EQ(world.at[0]->wait(send).ending, Ending::done);
      EXPECT_EQ(got, sent);
    }
}

TEST(Iprobe, AReceiveThatIsPostedTakesTheMessageFirst) {
  World world(2);
  const Bytes first = pattern(10, 1), second = pattern(10, 2);
  Bytes got(10);
  const Request receive = world.at[1]->irecv(Rank{0}, Tag{1}, got);
  const Request a = world.at[1]->iprobe(Rank{0}, Tag{1}), b = world.at[1]->iprobe(Rank{0}, Tag{1});
  world.at[0]->isend(Rank{1}, Tag{1}, first);
  world.settle();
  EXPECT_TRUE(receive.released());
  EXPECT_FALSE(a.released() || b.released());
  world.at[0]->isend(Rank{1}, Tag{1}, second);
  world.settle();
  EXPECT_TRUE(a.released() && b.released()) << "neither takes it from the other";
  EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
  EXPECT_EQ(got, second);
}

TEST(Iprobe, SeesBroadcastsThatAreNotAnnounced) {
  World world(4);
  const Bytes sent = pattern(400'000, 1);
  const std::vector<Recipient> recipients{{Rank{1}}, {Rank{2}}, {Rank{3}}};
  std::vector<Request> probes;
  for (unsigned rank = 1; rank < 4; ++rank) probes.push_back(world.at[rank]->iprobe(Rank{0}, Tag{1}));
  const Request mcast = world.at[0]->mcast(recipients, Tag{1}, sent);
  for (unsigned rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(world.at[rank]->wait(probes[rank - 1]).bytes, sent.size());
    EXPECT_FALSE(world.at[rank]->probe(Rank{0}, Tag{1})->announced);
    Bytes got(sent.size());
    EXPECT_EQ(world.at[rank]->wait(world.at[rank]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
    EXPECT_EQ(got, sent);
  }
  EXPECT_EQ(world.at[0]->wait(mcast).ending, Ending::done);
}

TEST(Iprobe, IsCancelledAndEndsWithItsRank) {
  World world(4);
  const Request cancelled = world.at[0]->iprobe(Rank{1}, Tag{1}), dies = world.at[0]->iprobe(Rank{1}, Tag{1}),
                leaves = world.at[0]->iprobe(Rank{2}, Tag{1});
  const Request stays = world.at[0]->iprobe(Rank{3}, Tag{1});
  world.settle();
  EXPECT_TRUE(world.at[0]->cancel(cancelled));
  EXPECT_EQ(cancelled.status().ending, Ending::cancelled);
  EXPECT_FALSE(world.at[0]->cancel(cancelled));
  world.network->kill(Rank{1});
  EXPECT_EQ(world.at[0]->wait(dies).ending, Ending::peer_dead);
  EXPECT_EQ(dies.status().culprit, Rank{1});
  EXPECT_EQ(world.at[0]->wait(world.at[0]->iprobe(Rank{1}, Tag{2})).ending, Ending::peer_dead) << "posted afterwards";
  const Request meets = world.at[0]->irecv_owned(Rank{2}, Tag{1});
  world.at[2]->isend(Rank{0}, Tag{1}, SendBuffer());
  EXPECT_EQ(world.at[0]->wait(meets).ending, Ending::done);
  world.at[2]->close();
  EXPECT_EQ(world.at[0]->wait(world.at[0]->irecv_owned(Rank{2}, Tag{2})).ending, Ending::peer_left);
  EXPECT_EQ(world.at[0]->wait(leaves).ending, Ending::peer_left);
  EXPECT_FALSE(stays.released());
  world.at[0]->close();
  EXPECT_EQ(stays.status().ending, Ending::cancelled);
}

TEST(Iprobe, AMessageWhoseSenderDiesIsLostToItsReceiveAlone) {
  World world(2);
  const Bytes sent = pattern(300'000, 1);
  const Request probe = world.at[0]->iprobe(Rank{1}, Tag{1});
  world.at[1]->isend(Rank{0}, Tag{1}, sent);
  EXPECT_EQ(world.at[0]->wait(probe).ending, Ending::done);
  world.network->kill(Rank{1});
  world.settle();
  Bytes got(300'000);
  EXPECT_EQ(world.at[0]->wait(world.at[0]->irecv(Rank{1}, Tag{1}, got)).ending, Ending::peer_dead);
}

/// A sender that may not announce more announces the messages that are asked for.
TEST(Iprobe, AsksForMessagesThatAreHeldBack) {
  for (const bool early : {false, true}) {
    World world(2, {}, {.credit_announcements = 4});
    std::optional<Request> probe;
    if (early) probe = world.at[1]->iprobe(Rank{0}, Tag{99});
    const Bytes sent = pattern(300'000, 1);
    std::vector<Request> sends;
    for (std::uint64_t tag = 0; tag < 100; ++tag) sends.push_back(world.at[0]->isend(Rank{1}, Tag{tag}, sent));
    world.settle();
    EXPECT_GT(world.at[0]->statistics().deferred_messages, 0U);
    if (!early) probe = world.at[1]->iprobe(Rank{0}, Tag{99});
    EXPECT_EQ(world.at[1]->wait(*probe).ending, Ending::done);
    Bytes got(sent.size());
    for (std::uint64_t tag = 100; tag-- > 0;)
      EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{tag}, got)).ending, Ending::done);
    world.at[0]->wait_all(sends);
  }
}

TEST(Iprobe, MemoryOfDevicesIsForMessagesThatTheNetworkPlaces) {
  for (const bool knows : {false, true})
    for (const bool along : {false, true}) {
      World world(2, {.remote_copy = true, .cuda_memory = knows, .copies = true});
      const Bytes small(100), before = pattern(300'000, 3), sent = pattern(300'000, 1);
      Bytes got(300'000);
      const ReceiveOptions there{.memory = BufferMemory::cuda};
      EXPECT_THROW(world.at[1]->irecv(Rank{0}, Tag{1}, got, there), UsageError) << "nothing is here";
      world.at[0]->isend(Rank{1}, Tag{2}, small);
      world.settle();
      EXPECT_THROW(world.at[1]->irecv(Rank{0}, Tag{2}, got, there), UsageError) << "it comes whole";
      if (along) {  // so that the next announcement brings its beginning
        const Request receive = world.at[1]->irecv(Rank{0}, Tag{3}, got);
        world.settle();
        world.at[0]->isend(Rank{1}, Tag{3}, before);
        world.at[1]->wait(receive);
      }
      const Request probe = world.at[1]->iprobe(Rank{0}, Tag{1}), send = world.at[0]->isend(Rank{1}, Tag{1}, sent);
      world.at[1]->wait(probe);
      ASSERT_EQ(world.at[1]->probe(Rank{0}, Tag{1})->placed, knows);
      if (!knows) {
        EXPECT_THROW(world.at[1]->irecv(Rank{0}, Tag{1}, got, there), UsageError);
        continue;
      }
      const std::uint64_t copies = world.at[1]->statistics().remote_copies;
      EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{1}, got, there)).ending, Ending::done);
      EXPECT_EQ(world.at[1]->statistics().remote_copies, copies) << "the processor must not write there";
      EXPECT_EQ(got, sent);
      EXPECT_EQ(world.at[0]->wait(send).ending, Ending::done);
      world.network->kill(Rank{0});
      world.settle();
      EXPECT_EQ(world.at[1]->wait(world.at[1]->irecv(Rank{0}, Tag{1}, got, there)).ending, Ending::peer_dead);
    }
}

TEST(Iprobe, WrongRanksAreRefused) {
  World world(2);
  EXPECT_THROW(world.at[0]->iprobe(Rank{7}, Tag{1}), UsageError);
}

/// Messages of all sizes, of a few tags, whose receives are posted at once or after a probe, in any order: each tag
/// keeps its order.
TEST(Iprobe, RandomReceivesBehindProbesLoseNothing) {
  for (std::uint64_t seed = 1; seed <= endpoint_test::seeds(100); ++seed) {
    std::mt19937_64 random(seed);
    World world(2, {.remote_copy = seed % 2 == 0, .copies = seed % 2 == 0},
                {.credit_announcements = static_cast<std::uint32_t>(1 + seed % 5)});
    constexpr std::uint64_t tags = 3;
    constexpr unsigned each = 12;
    struct Next {
      unsigned sent = 0, got = 0;
      std::vector<std::size_t> sizes;
      Bytes buffer = Bytes(400'000);
      std::optional<Request> request;
      bool probes = false;
    };
    std::vector<Next> next(tags);
    std::vector<Request> sends;
    std::vector<Bytes> kept;
    kept.reserve(tags * each);
    unsigned done = 0;
    for (unsigned step = 0; done < tags * each; ++step) {
      ASSERT_LT(step, 1'000'000U) << "seed " << seed;
      Next& of = next[random() % tags];
      const Tag tag{static_cast<std::uint64_t>(&of - next.data())};
      if (of.sent < each && random() % 4 == 0) {
        constexpr std::size_t sizes[] = {0, 20, 5000, 50'000, 400'000};
        of.sizes.push_back(sizes[random() % std::size(sizes)]);
        kept.push_back(pattern(of.sizes.back(), static_cast<unsigned>(100 * tag.value()) + of.sent++));
        sends.push_back(world.at[0]->isend(Rank{1}, tag, kept.back()));
      }
      world.loop.step_some(static_cast<unsigned>(random() % 20));
      if (!of.request && of.got < each) {
        of.probes = random() % 2 == 0;
        of.request = of.probes ? world.at[1]->iprobe(Rank{0}, tag) : world.at[1]->irecv(Rank{0}, tag, of.buffer);
      } else if (of.request && of.request->released()) {
        const Status status = of.request->status();
        ASSERT_EQ(status.ending, Ending::done);
        ASSERT_EQ(status.bytes, of.sizes.at(of.got)) << "seed " << seed;
        if (std::exchange(of.probes, false)) {
          of.request = world.at[1]->irecv(Rank{0}, tag, of.buffer);
          continue;
        }
        const Bytes wanted = pattern(status.bytes, static_cast<unsigned>(100 * tag.value()) + of.got++);
        ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), of.buffer.begin())) << "seed " << seed;
        of.request.reset();
        ++done;
      }
    }
    world.at[0]->wait_all(sends);
  }
}

}  // namespace
}  // namespace tandem::comm::iprobe_test
