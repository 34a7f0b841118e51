// tools/contention/place.cpp: the choice of programs with comm.progress_core=model, for the machines of the thesis or
// another one.
#include "tools/contention/place.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tandem/model/contention/message_place.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tools/contention/model_file.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools::contention {
namespace {

using namespace tandem::model::contention;

struct PlaceOptions {
  std::string source;
  std::optional<unsigned> network_node;
  bool json = false;
};

/// A machine whose first sockets compute on all cores.
struct Case {
  std::string name;
  unsigned sockets = 1;
  unsigned cores = 0;  ///< that compute
  MessagePlace place = {};
};

base::Result<std::vector<Case>> cases_of(const Models& models, const PlaceOptions& options) {
  const StoredMachine machine{.machine = models.soft, .cores = models.cores};
  const unsigned per_socket = models.soft.nodes_per_socket;
  if (options.network_node && *options.network_node >= models.nodes)
    return base::Error{base::ErrorCode::invalid_argument,
                       fmt::format("contention place: {} has {}: --network-node must name one of them, from 0",
                                   models.name, counted(models.nodes, "NUMA node"))};
  std::vector<Case> cases;
  for (unsigned sockets = 1; sockets * per_socket <= models.nodes; ++sockets) {
    Case one{.name = models.name, .sockets = sockets};
    std::vector<NodeUse> nodes(models.nodes);
    for (unsigned node = 0; node < models.nodes; ++node) {
      nodes[node].number = node;
      if (node < sockets * per_socket) nodes[node].computing = models.cores / per_socket;
      one.cores += nodes[node].computing;
    }
    one.place = choose_message_place({.nodes = nodes, .network_node = options.network_node, .machine = &machine});
    cases.push_back(std::move(one));
  }
  return cases;
}

/// The change of a bandwidth, in percent.
double gain(double chosen, double usual) { return 100 * (chosen / usual - 1); }

void print_cases(const std::vector<Case>& cases) {
  fmt::print(
      "memory for messages, while all cores of the first socket compute, and of all sockets: GB/s of messages and of "
      "all computing cores\n");
  fmt::print("                             usual                     chosen                   gain (%)\n");
  fmt::print("machine         cores   node    mess.    comp.    node    mess.    comp.    mess.    comp.\n");
  for (const Case& one : cases) {
    const MessagePlace& place = one.place;
    if (!place.memory) {
      fmt::print("{:<14}{:>7}   {}\n", one.name, one.cores, place.reason);
      continue;
    }
    const Bandwidths &usual = place.usual, &chosen = place.predicted;
    fmt::print("{:<14}{:>7}{:>7}{:>9.2f}{:>9.2f}{:>8}{:>9.2f}{:>9.2f}{:>+9.1f}{:>+9.1f}\n", one.name, one.cores,
               place.usual_memory, usual.communication_mb_s / 1e3, usual.computation_mb_s / 1e3, *place.memory,
               chosen.communication_mb_s / 1e3, chosen.computation_mb_s / 1e3,
               gain(chosen.communication_mb_s, usual.communication_mb_s),
               gain(chosen.computation_mb_s, usual.computation_mb_s));
  }
}

Json to_json(const std::vector<Case>& cases) {
  const auto rates = [](const Bandwidths& b) {
    return Json{{"communication_mb_s", b.communication_mb_s}, {"computation_mb_s", b.computation_mb_s}};
  };
  Json rows = Json::array();
  for (const Case& one : cases) {
    Json row{{"name", one.name}, {"sockets", one.sockets}, {"cores", one.cores}, {"reason", one.place.reason}};
    if (one.place.memory) {
      row["usual_node"] = one.place.usual_memory;
      row["usual"] = rates(one.place.usual);
      row["chosen_node"] = *one.place.memory;
      row["chosen"] = rates(one.place.predicted);
    }
    rows.push_back(std::move(row));
  }
  return {{"places", rows}};
}

void show(const PlaceOptions& options, ToolContext& context) {
  std::vector<std::string> sources;
  if (!options.source.empty()) sources.push_back(options.source);
  else
    for (const Platform& platform : platforms()) sources.emplace_back(platform.name);
  std::vector<Case> all;
  for (const std::string& source : sources) {
    const auto models = read_models(source, {});
    if (!models) return fail(context, models.error());
    auto cases = cases_of(models.value(), options);
    if (!cases) return fail(context, cases.error());
    for (Case& one : cases.value()) all.push_back(std::move(one));
  }
  if (options.json) return print(to_json(all));
  print_cases(all);
}

}  // namespace

void add_place(Subcommand contention, ToolContext& context) {
  Subcommand command = contention.add_subcommand(
      "place", "On which NUMA node memory for messages should lie while cores compute, and what that gains");
  const auto options = std::make_shared<PlaceOptions>();
  command.add_option("source", options->source,
                     "A campaign, a file of `fit -o`, or a machine of the thesis (default: all nine of them)");
  command.add_option("--network-node", options->network_node, "NUMA node of the network card (default: not known)");
  command.add_flag("--json", options->json, "Print a JSON object");
  command.callback([options, &context] { show(*options, context); });
}

}  // namespace tandem::tools::contention
