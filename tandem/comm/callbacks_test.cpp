// tandem/comm/callbacks_test.cpp: callbacks that throw: the others run, and a call that waits throws it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint_test_support.hpp"

namespace tandem::comm::callbacks_test {
namespace {

using endpoint_test::World;

struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};
void throw_boom(const Status&) { throw Boom(); }

TEST(ThrowingCallbacks, AWaitThrowsAndTheOtherCallbacksRun) {
  World world(2);
  std::uint64_t first = 0, second = 0, third = 0;
  int ran = 0;
  const Callbacks counted{.released = [&ran](const Status&) { ++ran; }};
  const Request one =
      world.at[1]->irecv(Rank{0}, Tag{1}, {&first, sizeof first}, {.callbacks = {.released = throw_boom}});
  const Request two = world.at[1]->irecv(Rank{0}, Tag{2}, {&second, sizeof second}, {.callbacks = counted});
  for (const std::uint64_t tag : {1u, 2u}) world.at[0]->isend(Rank{1}, Tag{tag}, {&tag, sizeof tag});
  EXPECT_THROW(world.at[1]->wait_all(std::vector<Request>{one, two}), Boom);
  world.at[1]->wait_all(std::vector<Request>{one, two});  // the exception was thrown once
  world.settle();
  EXPECT_EQ(ran, 1);

  const Request three = world.at[1]->irecv(Rank{0}, Tag{3}, {&third, sizeof third}, {.callbacks = counted});
  world.at[0]->isend(Rank{1}, Tag{3}, {&third, sizeof third});
  EXPECT_EQ(world.at[1]->wait(three).ending, Ending::done);
  world.settle();
  EXPECT_EQ(ran, 2) << "callbacks go on after one has thrown";
}

TEST(ThrowingCallbacks, AWaitForWhatTheCallbackDidNotDoEnds) {
  World world(2);
  std::uint64_t value = 1, never = 0;
  world.at[1]->irecv(Rank{0}, Tag{1}, {&value, sizeof value}, {.callbacks = {.released = throw_boom}});
  const Request hopeless = world.at[1]->irecv(Rank{0}, Tag{2}, {&never, sizeof never});
  world.at[0]->isend(Rank{1}, Tag{1}, {&value, sizeof value});
  EXPECT_THROW(world.at[1]->wait(hopeless), Boom);
  EXPECT_FALSE(hopeless.released());
}

TEST(ThrowingCallbacks, WhatIsNoStandardExceptionIsThrownAsItIs) {
  World world(2);
  std::uint64_t value = 1;
  const auto throws = [](const Status&) { throw 7; };
  const Request one = world.at[1]->irecv(Rank{0}, Tag{1}, {&value, sizeof value}, {.callbacks = {.released = throws}});
  world.at[0]->isend(Rank{1}, Tag{1}, {&value, sizeof value});
  EXPECT_THROW(world.at[1]->wait(one), int);
}

TEST(ThrowingCallbacks, TheRequestOfOneIsFreed) {
  World world(2);
  std::uint64_t value = 1;
  const auto held = std::make_shared<int>(1);
  {
    const Request one = world.at[1]->irecv(Rank{0}, Tag{1}, {&value, sizeof value},
                                           {.callbacks = {.released = [held](const Status&) { throw Boom(); }}});
    world.at[0]->isend(Rank{1}, Tag{1}, {&value, sizeof value});
    EXPECT_THROW(world.at[1]->wait(one), Boom);
  }
  EXPECT_EQ(held.use_count(), 1) << "the callback is gone with its request";
}

TEST(ThrowingCallbacks, AHandlerThatThrowsRefusesItsMessageAndGetsTheNextOne) {
  World world(2);
  const Channel channel = world.at[0]->channel("calls");
  int asked = 0, done = 0;
  world.at[1]->channel("calls");
  world.at[1]->register_rpc(channel, {.arrived =
                                          [&asked](const RpcArrival&) {
                                            if (++asked == 1) throw Boom();
                                            return RpcAnswer{};
                                          },
                                      .done = [&done](const Status&) { ++done; }});
  const std::vector<std::uint8_t> payload(100'000, 3);  // announced: the refusal must end the send
  const Request first = world.at[0]->rpc(Rank{1}, channel, Tag{1}, {}, payload);
  const Request second = world.at[0]->rpc(Rank{1}, channel, Tag{2}, {}, payload);
  EXPECT_EQ(world.at[0]->wait(first).ending, Ending::done);
  EXPECT_EQ(world.at[0]->wait(second).ending, Ending::done);
  world.settle();
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(done, 1);
}

/// On the progress thread there is no caller: the next call throws the exception.
TEST(ThrowingCallbacks, OneOnTheProgressThreadIsThrownByTheNextCall) {
  base::Log log(base::LogLevel::error, [](base::LogLevel, std::string_view) {});
  LoopNetwork network(LoopOptions{.ranks = 2});
  std::vector<std::unique_ptr<Endpoint>> at;
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    at.push_back(Endpoint::open_loop(network, Rank{rank}, {}, log, nullptr));
  std::counting_semaphore<8> ran{0};
  std::uint64_t value = 1;
  const Callbacks thrower{.released = [&ran](const Status&) { ran.release(), throw Boom(); }};
  const Callbacks counter{.released = [&ran](const Status&) { ran.release(); }};
  at[1]->irecv(Rank{0}, Tag{1}, {&value, sizeof value}, {.callbacks = thrower});
  at[0]->isend(Rank{1}, Tag{1}, {&value, sizeof value});
  ASSERT_TRUE(ran.try_acquire_for(std::chrono::seconds(60)));
  at[1]->irecv(Rank{0}, Tag{2}, {&value, sizeof value}, {.callbacks = counter});
  at[0]->isend(Rank{1}, Tag{2}, {&value, sizeof value});
  ASSERT_TRUE(ran.try_acquire_for(std::chrono::seconds(60))) << "callbacks go on after one has thrown";
  bool thrown = false;
  for (int tries = 0; tries < 60'000 && !thrown; ++tries) {
    try {
      at[1]->progress();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } catch (const Boom&) {
      thrown = true;
    }
  }
  EXPECT_TRUE(thrown);
  std::vector<std::thread> leaving;
  for (auto& endpoint : at) leaving.emplace_back([&endpoint] { endpoint->close(); });
  for (std::thread& thread : leaving) thread.join();
}

/// One of the waiting threads throws the exception; the others wait on, whatever they saw of it.
TEST(ThrowingCallbacks, OneOfTheThreadsThatWaitThrowsAndTheOthersWaitOn) {
  base::Log log(base::LogLevel::error, [](base::LogLevel, std::string_view) {});
  LoopNetwork network(LoopOptions{.ranks = 2});
  std::vector<std::unique_ptr<Endpoint>> at;
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    at.push_back(Endpoint::open_loop(network, Rank{rank}, {}, log, nullptr));
  constexpr std::uint64_t waiting = 4, boom = waiting;
  const std::uint64_t value = 1;
  std::atomic<int> too_early{0};
  std::counting_semaphore<8> caught{0};
  for (int round = 0; round < 1000; ++round) {
    std::array<std::uint64_t, waiting + 1> to = {};
    at[1]->irecv(Rank{0}, Tag{boom}, {&to[boom], sizeof value}, {.callbacks = {.released = throw_boom}});
    std::vector<std::thread> threads;
    for (std::uint64_t tag = 0; tag < waiting; ++tag)
      threads.emplace_back([&, request = at[1]->irecv(Rank{0}, Tag{tag}, {&to[tag], sizeof value})] {
        try {
          at[1]->wait(request);
          if (!request.released()) ++too_early;
        } catch (const Boom&) {
          caught.release();
          at[1]->wait(request);
        }
      });
    at[0]->isend(Rank{1}, Tag{boom}, {&value, sizeof value});
    ASSERT_TRUE(caught.try_acquire_for(std::chrono::seconds(60)));
    if (round < 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the other threads look meanwhile
    for (std::uint64_t tag = 0; tag < waiting; ++tag) at[0]->isend(Rank{1}, Tag{tag}, {&value, sizeof value});
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(too_early.load(), 0) << "in round " << round;
    ASSERT_FALSE(caught.try_acquire()) << "it is thrown once";
  }
  std::vector<std::thread> leaving;
  for (auto& endpoint : at) leaving.emplace_back([&endpoint] { endpoint->close(); });
  for (std::thread& thread : leaving) thread.join();
}

/// Leaving runs callbacks as well. It cannot throw, since the destructor leaves.
TEST(ThrowingCallbacks, AnEndpointLeavesThoughItsCallbacksThrow) {
  std::uint64_t value = 1;
  World world(2);
  world.at[0]->isend(Rank{1}, Tag{1}, {&value, sizeof value}, {.callbacks = {.released = throw_boom}});
  world.at[0].reset();
}

}  // namespace
}  // namespace tandem::comm::callbacks_test
