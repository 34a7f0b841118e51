// examples/co2_forecast/pictures.hpp: draws the pictures, by Python scripts that run beside the program.
#pragma once

#include <filesystem>

#include "tandem/base/result.hpp"

namespace co2_forecast {

/// Draws forecast.png and gantt.png in `folder` from forecast.csv, result.json and timeline.csv there. Errors:
/// `unsupported` when no Python with matplotlib was found at configure time; `io` when a script fails. Blocks until the
/// scripts have ended.
tandem::base::Result<void> draw_pictures(const std::filesystem::path& folder);

}  // namespace co2_forecast
