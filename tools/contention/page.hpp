// tools/contention/page.hpp: a campaign as one HTML page.
#pragma once

#include <string>

#include "tandem/base/result.hpp"

namespace tandem::tools::contention {

/// A page that needs no network: the measurements and their machine, a table of the mutual losses of kernels and
/// messages, a picture for each kernel that moves data (where `python` can draw), the parameters of the soft model
/// (where there are enough cores), and a glossary. Errors: those of `read_campaign`.
base::Result<std::string> page_of(const std::string& folder, const std::string& python);

}  // namespace tandem::tools::contention
