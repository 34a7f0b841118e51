// tools/json/json_report.hpp: the JSON object that every --json prints, uniform for programs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tandem/base/topology.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools {

/// One measured quantity. `samples` are the values of the runs, not empty; `peers` has the peers' medians in the same
/// run and unit.
struct Measurement {
  std::string name;                           ///< "wavefront"
  Json params = Json::object();               ///< what it depends on: {"n": 4096, "nb": 256}
  std::string unit;                           ///< "ns per task", "GFlop/s"
  std::vector<double> samples;
  std::map<std::string, double> peers = {};   ///< name of the peer, its median
  Json details = {};                          ///< an object that goes to the report as it is, or null
};

/// The median of a list that is not empty: the middle, or the mean of the two middles. O(n).
double median(std::vector<double> samples);

/// The machine as JSON: processor, cores, hardware threads, NUMA nodes and caches that this process may use.
Json machine_json(const base::Topology& topology);

/// {"tandem": version, "commit": ..., "machine": {...}, "benchmark": name, "results": []}.
Json report(const std::string& benchmark, const base::Topology& topology);

/// A result: {"name", "params", "value", "unit", "min", "max", "n", "peers"} and perhaps "details", the value being the
/// median of the samples.
Json result_json(const Measurement& measurement);

/// report() with results.
Json report(const std::string& benchmark, const base::Topology& topology, const std::vector<Measurement>& measurements);

/// Writes JSON to standard output, indented, with a line end.
void print(const Json& json);

}  // namespace tandem::tools
