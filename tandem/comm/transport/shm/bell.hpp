// tandem/comm/transport/shm/bell.hpp: how peers wake a sleeping endpoint, at little cost to peers that find it awake.
#pragma once

#include <atomic>
#include <cstdint>

namespace tandem::comm::internal {

/// A full barrier of the calling processor.
struct SystemFence {
  static void full() noexcept {
#if defined(__x86_64__)
    asm volatile("lock orl $0, (%%rsp)" ::: "memory", "cc");  // half the time of mfence
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
};

/// The state of one endpoint in shared memory. The owner falls asleep and wakes up; any peer asks whether it must ring.
///
/// Protocol (Dekker's). A peer publishes (a record, or room in a ring), passes a full barrier, then reads the state;
/// the owner writes `asleep` (sequentially consistent, which is a barrier, too), then checks all its rings. So one of
/// the two sees the other. A peer that finds `asleep` makes it `rung` and writes to the owner's eventfd, so that of
/// many peers and messages only one makes the system call. An owner that is rung in vain only wakes once too often. A
/// peer need not ask after each record: one barrier and one read suffice for all that it published before (see
/// BellRound).
///
/// membarrier(2) by the owner would spare peers the barrier; on virtual machines it costs 20 us and interrupts the
/// peer's core.
template <template <class> class Atomic, class Fence>
class BasicBell {
 public:
  /// Called by the owner, before its last check of the rings.
  void fall_asleep() noexcept {
    state_.exchange(kAsleep, std::memory_order_seq_cst);  // pairs with asleep
    Fence::full();
  }
  /// Called by the owner.
  void wake_up() noexcept { state_.exchange(kAwake, std::memory_order_acq_rel); }

  /// Called by a peer, after it published and then passed `Fence::full`. Sees what the owner wrote before it fell
  /// asleep.
  bool asleep() const noexcept { return state_.load(std::memory_order_acquire) == kAsleep; }
  /// Called by a peer that found the owner asleep. True: this peer has to write to the eventfd.
  bool claim() noexcept {
    std::uint32_t expected = kAsleep;
    return state_.compare_exchange_strong(expected, kRung, std::memory_order_acq_rel, std::memory_order_acquire);
  }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  static constexpr std::uint32_t kRung = 2;

  Atomic<std::uint32_t> state_{kAwake};
};

using Bell = BasicBell<std::atomic, SystemFence>;

}  // namespace tandem::comm::internal
