// tests/comm_processes/stopped_test.cpp: ranks that do not answer for a while, and ranks that nobody listens to: not
// dead, and bounded in memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "team.hpp"
#include "tandem/base/sanitizers.hpp"

namespace tandem::comm_processes::stopped_test {
namespace {

using comm::Ending;
using comm::Rank;
using comm::Request;
using comm::Tag;

class Stopped : public testing::TestWithParam<std::string> {
 protected:
  comm::EndpointOptions options() const { return options_for(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Over, Stopped, testing::Values("shm", "shm_copy", "tcp"),
                         [](const auto& test) { return test.param; });

/// Memory of this process that is in use, in bytes.
std::int64_t resident_bytes() {
  long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

constexpr std::uint32_t sleeper = 1;

TEST_P(Stopped, ARankThatIsStoppedForSecondsIsNotDead) {
  constexpr unsigned messages = 2000;
  const comm::EndpointOptions chosen = options();
  Team team(3, chosen, [&](Member& me) {
    me.talk({0, 1, 2}, 1000, 1);
    if (me.is(sleeper)) me.reach(1);
    me.await_order(1);  // the sleeper is stopped by now
    const Bytes small = pattern(3000, me.rank()), large = pattern(8'000'000, me.rank());
    std::vector<Request> requests;
    if (!me.is(sleeper)) {
      for (unsigned i = 0; i < messages; ++i) requests.push_back(me.endpoint().isend(Rank{sleeper}, Tag{i}, small));
      requests.push_back(me.endpoint().isend(Rank{sleeper}, Tag{messages}, large));
      me.talk({0, 2}, 1'000'000, 7);
      me.await_order(2);  // goes on by now
      for (const Request& request : requests)
        me.expect_ending(request, Ending::done, "a send to a rank that was stopped");
      me.expect(!me.knows_death_of(sleeper), "a stopped rank was taken for dead");
      return;
    }
    // Everything that can come without a receive comes first.
    for (std::uint32_t from : {0u, 2u}) {
      while (!me.endpoint().probe(Rank{from}, Tag{messages})) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const comm::EndpointStatistics statistics = me.endpoint().statistics();
    me.expect(statistics.unexpected_bytes <= 2 * (chosen.credit_bytes + 64),
              fmt::format("{} unexpected bytes are held, credit is {} a peer", statistics.unexpected_bytes,
                          chosen.credit_bytes));
    for (std::uint32_t from : {0u, 2u}) {
      Bytes got(8'000'000);
      me.expect_ending(me.endpoint().irecv(Rank{from}, Tag{messages}, got), Ending::done, "the large message");
      me.expect(got == pattern(8'000'000, from), "wrong bytes of the large message");
      got.resize(3000);
      for (unsigned i = 0; i < messages; ++i) {
        me.expect_ending(me.endpoint().irecv(Rank{from}, Tag{i}, got), Ending::done, "a small message");
        me.expect(got == pattern(3000, from), fmt::format("wrong bytes of message {}", i));
      }
    }
    me.expect(!me.knows_death_of(0) && !me.knows_death_of(2), "the stopped rank took another one for dead");
  });
  ASSERT_TRUE(team.await(sleeper, 1)) << team.finish();
  team.signal(sleeper, SIGSTOP);
  team.order(1);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  team.signal(sleeper, SIGCONT);
  team.order(2);
  EXPECT_EQ(team.finish(), "");
}

TEST_P(Stopped, AMillionMessagesThatNobodyExpectsAreBoundedAndComeInAnyOrder) {
  const unsigned messages = base::under_sanitizer ? 50'000 : 1'000'000;
  comm::EndpointOptions chosen = options();
  chosen.credit_messages = messages / 10;
  // the one that is probed for
  const std::uint64_t most_held = chosen.credit_messages + chosen.credit_announcements + 1;
  Team team(2, chosen, [&](Member& me) {
    me.talk({0, 1}, 100, 1'000'000'000);
    std::vector<Request> requests(messages);
    std::vector<std::uint64_t> values(messages);
    const std::int64_t before = resident_bytes();
    if (me.is(0)) {
      for (unsigned i = 0; i < messages; ++i) {
        values[i] = i * 3;
        requests[i] = me.endpoint().isend(Rank{1}, Tag{i}, {&values[i], sizeof values[i]});
      }
      me.note(0, resident_bytes() - before);
      me.endpoint().wait_all(requests);
      for (const Request& request : requests) me.expect(request.status().ending == Ending::done, "a send of many");
      return;
    }
    while (!me.endpoint().probe(Rank{0}, Tag{messages - 1})) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const comm::EndpointStatistics statistics = me.endpoint().statistics();
    me.note(0, resident_bytes() - before);
    me.note(1, static_cast<std::int64_t>(statistics.unexpected_bytes));
    me.expect(
        statistics.unexpected_bytes <= chosen.credit_bytes + 64,
        fmt::format("{} unexpected bytes are held, credit is {}", statistics.unexpected_bytes, chosen.credit_bytes));
    me.expect(
        statistics.unexpected_messages <= most_held,
        fmt::format("{} unexpected messages are held, at most {} may be", statistics.unexpected_messages, most_held));
    for (unsigned i = messages; i-- > 0;)
      requests[i] = me.endpoint().irecv(Rank{0}, Tag{i}, {&values[i], sizeof values[i]});
    me.endpoint().wait_all(requests);
    for (unsigned i = 0; i < messages; ++i)
      me.expect(values[i] == i * 3, fmt::format("message {} brings {}", i, values[i]));
  });
  EXPECT_EQ(team.finish(), "");
  std::printf("%u messages: sender holds %.0f B each, receiver %.0f B each, of them %lld B data\n", messages,
              static_cast<double>(team.note(0, 0)) / messages, static_cast<double>(team.note(1, 0)) / messages,
              static_cast<long long>(team.note(1, 1)));
  if (!base::under_sanitizer) {
    // Each an envelope and its place in the matcher, whatever the size of the message; a table that grows is there
    // twice.
    EXPECT_LT(team.note(1, 0), 300LL * static_cast<std::int64_t>(most_held));
  }
}

}  // namespace
}  // namespace tandem::comm_processes::stopped_test
