// tools/contention/campaign_folder.hpp: the output of `tandem contention measure`: campaign.json, and a line of
// samples.csv for each measurement.
//
// samples.csv has a header line and these columns; a cell is empty where it has no meaning:
//
//   kernel              primes, memset, copy, triad, fma, of the computing cores
//   cursor              how often triad computes each element; 1: once
//   message_bytes       of the messages that rank 0 receives
//   computation_node    NUMA node of the cores' data; empty where nothing computes
//   communication_node  NUMA node of the messages; empty where nothing communicates
//   cores               that compute; 0: none
//   step                computation (alone), communication (alone), both
//   repetition          from 0
//   computation_mb_s    of all cores, in 10^6 bytes per second; empty for primes
//   iterations_per_s    of all cores; both in a second of processor time, which is less than one where other programs run
//   communication_mb_s  received; empty for latency
//   latency_us          half a round trip, where messages are of at most 64 bytes
//   cpu_share           of its time, what the computing core that had least was given; below 1 where other programs ran
//   computing_mhz       frequency of the computing cores: the median over time of their mean; empty where it is not known
//   communicating_mhz   of the core that communicates
//   uncore_mhz          of caches and memory controllers, first package
//
// The last three may be missing altogether, in campaigns without frequencies. frequencies.csv has the values read over
// time.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/model/contention/sample.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools::contention {

inline constexpr const char* samples_file = "samples.csv";
inline constexpr const char* campaign_file = "campaign.json";
inline constexpr const char* frequencies_file = "frequencies.csv";

/// A line of samples.csv.
struct Measurement {
  std::string kernel = {};
  unsigned cursor = 1;
  std::uint64_t message_bytes = 0;
  std::optional<unsigned> computation_node = {}, communication_node = {};
  unsigned cores = 0;
  std::string step = {};
  unsigned repetition = 0;
  std::optional<double> computation_mb_s = {}, iterations_per_s = {}, communication_mb_s = {}, latency_us = {},
                        cpu_share = {};
  std::optional<double> computing_mhz = {}, communicating_mhz = {}, uncore_mhz = {};

  /// The part of the key that measurements with several numbers of cores share.
  auto group() const { return std::tuple(kernel, cursor, message_bytes, computation_node, communication_node); }
  /// The identity of a measurement: all but its values.
  auto key() const {
    return std::tuple(kernel, cursor, message_bytes, computation_node, communication_node, cores, step, repetition);
  }
};

std::string header_line();
std::string line_of(const Measurement& measurement);

/// Reads lines; one without its end, the last of an interrupted campaign, is left out. `name` is for messages. Errors:
/// malformed, with the number of the line.
base::Result<std::vector<Measurement>> read_samples(std::string_view text, const std::string& name);

/// A folder of `tandem contention measure`, or its samples.csv alone.
struct Campaign {
  std::vector<Measurement> measurements;
  unsigned nodes_per_socket = 1;
  unsigned cores_per_socket = 0;  ///< 0: not known
  Json about;                     ///< campaign.json, or null
};
/// Reads a campaign. Errors: not_found, io, malformed.
base::Result<Campaign> read_campaign(const std::filesystem::path& source);

/// The measurements of which the curves of one kind are made.
struct CurveChoice {
  std::string kernel;               ///< empty: memset, else the first one that moves data
  std::optional<unsigned> cursor;   ///< none: the least
  std::uint64_t message_bytes = 0;  ///< 0: the largest
};
/// Fills in empty members. Errors: not_found, where the campaign has no such measurements; it names the existing ones.
base::Result<CurveChoice> choose(const Campaign& campaign, CurveChoice choice);
/// A curve for each placement that was measured with both at once. `choice` comes from `choose`.
std::vector<model::contention::Curve> curves_of(const Campaign& campaign, const CurveChoice& choice);

}  // namespace tandem::tools::contention
