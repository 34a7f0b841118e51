// tools/machine/network_meter.hpp: measures messages of a job by size: alone, both ways, beside copies, and beside
// other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/runtime/machine/machine_network.hpp"
#include "tandem/runtime/worker/link_curves.hpp"

namespace tandem::tools {

/// Parameters of the measurement.
struct NetworkMeterOptions {
  std::vector<std::size_t> sizes{8,       4'096,   16'384,  65'536,
                                 262'144, 1 << 20, 4 << 20, 16 << 20};  ///< bytes, ascending, from 1
  std::int64_t most_ns = 15'000'000'000;  ///< about the most time for each partner
  unsigned trips = 29;                    ///< messages of each size in each direction, if the time suffices
  std::size_t load_bytes = 4 << 20;       ///< size of copies beside messages, and of messages of the load
  std::vector<comm::Rank> here = {};      ///< ranks of rank 0's host, itself among them; rank 0 forms the pairs
  /// Called before each of `steps` steps.
  std::function<void(unsigned step, unsigned steps, std::string_view what)> progress = {};
};

/// Rank 0 of a job measures messages between itself and some partners, one after the other, while all other ranks
/// `serve_network`:
///
///   alone       a message goes there, and one comes back: half of the time of both
///   both ways   both ranks send a message at once, and wait for both
///   loaded      as alone, while both ranks copy over all links between memories that they have
///   all pairs   as alone, while all other ranks, in pairs, send each other messages of `load_bytes`, both ways and over and over: a partner of rank 0's
///               host has pairs of that host beside it, a partner of another host pairs of a rank there and one of
///               other hosts
///
/// Then it measures its links while large messages come and go between it and the last partner
/// (`LinkMeter::measure_beside_messages`). What needs links is left out where `links` has none, and what needs other
/// ranks where there are fewer than two. Sizes that get too few messages in the time are left out, with all larger
/// ones. At the end all other ranks are told to leave.
///
/// Returns a network for each partner of another transport. Errors: io (a message has failed).
base::Result<std::vector<runtime::MachineNetwork>> measure_networks(comm::Endpoint& endpoint,
                                                                    std::span<const comm::Rank> partners,
                                                                    runtime::LinkMeter& links,
                                                                    const clock::Clock& clock,
                                                                    const NetworkMeterOptions& options = {});

/// Any other rank serves the steps of rank 0 until that ends the measurement. `links()` is called when copies are
/// needed, and returns this rank's links. Errors: io.
base::Result<void> serve_network(comm::Endpoint& endpoint, const std::function<runtime::LinkMeter&()>& links);

}  // namespace tandem::tools
