// python/src/contention.cpp: reads, fits and asks models of memory contention, as `tandem contention` does.
#include "contention.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tools/contention/model_file.hpp"

namespace tandem::python {
namespace {

using namespace model::contention;
using tools::contention::Models;

/// What the models say of a campaign or a file; ContentionError in Python.
struct ContentionFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Both models of one machine.
class NativeModels {
 public:
  NativeModels(const std::string& source, const std::string& kernel, std::optional<unsigned> cursor,
               std::uint64_t message_bytes, unsigned nodes_per_socket, bool hold_out) {
    const nb::gil_scoped_release others_run;
    auto models = tools::contention::read_models(
        source, {.choice = {.kernel = kernel, .cursor = cursor, .message_bytes = message_bytes},
                 .nodes_per_socket = nodes_per_socket,
                 .hold_out = hold_out});
    if (!models.ok()) throw ContentionFailure(models.error().message);
    models_ = std::make_unique<Models>(std::move(models).value());
  }

  std::string json() const { return tools::contention::to_json(*models_).dump(2); }
  unsigned cores() const { return models_->cores; }
  unsigned nodes() const { return models_->nodes; }

  /// Columns of `Load`s and `Bandwidths`, a row for each number of cores at each placement; with a fit and the soft
  /// model, intervals too.
  nb::dict predict(const std::string& which, const std::vector<unsigned>& cores,
                   const std::vector<std::pair<unsigned, unsigned>>& placements, double flop_per_byte,
                   double cached_share, std::uint64_t message_bytes, double device_mb_s) const {
    if (flop_per_byte > 0 && models_->soft.core_gflop_s == 0)
      throw ContentionFailure(
          "intensity needs the peak of a core, which these models do not have: measure triad with several cursors");
    if (message_bytes > 0 && models_->soft.half_message_bytes == 0)
      throw ContentionFailure(
          "message_bytes needs several message sizes, which these models do not have: measure several (--messages)");
    const bool soft = which == "soft";
    const auto model = tools::contention::model_of(*models_, soft);
    std::vector<Load> loads;
    for (const auto& [computation, communication] : placements)
      for (const unsigned count : cores)
        loads.push_back({.cores = count,
                         .placement = {computation, communication},
                         .flop_per_byte = flop_per_byte,
                         .cached_share = cached_share,
                         .message_bytes = message_bytes,
                         .device_mb_s = device_mb_s});
    std::vector<Bandwidths> answers;
    for (const Load& load : loads) answers.push_back(model->predict(load));
    nb::dict columns;
    const auto add = [&](const std::string& name, const auto& value) { columns[nb::cast(name)] = array_of(value); };
    add("computation_node",
        collect<std::uint32_t>(loads.size(), [&](std::size_t row) { return loads[row].placement.computation; }));
    add("communication_node",
        collect<std::uint32_t>(loads.size(), [&](std::size_t row) { return loads[row].placement.communication; }));
    add("cores", collect<std::uint32_t>(loads.size(), [&](std::size_t row) { return loads[row].cores; }));
    for (const auto& [name, member] : tools::contention::bandwidth_names) {
      const auto of = member;
      add(name, collect<double>(loads.size(), [&](std::size_t row) { return answers[row].*of; }));
      if (!soft || !models_->fit) continue;
      std::vector<double> low, high;
      for (const Load& load : loads) {
        const Interval interval = models_->fit->interval(load, of);
        low.push_back(interval.low);
        high.push_back(interval.high);
      }
      add(std::string(name) + "_low", low);
      add(std::string(name) + "_high", high);
    }
    if (device_mb_s > 0)
      add("device_mb_s", collect<double>(loads.size(), [&](std::size_t row) { return answers[row].device_mb_s; }));
    return columns;
  }

 private:
  std::unique_ptr<Models> models_;
};

}  // namespace

void add_contention(nb::module_& module) {
  nb::exception<ContentionFailure> error(module, "ContentionError");
  error.attr("__module__") = "tandem.contention";
  error.attr("__doc__") =
      "There is no such campaign, file or machine, or it cannot be fitted: the message says what, and what to do.";
  nb::class_<NativeModels>(module, "ContentionModels")
      .def(nb::init<const std::string&, const std::string&, std::optional<unsigned>, std::uint64_t, unsigned, bool>(),
           nb::arg("source"), nb::arg("kernel"), nb::arg("cursor").none(), nb::arg("message_bytes"),
           nb::arg("nodes_per_socket"), nb::arg("hold_out"))
      .def("json", &NativeModels::json)
      .def_prop_ro("cores", &NativeModels::cores)
      .def_prop_ro("nodes", &NativeModels::nodes)
      .def("predict", &NativeModels::predict, nb::arg("model"), nb::arg("cores"), nb::arg("placements"),
           nb::arg("flop_per_byte"), nb::arg("cached_share"), nb::arg("message_bytes"), nb::arg("device_mb_s"));
  module.def("contention_platforms", [] {
    std::vector<std::string> names;
    for (const Platform& platform : platforms()) names.emplace_back(platform.name);
    return names;
  });
}

}  // namespace tandem::python
