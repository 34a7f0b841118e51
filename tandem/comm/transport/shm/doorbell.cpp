// tandem/comm/transport/shm/doorbell.cpp: peers that may sleep, and when they are woken.
#include "tandem/comm/transport/shm/doorbell.hpp"

#include <sys/eventfd.h>

#include <utility>

namespace tandem::comm::internal {

void BellRound::visit() noexcept {
  SystemFence::full();
  for (Doorbell* peer = std::exchange(first_pending_, nullptr); peer != nullptr; peer = peer->next_pending) {
    Bell& bell = hub_of(peer->hub).bell;
    const bool wanted = bell.asleep() && (peer->for_record || peer->room_request->asked());
    if (wanted && bell.claim()) (void)::eventfd_write(peer->eventfd.get(), 1);
    peer->pending = peer->for_record = false;
  }
}

void BellRound::make_for_sleepers() noexcept {
  for (const Doorbell* peer = first_pending_; peer != nullptr; peer = peer->next_pending) {
    if (hub_of(peer->hub).bell.asleep()) return visit();
  }
}

void BellRound::ring_own() noexcept {
  if (own_bell_ != nullptr && own_bell_->claim()) (void)::eventfd_write(own_eventfd_, 1);
}

void BellRound::forget(const Doorbell& peer) noexcept {
  Doorbell** link = &first_pending_;
  while (*link != nullptr && *link != &peer) link = &(*link)->next_pending;
  if (*link != nullptr) *link = peer.next_pending;
}

}  // namespace tandem::comm::internal
