// tandem/comm/transport/shm/doorbell.hpp: peers that may sleep, and when they are looked after.
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
  const std::atomic<std::uint32_t>* starved = nullptr;  ///< the peer waits for room in the ring from which this side reads
  bool owed = false;        ///< in the next round
  bool for_record = false;  ///< it is owed for a record, and not only for room
  Doorbell* next_owed = nullptr;
};

/// What is owed to peers that may be asleep: since the last round something was published for them. One barrier serves all, and
/// comes when the stores before it have left the processor anyway. While somebody polls, each poll makes a round, so that no peer
/// sleeps on; while nobody does, a round follows each debt at once. Calls are serialised by the transport's caller.
class BellRound {
 public:
  void owe(Doorbell& peer, bool for_record) {
    peer.for_record = peer.for_record || for_record;
    if (peer.owed) return;
    peer.owed = true;
    peer.next_owed = first_owed_;
    first_owed_ = &peer;
    if (nobody_polls_) [[unlikely]] make();
  }
  void make() noexcept {
    if (first_owed_ != nullptr) [[unlikely]] visit();
  }
  /// Rings at once for peers that sleep already, which costs a look at each; the others are visited by `make`.
  void make_for_sleepers() noexcept;
  void set_nobody_polls(bool nobody_polls) noexcept { nobody_polls_ = nobody_polls; }
  /// The peer is gone.
  void forget(const Doorbell& peer) noexcept;

 private:
  [[gnu::noinline]] void visit() noexcept;

  Doorbell* first_owed_ = nullptr;
  bool nobody_polls_ = false;
};

}  // namespace tandem::comm::internal
