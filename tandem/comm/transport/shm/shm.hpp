// tandem/comm/transport/shm/shm.hpp: the transport between ranks of one host, through memory that they share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/base/shortage.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm {

struct ShmOptions {
  Rank rank{0};
  std::uint32_t job_size = 1;   ///< ranks of the job
  std::string job_id = "alone"; ///< shows in the name of the listening socket; no secret
  JobSecret secret{};
  base::Log* log = nullptr;     ///< outlives the transport; null: no messages

  /// Bytes of the ring of records (control blocks and small payloads), for each direction of each pair of peers that
  /// talk. A power of two.
  std::uint64_t record_ring_bytes = 128 * 1024;
  /// Bytes of the ring for larger payloads. Its pages are used in turn, so it should be larger than a core's cache:
  /// what the sender writes has left its cache when the receiver reads it, which is faster than fetching it from there.
  /// A power of two.
  std::uint64_t data_ring_bytes = 2 * 1024 * 1024;
  /// Most bytes of the data ring that are filled and not yet read: an urgent packet may have to wait for them.
  std::uint64_t window_bytes = 512 * 1024;
  /// Payloads up to this size lie in the record, behind their control block.
  std::uint32_t inline_bytes = 8192;
  /// Whether processes may copy from each other's memory (process_vm_readv), where the kernel permits it.
  bool remote_copies = true;

  /// How long connections wait for a file descriptor when this process, or the peer, has none: then they fail, with the
  /// remedy.
  std::int64_t descriptor_patience_ns = base::Shortage::default_patience_ns;

  /// Smaller rings where more ranks share a machine: a rank that speaks to all of them then needs some 70 MiB, not 4
  /// MiB for each.
  static ShmOptions for_ranks(std::uint32_t ranks_here) noexcept {
    ShmOptions options;
    for (std::uint32_t ranks = 16; ranks < ranks_here && options.data_ring_bytes > 256 * 1024; ranks *= 2)
      options.data_ring_bytes /= 2;
    if (options.data_ring_bytes <= 512 * 1024) options.record_ring_bytes /= 2;
    options.window_bytes = options.data_ring_bytes / 4;
    return options;
  }
};

/// A transport named "shm". The poll that follows `try_send` wakes a sleeping peer, so that many messages share the
/// effort; so a sender that is not armed must poll soon. Between `arm` and `disarm`, `try_send` itself wakes it.
/// Errors: unsupported (no /proc, no sealed memory files), io, exhausted (descriptors), invalid_argument (sizes). The
/// sink outlives the transport. Threads and calls: as for `Transport`.
base::Result<std::unique_ptr<Transport>> make_shm_transport(const ShmOptions& options, PacketSink& sink);

}  // namespace tandem::comm
