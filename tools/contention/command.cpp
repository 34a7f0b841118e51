// tools/contention/command.cpp: `tandem contention`: measure how cores and the network share memory, model it, predict
// it, draw it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tandem/api/memory_contention.hpp"
#include "tandem/api/model_folder.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/base/replace_file.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/model/contention/machine_file.hpp"
#include "tools/contention/measure.hpp"
#include "tools/contention/model_file.hpp"
#include "tools/contention/page.hpp"
#include "tools/contention/picture.hpp"
#include "tools/contention/place.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {
namespace {

using namespace tandem::model::contention;
using contention::bandwidth_names;
using contention::Models;

/// Arguments of all commands that read a campaign.
struct SourceOptions {
  std::string source;
  contention::FitOptions fit;
  std::optional<std::uint32_t> cursor;
  bool json = false;
};

void add_source_options(Subcommand command, SourceOptions& options, const std::string& what) {
  command.add_option("source", options.source, what).required();
  command.add_option("--kernel", options.fit.choice.kernel, "Kernel of the campaign (default: memset)");
  command.add_option("--cursor", options.cursor, "How often kernel triad computes each element (default: the least)");
  command.add_option("--message-size", options.fit.choice.message_bytes,
                     "Bytes of the campaign's messages (default: the largest)");
  command.add_option("--nodes-per-socket", options.fit.nodes_per_socket,
                     "NUMA nodes of a socket, where only samples.csv is there (default: 1)");
  command.add_flag("--hold-out", options.fit.hold_out,
                   "The soft model too learns from two placements alone, so that the others are a test");
  command.add_flag("--json", options.json, "Print a JSON object");
}

contention::FitOptions fit_options(const SourceOptions& options) {
  contention::FitOptions fit = options.fit;
  if (options.cursor) fit.choice.cursor = *options.cursor;
  return fit;
}

void print_row(const std::string& name, const std::string& local, const std::string& remote) {
  fmt::print("  {:<28}{:>30}{:>30}\n", name, local, remote);
}

void print_bus(const char* title, const CurveFit& local, const CurveFit& remote, bool has_remote, bool soft) {
  fmt::print("\n{}\n", title);
  print_row("", "local", has_remote ? "remote" : "");
  const auto row = [&](const std::string& name, int digits, double scale, const CurveFit::Quantity& quantity,
                       double least = 0, double most = std::numeric_limits<double>::max()) {
    const auto one = [&](const CurveFit& fit) {
      const Interval interval = contention::within(fit.interval(quantity), least, most);
      return contention::with_interval(quantity(fit.parameters()) / scale,
                                       {interval.low / scale, interval.high / scale}, digits);
    };
    print_row(name, one(local), has_remote ? one(remote) : "");
  };
  const auto count = [&](const std::string& name, unsigned ThresholdParameters::*number,
                         Interval (CurveFit::*interval)() const noexcept) {
    const auto one = [&](const CurveFit& fit) {
      return contention::with_interval(fit.parameters().bus.*number, (fit.*interval)(), 0);
    };
    print_row(name, one(local), has_remote ? one(remote) : "");
  };
  constexpr double lowest = std::numeric_limits<double>::lowest();
  count("N_par_max (cores)", &ThresholdParameters::n_par_max, &CurveFit::n_par_max);
  row("T_par_max (GB/s)", 2, 1e3, [](const SoftParameters& p) { return p.bus.t_par_max_mb_s; });
  count("N_seq_max (cores)", &ThresholdParameters::n_seq_max, &CurveFit::n_seq_max);
  row("T_seq_max (GB/s)", 2, 1e3, [](const SoftParameters& p) { return p.bus.t_seq_max_mb_s; });
  row("T_par_max2 (GB/s)", 2, 1e3, [](const SoftParameters& p) { return p.bus.t_par_max2_mb_s; });
  row("alpha", 3, 1, [](const SoftParameters& p) { return p.bus.alpha; }, 0, 1);
  row("delta_l (MB/s per core)", 0, 1, [](const SoftParameters& p) { return p.bus.delta_l_mb_s; }, lowest);
  row("delta_r (MB/s per core)", 0, 1, [](const SoftParameters& p) { return p.bus.delta_r_mb_s; }, lowest);
  row("B_comp_seq (GB/s)", 2, 1e3, [](const SoftParameters& p) { return p.bus.b_comp_seq_mb_s; });
  row("B_comm_seq (GB/s)", 2, 1e3, [](const SoftParameters& p) { return p.bus.b_comm_seq_mb_s; });
  if (!soft) return;
  row("softness", 3, 1, [](const SoftParameters& p) { return p.softness; }, 0, 0.5);
  row("network weight", 2, 1, [](const SoftParameters& p) { return p.network_weight; }, 0, 4);
}

void print_errors(const MachineFit& fit) {
  fmt::print("\nmean errors (%)       communication                  computation\n");
  fmt::print("                      samples  others     all       samples  others     all     average\n");
  const auto line = [](const char* name, const ModelErrors& errors) {
    const auto number = [](double value) {
      return std::isnan(value) ? std::string("-") : fmt::format("{:.2f}", value);
    };
    const Errors &a = errors.communication, &b = errors.computation;
    fmt::print("  {:<20}{:>7}{:>8}{:>8}{:>14}{:>8}{:>8}{:>12}\n", name, number(a.on_samples), number(a.on_non_samples),
               number(a.all), number(b.on_samples), number(b.on_non_samples), number(b.all), number(errors.average()));
  };
  line("thesis's model", fit.threshold_errors);
  line("soft model", fit.soft_errors);
}

void print_fit(const Models& models) {
  const MachineFit& fit = *models.fit;
  fmt::print("memory contention, {}: kernel {}, messages of {}, up to {}\n", models.name, models.choice->kernel,
             short_bytes(models.choice->message_bytes), counted(models.cores, "core"));
  fmt::print(
      "{}; measurements spread by {:.1f} % (computation) and {:.1f} % (communication) around the soft model; [95 % "
      "intervals]\n",
      counted(models.curves.size(), "placement"), 100 * fit.soft_local.computation_spread(),
      100 * fit.soft_local.communication_spread());
  const bool remote = fit.remote_placement.has_value();
  print_bus("the thesis's model", fit.sharp_local, fit.sharp_remote, remote, false);
  print_bus("soft model", fit.soft_local, fit.soft_remote, remote, true);
  print_errors(fit);
  if (!remote) fmt::print("\nno placement has data on another socket: the local parameters stand for both\n");
}

/// Installs the models as this host's, and reports how programs will use them.
base::Result<void> install(const Models& models, bool is_quiet) {
  const auto file = contention_file(base::process_environment());
  if (!file) return file.error();
  const auto topology = base::Topology::discover();
  if (!topology) return topology.error();
  const StoredMachine stored{
      .machine = models.soft, .cores = models.cores, .processor = machine_name(topology.value().cpu_model())};
  std::error_code failed;
  std::filesystem::create_directories(file.value().parent_path(), failed);  // otherwise the next line says why
  const auto folder = base::OwnedFolder::open(file.value().parent_path(), base::Owners::self_or_root);
  if (!folder) return folder.error();
  if (const auto written = folder.value().replace(file.value().filename().string(), to_text(stored)); !written)
    return written.error();
  if (is_quiet) return {};
  const runtime::MemoryGateRule rule = memory_gate_rule(stored, stored.cores);
  fmt::print("\n{}: programs read it from now on; with {}, ", file.value().string(), counted(stored.cores, "worker"));
  if (rule.limits(stored.cores))
    fmt::print("at most {} run memory-bound tasks, and {} while an urgent message is under way\n", rule.most,
               rule.most_beside_messages);
  else
    fmt::print("all may run memory-bound tasks: fewer would not gain anything\n");
  return {};
}

void add_fit(Subcommand contention, ToolContext& context) {
  Subcommand command =
      contention.add_subcommand("fit", "Find the parameters of both models from a campaign, with 95 % intervals");
  const auto options = std::make_shared<SourceOptions>();
  const auto out = std::make_shared<std::string>();
  const auto installs = std::make_shared<bool>();
  add_source_options(command, *options, "Folder of `tandem contention measure`, or a samples.csv");
  command.add_option("-o,--out", *out, "Write the models to this file, for `tandem contention predict`");
  command.add_flag("--install", *installs, "Store the soft model as this host's, for programs (option contention)");
  command.callback([options, out, installs, &context] {
    const auto campaign = contention::read_campaign(options->source);
    if (!campaign) return fail(context, campaign.error());
    const auto models = contention::fit_campaign(campaign.value(), options->source, fit_options(*options));
    if (!models) return fail(context, models.error());
    if (!options->json) print_fit(models.value());
    if (*installs)
      if (const auto installed = install(models.value(), options->json); !installed)
        return fail(context, installed.error());
    if (!options->json && out->empty()) return;
    const Json json = contention::to_json(models.value());
    if (!out->empty())
      if (const auto written = base::replace_file(*out, json.dump(2) + "\n"); !written)
        return fail(context, written.error());
    if (options->json) print(json);
  });
}

/// Arguments of a prediction.
struct PredictOptions : SourceOptions {
  std::vector<unsigned> cores, placement;
  std::string model = "soft";
  double intensity = 0, cached = 0, device_gb_s = 0;
  std::uint64_t message_bytes = 0;
};

base::Result<std::vector<Load>> loads_of(const Models& models, const PredictOptions& options) {
  const auto wrong = [](const std::string& what) {
    return base::Error{base::ErrorCode::invalid_argument, "contention predict: " + what};
  };
  if (!options.placement.empty() && options.placement.size() != 2)
    return wrong("--placement takes two NUMA nodes, of computation and of communication: --placement 0,1");
  if (options.model == "thesis" &&
      (options.intensity > 0 || options.cached > 0 || options.device_gb_s > 0 || options.message_bytes > 0))
    return wrong(
        "--intensity, --cached, --device and --message-bytes are for the soft model: the thesis's does not know them");
  if (options.intensity > 0 && models.soft.core_gflop_s == 0)
    return wrong(
        "--intensity needs the peak of a core, which these models do not have: measure triad with several cursors");
  if (options.message_bytes > 0 && models.soft.half_message_bytes == 0)
    return wrong(
        "--message-bytes needs several message sizes, which these models do not have: measure with --message-bytes "
        "64MB,64KB");
  std::vector<unsigned> cores = options.cores;
  if (cores.empty())
    for (unsigned n = 1; n <= models.cores; ++n) cores.push_back(n);
  std::vector<Load> loads;
  for (unsigned comm = 0; comm < models.nodes; ++comm)
    for (unsigned comp = 0; comp < models.nodes; ++comp) {
      const Placement placement{.computation = comp, .communication = comm};
      if (!options.placement.empty() && placement != Placement{options.placement[0], options.placement[1]}) continue;
      for (const unsigned n : cores)
        loads.push_back({.cores = n,
                         .placement = placement,
                         .flop_per_byte = options.intensity,
                         .cached_share = options.cached,
                         .message_bytes = options.message_bytes,
                         .device_mb_s = 1e3 * options.device_gb_s});
    }
  if (loads.empty())
    return wrong(fmt::format("there are {}: --placement must name two of them", counted(models.nodes, "NUMA node")));
  return loads;
}

/// The interval of a prediction, where a campaign gives it.
std::optional<Interval> interval_of(const Models& models, bool soft, const Load& load, double Bandwidths::*value) {
  if (!models.fit || !soft) return std::nullopt;
  return models.fit->interval(load, value);
}

void print_predictions(const Models& models, const Model& model, const std::vector<Load>& loads, bool soft) {
  fmt::print("memory contention, {}, {}: bandwidths in GB/s\n", models.name,
             soft ? "soft model" : "the thesis's model");
  fmt::print("data of          cores    computation             communication\n");
  fmt::print("comp.  comm.            alone        both       alone        both\n");
  for (const Load& load : loads) {
    const Bandwidths b = model.predict(load);
    std::string line =
        fmt::format("{:>5}{:>7}{:>9}", load.placement.computation, load.placement.communication, load.cores);
    for (const auto& [name, value] : bandwidth_names) line += fmt::format("{:>12.2f}", b.*value / 1e3);
    if (load.device_mb_s > 0) line += fmt::format("   copies {:.2f}", b.device_mb_s / 1e3);
    if (const auto interval = interval_of(models, soft, load, &Bandwidths::communication_mb_s))
      line += fmt::format("   [{:.2f}, {:.2f}]", interval->low / 1e3, interval->high / 1e3);
    fmt::print("{}\n", line);
  }
  if (models.fit && soft)
    fmt::print("[...]: 95 % interval of communication beside computation; --json has those of all\n");
}

Json predictions_json(const Models& models, const Model& model, const std::vector<Load>& loads, bool soft) {
  Json rows = Json::array();
  for (const Load& load : loads) {
    const Bandwidths b = model.predict(load);
    Json row{{"computation_node", load.placement.computation},
             {"communication_node", load.placement.communication},
             {"cores", load.cores}};
    Json intervals = Json::object();
    for (const auto& [name, value] : bandwidth_names) {
      row[name] = b.*value;
      if (const auto interval = interval_of(models, soft, load, value))
        intervals[name] = Json(std::vector<double>{interval->low, interval->high});
    }
    if (load.device_mb_s > 0) row["device_mb_s"] = b.device_mb_s;
    if (!intervals.members().empty()) row["intervals"] = std::move(intervals);
    rows.push_back(std::move(row));
  }
  return {{"name", models.name}, {"model", soft ? "soft" : "thesis"}, {"predictions", rows}};
}

void add_predict(Subcommand contention, ToolContext& context) {
  Subcommand command =
      contention.add_subcommand("predict", "Bandwidths of cores and network for every placement and number of cores");
  const auto options = std::make_shared<PredictOptions>();
  add_source_options(command, *options,
                     "A campaign, a file of `fit -o`, or a machine of the thesis: henri, billy, ...");
  command
      .add_option("--cores", options->cores,
                  "Numbers of computing cores, separated by commas (default: all of a socket)")
      .list()
      .positive();
  command
      .add_option("--placement", options->placement, "NUMA nodes of the data: computation,communication (default: all)")
      .list();
  command.add_option("--model", options->model, "soft or thesis").one_of({"soft", "thesis"}).show_default();
  command
      .add_option("--intensity", options->intensity,
                  "Arithmetic intensity of the kernel, in flop per byte (soft model)")
      .between(0, 1e6);
  command.add_option("--cached", options->cached, "Share of the kernel's accesses that caches serve (soft model)")
      .between(0, 1);
  command.add_option("--message-bytes", options->message_bytes, "Size of the messages (soft model)");
  command
      .add_option("--device", options->device_gb_s,
                  "GB/s of simultaneous copies to a device, when alone (soft model)")
      .between(0, 1e4);
  command.callback([options, &context] {
    const auto models = contention::read_models(options->source, fit_options(*options));
    if (!models) return fail(context, models.error());
    const auto loads = loads_of(models.value(), *options);
    if (!loads) return fail(context, loads.error());
    const bool soft = options->model == "soft";
    const auto model = contention::model_of(models.value(), soft);
    if (options->json) return print(predictions_json(models.value(), *model, loads.value(), soft));
    print_predictions(models.value(), *model, loads.value(), soft);
  });
}

/// Arguments of a picture.
struct PlotOptions : SourceOptions {
  std::string pdf, svg, png;
  bool stacked = false, applications = false;
};

void draw(const PlotOptions& options, ToolContext& context) {
  std::vector<std::string> words;
  Json files = Json::array();
  for (const auto& [name, file] : {std::pair{"--pdf=", options.pdf}, {"--svg=", options.svg}, {"--png=", options.png}})
    if (!file.empty()) words.push_back(name + file), files.push_back(file);
  if (files.empty()) {
    context.log.error("contention plot: say which file to draw: --svg, --pdf or --png FILE");
    context.exit_status = 2;
    return;
  }
  if (options.stacked && options.applications) {
    context.log.error("contention plot: --stacked is for kernels, not for --applications");
    context.exit_status = 2;
    return;
  }
  const auto picture = options.applications ? contention::picture_of_applications(options.source)
                                            : contention::picture_of(options.source, fit_options(options));
  if (!picture) return fail(context, picture.error());
  if (!picture.value().why_no_lines.empty())
    context.log.warn("{}: the picture has no predicted lines", picture.value().why_no_lines);
  if (options.stacked) words.push_back("--stacked");
  const auto drawn = contention::draw(picture.value(), words, context.config.get_string("python"));
  if (!drawn) return fail(context, drawn.error());
  if (options.json) return print(Json{{"files", files}});
  for (const Json& one : files)
    fmt::print("picture: {} ({})\n", one.text(), short_bytes(std::filesystem::file_size(one.text())));
}

void add_plot(Subcommand contention, ToolContext& context) {
  Subcommand command =
      contention.add_subcommand("plot", "Draw measured points and predicted lines, a panel for each placement");
  const auto options = std::make_shared<PlotOptions>();
  add_source_options(command, *options,
                     "A campaign, a file of `fit -o`, or a machine of the thesis: henri, billy, ...");
  command.add_option("--svg", options->svg, "The picture to write, as SVG");
  command.add_option("--pdf", options->pdf, "The picture to write, as PDF");
  command.add_option("--png", options->png, "The picture to write, as PNG");
  command.add_flag("--stacked", options->stacked,
                   "Communication on top of computation, so that the height is the whole bus");
  command.add_flag("--applications", options->applications,
                   "Draw a campaign's applications: bandwidths of messages, stalls and speed by number of workers");
  command.callback([options, &context] { draw(*options, context); });
}

void add_page(Subcommand contention, ToolContext& context) {
  Subcommand command = contention.add_subcommand("page", "One HTML page that shows a campaign and explains it");
  const auto options = std::make_shared<SourceOptions>();
  const auto out = std::make_shared<std::string>();
  command.add_option("folder", options->source, "Folder of `tandem contention measure`").required();
  command.add_option("-o,--out", *out, "The page to write (default: contention.html in the folder)");
  command.add_flag("--json", options->json, "Print a JSON object");
  command.callback([options, out, &context] {
    const std::filesystem::path source = options->source;
    const std::filesystem::path folder = std::filesystem::is_directory(source) ? source : source.parent_path();
    const std::string file = out->empty() ? (folder / "contention.html").string() : *out;
    const auto page = contention::page_of(options->source, context.config.get_string("python"));
    if (!page) return fail(context, page.error());
    if (const auto written = base::replace_file(file, page.value()); !written) return fail(context, written.error());
    if (options->json) return print(Json{{"files", Json(std::vector<std::string>{file})}});
    fmt::print("page: {} ({})\n", file, short_bytes(page.value().size()));
  });
}

}  // namespace

void add_contention(Subcommand app, ToolContext& context) {
  Subcommand contention =
      app.add_subcommand("contention", "Measure and model how computation and communication share memory");
  contention.require_subcommand();
  contention::add_measure(contention, context);
  add_fit(contention, context);
  add_predict(contention, context);
  contention::add_place(contention, context);
  add_plot(contention, context);
  add_page(contention, context);
}

}  // namespace tandem::tools
