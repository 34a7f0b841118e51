// tandem/api/message_place.hpp: where a program serves its messages, and where what they bring lies, by its options.
#pragma once

#include <optional>
#include <string>

#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/model/contention/message_place.hpp"

namespace tandem {

/// What the choice follows from.
struct MessageHost {
  const base::Topology& own;                   ///< the cores of this rank
  const base::Topology& host;                  ///< all cores and NUMA nodes of the host, in the order in which models count nodes
  RankShare share = {};                        ///< where several ranks are, cores that are not this rank's are taken to compute
  std::optional<double> cpu_quota = {};        ///< of the cgroup
  std::optional<unsigned> network_node = {};   ///< the system's number; see `node_of_network`
  const model::contention::StoredMachine* machine = nullptr;  ///< null: no model
};

/// What is chosen where option comm.progress_core says model.
struct MessageChoice {
  std::optional<unsigned> progress_pu = {};     ///< a hardware thread of a core without a worker; none: as without the option
  std::optional<std::size_t> memory_place = {}; ///< in numa_nodes() of `own`; none: as the system places memory
  std::string reason = {};                      ///< one line
};
/// With option `reserve_core` the core is the last one of the node where the thread should be. Where workers are not bound nothing is chosen.
MessageChoice choose_messages(const base::Config& config, const MessageHost& host);

/// Before workers are planned: in place of model, option comm.progress_core gets the number that was chosen, or -1, and message_node its node, so
/// that traces have them. Returns the place in numa_nodes() of
/// `own` of memory for what messages bring, by option message_node or as chosen; none: as the system places it. The log says what was chosen and why. Throws
/// StartError: an option has a wrong value.
std::optional<std::size_t> place_messages(base::Config& config, const MessageHost& host, base::Log& log);
/// For a program without messages: the same options, which throw as there.
void check_message_options(const base::Config& config, const base::Topology& own);

}  // namespace tandem
