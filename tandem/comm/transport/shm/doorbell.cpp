// tandem/comm/transport/shm/doorbell.cpp: peers that may sleep, and when they are looked after.
#include "tandem/comm/transport/shm/doorbell.hpp"

#include <sys/eventfd.h>

#include <utility>

namespace tandem::comm::internal {

void BellRound::visit() noexcept {
  SystemFence::full();
  for (Doorbell* peer = std::exchange(first_owed_, nullptr); peer != nullptr; peer = peer->next_owed) {
    Bell& bell = hub_of(peer->hub).bell;
    // `starved` was written before the peer lay down, so who sees it asleep sees that, too.
    const bool wanted = bell.asleep() && (peer->for_record || peer->starved->load(std::memory_order_relaxed) != 0);
    if (wanted && bell.claim()) (void)::eventfd_write(peer->eventfd.get(), 1);
    peer->owed = peer->for_record = false;
  }
}

void BellRound::make_for_sleepers() noexcept {
  for (const Doorbell* peer = first_owed_; peer != nullptr; peer = peer->next_owed) {
    if (hub_of(peer->hub).bell.asleep()) return visit();
  }
}

void BellRound::forget(const Doorbell& peer) noexcept {
  Doorbell** link = &first_owed_;
  while (*link != nullptr && *link != &peer) link = &(*link)->next_owed;
  if (*link != nullptr) *link = peer.next_owed;
}

}  // namespace tandem::comm::internal
