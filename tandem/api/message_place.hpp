// tandem/api/message_place.hpp: chooses by the options where a program serves its messages, and where their data lies.
#pragma once

#include <optional>
#include <string>

#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/model/contention/message_place.hpp"

namespace tandem {

/// Facts on which the choice depends.
struct MessageHost {
  const base::Topology& own;                   ///< the cores of this rank
  const base::Topology& host;  ///< all cores and NUMA nodes of the host, in the order in which models count nodes
  RankShare share = {};                        ///< with several ranks, cores of other ranks count as computing
  std::optional<double> cpu_quota = {};        ///< quota of the cgroup
  std::optional<unsigned> network_node = {};   ///< the system's number; see `node_of_network`
  const model::contention::StoredMachine* machine = nullptr;  ///< null: no model
};

/// Choice for value model of option comm.progress_core.
struct MessageChoice {
  /// A hardware thread of a core without a worker; none: as without the option.
  std::optional<unsigned> progress_pu = {};
  std::optional<std::size_t> memory_place = {}; ///< index in numa_nodes() of `own`; none: as the system places memory
  std::string reason = {};                      ///< reason in one line
};
/// Chooses. With option `reserve_core` the core is the last one of the node where the thread should be. If workers are
/// not bound, nothing is chosen.
MessageChoice choose_messages(const base::Config& config, const MessageHost& host);

/// Before workers are planned: replaces value model of option comm.progress_core by the chosen number or -1, and
/// message_node by its node, so that traces have them. Returns the index in numa_nodes() of `own` of memory for what
/// messages bring, by option message_node or as chosen; none: as the system places it. The log says what was chosen and
/// why. Throws StartError: an option has a wrong value.
std::optional<std::size_t> place_messages(base::Config& config, const MessageHost& host, base::Log& log);
/// Checks these options for a program without messages; throws as `place_messages`.
void check_message_options(const base::Config& config, const base::Topology& own);

}  // namespace tandem
