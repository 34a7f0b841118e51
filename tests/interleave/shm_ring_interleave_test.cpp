// tests/interleave/shm_ring_interleave_test.cpp: ring and bell of the shared-memory transport, under every order of steps.
#include <gtest/gtest.h>

#include <array>

#include "tandem/comm/transport/shm/bell.hpp"
#include "tandem/comm/transport/shm/ring.hpp"
#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave {
namespace {

/// A ring of `Cells` cells whose bodies are one plain word each.
template <std::uint64_t Cells>
struct ModelRing {
  std::array<ModelAtomic<std::uint64_t>, Cells> heads;
  std::array<ModelPlain<std::uint64_t>, Cells> bodies;
  ModelAtomic<std::uint64_t> consumed{0};

  /// What RingProducer and RingConsumer take for memory.
  struct Memory {
    ModelRing* ring = nullptr;
    ModelAtomic<std::uint64_t>& head(std::uint64_t cell) const { return ring->heads[cell % Cells]; }
    ModelAtomic<std::uint64_t>& consumed() const { return ring->consumed; }
    std::uint64_t cells() const { return Cells; }
    ModelPlain<std::uint64_t>& body(std::uint64_t cell) const { return ring->bodies[cell % Cells]; }
  };
};

template <std::uint64_t Cells>
struct RingEnds {
  using Memory = typename ModelRing<Cells>::Memory;
  ModelRing<Cells> ring;
  comm::internal::RingProducer<Memory> producer{Memory{&ring}};
  comm::internal::RingConsumer<Memory> consumer{Memory{&ring}};

  /// Record n takes `cells` cells; the bodies of all hold n; so does the first word.
  bool try_put(std::uint64_t n, std::uint64_t cells) {
    if (!producer.room(cells)) return false;
    const std::uint64_t at = producer.begin(cells);
    for (std::uint64_t c = 0; c < cells; ++c) producer.memory().body(at + c) = n;
    producer.publish(n, cells);
    return true;
  }
  bool try_take(std::uint64_t n, std::uint64_t cells) {
    const std::uint64_t word = consumer.peek();
    if (word == 0) return false;
    require(word == n, "a record is lost, repeated or invented");
    for (std::uint64_t c = 0; c < cells; ++c)
      require(consumer.memory().body(consumer.position() + c) == n, "a record's body is not the one that was written");
    consumer.consume(cells);
    return true;
  }
};

/// A producer that tries `Puts` times and a consumer that tries `Takes` times; records of one and two cells in turn.
template <std::uint64_t Cells, unsigned Puts, unsigned Takes>
struct PutAndTake : Program {
  RingEnds<Cells> ends;
  std::uint64_t put = 0;
  std::uint64_t taken = 0;

  static std::uint64_t cells_of(std::uint64_t n) { return Cells > 2 && n % 2 == 0 ? 2 : 1; }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      for (unsigned i = 0; i < Puts; ++i)
        if (ends.try_put(put + 1, cells_of(put + 1))) ++put;
      return;
    }
    for (unsigned i = 0; i < Takes; ++i) take();
  }
  bool take() {
    if (!ends.try_take(taken + 1, cells_of(taken + 1))) return false;
    ++taken;
    ends.consumer.return_credit();
    return true;
  }
  void check() override {
    while (take()) {
    }
    require(taken == put, "a published record never arrives");
    require(put > 0, "an empty ring had no room");
  }
};

TEST(ShmRingUnderEveryOrder, RecordsArriveWholeOnceAndInOrder) {
  expect_holds<PutAndTake<2, 3, 3>>({.store_buffers = true});
  expect_holds<PutAndTake<4, 4, 3>>({.store_buffers = true});
  expect_holds<PutAndTake<4, 6, 5>>({.most_preemptions = 4});
}

/// A step after which a thread's stores have reached memory.
struct ModelFence {
  static void full() noexcept { ModelAtomic<std::uint32_t>(0).exchange(0); }
};
using ModelBell = comm::internal::BasicBell<ModelAtomic, ModelFence>;

/// An eventfd.
struct ModelDoorbell {
  ModelAtomic<std::uint64_t> rings{0};
  void ring() { rings.fetch_add(1); }
  static bool rung(std::uint64_t count) { return count > 0; }
  void sleep() {
    rings.await<&rung>();
    rings.exchange(0);
  }
};

/// Both sides sleep whenever they can do nothing, as the transport does it. Without `Fenced`, peers pass no barrier.
template <bool Fenced, unsigned Records>
struct Conversation : Program {
  RingEnds<2> ends;  // room for one record
  ModelBell producer_bell, consumer_bell;
  ModelDoorbell producer_door, consumer_door;
  ModelAtomic<std::uint32_t> starved{0};

  unsigned threads() const override { return 2; }
  void run(unsigned thread) override { thread == 0 ? produce() : consume(); }

  void produce() {
    for (std::uint64_t n = 1; n <= Records;) {
      if (ends.try_put(n, 1)) {
        if (Fenced) ModelFence::full();
        if (consumer_bell.asleep() && consumer_bell.claim()) consumer_door.ring();
        ++n;
        continue;
      }
      starved.store(1, std::memory_order_relaxed);
      producer_bell.fall_asleep();
      if (!ends.producer.room(1)) producer_door.sleep();
      producer_bell.wake_up();
      starved.store(0, std::memory_order_relaxed);
    }
  }
  void consume() {
    for (std::uint64_t n = 1; n <= Records;) {
      if (ends.try_take(n, 1)) {
        ends.consumer.return_credit();
        if (Fenced) ModelFence::full();
        const bool asleep = producer_bell.asleep();
        if (asleep && starved.load(std::memory_order_relaxed) != 0 && producer_bell.claim()) producer_door.ring();
        ++n;
        continue;
      }
      consumer_bell.fall_asleep();
      if (ends.consumer.peek() == 0) consumer_door.sleep();
      consumer_bell.wake_up();
    }
  }
};

TEST(ShmBellUnderEveryOrder, AMessageWakesTheSleeper) { expect_holds<Conversation<true, 1>>({.store_buffers = true}); }

TEST(ShmBellUnderEveryOrder, RoomWakesTheSleepingSender) {
  expect_holds<Conversation<true, 3>>({.most_preemptions = 2});
  expect_holds<Conversation<true, 2>>({.most_preemptions = 1, .store_buffers = true});
}

TEST(ShmBellUnderEveryOrder, WithoutTheBarrierAWakeUpIsLost) {
  expect_found<Conversation<false, 1>>("", {.store_buffers = true});
}

/// Two peers find one sleeper: one rings.
struct TwoRing : Program {
  ModelBell bell;
  ModelDoorbell door;
  std::array<ModelAtomic<std::uint32_t>, 2> published;
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread < 2) {
      published[thread].store(1, std::memory_order_release);
      ModelFence::full();
      if (bell.asleep() && bell.claim()) door.ring();
      return;
    }
    bell.fall_asleep();
    if (published[0].load(std::memory_order_acquire) == 0 && published[1].load(std::memory_order_acquire) == 0) door.sleep();
    bell.wake_up();
  }
  void check() override { require(door.rings.peek() <= 1, "a sleep was rung twice"); }
};

TEST(ShmBellUnderEveryOrder, OneOfManyRings) { expect_holds<TwoRing>({.store_buffers = true}); }

}  // namespace
}  // namespace tandem::interleave
