// tools/machine/links.hpp: known and measured memories, links and messages for `tandem machine`, alone and under load.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/worker/link_curves.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools {

/// The machine of a program with some options, and the measurements of its links.
struct LinkView {
  runtime::Machine machine;
  std::uint32_t ranks = 1;                       ///< of the job
  std::vector<runtime::LinkCurves> curves = {};  ///< empty: nothing was measured
  std::vector<std::size_t> sizes = {};           ///< of the measured copies
};

/// Whether options ask for more than main memory.
bool has_more_memories(const base::Config& config);

/// The job of this process; none: it runs alone. Throws StartError.
std::optional<comm::Job> find_job(const base::Config& config, base::Log& log);

/// The machine as a program with these options sees it, as a rank of `job` if there is one. `measures`: measures its
/// links, which takes up to half a minute, and on several ranks, all of which call this, messages, which takes as long
/// again; progress goes to standard error if that is a terminal. Ranks other than 0 take part in the measurement of
/// messages, and have no figures. Throws StartError.
LinkView find_links(const base::Config& config, const base::Log& log, bool measures, std::optional<comm::Job> job = {});

/// Tables of memories, links, GB/s by size, and messages. Each ends with a line end.
std::string links_text(const LinkView& view);
/// Sets "memories", "links" and "messages" of `machine`.
void add_links_json(const LinkView& view, Json& machine);

}  // namespace tandem::tools
