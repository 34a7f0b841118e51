// tandem/comm/engine/credit.hpp: how much a peer may be sent that it has not asked for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tandem/comm/engine/peer.hpp"

namespace tandem::comm::internal {

constexpr std::uint32_t kUnit = wire::BlockHead::unit_bytes;

/// Credit that an eager message takes (`BlockHead::freed_units`) beside its envelope. At most 2^32 - 1, more than any
/// rank allows.
inline std::uint32_t units_of(std::uint64_t bytes, std::size_t header_bytes) noexcept {
  const std::uint64_t beside = (bytes <= Envelope::small_bytes ? 0 : bytes) + header_bytes;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(beside / kUnit + (beside % kUnit != 0), UINT32_MAX));
}

/// Credit of a strand: at least one, since 0 means that no credit is held.
inline std::uint32_t units_for(std::uint64_t bytes) noexcept { return std::max(1u, units_of(bytes, 0)); }

/// Takes credit for an eager message to the peer.
inline void take_credit(Peer& peer, std::uint32_t units) noexcept {
  ++peer.eager_sent;
  peer.units_sent += units;
}
/// Notes that an eager message of the peer does not occupy our memory any more.
inline void freed_message(Peer& peer, std::uint64_t bytes, std::size_t header_bytes) noexcept {
  ++peer.head.freed_messages;
  peer.head.freed_units += units_of(bytes, header_bytes);
}
/// Notes that strands of the peer, for which it took this credit, do not occupy our memory any more.
inline void freed(Peer& peer, std::uint32_t messages, std::uint32_t units) noexcept {
  peer.head.freed_messages += messages;
  peer.head.freed_units += units;
}

/// What a peer's memory has left for eager messages, as far as we know.
class Credit {
 public:
  explicit Credit(const Peer& peer) noexcept
      : messages_(std::int64_t{peer.allowed.messages} - (peer.eager_sent - peer.head_received.freed_messages)),
        units_(std::int64_t{peer.allowed.units} - (peer.units_sent - peer.head_received.freed_units)) {}

  bool covers(std::uint64_t bytes, std::size_t header_bytes) const noexcept {
    const std::uint32_t units = units_of(bytes, header_bytes);
    return messages_ > 0 && (units == 0 || units <= units_);  // short messages take 0 units: the first test decides
  }
  bool covers_strand(std::uint64_t bytes) const noexcept { return messages_ > 0 && units_for(bytes) <= units_; }
  /// Takes credit for a message. False: it is not covered, and nothing is taken.
  bool take(const SendCore& core) noexcept {
    const std::size_t header_bytes = core.header().size();
    if (!covers(core.bytes, header_bytes)) return false;
    --messages_;
    units_ -= units_of(core.bytes, header_bytes);
    return true;
  }
  /// Whether it covers a packet of any records.
  bool ample_for(const PacketPlan& plan) const noexcept {
    const auto items = static_cast<std::int64_t>(plan.records.size() + 1);
    return messages_ >= items &&
           units_ >= items + static_cast<std::int64_t>((plan.control_bytes + plan.bulk_bytes) / kUnit);
  }

 private:
  std::int64_t messages_;
  std::int64_t units_;
};

}  // namespace tandem::comm::internal
