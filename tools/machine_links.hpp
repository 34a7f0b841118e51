// tools/machine_links.hpp: memories and the links between them, for `tandem machine`: what is known, and measurements alone and under load.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/worker/link_curves.hpp"
#include "tools/json.hpp"

namespace tandem::tools {

/// The machine of a program with some options, and what was measured of its links.
struct LinkView {
  runtime::Machine machine;
  std::vector<runtime::LinkCurves> curves = {};  ///< empty: nothing was measured
  std::vector<std::size_t> sizes = {};           ///< of the measurement
};

/// Whether options ask for more than main memory.
bool has_more_memories(const base::Config& config);

/// The machine as a program with these options finds it. `measures`: its links are measured, which takes up to half a minute; progress goes to standard
/// error where that is a terminal. Throws StartError.
LinkView find_links(const base::Config& config, const base::Log& log, bool measures);

/// Tables of memories, of links, and of GB/s by size. Each ends with a line end.
std::string links_text(const LinkView& view);
/// Sets "memories" and "links" of `machine`.
void add_links_json(const LinkView& view, Json& machine);

}  // namespace tandem::tools
