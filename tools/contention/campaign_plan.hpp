// tools/contention/campaign_plan.hpp: the measurements of a campaign, and their cores. Pure: a topology and options in,
// a plan out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/base/topology.hpp"
#include "tools/contention/campaign_folder.hpp"

namespace tandem::tools::contention {

/// The roles of cores on the measured host.
struct Layout {
  std::vector<base::CoreId> computing;  ///< in the order in which they join: those of the first socket, then others
  base::CoreId communicating{0};        ///< of the thread that receives
  base::CoreId sending{0};              ///< of rank 1, when it runs on this host too
  unsigned nodes = 1, nodes_per_socket = 1;
  unsigned cores_per_socket = 1;   ///< that compute on the first socket
  std::vector<std::string> notes;  ///< what this host lacks, sentences for people
};

/// The last core communicates unless `communicating` says another. Rank 1 on this host has a core of its own where
/// there are four. Errors: invalid_argument, when there is no such core.
base::Result<Layout> lay_out(const base::Topology& topology, bool one_host, int communicating);

/// Asks whether memory can be bound to each of several nodes. Where it cannot, as in many containers, the system places
/// all data: one placement, and a note.
void keep_if_bound(Layout& layout, const std::function<base::Result<void>(unsigned node)>& bind);

struct PlanOptions {
  std::vector<std::string> kernels{"memset"};
  std::vector<unsigned> cursors{1};  ///< of triad
  std::vector<std::uint64_t> message_bytes{std::uint64_t{64} << 20};
  std::vector<unsigned> cores = {};  ///< empty: all numbers of the first socket's
  bool samples_only = false;         ///< of all placements, only those that give the models' parameters
  unsigned repetitions = 5;
};

/// All measurements, without values, in the order in which they are made: one repetition after the other, so that
/// changes over time affect all. Errors: invalid_argument.
base::Result<std::vector<Measurement>> plan(const Layout& layout, const PlanOptions& options);

/// Whether a shortened campaign leaves this measurement out (section 6.3.1): computation alone, and the total at each
/// placement, have all been highest with at least three numbers of cores less, and it is not that of `most_cores`. The
/// first repetition decides for all. `made` are the measurements so far, of which those with fewer cores come first.
bool is_past_peaks(const std::vector<Measurement>& made, const Measurement& next, unsigned most_cores);

}  // namespace tandem::tools::contention
