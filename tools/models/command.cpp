// tools/models/command.cpp: `tandem models`: durations of tasks that earlier runs on this machine have measured.
#include "tools/models/command.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "tandem/analysis/tables/short_time.hpp"
#include "tandem/base/suggest.hpp"
#include "tandem/base/topology.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/out_file.hpp"
#include "tools/subcommands.hpp"
#include "tools/version.hpp"

namespace tandem::tools {

using analysis::short_time;
using base::Error;
using base::ErrorCode;
using base::Result;

std::vector<ModelRow> rows_of(const model::CodeletModels& models) {
  std::vector<ModelRow> rows;
  for (const auto& [kind, sizes] : models.kinds)
    for (const model::SizeModel::Entry& entry : sizes.entries()) rows.push_back({kind, entry.footprint, entry.history});
  std::stable_sort(rows.begin(), rows.end(), [](const ModelRow& a, const ModelRow& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.footprint.bytes < b.footprint.bytes;
  });
  return rows;
}

std::string kind_text(const model::WorkKind& kind) {
  std::string name = kind.worker;
  if (kind.implementation != 0) name += fmt::format(", implementation {}", kind.implementation);
  if (kind.distance != 0) name += fmt::format(", distance {}", kind.distance);
  return name;
}

std::string text_of(const model::PowerLaw& law) {
  return fmt::format("{} (bytes / {})^{:.2f} + {}", short_time(law.factor()), short_bytes(law.scale()), law.exponent(),
                     short_time(law.constant_ns()));
}

namespace {

constexpr const char* models_footer =
    "A program learns with --tandem.models=on, or TANDEM_MODELS=on. There is a file for each codelet, for people to "
    "read, in option model.folder.\n"
    R"(
  tandem linalg potrf -n 4096 --tandem.models=on
  tandem models list
  tandem models show gemm
  tandem models plot gemm -o gemm.svg
  tandem models compare ~/.cache/tandem/models/other ~/.cache/tandem/models/here
  tandem models prune --days 90)";

/// The folder that the options select, with this machine's name.
Result<ModelFolder> own_folder(const ToolContext& context) {
  auto place = ModelFolder::place(context.config, base::process_environment());
  if (!place.ok()) return place.error();
  const auto topology = base::Topology::discover();
  return ModelFolder(std::move(place).value(),
                     machine_name(topology.ok() ? topology.value().cpu_model() : std::string()));
}

std::uint64_t samples_of(const model::CodeletModels& models) {
  std::uint64_t samples = 0;
  for (const ModelRow& row : rows_of(models)) samples += row.history.samples();
  return samples;
}

double age_s(const ModelFolder::File& file) {
  return std::max(0.0,
                  std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - file.changed).count());
}

std::string age_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return seconds < 172'800 ? fmt::format("{:.0f} h", seconds / 3600) : fmt::format("{:.0f} days", seconds / 86'400);
}

void print_powers(const ModelFolder& folder) {
  const auto powers = folder.read_powers();
  if (!powers.ok()) return fmt::print("refused: {}\n", powers.error().message);
  if (powers.value().is_empty()) return;
  std::size_t width = 6;
  for (const auto& [key, watts] : powers.value().kernels) width = std::max(width, key.second.size());
  fmt::print("\n{:<{}}  {:>10}  {:>8}  {:>10}  {:>10}  {}\n", "power", width, "watts", "+-", "confidence", "seconds",
             "workers");
  const auto row = [&](std::string_view what, const model::Watts& power, std::string_view kind) {
    fmt::print("{:<{}}  {:>10.2f}  {:>8.2f}  {:>10.2f}  {:>10.1f}  {}\n", what, width, power.watts, power.error,
               power.confidence(), power.seconds, kind);
  };
  for (const auto& [key, power] : powers.value().kernels) row(key.second, power, key.first);
  for (const auto& [kind, power] : powers.value().idle) row("(idle)", power, kind);
}

/// The learnt powers; null: they cannot be read.
Json powers_json(const ModelFolder& folder) {
  const auto powers = folder.read_powers();
  if (!powers.ok()) return nullptr;
  const auto of = [](const model::Watts& power) {
    return Json{
        {"watts", power.watts}, {"error", power.error}, {"confidence", power.confidence()}, {"seconds", power.seconds}};
  };
  Json kernels = Json::array(), idle = Json::array();
  for (const auto& [key, power] : powers.value().kernels)
    kernels.push_back({{"codelet", key.second}, {"worker", key.first}, {"power", of(power)}});
  for (const auto& [kind, power] : powers.value().idle) idle.push_back({{"worker", kind}, {"power", of(power)}});
  return {{"kernels", kernels}, {"idle", idle}};
}

Result<void> list_models(const ToolContext& context, bool json) {
  const auto folder = own_folder(context);
  if (!folder.ok()) return folder.error();
  const auto files = folder.value().read_all();
  if (!files.ok()) return files.error();
  if (json) {
    Json codelets = Json::array(), refused = Json::array();
    for (const ModelFolder::File& file : files.value()) {
      if (!file.models.ok()) {
        refused.push_back({{"file", file.path.string()}, {"why", file.models.error().message}});
        continue;
      }
      Json kinds = Json::array();
      for (const auto& [kind, sizes] : file.models.value().kinds) kinds.push_back(kind_text(kind));
      codelets.push_back({{"codelet", file.models.value().codelet},
                          {"file", file.path.string()},
                          {"kinds", kinds},
                          {"shapes", rows_of(file.models.value()).size()},
                          {"durations", samples_of(file.models.value())},
                          {"age_s", age_s(file)}});
    }
    print({{"tandem", version}, {"commit", commit}, {"folder", folder.value().folder().string()}, {"machine", folder.value().machine()}, {"codelets", codelets}, {"refused", refused}, {"powers", powers_json(folder.value())}});
    return {};
  }
  fmt::print("{}: {}\n", folder.value().folder().string(), folder.value().machine());
  if (files.value().empty()) fmt::print("no performance models: run a program with --tandem.models=on\n");
  std::size_t width = 7;
  for (const ModelFolder::File& file : files.value())
    if (file.models.ok()) width = std::max(width, file.models.value().codelet.size());
  bool has_head = false;
  for (const ModelFolder::File& file : files.value()) {
    if (!file.models.ok()) continue;
    if (!std::exchange(has_head, true))
      fmt::print("{:<{}}  {:>6}  {:>9}  {:>8}  {}\n", "codelet", width, "shapes", "durations", "age", "workers");
    std::string kinds;
    for (const auto& [kind, sizes] : file.models.value().kinds) kinds += (kinds.empty() ? "" : "; ") + kind_text(kind);
    fmt::print("{:<{}}  {:>6}  {:>9}  {:>8}  {}\n", file.models.value().codelet, width,
               rows_of(file.models.value()).size(), samples_of(file.models.value()), age_text(age_s(file)), kinds);
  }
  for (const ModelFolder::File& file : files.value())
    if (!file.models.ok()) fmt::print("refused: {}\n", file.models.error().message);
  print_powers(folder.value());
  return {};
}

/// The models of one codelet. Errors: not_found, with the nearest name; those of the file.
Result<model::CodeletModels> find_models(const ToolContext& context, const std::string& codelet) {
  const auto folder = own_folder(context);
  if (!folder.ok()) return folder.error();
  auto read = folder.value().read(folder.value().file_of(codelet));
  if (!read.ok()) return read.error();
  if (read.value()) return *std::move(read).value();
  std::vector<std::string> names;
  if (const auto files = folder.value().read_all(); files.ok())
    for (const ModelFolder::File& file : files.value())
      if (file.models.ok()) names.push_back(file.models.value().codelet);
  const std::string nearest = base::nearest_name(codelet, names);
  return Error{
      ErrorCode::not_found,
      fmt::format("there is no performance model of '{}' in {}{}", codelet, folder.value().folder().string(),
                  nearest.empty() ? "; `tandem models list` shows them" : fmt::format(" (did you mean {}?)", nearest))};
}

Json row_json(const ModelRow& row) {
  const model::Estimate estimate = row.history.estimate();
  const auto quantiles = row.history.summary().quantiles;
  return {{"worker", row.kind.worker},
          {"implementation", row.kind.implementation},
          {"distance", row.kind.distance},
          {"bytes", row.footprint.bytes},
          {"shape", fmt::format("{:x}", row.footprint.shape)},
          {"durations", row.history.samples()},
          {"mean_ns", estimate.mean_ns},
          {"overall_mean_ns", row.history.overall().mean_ns},
          {"deviation_ns", estimate.deviation_ns},
          {"confidence", estimate.confidence()},
          {"known", estimate.known},
          {"least_ns", quantiles[0]},
          {"median_ns", quantiles[2]},
          {"greatest_ns", quantiles[4]}};
}

Result<void> show_models(const ToolContext& context, const std::string& codelet, bool json) {
  const auto models = find_models(context, codelet);
  if (!models.ok()) return models.error();
  const std::vector<ModelRow> rows = rows_of(models.value());
  if (json) {
    Json rows_json = Json::array(), laws = Json::array();
    for (const ModelRow& row : rows) rows_json.push_back(row_json(row));
    for (const auto& [kind, sizes] : models.value().kinds)
      if (const auto law = sizes.law())
        laws.push_back({{"worker", kind.worker}, {"implementation", kind.implementation}, {"distance", kind.distance}, {"factor_ns", law->factor()},
                        {"scale_bytes", law->scale()}, {"exponent", law->exponent()}, {"constant_ns", law->constant_ns()}});
    print({{"tandem", version}, {"commit", commit}, {"codelet", codelet}, {"rows", rows_json}, {"laws", laws}});
    return {};
  }
  for (const auto& [kind, sizes] : models.value().kinds) {
    fmt::print("{} on {}\n{:>10}  {:>16}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}  {:>9}  {:>9}  {:>9}\n", codelet,
               kind_text(kind), "data", "shape", "durations", "of all", "mean", "deviation", "confidence", "least",
               "median", "greatest");
    for (const ModelRow& row : rows) {
      if (row.kind != kind) continue;
      const model::Estimate estimate = row.history.estimate();
      const auto quantiles = row.history.summary().quantiles;
      fmt::print("{:>10}  {:>16x}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10.2f}  {:>9}  {:>9}  {:>9}{}\n",
                 short_bytes(row.footprint.bytes), row.footprint.shape, row.history.samples(),
                 short_time(row.history.overall().mean_ns), short_time(estimate.mean_ns),
                 short_time(estimate.deviation_ns), estimate.confidence(), short_time(quantiles[0]),
                 short_time(quantiles[2]), short_time(quantiles[4]), estimate.known ? "" : "  too few");
    }
    if (const auto law = sizes.law()) fmt::print("  law: {}\n", text_of(*law));
  }
  return {};
}

Result<void> plot_models(const ToolContext& context, const std::string& codelet, std::string file) {
  const auto models = find_models(context, codelet);
  if (!models.ok()) return models.error();
  if (file.empty()) file = model::percent_encoded(codelet, "-_+.") + ".svg";
  auto out = OutFile::create(file);
  if (!out.ok()) return out.error();
  out.value().write(picture_of(models.value()));
  if (const auto closed = out.value().close(); !closed.ok()) return closed.error();
  fmt::print("{}\n", file);
  return {};
}

Result<void> prune_models(const ToolContext& context, std::optional<double> days, const std::string& codelet) {
  const auto folder = own_folder(context);
  if (!folder.ok()) return folder.error();
  std::optional<std::chrono::seconds> unused_for;
  if (days) unused_for = std::chrono::seconds(static_cast<std::int64_t>(*days * 86'400));
  const auto removed = folder.value().prune(unused_for, codelet.empty() ? std::nullopt : std::optional(codelet));
  if (!removed.ok()) return removed.error();
  if (!codelet.empty() && removed.value().empty())
    return Error{ErrorCode::not_found,
                 fmt::format("there is no performance model of '{}' in {}", codelet, folder.value().folder().string())};
  for (const std::filesystem::path& file : removed.value()) fmt::print("removed {}\n", file.string());
  if (removed.value().empty()) fmt::print("nothing to remove in {}\n", folder.value().folder().string());
  return {};
}

}  // namespace

void add_models(Subcommand app, ToolContext& context) {
  struct Arguments {
    std::string codelet, file, a, b;
    std::optional<double> days;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  Subcommand models = app.add_subcommand("models", "Show, compare and prune what was learnt of the durations of tasks");
  models.footer(models_footer);
  models.require_subcommand();
  const auto add = [&](const std::string& name, const std::string& help, std::function<Result<void>()> run) {
    Subcommand command = models.add_subcommand(name, help);
    command.callback([run = std::move(run), &context] {
      const auto done = run();
      if (done.ok()) return;
      context.log.error("{}", done.error().message);
      context.exit_status = 1;
    });
    return command;
  };
  Subcommand list = add("list", "List the codelets that are known",
                        [given, &context] { return list_models(context, given->json); });
  list.add_flag("--json", given->json, "Print a JSON object");
  Subcommand show = add("show", "Print the durations of a codelet, by worker and data",
                        [given, &context] { return show_models(context, given->codelet, given->json); });
  show.add_option("CODELET", given->codelet, "Its name").required();
  show.add_flag("--json", given->json, "Print a JSON object; times in ns");
  Subcommand plot = add("plot", "Draw the durations of a codelet by the bytes of its data (SVG)",
                        [given, &context] { return plot_models(context, given->codelet, given->file); });
  plot.add_option("CODELET", given->codelet, "Its name").required();
  plot.add_option("-o,--output", given->file, "The picture; without it CODELET.svg").type_name("FILE");
  Subcommand compare = add("compare", "Compare the durations in two folders of models",
                           [given] { return compare_models(given->a, given->b, given->json); });
  compare.add_option("A", given->a, "A folder").required().existing_folder();
  compare.add_option("B", given->b, "Another folder").required().existing_folder();
  compare.add_flag("--json", given->json, "Print a JSON object; times in ns");
  Subcommand prune = add("prune", "Remove files that cannot be used, old ones, or one codelet's",
                         [given, &context] { return prune_models(context, given->days, given->codelet); });
  prune.add_option("CODELET", given->codelet, "Remove this codelet's file alone");
  prune.add_option("--days", given->days, "Remove files that have not changed for so long, too")
      .type_name("N")
      .between(0, 1e5);
}

}  // namespace tandem::tools
