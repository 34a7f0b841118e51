// tandem/comm/transport/mpi/link.hpp: a peer over MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "tandem/comm/transport/mpi/traffic.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal::mpi {

/// MPI keeps the order of messages of one source and tag, so that envelopes come in order. Later envelopes are reported
/// only after a payload that has a message of its own. Invariants: at most one payload is being received, and
/// `waiting_` is empty unless one is.
class MpiLink final : public Link {
 public:
  MpiLink(Shared& shared, Rank peer, int number) : Link(peer, 0), shared_(&shared), number_(number) {}

  SendStatus try_send(const Packet& packet) override;
  bool may_send(std::size_t payload_bytes) const;

  /// Reports an envelope of this peer, or keeps it until its turn.
  void came(std::span<const std::byte> envelope);
  /// Whether receiving the current payload has ended, also by a failure.
  bool receive_done();
  /// Reports a received payload, and the envelopes that waited for it.
  void finish_receive();
  void payload_sent(const PayloadSend& send, int code);
  void set_starved(bool starved) noexcept { starved_ = starved; }

  /// Closes the link. Afterwards no transfer uses memory of the engine, or an error is logged.
  void close();
  /// Ends all reports and receives; sends continue.
  void mute();
  void break_off(std::string why);
  bool closed() const noexcept { return closed_; }
  bool left() const noexcept { return left_; }
  void set_left() noexcept { left_ = true; }

 private:
  void post_envelope(const Packet& packet, std::uint32_t flags);
  bool post_payload(const Packet& packet);
  void hand_over(std::span<const std::byte> envelope);
  void receive(std::size_t payload_bytes, const Landing& landing);
  void land(std::uint64_t token);
  int tag_of(std::uint64_t payload) const;
  void withdraw_receive();

  Shared* shared_;
  int number_;  ///< the peer's in the communicator
  bool closed_ = false, breaking_ = false, left_ = false, starved_ = false, receiving_ = false;

  std::uint64_t packets_sent_ = 0;
  std::uint64_t payloads_sent_ = 0;  ///< payloads with messages of their own, which number the tags
  std::uint64_t payloads_received_ = 0;
  std::vector<std::uint64_t> unfinished_;  ///< packets whose payload is in flight, ascending
  std::size_t flight_ = 0;                 ///< their bytes

  PayloadReceive receive_;
  std::deque<std::vector<std::byte>> waiting_;
};

}  // namespace tandem::comm::internal::mpi
