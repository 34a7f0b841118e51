// tools/contention/picture.cpp: the data of a picture of memory contention.
#include "tools/contention/picture.hpp"

#include <cmath>
#include <filesystem>
#include <utility>

#include "tandem/base/replace_file.hpp"
#include "tools/contention/applications.hpp"
#include "tools/python_script.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools::contention {

using namespace model::contention;

namespace {

Json point_json(const Sample& sample) {
  const auto number = [](double value) { return std::isnan(value) ? Json() : Json(value); };
  return {{"cores", sample.cores},
          {"computation_alone", number(sample.computation_alone_mb_s)},
          {"communication_alone", number(sample.communication_alone_mb_s)},
          {"computation", number(sample.computation_mb_s)},
          {"communication", number(sample.communication_mb_s)}};
}

Json line_json(const Model& model, const Placement& placement, unsigned most_cores) {
  Json line = Json::array();
  for (unsigned n = 1; n <= most_cores; ++n) {
    const Bandwidths b = model.predict({.cores = n, .placement = placement});
    line.push_back({{"cores", n},
                    {"computation_alone", b.computation_alone_mb_s},
                    {"communication_alone", b.communication_alone_mb_s},
                    {"computation", b.computation_mb_s},
                    {"communication", b.communication_mb_s}});
  }
  return line;
}

/// The input of python/tandem/plots/_contention.py.
Json picture_json(const Models& models, bool predicted) {
  Json panels = Json::array();
  const auto add = [&](const Placement& placement, const std::vector<Sample>& samples) {
    Json panel{{"computation_node", placement.computation},
               {"communication_node", placement.communication},
               {"sample", false}};
    if (models.fit)
      panel["sample"] = placement == models.fit->local_placement || placement == models.fit->remote_placement;
    panel["points"] = Json::array();
    for (const Sample& sample : samples) panel["points"].push_back(point_json(sample));
    if (predicted)
      for (const bool soft : {false, true})
        panel[soft ? "soft" : "thesis"] = line_json(*model_of(models, soft), placement, models.cores);
    panels.push_back(std::move(panel));
  };
  for (const Curve& curve : models.curves) add(curve.placement, curve.samples);
  if (models.curves.empty())
    for (unsigned comm = 0; comm < models.nodes; ++comm)
      for (unsigned comp = 0; comp < models.nodes; ++comp) add({comp, comm}, {});
  Json json{{"picture", "contention"}, {"name", models.name}, {"panels", panels}};
  if (models.choice) json["kernel"] = models.choice->kernel;
  return json;
}

}  // namespace

base::Result<Picture> picture_of(const std::string& source, const FitOptions& options) {
  auto models = read_models(source, options);
  if (models) return Picture{picture_json(models.value(), true), {}};
  const auto campaign = read_campaign(source);
  if (!campaign) return models.error();
  const auto choice = choose(campaign.value(), options.choice);
  if (!choice) return choice.error();
  Models measured{.name = source,
                  .threshold = {},
                  .soft = {},
                  .fit = {},
                  .curves = curves_of(campaign.value(), choice.value()),
                  .choice = choice.value()};
  return Picture{picture_json(measured, false), models.error().message};
}

base::Result<Picture> picture_of_applications(const std::string& folder) {
  const auto runs = read_applications(folder);
  if (!runs) return runs.error();
  if (runs.value().empty())
    return base::Error{base::ErrorCode::not_found, fmt::format("{} has no applications: measure them by `tandem contention measure {} --applications cg,gemm`", folder, folder)};
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json list = Json::array();
  for (const ApplicationRun& run : runs.value())
    list.push_back({{"application", run.application},
                    {"workers", run.workers},
                    {"gflop_s", run.gflop_s},
                    {"send_mb_s", number(run.send_mb_s)},
                    {"delivered_mb_s", number(run.delivered_mb_s)},
                    {"stalled", number(run.stalled)}});
  return Picture{Json{{"picture", "applications"}, {"name", folder}, {"runs", std::move(list)}}, {}};
}

base::Result<void> draw(const Picture& picture, std::vector<std::string> words, const std::string& python) {
  const auto folder = WorkFolder::create(std::filesystem::temp_directory_path(), "tandem-contention-");
  if (!folder) return folder.error();
  const std::filesystem::path file = folder.value().path() / "picture.json";
  if (const auto written = base::replace_file(file, picture.json.dump()); !written) return written.error();
  words.push_back(file.string());
  const auto drawn = run_python(python, picture.json["picture"].text(), words);
  if (!drawn) return drawn.error();
  return {};
}

}  // namespace tandem::tools::contention
