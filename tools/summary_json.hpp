// tools/summary_json.hpp: the summary of a run for programs.
#pragma once

#include <string>

#include "tandem/analysis/verdict.hpp"
#include "tools/json.hpp"

namespace tandem::tools {

/// What `tandem trace summary --json` prints. Times in seconds.
Json summary_json(const std::string& folder, const analysis::History& history, const analysis::Summary& summary);

}  // namespace tandem::tools
