// tests/interleave/shm_ring_interleave_test.cpp: ring and bell of the shared-memory transport, under every order of
// steps.
#include <gtest/gtest.h>

#include <array>
#include <type_traits>

#include "tandem/comm/transport/shm/bell.hpp"
#include "tandem/comm/transport/shm/ring.hpp"
#include "tandem/comm/transport/shm/room_request.hpp"
#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::shm_ring_interleave_test {
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
using ModelRoomRequest = comm::internal::BasicRoomRequest<ModelAtomic, ModelFence>;

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
  ModelRoomRequest room_request;

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
      room_request.ask_before_sleep();
      producer_bell.fall_asleep();
      if (!ends.producer.room(1)) producer_door.sleep();
      producer_bell.wake_up();
      room_request.withdraw();
    }
  }
  void consume() {
    for (std::uint64_t n = 1; n <= Records;) {
      if (ends.try_take(n, 1)) {
        ends.consumer.return_credit();
        if (Fenced) ModelFence::full();
        if (producer_bell.asleep() && room_request.asked() && producer_bell.claim()) producer_door.ring();
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

/// How a thread that sends, while its endpoint sleeps, and finds no room, makes sure that the endpoint wakes.
enum class Asking { as_built, not_at_all, without_barrier, without_second_look };

struct NoFence {
  static void full() noexcept {}
};

/// Three threads of two ranks. The sender's endpoint (thread 0) falls asleep with nothing to send. Meanwhile a thread
/// of its program (1) sends until the ring is full, and does nothing more: the endpoint is to send the rest. A lock
/// orders the two, as the engine's does. The receiver (2) polls.
template <Asking How>
struct SendWhileAsleep : Program {
  static constexpr std::uint64_t kRecords = 2;
  RingEnds<2> ends;  // room for one record
  ModelBell bell;
  ModelDoorbell door;
  using Fence = std::conditional_t<How == Asking::without_barrier, NoFence, ModelFence>;
  comm::internal::BasicRoomRequest<ModelAtomic, Fence> room_request;
  ModelAtomic<std::uint32_t> locked{0};
  std::uint64_t sent = 0;          ///< guarded by the lock
  bool nobody_polls = false;       ///< likewise
  bool refused = false;            ///< likewise

  static bool is_free(std::uint32_t value) { return value == 0; }
  void lock() {
    while (locked.exchange(1) != 0) locked.await<&is_free>();
  }
  void unlock() { locked.store(0); }

  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread == 0) sleep_and_send();
    else if (thread == 1) post();
    else receive();
  }
  void sleep_and_send() {
    while (true) {
      lock();
      while (refused && sent < kRecords && ends.producer.room(1)) send_more();
      if (sent == kRecords) return unlock();
      if (refused) room_request.ask_before_sleep();
      nobody_polls = true;
      bell.fall_asleep();
      const bool sleeps = !refused || !ends.producer.room(1);
      unlock();
      if (sleeps) door.sleep();
      lock();
      bell.wake_up();
      nobody_polls = false;
      room_request.withdraw();
      unlock();
    }
  }
  void post() {
    lock();
    while (sent < kRecords && ends.producer.room(1)) send_more();
    if (sent < kRecords) {
      refused = true;
      if (nobody_polls) wait_asleep();
    } else if (nobody_polls && bell.claim()) {
      door.ring();  // so that thread 0 ends
    }
    unlock();
  }
  void send_more() {
    ends.try_put(++sent, 1);
    ModelFence::full();  // the receiver polls, and need not be woken
  }
  void wait_asleep() {
    if (How == Asking::not_at_all) return;
    room_request.ask();
    if (How == Asking::without_second_look || !ends.producer.room(1)) return;
    if (bell.claim()) door.ring();
  }
  static bool is_there(std::uint64_t word) { return word != 0; }
  void receive() {
    for (std::uint64_t n = 1; n <= kRecords; ++n) {
      ends.ring.heads[(n - 1) % 2].await<&is_there>();
      require(ends.try_take(n, 1), "a record that was seen is gone");
      ends.consumer.return_credit();
      ModelFence::full();
      if (bell.asleep() && room_request.asked() && bell.claim()) door.ring();
    }
  }
};

TEST(ShmRoomRequestUnderEveryOrder, ASendWhileItsEndpointSleepsIsFinished) {
  expect_holds<SendWhileAsleep<Asking::as_built>>({.most_preemptions = 3});
  expect_holds<SendWhileAsleep<Asking::as_built>>({.most_preemptions = 2, .store_buffers = true});
}

TEST(ShmRoomRequestUnderEveryOrder, WithoutARequestABarrierOrASecondLookItIsNot) {
  expect_found<SendWhileAsleep<Asking::not_at_all>>("", {.most_preemptions = 3});
  expect_found<SendWhileAsleep<Asking::without_second_look>>("", {.most_preemptions = 3});
  expect_found<SendWhileAsleep<Asking::without_barrier>>("", {.most_preemptions = 3, .store_buffers = true});
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
    if (published[0].load(std::memory_order_acquire) == 0 && published[1].load(std::memory_order_acquire) == 0)
      door.sleep();
    bell.wake_up();
  }
  void check() override { require(door.rings.peek() <= 1, "a sleep was rung twice"); }
};

TEST(ShmBellUnderEveryOrder, OneOfManyRings) { expect_holds<TwoRing>({.store_buffers = true}); }

}  // namespace
}  // namespace tandem::interleave::shm_ring_interleave_test
