// tools/json/json_report.cpp: building the JSON object of a report.
#include "tools/json/json_report.hpp"

#include <algorithm>

#include "tandem/base/assert.hpp"
#include "tools/standard_output.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

Json core_numbers(const std::vector<base::CoreId>& cores) {
  Json numbers = Json::array();
  for (const base::CoreId core : cores) numbers.push_back(core.value());
  return numbers;
}

}  // namespace

double median(std::vector<double> samples) {
  TANDEM_ASSERT(!samples.empty());
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

Json machine_json(const base::Topology& topology) {
  Json cores = Json::array(), numa_nodes = Json::array(), caches = Json::array();
  for (const base::Core& core : topology.cores())
    cores.push_back(
        {{"core", core.id.value()}, {"package", core.package}, {"numa_node", core.numa_node}, {"pus", core.pus}});
  for (const base::NumaNode& node : topology.numa_nodes())
    numa_nodes.push_back({{"numa_node", node.os_index}, {"bytes", node.bytes}, {"cores", core_numbers(node.cores)}});
  for (const base::Cache& cache : topology.caches())
    caches.push_back({{"level", cache.level}, {"bytes", cache.bytes}, {"line_bytes", cache.line_bytes},
                      {"cores", core_numbers(cache.cores)}});
  return {{"processor", topology.cpu_model()}, {"packages", topology.package_count()}, {"core_count", topology.cores().size()},
          {"pu_count", topology.pu_count()},   {"cores", cores},                       {"numa_nodes", numa_nodes},
          {"caches", caches}};
}

Json report(const std::string& benchmark, const base::Topology& topology) {
  return {{"tandem", version},
          {"commit", commit},
          {"machine", machine_json(topology)},
          {"benchmark", benchmark},
          {"results", Json::array()}};
}

Json result_json(const Measurement& measurement) {
  const auto [least, most] = std::minmax_element(measurement.samples.begin(), measurement.samples.end());
  Json result{{"name", measurement.name}, {"params", measurement.params}, {"value", median(measurement.samples)},
              {"unit", measurement.unit}, {"min", *least},                {"max", *most},
              {"n", measurement.samples.size()},
              {"peers", measurement.peers}};
  if (!measurement.details.is_null()) result["details"] = measurement.details;
  return result;
}

Json report(const std::string& benchmark, const base::Topology& topology,
            const std::vector<Measurement>& measurements) {
  Json object = report(benchmark, topology);
  for (const Measurement& measurement : measurements) object["results"].push_back(result_json(measurement));
  return object;
}

void print(const Json& json) {
  // The replacing handler is needed because a file name on the command line need not be UTF-8.
  const std::string text = json.dump(2);
  write_output(text + "\n");
}

}  // namespace tandem::tools
