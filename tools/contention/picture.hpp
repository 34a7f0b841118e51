// tools/contention/picture.hpp: measured points and predicted lines, as the package `tandem` draws them.
#pragma once

#include <string>
#include <vector>

#include "tools/contention/model_file.hpp"

namespace tandem::tools::contention {

struct Picture {
  Json json;                 ///< input of python/tandem/plots/_contention.py or _applications.py
  std::string why_no_lines;  ///< empty: there are predicted lines
};
/// The picture of a source for `read_models`; of a campaign that is too short for a fit, the points. Errors: those of
/// `read_models`.
base::Result<Picture> picture_of(const std::string& source, const FitOptions& options);

/// The picture of a campaign's applications: bandwidths of messages, stalls and speed by number of workers (figure 5.14
/// of the thesis). Errors: those of `read_applications`; not_found, where the campaign has none.
base::Result<Picture> picture_of_applications(const std::string& folder);

/// Draws a picture; `words` are the options of the package's command: --svg=FILE and so on. Errors: those of
/// `run_python`, io.
base::Result<void> draw(const Picture& picture, std::vector<std::string> words, const std::string& python);

}  // namespace tandem::tools::contention
