// tests/comm_processes/death_test.cpp: ranks that are killed, in each state of the protocol.
//
// Every operation with a killed rank ends with `peer_dead` within two seconds, and the others continue.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "team.hpp"

namespace tandem::comm_processes::death_test {
namespace {

using comm::Ending;
using comm::Rank;
using comm::Request;
using comm::Status;
using comm::Tag;

constexpr std::uint32_t victim = 2;
constexpr std::size_t large = 16 << 20;

class Death : public testing::TestWithParam<std::string> {
 protected:
  comm::EndpointOptions options() const { return options_for(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Over, Death, testing::Values("shm", "shm_copy", "tcp"),
                         [](const auto& test) { return test.param; });

/// Kills the victim once it is at stage 1, and informs the others.
std::string kill_at_stage_one(Team& team, std::chrono::milliseconds after = {}) {
  if (!team.await(victim, 1)) return "the victim did not come to its death\n" + team.finish();
  std::this_thread::sleep_for(after);
  team.kill(victim);
  team.order(1);
  return team.finish();
}

TEST_P(Death, BeforeContactEndsTheFirstContact) {
  Team team(4, options(), [](Member& me) {
    if (me.is(victim)) {
      me.reach(1);
      me.await_death();
    }
    me.await_order(1);
    Bytes got(1000);
    const Bytes sent(100'000);
    const Request receive = me.endpoint().irecv(Rank{victim}, Tag{1}, got);
    const Request small = me.endpoint().isend(Rank{victim}, Tag{1}, std::span(sent).first(10));
    const Request announced = me.endpoint().isend(Rank{victim}, Tag{1}, sent);
    me.expect_death(receive, victim, "a receive from a rank that was dead before");
    // The network may have taken small messages before any rank knew.
    const Status status = me.endpoint().wait(small);
    me.expect(status.ending == Ending::peer_dead || status.ending == Ending::done, "a small send to it");
    me.expect_death(announced, victim, "a send to it");
    me.talk({0, 1, 3}, 50'000, 7);
  });
  EXPECT_EQ(kill_at_stage_one(team), "");
}

TEST_P(Death, WhileItWaitsEndsWhatTheOthersWaitFor) {
  Team team(4, options(), [](Member& me) {
    me.talk({0, 1, 2, 3}, 1000, 1);
    Bytes got(1000);
    if (me.is(victim)) {
      me.reach(1);
      me.endpoint().wait(me.endpoint().irecv(Rank{0}, Tag{99}, got));
      me.await_death();
    }
    const Request receive = me.endpoint().irecv(Rank{victim}, Tag{2}, got);
    const Request any_tag = me.endpoint().irecv(Rank{victim}, comm::any_tag, got);
    me.expect_death(receive, victim, "a receive from a rank that died");
    me.expect_death(any_tag, victim, "a receive of any tag from it");
    me.talk({0, 1, 3}, 50'000, 7);
    me.expect(me.knows_death_of(victim), "the death was not reported");
    // What is posted later fails at once.
    me.expect_ending(me.endpoint().isend(Rank{victim}, Tag{3}, got), Ending::peer_dead, "a send after the death");
    me.expect_ending(me.endpoint().irecv(Rank{victim}, Tag{3}, got), Ending::peer_dead, "a receive after the death");
  });
  EXPECT_EQ(kill_at_stage_one(team), "");
}

TEST_P(Death, AfterItsAnnouncementEndsTheReceiveThatComesLater) {
  Team team(3, options(), [](Member& me) {
    if (me.is(victim)) {
      const Bytes sent(large);
      std::vector<Request> sends;
      for (std::uint32_t to : {0u, 1u}) sends.push_back(me.endpoint().isend(Rank{to}, Tag{1}, sent));
      me.await(0, 1);
      me.await(1, 1);
      me.reach(1);
      me.await_death();
    }
    while (!me.endpoint().probe(Rank{victim}, Tag{1})) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    me.reach(1);
    me.await_order(1);
    Bytes got(large);
    me.expect_death(me.endpoint().irecv(Rank{victim}, Tag{1}, got), victim, "the receive of an announced message");
    me.talk({0, 1}, 50'000, 7);
  });
  EXPECT_EQ(kill_at_stage_one(team), "");
}

TEST_P(Death, AfterAnAnnouncementToItEndsTheSend) {
  Team team(3, options(), [](Member& me) {
    if (me.is(victim)) {
      while (!me.endpoint().probe(Rank{0}, Tag{1}) || !me.endpoint().probe(Rank{1}, Tag{1}))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      me.reach(1);
      me.await_death();
    }
    const Bytes sent(large);
    me.expect_death(me.endpoint().isend(Rank{victim}, Tag{1}, sent), victim, "a send that the dead rank had not taken");
    me.talk({0, 1}, 50'000, 7);
  });
  EXPECT_EQ(kill_at_stage_one(team), "");
}

/// Sends or receives large messages until one fails; returns how many succeeded.
void stream_until_death(Member& me, bool sends) {
  Bytes memory(large);
  while (true) {
    const Request request = sends ? me.endpoint().isend(Rank{victim}, Tag{1}, memory)
                                  : me.endpoint().irecv(Rank{victim}, Tag{1}, memory);
    const Status status = me.endpoint().wait(request);
    if (status.ending == Ending::done) continue;
    return me.expect_death(request, victim, sends ? "a send in mid-stream" : "a receive in mid-stream");
  }
}

TEST_P(Death, OfASenderInMidStreamEndsItsReceives) {
  Team team(3, options(), [](Member& me) {
    if (me.is(victim)) {
      const Bytes sent(large);
      for (unsigned i = 0;; ++i) {
        const Request a = me.endpoint().isend(Rank{0}, Tag{1}, sent), b = me.endpoint().isend(Rank{1}, Tag{1}, sent);
        me.endpoint().wait(a);
        me.endpoint().wait(b);
        if (i == 1) me.reach(1);
      }
    }
    stream_until_death(me, false);
    me.talk({0, 1}, 50'000, 7);
  });
  EXPECT_EQ(kill_at_stage_one(team, std::chrono::milliseconds(13)), "");
}

TEST_P(Death, OfAReceiverInMidStreamEndsTheSendsToIt) {
  Team team(3, options(), [](Member& me) {
    if (me.is(victim)) {
      Bytes a(large), b(large);
      for (unsigned i = 0;; ++i) {
        const Request first = me.endpoint().irecv(Rank{0}, Tag{1}, a), second = me.endpoint().irecv(Rank{1}, Tag{1}, b);
        me.endpoint().wait(first);
        me.endpoint().wait(second);
        if (i == 1) me.reach(1);
      }
    }
    stream_until_death(me, true);
    me.talk({0, 1}, 50'000, 7);
  });
  EXPECT_EQ(kill_at_stage_one(team, std::chrono::milliseconds(17)), "");
}

TEST_P(Death, OfAFloodOfSmallMessagesEndsWithIt) {
  Team team(3, options(), [](Member& me) {
    if (me.is(victim)) {
      Bytes out(64);
      for (unsigned i = 0;; ++i) {
        std::vector<Request> sends;
        for (unsigned k = 0; k < 100; ++k) sends.push_back(me.endpoint().isend(Rank{k % 2}, Tag{1}, out));
        me.endpoint().wait_all(sends);
        if (i == 20) me.reach(1);
      }
    }
    Bytes got(64);
    Request request;
    do {
      request = me.endpoint().irecv(Rank{victim}, Tag{1}, got);
    } while (me.endpoint().wait(request).ending == Ending::done);
    // What had arrived is received first, so the end may come late.
    me.expect_ending(request, Ending::peer_dead, "the receive after the last message");
    me.talk({0, 1}, 50'000, 7);
  });
  EXPECT_EQ(kill_at_stage_one(team, std::chrono::milliseconds(7)), "");
}

/// Broadcasts from rank 0 along a chain in the order of ranks; the victim is in its middle. Broadcasts that the root
/// posts after it knows of the death must reach all others.
void broadcast_along_chain(Member& me, std::size_t bytes) {
  constexpr unsigned before = 30, after = 5;
  std::vector<comm::Recipient> recipients;
  for (std::uint32_t rank = 1; rank < me.size(); ++rank)
    recipients.push_back({Rank{rank}, static_cast<int>(me.size() - rank)});
  Bytes memory(bytes);
  // The root has a connection to the first of the chain only; a receive connects it to the victim, so it learns of the
  // death.
  Bytes nothing;
  Request watch;
  if (me.is(0)) watch = me.endpoint().irecv(Rank{victim}, Tag{2'000'000}, nothing);
  for (unsigned i = 0; i < before + after; ++i) {
    if (me.is(0) && i == before) {
      while (!me.knows_death_of(victim)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const Bytes sent = pattern(bytes, i);
    me.note(0, i);
    const Request request = me.is(0) ? me.endpoint().mcast(recipients, Tag{i}, sent, {.tree = comm::TreeKind::chain})
                                     : me.endpoint().irecv(Rank{0}, Tag{i}, memory);
    const Status status = me.endpoint().wait(request);
    if (me.is(victim) && i == 1) me.reach(1);
    if (status.ending == Ending::done) {
      me.expect(me.is(0) || memory == sent, fmt::format("wrong bytes of broadcast {}", i));
    } else {
      me.expect(status.ending == Ending::peer_dead && status.culprit.value() == victim && (me.is(0) || i < before),
                fmt::format("broadcast {} ended as {} of rank {}", i, name_of(status.ending), status.culprit.value()));
    }
  }
}

TEST_P(Death, OfAnInteriorNodeOfAChainIsSurvivedByTheOthers) {
  for (const std::size_t bytes : {100'000u, 4'000'000u}) {
    Team team(6, options(), [bytes](Member& me) {
      broadcast_along_chain(me, bytes);
      if (me.is(victim)) me.await_death();
      me.talk({0, 1, 3, 4, 5}, 50'000, 1'000'000);
    });
    EXPECT_EQ(kill_at_stage_one(team, std::chrono::milliseconds(5)), "") << bytes;
  }
}

TEST_P(Death, OfTheRootOfABroadcastEndsTheReceivesOfItsRecipients) {
  Team team(6, options(), [](Member& me) {
    Bytes memory(4'000'000);
    std::vector<comm::Recipient> recipients;
    for (std::uint32_t rank = 0; rank < me.size(); ++rank) recipients.push_back({Rank{rank}, 0});
    for (std::uint64_t i = 0;; ++i) {
      const Request request = me.is(victim)
                                  ? me.endpoint().mcast(recipients, Tag{i}, memory, {.tree = comm::TreeKind::binomial})
                                  : me.endpoint().irecv(Rank{victim}, Tag{i}, memory);
      if (me.endpoint().wait(request).ending == Ending::done) {
        if (me.is(victim) && i == 1) me.reach(1);
        continue;
      }
      me.expect_death(request, victim, "the receive of a broadcast whose root died");
      break;
    }
    me.talk({0, 1, 3, 4, 5}, 50'000, 1'000'000);
  });
  EXPECT_EQ(kill_at_stage_one(team, std::chrono::milliseconds(5)), "");
}

/// Ranks 2 and 3 know of a message, and have no room for it until they post their receives. It comes from rank 1, so
/// the receives connect them to rank 1 alone. Rank 1 is stopped, and dies together with the root; no rank informs 2 and
/// 3 of the root's death.
TEST_P(Death, OfTheRootAndANodeBetweenEndsReceivesThatNeverSpokeToTheRoot) {
  comm::EndpointOptions without_room = options();
  without_room.forward_bytes = 0;
  Team team(4, without_room, [](Member& me) {
    Bytes memory(4'000'000);
    if (me.is(0)) {
      me.await(1, 1);
      const comm::Recipient chain[] = {{Rank{1}, 3}, {Rank{2}, 2}, {Rank{3}, 1}};
      me.endpoint().wait(me.endpoint().mcast(chain, Tag{1}, memory, {.tree = comm::TreeKind::chain}));
      me.await_death();
    }
    if (me.is(1)) {
      const Request request = me.endpoint().irecv(Rank{0}, Tag{1}, memory);
      me.reach(1);
      me.endpoint().wait(request);
      me.await_death();
    }
    while (!me.endpoint().probe(Rank{0}, Tag{1})) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    me.reach(1);
    me.await_order(1);
    const comm::Source from = me.is(2) ? comm::Source(Rank{0}) : comm::Source(comm::any_source);
    const Request request = me.endpoint().irecv(from, Tag{1}, memory);
    me.reach(2);
    // The root may have learned of the other death, and passed it on, before its own.
    const Status status = me.endpoint().wait(request);
    me.expect(status.ending == Ending::peer_dead && status.culprit.value() < 2,
              fmt::format("the receive of a broadcast from a rank that it never spoke to ended as {} of rank {}",
                          name_of(status.ending), status.culprit.value()));
    me.talk({2, 3}, 50'000, 7);
  });
  ASSERT_TRUE(team.await(2, 1) && team.await(3, 1)) << team.finish();
  team.signal(1, SIGSTOP);
  team.order(1);
  ASSERT_TRUE(team.await(2, 2) && team.await(3, 2)) << team.finish();
  team.kill(1);
  team.kill(0);
  EXPECT_EQ(team.finish(), "");
}

TEST_P(Death, OfTheRootOfBroadcastsAndOfInteriorNodesEndsTheReceivesOfTheOthers) {
  for (const comm::TreeKind tree : {comm::TreeKind::chain, comm::TreeKind::binary, comm::TreeKind::two_tree}) {
    Team team(8, options(), [tree](Member& me) {
      Bytes memory(1'000'000);
      std::vector<comm::Recipient> recipients;
      for (std::uint32_t rank = 1; rank < me.size(); ++rank)
        recipients.push_back({Rank{rank}, -static_cast<int>(rank)});
      for (std::uint64_t i = 0;; ++i) {
        // Some post their receives late, for what is there already.
        const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
        while (me.rank() % 3 != 1 && !me.endpoint().probe(Rank{0}, Tag{i}) && std::chrono::steady_clock::now() < late)
          std::this_thread::yield();
        const Request request = me.is(0) ? me.endpoint().mcast(recipients, Tag{i}, memory, {.tree = tree})
                                         : me.endpoint().irecv(Rank{0}, Tag{i}, memory);
        const Status status = me.endpoint().wait(request);
        if (status.ending == Ending::done) {
          if (me.is(0) && i == 1) me.reach(1);
          continue;
        }
        me.expect(status.ending == Ending::peer_dead && status.culprit.value() < 3,
                  fmt::format("broadcast {} ended as {} of rank {}, which has not been killed", i,
                              name_of(status.ending), status.culprit.value()));
        if (status.culprit.value() == 0) break;
      }
      me.talk({3, 4, 5, 6, 7}, 50'000, 1'000'000);
    });
    ASSERT_TRUE(team.await(0, 1)) << team.finish();
    std::this_thread::sleep_for(std::chrono::milliseconds(7));
    for (const std::uint32_t rank : {0u, 1u, 2u}) team.kill(rank);
    EXPECT_EQ(team.finish(), "") << static_cast<int>(tree);
  }
}

}  // namespace
}  // namespace tandem::comm_processes::death_test
