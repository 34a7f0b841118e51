// tandem/model/contention/machine_file.cpp: a table for each bus and each relation of nodes, a line for each parameter.
#include "tandem/model/contention/machine_file.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/base/toml_file.hpp"

namespace tandem::model::contention {
namespace {

using base::Error;
using base::ErrorCode;

constexpr unsigned kMostNodes = 1024;

std::string bus_text(const char* name, const SoftParameters& bus) {
  std::string text =
      fmt::format("\n[{}]\nn_par_max = {}\nn_seq_max = {}\n", name, bus.bus.n_par_max, bus.bus.n_seq_max);
  for (const ParameterName& parameter : parameter_names)
    text += fmt::format("{} = {:.6g}\n", parameter.name, bus.bus.*parameter.value);
  return text + fmt::format("softness = {:.6g}\nnetwork_weight = {:.6g}\n", bus.softness, bus.network_weight);
}

/// The values of a file, each of which must be read once.
class Values {
 public:
  explicit Values(const std::vector<base::TomlValue>& values) {
    for (const base::TomlValue& value : values) values_.emplace(value.name, &value);
  }
  std::optional<std::string> text(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) return {};
    const std::string text = found->second->text;
    values_.erase(found);
    return text;
  }
  double number(const std::string& name) {
    const std::optional<std::string> written = text(name);
    if (!written) return fault(name + " is missing"), 0;
    const std::optional<double> value = base::number_of<double>(*written);
    if (!value || !std::isfinite(*value)) fault(name + " is no number");
    return value.value_or(0);
  }
  unsigned count(const std::string& name) {
    const double value = number(name);
    if (wrong_.empty() && !(value >= 0 && value <= 1e6 && value == std::floor(value))) fault(name + " is no count");
    return wrong_.empty() ? static_cast<unsigned>(value) : 0;
  }
  SoftParameters bus(const std::string& name) {
    SoftParameters bus;
    bus.bus.n_par_max = count(name + ".n_par_max");
    bus.bus.n_seq_max = count(name + ".n_seq_max");
    for (const ParameterName& parameter : parameter_names)
      bus.bus.*parameter.value = number(name + "." + parameter.name);
    bus.softness = number(name + ".softness");
    bus.network_weight = number(name + ".network_weight");
    return bus;
  }
  /// The first fault, or a value that was not read; empty: no fault.
  std::string wrong() const {
    if (!wrong_.empty() || values_.empty()) return wrong_;
    return fmt::format("line {} has {}, which is not known", values_.begin()->second->line, values_.begin()->first);
  }

 private:
  void fault(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  std::map<std::string, const base::TomlValue*> values_;
  std::string wrong_;
};

}  // namespace

std::string to_text(const StoredMachine& stored) {
  const SoftMachine& machine = stored.machine;
  std::string processor;
  for (const char c : stored.processor)
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') processor += c;
  std::string text = fmt::format(
      "# How cores and the network share memory here: parameters of the soft model, found by `tandem contention fit`. "
      "Option `contention` of programs\n"
      "# reads it; docs/contention.md explains it. Bandwidths are in 10^6 bytes per second.\nformat = 1\nprocessor = "
      "\"{}\"\ncores = {}\n"
      "nodes_per_socket = {}\ncore_gflop_s = {:.6g}\nhalf_message_bytes = {:.6g}\n",
      processor, stored.cores, machine.nodes_per_socket, machine.core_gflop_s, machine.half_message_bytes);
  text += fmt::format("nodes = {}\n", machine.network_mb_s.size());
  for (std::size_t node = 0; node < machine.network_mb_s.size(); ++node)
    text += fmt::format("network_{}_mb_s = {:.6g}\n", node, machine.network_mb_s[node]);
  text += bus_text("local", machine.local) + bus_text("remote", machine.remote);
  for (std::size_t i = 0; i < relation_count; ++i)
    text += fmt::format("\n[{}]\ncomputation = {:.6g}\ncommunication = {:.6g}\n", relation_names[i],
                        machine.between[i].computation, machine.between[i].communication);
  return text;
}

base::Result<StoredMachine> parse_machine(std::string_view text, std::string_view file) {
  const auto damaged = [&](const std::string& why) {
    return Error{ErrorCode::malformed,
                 fmt::format("{}: {}; `tandem contention fit --install` writes it anew", file, why)};
  };
  const auto read = base::parse_toml(text, file);
  if (!read.ok()) return damaged("is damaged (" + read.error().message + ")");
  Values values(read.value());
  const std::optional<std::string> format = values.text("format"), processor = values.text("processor");
  if (format && *format != "1")
    return Error{ErrorCode::unsupported,
                 fmt::format("{}: has format {}, and this version of Tandem reads format 1", file, *format)};
  if (!format || !processor) return damaged("is no file of memory contention, or is truncated");
  const unsigned cores = values.count("cores");
  SoftMachine machine;
  machine.nodes_per_socket = values.count("nodes_per_socket");
  machine.core_gflop_s = values.number("core_gflop_s");
  machine.half_message_bytes = values.number("half_message_bytes");
  const unsigned nodes = values.count("nodes");
  if (nodes > kMostNodes) return damaged(fmt::format("nodes is {}, and at most {} can be", nodes, kMostNodes));
  for (unsigned node = 0; node < nodes; ++node)
    machine.network_mb_s.push_back(values.number(fmt::format("network_{}_mb_s", node)));
  machine.local = values.bus("local");
  machine.remote = values.bus("remote");
  for (std::size_t i = 0; i < relation_count; ++i) {
    const std::string relation = relation_names[i];
    machine.between[i] = {.computation = values.number(relation + ".computation"),
                          .communication = values.number(relation + ".communication")};
  }
  if (const std::string wrong = values.wrong(); !wrong.empty()) return damaged(wrong);
  if (cores == 0) return damaged("cores is 0");
  if (const auto good = SoftModel::create(machine); !good) return damaged(good.error().message);
  return StoredMachine{.machine = std::move(machine), .cores = cores, .processor = *processor};
}

}  // namespace tandem::model::contention
