// tandem/comm/transport/ucx/link.hpp: a peer over UCX: numbers the packets that it sends, and orders those that it
// receives.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/comm/transport/transport.hpp"
#include "tandem/comm/transport/ucx/operations.hpp"
#include "tandem/comm/transport/ucx/reorder.hpp"

namespace tandem::comm::internal::ucx {

/// The beginning of each packet's header. The control block follows it, or is the message's data (`control_is_data`),
/// and then the payload comes with the next number (`payload_follows`, `payload_only`).
struct PacketHeader {
  std::uint64_t session = 0;   ///< proves that the sender belongs to the job
  std::uint64_t sequence = 0;  ///< from 0 per direction: UCX may change the order of active messages of different sizes
  std::uint32_t from = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(PacketHeader) == 24, "a wire format");
static_assert(sizeof(PacketHeader) % 8 == 0, "the control block after it keeps the alignment");

constexpr std::uint32_t control_is_data = 1;
constexpr std::uint32_t payload_follows = 2;
constexpr std::uint32_t payload_only = 4;
/// Flag of a message out of order, the last one: UCX alone would notice a closed endpoint after seconds.
constexpr std::uint32_t link_ends = 8;

/// A packet, or half of one, as UCX delivered it.
struct Arrival {
  enum class Data { none, borrowed, copied, kept, rendezvous };
  std::uint32_t flags = 0;
  std::span<const std::byte> control = {};
  void* data = nullptr;  ///< bytes, or UCX's description of bytes that are still at the sender (`rendezvous`)
  std::size_t data_bytes = 0;
  Data kind = Data::none;  ///< `borrowed`: gone after the callback; `kept`, `rendezvous`: UCX's, to be released
  std::vector<std::byte> own_control = {}, own_data = {};  ///< of one that waits
};

/// States: connecting (our hello is out), live (the peer proved the secret), closed. Invariants: at most one payload is
/// being received, and nothing later is reported before it has landed; UCX uses no memory of the engine after a link is
/// closed.
class UcxLink final : public Link {
 public:
  /// Makes the endpoint and sends our hello on it. On failure the link adds itself to `Shared::broken`.
  UcxLink(Shared& shared, Rank peer, std::span<const std::byte> address, std::span<const std::byte> hello,
          std::uint64_t our_session, std::uint64_t peer_session);

  SendStatus try_send(const Packet& packet) override;

  /// Notes that the peer proved that it belongs to the job.
  void proved();
  /// Called by UCX with a message of this peer. The status is the callback's: in progress when the data is kept.
  ucs_status_t came(const PacketHeader& header, std::span<const std::byte> control, void* data, std::size_t data_bytes,
                    std::uint64_t attributes);
  /// Reports to the sink what is in order.
  void deliver();
  void finish(SendOperation& operation);
  void finish(ReceiveOperation& operation);

  /// Ends the endpoint at once, and waits (a few progress calls) until UCX no longer uses memory of the engine.
  void close();
  /// Ends the endpoint after what was sent has left. Null: there is nothing to wait for.
  ucs_status_ptr_t close_gently();

  bool closed() const noexcept { return state_ == State::closed; }
  bool left() const noexcept { return left_; }
  void set_left() noexcept { left_ = true; }
  std::uint64_t peer_session() const noexcept { return peer_session_; }
  /// Notes that this link cannot go on; the first reason counts.
  void break_off(std::string why);

 private:
  enum class State { connecting, live, closed };

  void lose(ucs_status_t status);
  bool may_send(std::size_t payload_bytes) const;
  SendStatus post(SendOperation& operation, unsigned flags);
  SendStatus post_control(const Packet& packet);
  SendOperation& new_send(std::uint32_t flags, std::span<const std::byte> control);
  void send_hello(std::span<const std::byte> hello);
  static void send_ended(void* request, ucs_status_t status, void* operation);
  static void receive_ended(void* request, ucs_status_t status, std::size_t bytes, void* operation);
  static void endpoint_failed(void* link, ucp_ep_h endpoint, ucs_status_t status);

  void hold(std::uint64_t sequence, Arrival arrival);
  void note_ready();
  void handle(Arrival& arrival);
  void hand_over(std::span<const std::byte> control, Arrival& payload);
  void place(Arrival& payload, const Landing& landing);
  void receive(Arrival& payload, const Landing& landing);
  void release(Arrival& arrival);
  std::span<const std::byte> aligned(std::span<const std::byte> control);

  Shared* shared_;
  ucp_ep_h endpoint_ = nullptr;
  State state_ = State::connecting;
  bool left_ = false;      ///< said goodbye: its end is no failure
  bool starved_ = false;   ///< answered retry; `writable` must follow
  bool breaking_ = false;  ///< in `Shared::broken`
  bool lost_ = false;      ///< UCX itself cannot reach the peer

  std::uint64_t our_session_, peer_session_;
  std::uint64_t next_sequence_ = 0;
  std::vector<std::uint64_t> unfinished_;  ///< sequences of sends in flight, ascending
  std::size_t flight_ = 0;                 ///< their payload bytes
  std::size_t outstanding_ = 0;            ///< operations in which UCX may still use memory

  Reorder<Arrival> order_{receiver_window};
  bool receiving_ = false;       ///< a payload is being received
  bool noted_ready_ = false;     ///< in `Shared::ready`
  std::vector<std::byte> held_;  ///< a control block that came as data, until its payload comes
  std::vector<std::byte> aligned_;
};

}  // namespace tandem::comm::internal::ucx
