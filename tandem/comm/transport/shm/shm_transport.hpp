// tandem/comm/transport/shm/shm_transport.hpp: the transport: its links, which of them to poll, deaths, sleeping.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/shm/connector.hpp"
#include "tandem/comm/transport/shm/event_set.hpp"
#include "tandem/comm/transport/shm/shm.hpp"
#include "tandem/comm/transport/shm/shm_link.hpp"

namespace tandem::comm::internal {

/// `Transport` lists the permitted callers. Each poll checks the links that were busy lately, and a few of the others
/// in turn. It checks the sockets, which show calls and deaths, about every half millisecond. `arm` checks all links.
///
/// Deaths. The socket or the pidfd of a peer shows that it is gone. What it had written is delivered first. Then one
/// more poll follows: what was delivered may have been the peer's goodbye, and the engine calls `peer_left` only after
/// the poll.
class ShmTransport final : public Transport, private ConnectorOwner {
 public:
  static base::Result<std::unique_ptr<Transport>> make(const ShmOptions& options, PacketSink& sink);
  ~ShmTransport() override;

  std::string_view name() const noexcept override { return "shm"; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::string card() const override { return connector_->card().text(); }
  bool reaches(Rank peer, std::string_view card) override;
  Link& connect(Rank peer, std::string_view card, unsigned rail) override;
  bool accepts_now() const noexcept override { return connector_->accepts_now(); }
  unsigned poll(std::int64_t now_ns) override;
  void hurry() override { round_.make_for_sleepers(); }
  int wait_descriptor() const noexcept override { return events_.descriptor(); }
  bool arm() override;
  void disarm() override;
  void peer_left(Rank peer) override;
  void disconnect(Rank peer) override;

 private:
  ShmTransport(const ShmOptions& options, PacketSink& sink, EventSet events, base::FileDescriptor doorbell);

  ShmLink& link_to(Rank peer);
  unsigned look(ShmLink& link);
  [[gnu::noinline]] unsigned look_at_others();
  bool sockets_due(std::int64_t now_ns) noexcept;
  [[gnu::noinline]] unsigned end_lost_links();
  void lost(ShmLink& link, std::string why);
  [[gnu::cold]] void lost_by_format(ShmLink& link);
  void close_link(ShmLink& link);

  Refusal admit(Rank peer) override;
  void attached(Rank peer, Attachment attachment) override;
  void unreachable(Rank peer, std::string reason) override;
  void unattachable(Rank peer, std::string reason) override;

  const ShmOptions options_;
  PacketSink& sink_;
  Capabilities capabilities_;
  SendLimits limits_;
  BellRound round_;  ///< outlives the links
  EventSet events_;
  base::FileDescriptor doorbell_;
  std::uint64_t doorbell_watch_ = 0;
  std::unique_ptr<Connector> connector_;

  std::unordered_map<Rank, std::unique_ptr<ShmLink>> links_;
  std::vector<ShmLink*> busy_;    ///< attached and active lately: each poll checks them
  std::vector<ShmLink*> others_;  ///< attached: polls check them in turn
  std::size_t next_other_ = 0;
  std::vector<ShmLink*> lost_links_;
  bool asleep_ = false;
  bool look_at_sockets_ = true;
  std::int64_t sockets_seen_ns_ = 0;
  unsigned polls_since_sockets_ = 0;
};

}  // namespace tandem::comm::internal
