// tests/comm_processes/sleepers_test.cpp: posts while endpoints sleep; nobody waits or polls but their progress
// threads. COMM_SLEEPERS_SEED=n plays one seed, COMM_SLEEPERS_COUNT=n plays that many, COMM_SLEEPERS_FRESH=1 begins
// where nobody has begun before.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "crew.hpp"
#include "tandem/comm/endpoint.hpp"
#include "team.hpp"
#include "tests/environment.hpp"

namespace tandem::comm_processes::sleepers_test {
namespace {

using namespace std::chrono_literals;
using comm::Endpoint;
using comm::Rank;
using comm::Request;
using comm::Status;
using comm::Tag;
using Semaphore = std::counting_semaphore<1 << 20>;

/// Far beyond what any of it takes, on a machine that does other things as well.
constexpr auto kPatience = 60s;
/// After so long without traffic a progress thread sleeps (`EndpointOptions::spin_ns` is 20 us). When it does not yet,
/// a test proves less.
constexpr auto kUntilAsleep = 50ms;

bool acquire(Semaphore& semaphore, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i)
    if (!semaphore.try_acquire_for(kPatience)) return false;
  return true;
}

comm::Callbacks counted_by(Semaphore& semaphore) {
  const auto count = [&semaphore](const Status&) { semaphore.release(); };
  return {.released = count, .failed = count};
}

const Bytes one_byte(1);  ///< what is sent where only its coming counts

class Sleepers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, Sleepers, testing::Values("loop", "shm", "shm_copy", "tcp"),
                         [](const auto& test) { return test.param; });

/// More than the rings or sockets take at once: the rest waits until the receiver has made room.
TEST_P(Sleepers, WhatIsPostedWhileTheProgressThreadSleepsLeavesWithoutAnotherCall) {
  constexpr std::size_t messages = 200;
  for (const std::size_t bytes : {100u, 4'000u, 10'000u, 30'000u, 300'000u}) {
    SCOPED_TRACE(bytes);
    const Bytes out = pattern(bytes, 3);
    std::vector<Bytes> in(messages, Bytes(bytes));
    Semaphore received{0}, sent{0};
    Crew crew(2, GetParam());
    Bytes hello(1);
    std::vector<Request> receives;
    for (Bytes& to : in)
      receives.push_back(crew.at[1]->irecv(Rank{0}, Tag{1}, to, {.callbacks = counted_by(received)}));
    const Request warm = crew.at[1]->irecv(Rank{0}, Tag{2}, hello);
    crew.at[0]->isend(Rank{1}, Tag{2}, one_byte);  // connects
    crew.at[1]->wait(warm);
    std::this_thread::sleep_for(kUntilAsleep);
    for (std::size_t i = 0; i < messages; ++i) crew.at[0]->isend(Rank{1}, Tag{1}, out, {.callbacks = counted_by(sent)});
    EXPECT_TRUE(acquire(received, messages)) << crew.at[0]->describe() << crew.at[1]->describe();
    EXPECT_TRUE(acquire(sent, messages)) << crew.at[0]->describe() << crew.at[1]->describe();
    for (const Bytes& got : in) EXPECT_TRUE(got == out);
  }
}

/// The same, made certain: the receiver reads nothing before all is posted, and then has no reason of its own to send
/// anything (an answer to 64 messages would wake the sender). So only the request for room does.
TEST_P(Sleepers, WhatARingRefusedLeavesWhenTheReceiverReadsLate) {
  constexpr std::size_t messages = 50;
  const Bytes out = pattern(4'000, 3);
  std::vector<Bytes> in(messages, Bytes(out.size()));
  Bytes hello(1);
  Semaphore received{0}, stopped{0}, go{0};
  Crew crew(2, GetParam());
  for (Bytes& to : in) crew.at[1]->irecv(Rank{0}, Tag{1}, to, {.callbacks = counted_by(received)});
  const auto stop = [&](const Status&) {
    stopped.release();
    go.acquire();
  };
  crew.at[1]->irecv(Rank{0}, Tag{2}, hello, {.callbacks = {.released = stop}});
  crew.at[0]->isend(Rank{1}, Tag{2}, one_byte);
  EXPECT_TRUE(acquire(stopped, 1));
  std::this_thread::sleep_for(kUntilAsleep);
  for (std::size_t i = 0; i < messages; ++i) crew.at[0]->isend(Rank{1}, Tag{1}, out);
  go.release();
  EXPECT_TRUE(acquire(received, messages)) << crew.at[0]->describe() << crew.at[1]->describe();
  for (const Bytes& got : in) EXPECT_TRUE(got == out);
}

/// A thread of the program polls while the progress thread sleeps, and stops: what comes then is for the progress
/// thread.
TEST_P(Sleepers, ACallerThatPollsForAWhileLeavesTheProgressThreadWakeable) {
  for (const int polls : {1, 10, 1000}) {
    SCOPED_TRACE(polls);
    Bytes first(1), second(1);
    Semaphore received{0};
    Crew crew(2, GetParam());
    const comm::ReceiveOptions counted{.callbacks = counted_by(received)};
    crew.at[1]->irecv(Rank{0}, Tag{1}, first, counted);
    crew.at[1]->irecv(Rank{0}, Tag{2}, second, counted);
    crew.at[0]->isend(Rank{1}, Tag{1}, one_byte);
    ASSERT_TRUE(acquire(received, 1));
    std::this_thread::sleep_for(kUntilAsleep);
    for (int i = 0; i < polls; ++i) crew.at[1]->progress();
    crew.at[0]->isend(Rank{1}, Tag{2}, one_byte);
    EXPECT_TRUE(acquire(received, 1)) << crew.at[1]->describe();
  }
}

/// The connection fails while the progress thread sleeps, in the call that posts, or soon after it.
TEST_P(Sleepers, ASendToARankThatHasLeftEndsWithoutAnotherCall) {
  Bytes hello(1);
  Semaphore ended{0};
  Crew crew(2, GetParam());
  crew.at.pop_back();
  std::this_thread::sleep_for(kUntilAsleep);
  crew.at[0]->irecv(Rank{1}, Tag{1}, hello, {.callbacks = counted_by(ended)});
  crew.at[0]->isend(Rank{1}, Tag{1}, one_byte, {.callbacks = counted_by(ended)});
  EXPECT_TRUE(acquire(ended, 2)) << crew.at[0]->describe();
}

// --- random

/// Messages of one size from one rank to another, posted in a row.
struct Burst {
  std::uint32_t from = 0, to = 0;
  std::uint64_t tag = 0;
  std::size_t bytes = 0;
  std::size_t count = 0;
};

using Random = std::minstd_rand;

/// Around what decides how a message travels: in the envelope, in the control block, in the record, eagerly, announced.
std::size_t draw_bytes(Random& random) {
  constexpr std::size_t limits[] = {16, 56, 1024, 4000, 8192, 16 << 10, 32 << 10, 64 << 10, 512 << 10};
  const std::size_t limit = limits[random() % std::size(limits)];
  return random() % 2 == 0 ? limit - 2 + random() % 5 : random() % limit;
}

std::vector<Burst> draw_bursts(Random& random, std::uint32_t ranks) {
  std::vector<Burst> bursts(4 + random() % 6);
  for (std::size_t i = 0; i < bursts.size(); ++i) {
    Burst& burst = bursts[i];
    burst.from = static_cast<std::uint32_t>(random() % ranks);
    burst.to = static_cast<std::uint32_t>((burst.from + 1 + random() % (ranks - 1)) % ranks);
    burst.tag = i;
    burst.bytes = draw_bytes(random);
    burst.count = 1 + random() % std::clamp<std::size_t>((2 << 20) / (burst.bytes + 1), 1, 200);
  }
  return bursts;
}

/// One rank's program: posts its part of each burst, in an order of its own, and pauses in between. It never waits for
/// a request.
class Player {
 public:
  Player(Endpoint& endpoint, const std::vector<Burst>& bursts, std::uint64_t seed)
      : endpoint_(endpoint), bursts_(bursts), random_(static_cast<Random::result_type>(seed)) {}

  void play() {
    for (const Burst& burst : bursts_) {
      const bool late = random_() % 3 == 0;
      if (burst.to == rank() && !late) receive(burst);
      pause();
      if (burst.from == rank()) send(burst);
      pause();
      if (burst.to == rank() && late) receive(burst);
    }
  }
  /// "" or what was wrong. Nobody calls the endpoint meanwhile.
  std::string finish() {
    if (!acquire(ended_, posted_)) return "a message never ends:\n" + endpoint_.describe();
    for (const Received& received : received_)
      if (received.bytes != received.expected) return "a message has not the bytes that were sent";
    return "";
  }

 private:
  struct Received {
    Bytes bytes;
    Bytes expected;
  };
  std::uint32_t rank() const { return endpoint_.rank().value(); }
  static Bytes content(const Burst& burst) { return pattern(burst.bytes, static_cast<unsigned>(burst.tag)); }

  void pause() {
    switch (random_() % 8) {
      case 0: return std::this_thread::sleep_for(kUntilAsleep / 10);
      case 1: return std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
      case 2: return std::this_thread::yield();
      case 3:
        for (auto polls = random_() % 600; polls > 0; --polls) endpoint_.progress();
        return;
      default: return;
    }
  }
  void receive(const Burst& burst) {
    for (std::size_t i = 0; i < burst.count; ++i) {
      Received& to = received_.emplace_back(Received{Bytes(burst.bytes), content(burst)});
      endpoint_.irecv(Rank{burst.from}, Tag{burst.tag}, to.bytes, {.callbacks = counted_by(ended_)});
      ++posted_;
    }
  }
  void send(const Burst& burst) {
    const Bytes& bytes = sent_.emplace_back(content(burst));
    for (std::size_t i = 0; i < burst.count; ++i) {
      endpoint_.isend(Rank{burst.to}, Tag{burst.tag}, bytes, {.callbacks = counted_by(ended_)});
      ++posted_;
      if (random_() % 64 == 0) pause();
    }
  }

  Endpoint& endpoint_;
  const std::vector<Burst>& bursts_;
  Random random_;
  std::deque<Received> received_;
  std::deque<Bytes> sent_;
  Semaphore ended_{0};
  std::size_t posted_ = 0;
};

std::string play(const std::string& transport, std::uint64_t seed) {
  Random random(static_cast<Random::result_type>(seed * 2 + 1));
  const auto ranks = static_cast<std::uint32_t>(2 + random() % 2);
  const std::vector<Burst> bursts = draw_bursts(random, ranks);
  std::deque<Player> players;  // outlive the crew, whose last callbacks use them
  Crew crew(ranks, transport);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) players.emplace_back(*crew.at[rank], bursts, random());
  std::vector<std::thread> threads;
  for (Player& player : players) threads.emplace_back([&player] { player.play(); });
  for (std::thread& thread : threads) thread.join();
  std::string wrong;
  for (Player& player : players) wrong += player.finish();
  return wrong;
}

TEST_P(Sleepers, RandomBurstsBetweenRanksThatSleepAllArrive) {
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const bool one = std::getenv("COMM_SLEEPERS_SEED") != nullptr;
  const std::uint64_t begin = test::number_of("COMM_SLEEPERS_FRESH", 0) != 0 ? now : 0;
  const std::uint64_t first = one ? test::number_of("COMM_SLEEPERS_SEED", 0) : begin;
  const std::uint64_t count = one ? 1 : test::number_of("COMM_SLEEPERS_COUNT", 12);
  for (std::uint64_t seed = first; seed < first + count; ++seed)
    ASSERT_EQ(play(GetParam(), seed), "") << "COMM_SLEEPERS_SEED=" << seed << " over " << GetParam();
}

}  // namespace
}  // namespace tandem::comm_processes::sleepers_test
