// tools/models/command.hpp: functions that the subcommands of `tandem models` share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tandem/api/model_folder.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools {

/// One kind of work of a codelet with one shape of data.
struct ModelRow {
  model::WorkKind kind;
  model::Footprint footprint;
  model::History history;
};

/// The rows of a codelet by kind, then by bytes.
std::vector<ModelRow> rows_of(const model::CodeletModels& models);

/// The name of a kind: "cpu", or "opencl (Graphics), implementation 1, distance 2".
std::string kind_text(const model::WorkKind& kind);

/// A law as text: "12 us (s / 1 MiB)^1.5 + 3 us".
std::string text_of(const model::PowerLaw& law);

/// A picture (SVG) of durations by bytes, both logarithmic: a point with its deviation for each row, and the law of
/// each kind.
std::string picture_of(const model::CodeletModels& models);

/// Compares the means of two folders, as a table or as JSON.
base::Result<void> compare_models(const std::filesystem::path& a, const std::filesystem::path& b, bool json);

}  // namespace tandem::tools
