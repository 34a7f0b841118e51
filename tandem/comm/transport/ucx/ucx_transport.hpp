// tandem/comm/transport/ucx/ucx_transport.hpp: packets over UCX: InfiniBand, RoCE, and TCP where there is nothing
// better.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm {

/// How `make_ucx_transport` works. Sizes are bytes.
struct UcxOptions {
  Rank rank{0};        ///< our rank in the job
  JobSecret secret{};  ///< of the job: peers prove that they know it
  /// UCX's list of transports, as `UCX_TLS` takes it. Empty: what `UCX_TLS` says, else "^sm", all but shared memory,
  /// because UCX sees the death of a peer on networks only.
  std::string transports = {};
  /// UCX's list of network devices, as `UCX_NET_DEVICES` takes it; empty: what that says, else all.
  std::string devices = {};
  /// Largest header of an active message; 0: UCX's limit. A smaller value sends control blocks as data, which networks
  /// with small frames need anyway.
  std::size_t max_header_bytes = 0;
  /// Makes every payload go by rendezvous, so that UCX itself reads and writes its memory. Always on where UCX knows
  /// memory beyond the host's (of GPUs), which a copy of ours could not reach.
  bool rendezvous_only = false;
};

/// A transport over one UCP worker. `sink` and `log` outlive it. Errors: unsupported (UCX finds no network for these
/// options), io (UCX refused), exhausted (the worker's address is too long to publish: fewer devices are needed).
base::Result<std::unique_ptr<Transport>> make_ucx_transport(const UcxOptions& options, PacketSink& sink,
                                                            base::Log& log);

}  // namespace tandem::comm
