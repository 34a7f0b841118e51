// tandem/comm/transport/shm/doorbell.cpp: peers that may sleep, and when they are looked after.
#include "tandem/comm/transport/shm/doorbell.hpp"

#include <sys/eventfd.h>

namespace tandem::comm::internal {

void BellRound::visit() noexcept {
  SystemFence::full();
  for (Doorbell* peer : owed_) {
    Bell& bell = hub_of(peer->hub).bell;
    // `starved` was written before the peer lay down, so who sees it asleep sees that, too.
    const bool wanted = bell.asleep() && (peer->for_record || peer->starved->load(std::memory_order_relaxed) != 0);
    if (wanted && bell.claim()) (void)::eventfd_write(peer->eventfd.get(), 1);
    peer->owed = peer->for_record = false;
  }
  owed_.clear();
}

void BellRound::make_for_sleepers() noexcept {
  for (const Doorbell* peer : owed_) {
    if (hub_of(peer->hub).bell.asleep()) return visit();
  }
}

void BellRound::forget(const Doorbell& peer) noexcept {
  std::erase(owed_, &peer);
}

}  // namespace tandem::comm::internal
