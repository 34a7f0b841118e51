// tools/contention/model_file.hpp: models of memory contention as JSON, and their sources: a file, a campaign, or a
// machine of the thesis.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/model/contention/machine_fit.hpp"
#include "tools/contention/campaign_folder.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools::contention {

/// The interval cut to possible values: that of a parameter that hardly matters is unbounded.
model::contention::Interval within(const model::contention::Interval& interval, double least, double most);

/// Text such as "value [low, high]".
std::string with_interval(double value, const model::contention::Interval& interval, int digits);

/// Both models of one machine, and the fit that gave them if there was one.
struct Models {
  std::string name;  ///< of the file, folder or machine
  model::contention::ThresholdMachine threshold;
  model::contention::SoftMachine soft;
  unsigned cores = 0;  ///< greatest number of cores of the fit
  unsigned nodes = 2;  ///< NUMA nodes of the machine
  std::optional<model::contention::MachineFit> fit;
  std::vector<model::contention::Curve> curves;  ///< of the campaign
  std::optional<CurveChoice> choice;             ///< which measurements these are
};

/// The soft model, or the thesis's.
std::unique_ptr<model::contention::Model> model_of(const Models& models, bool soft);

/// The predictions for a load, by the names that programs read.
inline constexpr std::pair<const char*, double model::contention::Bandwidths::*> bandwidth_names[] = {
    {"computation_alone_mb_s", &model::contention::Bandwidths::computation_alone_mb_s},
    {"computation_mb_s", &model::contention::Bandwidths::computation_mb_s},
    {"communication_alone_mb_s", &model::contention::Bandwidths::communication_alone_mb_s},
    {"communication_mb_s", &model::contention::Bandwidths::communication_mb_s}};

/// The arguments of a command about a campaign.
struct FitOptions {
  CurveChoice choice;
  unsigned nodes_per_socket = 0;  ///< 0: as campaign.json says
  bool hold_out = false;          ///< Calibration::two_placements
};

/// Fits a campaign. Errors: those of `choose` and `fit_machine`.
base::Result<Models> fit_campaign(const Campaign& campaign, const std::string& name, const FitOptions& options);

/// Reads models. `source` is a folder or samples.csv, which are fitted; a file that `tandem contention fit` wrote; or
/// the name of a machine of the thesis.
base::Result<Models> read_models(const std::string& source, const FitOptions& options);

/// The models as {"models": "contention", "nodes", "nodes_per_socket", "cores", "threshold": {...}, "soft": {...}} and,
/// of a fit, intervals and errors.
Json to_json(const Models& models);
/// Reads models from JSON. Errors: malformed, with what is missing; those of the models' own checks.
base::Result<Models> models_from_json(const Json& json, const std::string& name);

}  // namespace tandem::tools::contention
