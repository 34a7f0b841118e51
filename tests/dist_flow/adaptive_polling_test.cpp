// tests/dist_flow/adaptive_polling_test.cpp: idle workers that leave the queues alone while ranks exchange short
// messages (option `polling`).
//
// ADAPTIVE_POLLING_SEED=n plays the flow of that seed alone; ADAPTIVE_POLLING_COUNT=n plays n flows.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tests/environment.hpp"

namespace tandem::dist_test::adaptive_polling_test {
namespace {

void expect_all_well(const std::vector<Ending>& endings) {
  for (const Ending& ending : endings) EXPECT_EQ(ending.error, "");
}

/// Tasks of two ranks touch a number in turn.
void play_ping_pong(Runtime& rt, int trips) {
  auto ball = rt.scalar<int>("ball", {.owner = 0});
  rt.submit(Codelet("serve", [](int& value) { value = 0; }), write(ball));
  const Codelet touch("touch", [](int& value) { ++value; });
  for (int trip = 0; trip < trips; ++trip)
    for (std::uint32_t rank = 0; rank < 2; ++rank) rt.submit({.on = rank}, touch, read_write(ball));
  int touches = 0;
  rt.submit({.on = 0}, Codelet("look", [&touches](const int& value) { touches = value; }), read(ball));
  rt.wait();
  if (rt.rank() != 0) return;
  EXPECT_EQ(touches, 2 * trips);
}

std::uint64_t count_polls(bool adaptive) {
  JobSetup setup{.ranks = 2, .workers = 3};
  setup.core.adaptive_polling = adaptive;
  setup.core.poll_for_ns = 1'000'000;
  std::atomic<std::uint64_t> polls{0};
  expect_all_well(run_job(setup, [&](Runtime& rt) {
    play_ping_pong(rt, 300);
    for (const runtime::WorkerReport& worker : rt.statistics().workers) polls += worker.polls;
  }));
  return polls;
}

TEST(AdaptivePolling, IdleWorkersLookForTasksLessOftenWhileMessagesAreShort) {
  const std::uint64_t fixed = count_polls(false), adaptive = count_polls(true);
  EXPECT_LT(adaptive, fixed / 2);
}

/// On rank 1 the worker of a device, which runs none of these tasks, polls the network when the caller's worker comes.
TEST(AdaptivePolling, AWorkerThatTakesNoSuchTaskWakesOneThatDoes) {
  for (const unsigned workers : {1U, 2U})
    expect_all_well(run_job({.ranks = 2, .workers = workers, .devices = 1},
                            [](Runtime& rt) { play_ping_pong(rt, 300); }));
}

/// Random tasks on numbers of random owners, some of which also pass on a long vector, in several waits. The last
/// number of each is as in one sequential run, on whichever rank.
void play_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t count) { return random() % count; };
  JobSetup setup{.ranks = static_cast<std::uint32_t>(2 + below(2)), .workers = static_cast<unsigned>(1 + below(3)),
                 .devices = below(3) == 0 ? 1U : 0U, .sched = below(2) == 0 ? "lws" : "prio"};
  setup.core.adaptive_polling = below(4) != 0;
  setup.core.poll_for_ns = below(3) == 0 ? 0 : below(2) == 0 ? 20'000 : 500'000;
  constexpr std::size_t kNumbers = 8, kLong = 10'000;
  const std::size_t waits = 1 + below(4), tasks = 10 + below(60);
  std::vector<std::uint32_t> owners;
  for (std::size_t i = 0; i < kNumbers; ++i) owners.push_back(static_cast<std::uint32_t>(below(setup.ranks)));
  const std::uint64_t flow = random();
  std::vector<std::uint64_t> expected(kNumbers, 1);
  {
    std::mt19937_64 draw(flow);
    for (std::size_t i = 0; i < waits * tasks; ++i) {
      const std::size_t from = draw() % kNumbers, to = draw() % kNumbers;
      draw();
      expected[to] = expected[to] * 3 + (from != to ? expected[from] : 0);
    }
  }
  expect_all_well(run_job(setup, [&](Runtime& rt) {
    std::vector<Data<std::uint64_t>> numbers;
    for (std::size_t i = 0; i < kNumbers; ++i)
      numbers.push_back(rt.scalar<std::uint64_t>("number", {.owner = owners[i]}));
    auto vector = rt.vector<double>("long", kLong, {.owner = 0});
    const Codelet begin("begin", [](std::uint64_t& to) { to = 1; });
    const Codelet fill("fill", [](std::span<double> to) { std::fill(to.begin(), to.end(), 1.0); });
    const Codelet add("add", [](const std::uint64_t& from, std::uint64_t& to) { to = to * 3 + from; });
    const Codelet alone("alone", [](std::uint64_t& to) { to *= 3; });
    const Codelet pass("pass", [](std::span<double> to) { to[0] += 1; });
    for (const auto& number : numbers) rt.submit(begin, write(number));
    rt.submit(fill, write(vector));
    std::mt19937_64 draw(flow);
    for (std::size_t wait = 0; wait < waits; ++wait) {
      for (std::size_t i = 0; i < tasks; ++i) {
        const std::size_t from = draw() % kNumbers, to = draw() % kNumbers;
        const std::uint64_t more = draw();
        const int priority = static_cast<int>(more % 3);
        if (from != to) rt.submit({.priority = priority}, add, read(numbers[from]), read_write(numbers[to]));
        else rt.submit({.priority = priority}, alone, read_write(numbers[to]));
        if (more % 20 == 7)
          rt.submit({.on = static_cast<std::uint32_t>(more / 20 % rt.size())}, pass, read_write(vector));
      }
      rt.wait();
    }
    for (std::size_t i = 0; i < kNumbers; ++i)
      if (owners[i] == rt.rank())
        rt.submit(Codelet("look",
                          [&, i](const std::uint64_t& value) {
                            EXPECT_EQ(value, expected[i]) << "ADAPTIVE_POLLING_SEED=" << seed;
                          }),
                  read(numbers[i]));
      else
        rt.submit(Codelet("look", [](const std::uint64_t&) {}), read(numbers[i]));
    rt.wait();
  }));
}

TEST(AdaptivePolling, RandomFlowsOfShortAndLongMessagesEndAndAreRight) {
  if (const std::uint64_t only = test::number_of("ADAPTIVE_POLLING_SEED", 0); only != 0) return play_random(only);
  const std::uint64_t count = test::number_of("ADAPTIVE_POLLING_COUNT", base::under_sanitizer ? 20 : 100);
  for (std::uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) play_random(seed);
}

}  // namespace
}  // namespace tandem::dist_test::adaptive_polling_test
