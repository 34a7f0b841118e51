// tandem/comm/transport/tcp/tcp.hpp: the TCP transport: its options and its factory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/base/shortage.hpp"
#include "tandem/comm/transport/connection_proof.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm {

struct TcpOptions {
  ProofParty self;            ///< this rank's identity, and the job's secret
  base::Log* log = nullptr;   ///< outlives the transport; never null
  /// Interfaces or addresses to be reached at, separated by commas, one per rail in turn: "eth0", "10.0.0.1,10.1.0.1".
  /// Empty: all that are up, or the loopback interface when there is no other.
  std::string interfaces = {};
  std::uint16_t first_port = 0;  ///< where to listen: the first free port from here; 0: any that the system gives
  std::uint16_t last_port = 0;   ///< to here, included
  unsigned rails = 1;            ///< connections per peer, 1 to `most_rails`
  /// Payload of a packet; see `Capabilities`. By default a segment and its control block fit one packet of the loopback
  /// interface (65,483 bytes).
  std::size_t segment_bytes = std::size_t{63} << 10;
  std::size_t eager_bytes = std::size_t{64} << 10;  ///< see `Capabilities`
  /// Payload of a packet to a peer at the same address (the loopback interface). Such a connection is fast from its
  /// beginning and has no pacing. 0: it is judged as all others are.
  std::size_t host_segment_bytes = std::size_t{384} << 10;
  /// Bytes that the kernel buffers for one connection (SO_SNDBUF, of which the kernel allows twice as much). They delay
  /// every later packet, however urgent. A connection begins with the first number, which keeps networks of up to some
  /// 10 Gbit/s busy. Its buffer doubles, up to the second number, with each 256 KiB that the kernel took at more than
  /// 0.25 bytes per ns. When the kernel takes bytes more slowly, the buffer shrinks to what the network carries in 1 ms
  /// by the kernel's account, or to the first number.
  std::size_t first_send_buffer_bytes = std::size_t{64} << 10;
  std::size_t send_buffer_bytes = std::size_t{256} << 10;
  /// While a connection is not judged fast, the kernel gets its bytes in portions of this size, and sends them
  /// unchanged. By itself it forms units of 64 KiB also on slow networks. Software that limits rates (a token bucket of
  /// 64 KiB) splits these into single packets, and each costs it a timer: a third of a core at 200 Mbit/s. Two portions
  /// may share one unit.
  std::size_t burst_bytes = std::size_t{22} << 10;
  /// From this size on, a payload to a fast connection is spliced instead of copied (`SplicePipe`), one at a time.
  /// Smaller ones gain nothing. SIZE_MAX: none.
  std::size_t least_spliced_bytes = std::size_t{192} << 10;
  std::int64_t proof_timeout_ns = 5'000'000'000;  ///< an accepted connection without a proof is closed after this time
  std::int64_t connect_timeout_ns = 5'000'000'000;  ///< how long a peer that cannot be reached is tried
  /// How long connections wait for a file descriptor when this process has none: then they fail, with the limit and the
  /// remedy.
  std::int64_t descriptor_patience_ns = base::Shortage::default_patience_ns;
  std::int64_t host_timeout_ns = 10'000'000'000;    ///< a host that acknowledges nothing for this long is gone

  static constexpr unsigned most_rails = 16;
};

/// A transport that listens. `sink` outlives it. Errors: invalid_argument (an unknown interface or address, a bad
/// option), exhausted (no free port in the range), io (the system refused).
base::Result<std::unique_ptr<Transport>> make_tcp_transport(const TcpOptions& options, PacketSink& sink);

}  // namespace tandem::comm
