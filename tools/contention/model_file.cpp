// tools/contention/model_file.cpp: reads, fits and writes models of memory contention.
#include "tools/contention/model_file.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "tandem/model/contention/machine_file.hpp"
#include "tandem/model/contention/platforms.hpp"

namespace tandem::tools::contention {
namespace {

namespace fs = std::filesystem;
using namespace tandem::model::contention;
using base::Error;
using base::ErrorCode;

Json numbers_of(const ThresholdParameters& m) {
  Json json{{"n_par_max", m.n_par_max}, {"n_seq_max", m.n_seq_max}};
  for (const ParameterName& field : parameter_names) json[field.name] = m.*field.value;
  return json;
}

Json numbers_of(const SoftParameters& m) {
  Json json = numbers_of(m.bus);
  json["softness"] = m.softness;
  json["network_weight"] = m.network_weight;
  return json;
}

Json pair_of(const Interval& interval) { return Json(std::vector<double>{interval.low, interval.high}); }

Json intervals_of(const CurveFit& fit, bool soft) {
  Json json{{"n_par_max", pair_of(fit.n_par_max())}, {"n_seq_max", pair_of(fit.n_seq_max())}};
  for (const ParameterName& field : parameter_names)
    json[field.name] =
        pair_of(within(fit.interval([&](const SoftParameters& p) { return p.bus.*field.value; }), field.least,
                       field.most));
  if (soft) {
    json["softness"] = pair_of(within(fit.interval([](const SoftParameters& p) { return p.softness; }), 0, 0.5));
    json["network_weight"] = pair_of(within(fit.interval([](const SoftParameters& p) { return p.network_weight; }), 0,
                                            4));
  }
  return json;
}

Json number_or_null(double value) { return std::isnan(value) ? Json() : Json(value); }

Json errors_json(const ModelErrors& errors) {
  const auto one = [](const Errors& e) {
    return Json{{"samples", number_or_null(e.on_samples)},
                {"non_samples", number_or_null(e.on_non_samples)},
                {"all", number_or_null(e.all)}};
  };
  return {{"communication", one(errors.communication)},
          {"computation", one(errors.computation)},
          {"average", number_or_null(errors.average())}};
}

/// Reads members of one object, and remembers the first missing one.
class Members {
 public:
  Members(const Json* object, std::string path, std::string& wrong)
      : object_(object), path_(std::move(path)), wrong_(wrong) {
    if (object_ == nullptr || !object_->is_object()) fault("");
  }
  double number(const char* name) {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number()) return fault(name), 0;
    return value->number();
  }
  unsigned count(const char* name) {
    const Json* value = find(name);
    if (value == nullptr || !value->is_unsigned() || value->unsigned_number() > 1'000'000) return fault(name), 0;
    return static_cast<unsigned>(value->unsigned_number());
  }
  Members object(const char* name) { return {find(name), path_ + name + ".", wrong_}; }
  const Json* find(const char* name) const { return object_ != nullptr ? object_->find(name) : nullptr; }

 private:
  void fault(const char* name) {
    if (wrong_.empty()) wrong_ = path_ + name;
  }
  const Json* object_;
  std::string path_;
  std::string& wrong_;
};

ThresholdParameters threshold_of(Members members) {
  ThresholdParameters m{.n_par_max = members.count("n_par_max"), .n_seq_max = members.count("n_seq_max")};
  for (const ParameterName& field : parameter_names) m.*field.value = members.number(field.name);
  return m;
}

SoftParameters soft_of(Members members) {
  return {threshold_of(members), members.number("softness"), members.number("network_weight")};
}

base::Result<Json> json_in(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{ErrorCode::not_found, file.string() + ": cannot be read"};
  auto json = Json::parse(std::string(std::istreambuf_iterator<char>(stream), {}));
  if (!json) return Error{ErrorCode::malformed, file.string() + ": is no JSON"};
  return *json;
}

/// Adds what only some campaigns measure: intensities and message sizes.
void add_side_measurements(SoftMachine& machine, const Campaign& campaign) {
  std::vector<IntensityRate> intensities;
  std::vector<MessageRate> sizes;
  for (const Measurement& m : campaign.measurements) {
    constexpr double flop = 2, bytes = 24;  // of an element of triad, each time
    if (m.step == "computation" && m.kernel == "triad" && m.cores == 1 && m.computation_mb_s)
      intensities.push_back({flop * m.cursor / bytes, *m.computation_mb_s});
    if (m.step == "communication" && m.communication_node == 0U && m.communication_mb_s)
      sizes.push_back({static_cast<double>(m.message_bytes), *m.communication_mb_s});
  }
  double fastest = 0;
  for (const IntensityRate& rate : intensities) fastest = std::max(fastest, rate.mb_s);
  machine.core_gflop_s = fit_core_gflop_s(intensities, fastest);
  machine.half_message_bytes = fit_half_message_bytes(sizes);
}

Models models_of(const Platform& platform) {
  return {.name = std::string(platform.name),
          .threshold = platform.machine,
          .soft = soften(platform.machine),
          .cores = platform.cores_per_socket,
          .nodes = platform.sockets * platform.machine.nodes_per_socket,
          .fit = {},
          .curves = {},
          .choice = {}};
}

}  // namespace

Interval within(const Interval& interval, double least, double most) {
  return {std::clamp(interval.low, least, most), std::clamp(interval.high, least, most)};
}

std::string with_interval(double value, const Interval& interval, int digits) {
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", value, digits, interval.low, digits, interval.high, digits);
}

std::unique_ptr<Model> model_of(const Models& models, bool soft) {
  if (!soft) return std::make_unique<ThresholdModel>(models.threshold);
  return std::make_unique<SoftModel>(SoftModel::create(models.soft).value());  // checked when it was read or fitted
}

base::Result<Models> fit_campaign(const Campaign& campaign, const std::string& name, const FitOptions& options) {
  const auto choice = choose(campaign, options.choice);
  if (!choice) return choice.error();
  Models models{.name = name,
                .threshold = {},
                .soft = {},
                .fit = {},
                .curves = curves_of(campaign, choice.value()),
                .choice = choice.value()};
  const unsigned nodes_per_socket = options.nodes_per_socket > 0 ? options.nodes_per_socket : campaign.nodes_per_socket;
  auto fit =
      fit_machine(models.curves, nodes_per_socket, options.hold_out ? Calibration::two_placements : Calibration::all);
  if (!fit) return fit.error();
  models.fit = std::move(fit).value();
  models.threshold = models.fit->threshold;
  add_side_measurements(models.fit->soft, campaign);
  models.soft = models.fit->soft;
  models.cores = models.fit->sharp_local.most_cores();
  models.nodes = 1;
  for (const Curve& curve : models.curves)
    models.nodes = std::max({models.nodes, curve.placement.computation + 1, curve.placement.communication + 1});
  return models;
}

base::Result<Models> read_models(const std::string& source, const FitOptions& options) {
  if (!fs::exists(source)) {
    if (const Platform* platform = find_platform(source)) return models_of(*platform);
    std::vector<std::string_view> known;
    for (const Platform& platform : platforms()) known.push_back(platform.name);
    return Error{ErrorCode::not_found, fmt::format("{}: neither a file, nor a folder, nor one of the machines {}",
                                                   source, fmt::join(known, ", "))};
  }
  if (fs::is_regular_file(source) && fs::path(source).extension() == ".json") {
    const auto json = json_in(source);
    if (!json) return json.error();
    return models_from_json(json.value(), source);
  }
  const auto campaign = read_campaign(source);
  if (!campaign) return campaign.error();
  return fit_campaign(campaign.value(), source, options);
}

Json to_json(const Models& models) {
  Json soft{{"local", numbers_of(models.soft.local)},
            {"remote", numbers_of(models.soft.remote)},
            {"network_mb_s", Json(models.soft.network_mb_s)},
            {"core_gflop_s", models.soft.core_gflop_s},
            {"half_message_bytes", models.soft.half_message_bytes}};
  for (std::size_t i = 0; i < relation_count; ++i)
    soft["between"][relation_names[i]] = Json{{"computation", models.soft.between[i].computation},
                                              {"communication", models.soft.between[i].communication}};
  Json json{{"models", "contention"},
            {"name", models.name},
            {"nodes", models.nodes},
            {"nodes_per_socket", models.threshold.nodes_per_socket},
            {"cores", models.cores},
            {"threshold",
             Json{{"local", numbers_of(models.threshold.local)}, {"remote", numbers_of(models.threshold.remote)}}},
            {"soft", soft}};
  if (models.choice) {
    json["kernel"] = models.choice->kernel;
    json["cursor"] = models.choice->cursor.value_or(1);
    json["message_bytes"] = Json::exact(models.choice->message_bytes);
  }
  if (models.fit) {
    const MachineFit& fit = *models.fit;
    json["threshold"]["intervals"] =
        Json{{"local", intervals_of(fit.sharp_local, false)}, {"remote", intervals_of(fit.sharp_remote, false)}};
    json["soft"]["intervals"] =
        Json{{"local", intervals_of(fit.soft_local, true)}, {"remote", intervals_of(fit.soft_remote, true)}};
    json["threshold"]["errors_percent"] = errors_json(fit.threshold_errors);
    json["soft"]["errors_percent"] = errors_json(fit.soft_errors);
    json["spread_percent"] = Json{{"computation", 100 * fit.soft_local.computation_spread()},
                                  {"communication", 100 * fit.soft_local.communication_spread()}};
  }
  return json;
}

base::Result<Models> models_from_json(const Json& json, const std::string& name) {
  std::string wrong;
  Members all(&json, "", wrong);
  Models models{.name = name, .threshold = {}, .soft = {}, .fit = {}, .curves = {}, .choice = {}};
  models.nodes = all.count("nodes");
  models.cores = all.count("cores");
  const unsigned nodes_per_socket = all.count("nodes_per_socket");
  Members threshold = all.object("threshold"), soft = all.object("soft"), between = soft.object("between");
  models.threshold = {threshold_of(threshold.object("local")), threshold_of(threshold.object("remote")),
                      nodes_per_socket};
  models.soft = {.local = soft_of(soft.object("local")),
                 .remote = soft_of(soft.object("remote")),
                 .nodes_per_socket = nodes_per_socket};
  models.soft.core_gflop_s = soft.number("core_gflop_s");
  models.soft.half_message_bytes = soft.number("half_message_bytes");
  for (std::size_t i = 0; i < relation_count; ++i) {
    Members one = between.object(relation_names[i]);
    models.soft.between[i] = {.computation = one.number("computation"), .communication = one.number("communication")};
  }
  const Json* networks = soft.find("network_mb_s");
  if (networks != nullptr && networks->is_array())
    for (const Json& rate : *networks) models.soft.network_mb_s.push_back(rate.is_number() ? rate.number() : -1);
  if (!wrong.empty())
    return Error{
        ErrorCode::malformed,
        fmt::format("{}: {} is missing or wrong; `tandem contention fit -o FILE` writes such files", name, wrong)};
  if (models.nodes == 0 || models.cores == 0)
    return Error{ErrorCode::malformed, name + ": nodes and cores must be at least 1"};
  if (const auto good = ThresholdModel::create(models.threshold); !good)
    return Error{good.error().code, name + ": " + good.error().message};
  if (const auto good = SoftModel::create(models.soft); !good)
    return Error{good.error().code, name + ": " + good.error().message};
  return models;
}

}  // namespace tandem::tools::contention
