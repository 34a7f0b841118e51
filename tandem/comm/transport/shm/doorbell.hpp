// tandem/comm/transport/shm/doorbell.hpp: peers that may sleep, and when they are woken.
#pragma once

#include <atomic>
#include <cstdint>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/shm/segment.hpp"
#include "tandem/comm/transport/shm/unix_socket.hpp"

namespace tandem::comm::internal {

/// A peer's bell, with the eventfd behind it.
struct Doorbell {
  Mapping hub;
  base::FileDescriptor eventfd;
  const RoomRequest* room_request = nullptr;  ///< of the peer, for the ring from which this side reads
  bool pending = false;        ///< due for a visit in the next round
  bool for_record = false;  ///< for a record, and not only for room
  Doorbell* next_pending = nullptr;
};

/// The peers for which something was published since the last round, and which may be asleep. One barrier serves all of
/// them, and comes when the stores before it have left the processor anyway. While the endpoint polls, each poll makes
/// a round, so that no peer misses a wake-up. Otherwise `add` makes a round at once. Then a send that waits for its
/// peer also asks it for room (`RoomRequest`), or wakes this endpoint (`ring_own`). Calls are serialised by the
/// transport's caller.
class BellRound {
 public:
  void add(Doorbell& peer, bool for_record) {
    peer.for_record = peer.for_record || for_record;
    if (peer.pending) return;
    peer.pending = true;
    peer.next_pending = first_pending_;
    first_pending_ = &peer;
    if (nobody_polls_) [[unlikely]] make();
  }
  void make() noexcept {
    if (first_pending_ != nullptr) [[unlikely]] visit();
  }
  /// Rings at once for peers that sleep already, at the cost of a read for each; `make` visits the others.
  void make_for_sleepers() noexcept;
  void set_nobody_polls(bool nobody_polls) noexcept { nobody_polls_ = nobody_polls; }
  bool nobody_polls() const noexcept { return nobody_polls_; }
  /// The bell and the eventfd of this endpoint, which outlive the links.
  void set_own(Bell& bell, int eventfd) noexcept {
    own_bell_ = &bell;
    own_eventfd_ = eventfd;
  }
  /// Wakes this endpoint if it sleeps: there is something for it to do.
  void ring_own() noexcept;
  /// Removes a peer that is gone.
  void forget(const Doorbell& peer) noexcept;

 private:
  [[gnu::noinline]] void visit() noexcept;

  Doorbell* first_pending_ = nullptr;
  bool nobody_polls_ = false;
  Bell* own_bell_ = nullptr;
  int own_eventfd_ = -1;
};

}  // namespace tandem::comm::internal
