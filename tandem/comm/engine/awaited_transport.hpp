// tandem/comm/engine/awaited_transport.hpp: stands for a peer's transport while that is not known.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// Its links take nothing, like those of a connection that is being made: what is posted waits in the peer's queue.
/// Whatever depends on the transport is decided so that it fits all: small messages are eager, there may be several
/// rails, and nothing is read remotely.
class AwaitedTransport final : public Transport {
 public:
  AwaitedTransport() {
    able_ = Capabilities{.max_control_bytes = 4096,
                         .max_payload_bytes = 16 * 1024,
                         .segment_bytes = 16 * 1024,
                         .eager_bytes = 1024,
                         .rails = 2,
                         .shared_memory = true,  // there is no rate to be measured
                         .latency_ns = 10'000,
                         .bytes_per_ns = 1};
  }
  std::string_view name() const noexcept override { return "none yet"; }
  const Capabilities& capabilities() const noexcept override { return able_; }
  std::string card() const override { return ""; }
  bool reaches(Rank, std::string_view) override { return false; }
  /// Makes a new link each time. Links live as long as this.
  Link& connect(Rank peer, std::string_view, unsigned rail) override {
    return *links_.emplace_back(std::make_unique<AwaitedLink>(peer, rail));
  }
  unsigned poll(std::int64_t) override { return 0; }
  int wait_descriptor() const noexcept override { return -1; }
  bool arm() override { return true; }
  void disarm() override {}
  void peer_left(Rank) override {}
  void disconnect(Rank) override {}

 private:
  struct AwaitedLink final : Link {
    AwaitedLink(Rank peer, unsigned rail) noexcept : Link(peer, rail) {}
    SendStatus try_send(const Packet&) override { return SendStatus::retry; }
  };

  Capabilities able_;
  std::vector<std::unique_ptr<AwaitedLink>> links_;
};

}  // namespace tandem::comm::internal
