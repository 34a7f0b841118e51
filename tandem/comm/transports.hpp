// tandem/comm/transports.hpp: the transports of a real endpoint, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// The transports that the options name, in that order; by default shm, ucx on a host with InfiniBand or RoCE whose
/// module is there, and tcp, as far as this machine has them. Rank 0 logs their names. Errors: an unknown name (with
/// the nearest), one whose module cannot be loaded (see load_module.hpp), one that was asked for and cannot be had
/// here.
base::Result<std::vector<std::unique_ptr<Transport>>> make_transports(const EndpointOptions& options, const Job& job,
                                                                      PacketSink& sink, base::Log& log);

/// The version of Tandem, for peers that refuse us.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace tandem::comm::internal
