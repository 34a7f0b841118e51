// tandem/comm/transport/shm/room_request.hpp: a producer without room asks its consumer to ring when it makes some.
#pragma once

#include <atomic>
#include <cstdint>

#include "tandem/comm/transport/shm/bell.hpp"

namespace tandem::comm::internal {

/// A word in shared memory, one per direction. The consumer rings for room only if the producer has asked, since most
/// senders never wait.
///
/// Protocol. A producer that waits for room and polls sees the room by itself. If its endpoint sleeps, it must have
/// asked:
/// - An endpoint that falls asleep asks for each link that waits (`ask_before_sleep`), calls `Bell::fall_asleep`, and
///   checks for room.
/// - A thread that sends while the endpoint sleeps already, and finds no room, asks and passes a full barrier (`ask`),
///   and then checks for room. If there is some it goes on, or rings its own endpoint. It never leaves a packet waiting
///   without one of these.
/// The consumer stores what it has consumed, passes a full barrier, and finds the producer's bell asleep and the
/// request (`asked`).
///
/// Why no wake-up is lost: one of the two barriers is first. If it is the producer's, the consumer sees the request,
/// and the bell, which fell asleep before. If it is the consumer's, the producer's check finds the room (Dekker's
/// algorithm, as in `Bell`). A request that was made before needs no new barrier: that of the first one came before any
/// later check.
///
/// Only the producer writes the word, under its endpoint's lock. A request left after the room was taken costs a
/// wake-up.
///
/// `Atomic` and `Fence` are replaced by models that try every order of steps (tests/interleave).
template <template <class> class Atomic, class Fence>
class BasicRoomRequest {
 public:
  /// Called by the producer before `Bell::fall_asleep`, whose barrier orders it before the following check.
  void ask_before_sleep() noexcept { set(1); }
  /// Called by the producer while its endpoint sleeps. A check for room must follow.
  void ask() noexcept {
    if (set(1)) Fence::full();
  }
  /// Called by the producer when its endpoint polls.
  void withdraw() noexcept { set(0); }

  /// Called by the consumer after it made room, passed `Fence::full`, and found the producer's bell asleep.
  bool asked() const noexcept { return asked_.load(std::memory_order_relaxed) != 0; }

 private:
  /// Sets the word. False: it had that value. Relaxed: the barriers order it.
  bool set(std::uint32_t asked) noexcept {
    if (asked_.load(std::memory_order_relaxed) == asked) return false;
    asked_.store(asked, std::memory_order_relaxed);
    return true;
  }

  Atomic<std::uint32_t> asked_{0};
};

using RoomRequest = BasicRoomRequest<std::atomic, SystemFence>;

}  // namespace tandem::comm::internal
