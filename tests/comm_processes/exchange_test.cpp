// tests/comm_processes/exchange_test.cpp: processes that exchange messages and leave in order.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "team.hpp"

namespace tandem::comm_processes::exchange_test {
namespace {

using comm::Ending;
using comm::Rank;
using comm::Request;
using comm::Tag;

class Exchange : public testing::TestWithParam<std::string> {
 protected:
  comm::EndpointOptions options() const { return options_for(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Over, Exchange, testing::Values("shm", "shm_copy", "tcp"),
                         [](const auto& test) { return test.param; });

TEST_P(Exchange, AllToAllOfMixedSizesArrivesWhole) {
  const std::vector<std::size_t> sizes{0, 1, 100, 1024, 1025, 5000, 20'000, 70'000, 439'296, 3'000'000};
  Team team(4, options(), [&](Member& me) {
    std::vector<Bytes> out, in;
    std::vector<Request> sends, receives;
    for (unsigned i = 0; i < 4 * sizes.size(); ++i) out.push_back(pattern(sizes[i / 4], me.rank() * 1000 + i));
    in.resize(out.size());
    for (unsigned i = 0; i < out.size(); ++i) {
      if (me.is(i % 4)) continue;
      // Odd sizes are expected, even ones come before their receive.
      if (i / 4 % 2 == 1) receives.push_back(me.endpoint().irecv(Rank{i % 4}, Tag{i / 4}, in[i] = Bytes(sizes[i / 4])));
      sends.push_back(me.endpoint().isend(Rank{i % 4}, Tag{i / 4}, out[i], {.priority = static_cast<int>(i % 3)}));
    }
    for (unsigned i = 0; i < out.size(); ++i) {
      if (me.is(i % 4) || i / 4 % 2 == 1) continue;
      receives.push_back(me.endpoint().irecv(Rank{i % 4}, Tag{i / 4}, in[i] = Bytes(sizes[i / 4])));
    }
    for (const Request& request : receives) me.expect_ending(request, Ending::done, "a receive");
    for (const Request& request : sends) me.expect_ending(request, Ending::done, "a send");
    for (unsigned i = 0; i < in.size(); ++i) {
      const unsigned there = i / 4 * 4 + me.rank();
      me.expect(me.is(i % 4) || in[i] == pattern(sizes[i / 4], i % 4 * 1000 + there),
                fmt::format("wrong bytes in message {}", i));
    }
  });
  EXPECT_EQ(team.finish(), "");
}

TEST_P(Exchange, BroadcastsReachEightRanksAlongEveryTree) {
  const std::vector<comm::TreeKind> trees{comm::TreeKind::automatic, comm::TreeKind::flat,
                                          comm::TreeKind::chain,     comm::TreeKind::binary,
                                          comm::TreeKind::binomial,  comm::TreeKind::two_tree};
  Team team(8, options(), [&](Member& me) {
    std::vector<comm::Recipient> recipients;
    for (std::uint32_t rank = 1; rank < 8; ++rank) recipients.push_back({Rank{rank}, static_cast<int>(rank)});
    std::uint64_t tag = 0;
    for (const std::size_t bytes : {0u, 700u, 30'000u, 1'000'000u}) {
      for (const comm::TreeKind tree : trees) {
        ++tag;
        const Bytes sent = pattern(bytes, static_cast<unsigned>(tag));
        if (me.is(0)) {
          me.expect_ending(me.endpoint().mcast(recipients, Tag{tag}, sent, {.tree = tree}), Ending::done,
                           "a broadcast");
          continue;
        }
        Bytes got(bytes);
        me.expect_ending(me.endpoint().irecv(Rank{0}, Tag{tag}, got), Ending::done, "its receive");
        me.expect(got == sent, fmt::format("wrong bytes of {} along {}", bytes, comm::tree_name(tree)));
      }
    }
  });
  EXPECT_EQ(team.finish(), "");
}

TEST_P(Exchange, ARankThatLeavesEarlyIsNotDead) {
  Team team(3, options(), [](Member& me) {
    Bytes got(1000), late(1000);
    Request unanswered;
    if (!me.is(2)) unanswered = me.endpoint().irecv(Rank{2}, Tag{99}, late);
    me.talk({0, 1, 2}, 1000, 1);
    if (me.is(2)) return me.endpoint().close();
    me.expect_ending(unanswered, Ending::peer_left, "a receive from a rank that has left");
    me.expect_ending(me.endpoint().isend(Rank{2}, Tag{1}, got), Ending::peer_left, "a send to a rank that has left");
    me.expect_ending(me.endpoint().irecv(Rank{2}, Tag{1}, got), Ending::peer_left, "a later receive from it");
    me.talk({0, 1}, 100'000, 2);
    me.expect(!me.knows_death_of(2), "a death was reported of a rank that left");
  });
  EXPECT_EQ(team.finish(), "");
}

/// A receive connects to its source. The end of a connection that never carried a message is no death. Nor is it one
/// when a rank that has left can no longer be reached.
TEST_P(Exchange, ARankThatLeavesWithoutAWordIsNotDead) {
  Team team(3, options(), [](Member& me) {
    Bytes never(1000);
    const auto connect = [&] {
      const Request unanswered = me.endpoint().irecv(Rank{2}, Tag{99}, never);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      me.endpoint().cancel(unanswered);
    };
    if (me.is(0)) {
      connect();
      me.reach(1);
    }
    if (me.is(2)) {
      me.await(0, 1);
      me.endpoint().close();
      return me.reach(2);
    }
    me.await(2, 2);
    if (me.is(1)) {
      const Request unanswered = me.endpoint().irecv(Rank{2}, Tag{99}, never);
      me.endpoint().cancel(unanswered);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // longer than a transport waits for a goodbye
    me.expect(!me.knows_death_of(2), "a death was reported of a rank that left");
    me.talk({0, 1}, 1000, 2);
  });
  EXPECT_EQ(team.finish(), "");
}

TEST_P(Exchange, WhatWasSentBeforeLeavingIsStillReceived) {
  Team team(2, options(), [](Member& me) {
    const Bytes small = pattern(500, 1), large = pattern(2'000'000, 2);
    if (me.is(0)) {
      me.endpoint().isend(Rank{1}, Tag{1}, small);
      me.endpoint().isend(Rank{1}, Tag{2}, large);
      me.reach(1);
      return me.endpoint().close();
    }
    me.await(0, 1);
    Bytes got(large.size());
    me.expect_ending(me.endpoint().irecv(Rank{0}, Tag{2}, got), Ending::done,
                     "the large message of a rank that leaves");
    me.expect(got == large, "wrong bytes");
    got.resize(small.size());
    me.expect_ending(me.endpoint().irecv(Rank{0}, Tag{1}, got), Ending::done,
                     "the small message of a rank that has left");
    me.expect(got == small, "wrong bytes");
  });
  EXPECT_EQ(team.finish(), "");
}

}  // namespace
}  // namespace tandem::comm_processes::exchange_test
