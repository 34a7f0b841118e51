// tools/contention/campaign_folder.cpp: reads and writes the lines of a campaign, and makes curves of them.
#include "tools/contention/campaign_folder.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include <fmt/format.h>

#include "tools/contention/csv.hpp"

namespace tandem::tools::contention {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using model::contention::Curve;
using model::contention::Placement;
using model::contention::Sample;

constexpr std::array names{"kernel", "cursor", "message_bytes", "computation_node", "communication_node",
                           "cores", "step", "repetition", "computation_mb_s", "iterations_per_s",
                           "communication_mb_s", "latency_us", "cpu_share",
                           "computing_mhz", "communicating_mhz", "uncore_mhz"};
constexpr std::size_t former_names = 13;  ///< of campaigns without frequencies

/// The name of a cell that is wrong; null if none is.
const char* parse(const std::vector<std::string_view>& cells, Measurement& m) {
  m.kernel = cells[0];
  m.step = cells[6];
  if (m.kernel.empty()) return names[0];
  if (m.step != "computation" && m.step != "communication" && m.step != "both") return names[6];
  const bool good[] = {true,
                       read_cell(cells[1], m.cursor),
                       read_cell(cells[2], m.message_bytes),
                       read_cell(cells[3], m.computation_node),
                       read_cell(cells[4], m.communication_node),
                       read_cell(cells[5], m.cores),
                       true,
                       read_cell(cells[7], m.repetition),
                       read_cell(cells[8], m.computation_mb_s),
                       read_cell(cells[9], m.iterations_per_s),
                       read_cell(cells[10], m.communication_mb_s),
                       read_cell(cells[11], m.latency_us),
                       read_cell(cells[12], m.cpu_share),
                       read_cell(cells[13], m.computing_mhz),
                       read_cell(cells[14], m.communicating_mhz),
                       read_cell(cells[15], m.uncore_mhz)};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!good[i]) return names[i];
  if (m.step != "communication" && !m.computation_node) return names[3];
  if (m.step != "computation" && !m.communication_node) return names[4];
  return nullptr;
}

base::Result<std::string> content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return Error{fs::exists(file) ? ErrorCode::io : ErrorCode::not_found, file.string() + ": cannot be read"};
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

bool moves_data(const std::string& kernel) { return kernel != "primes" && kernel != "fma"; }

}  // namespace

std::string header_line() { return fmt::format("{}\n", fmt::join(names, ",")); }

std::string line_of(const Measurement& m) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", m.kernel, m.cursor, m.message_bytes,
                     cell_text(m.computation_node), cell_text(m.communication_node), m.cores, m.step, m.repetition,
                     cell_text(m.computation_mb_s), cell_text(m.iterations_per_s), cell_text(m.communication_mb_s),
                     cell_text(m.latency_us), cell_text(m.cpu_share), cell_text(m.computing_mhz),
                     cell_text(m.communicating_mhz), cell_text(m.uncore_mhz));
}

base::Result<std::vector<Measurement>> read_samples(std::string_view text, const std::string& name) {
  const std::string header = header_line(),
                    former = fmt::format("{}", fmt::join(std::span(names).first(former_names), ","));
  const bool is_whole = text.starts_with(std::string_view(header).substr(0, header.size() - 1));
  if (!is_whole && !text.starts_with(former))
    return Error{ErrorCode::malformed, fmt::format("{}: its first line is not that of a campaign: {}", name,
                                                   header.substr(0, header.size() - 1))};
  std::vector<Measurement> all;
  const auto read =
      read_lines(text, name, is_whole ? names.size() : former_names, [&](std::vector<std::string_view> cells) {
        cells.resize(names.size());
        return parse(cells, all.emplace_back());
      });
  if (!read) return read.error();
  return all;
}

base::Result<Campaign> read_campaign(const fs::path& source) {
  Campaign campaign;
  fs::path samples = source;
  if (fs::is_directory(source)) {
    samples = source / samples_file;
    if (!fs::exists(samples))
      return Error{ErrorCode::not_found, fmt::format("{} has no {}: it is no folder of `tandem contention measure`",
                                                     source.string(), samples_file)};
    const auto text = content_of(source / campaign_file);
    if (!text) return text.error();
    const auto about = Json::parse(text.value());
    const Json* nodes = about ? about->find("nodes_per_socket") : nullptr;
    const Json* cores = about ? about->find("cores_per_socket") : nullptr;
    if (nodes == nullptr || !nodes->is_unsigned() || nodes->unsigned_number() == 0 || cores == nullptr ||
        !cores->is_unsigned())
      return Error{ErrorCode::malformed,
                   fmt::format("{}: no nodes_per_socket and cores_per_socket", (source / campaign_file).string())};
    campaign.about = *about;
    campaign.nodes_per_socket = static_cast<unsigned>(nodes->unsigned_number());
    campaign.cores_per_socket = static_cast<unsigned>(cores->unsigned_number());
  }
  const auto text = content_of(samples);
  if (!text) return text.error();
  auto measurements = read_samples(text.value(), samples.string());
  if (!measurements) return measurements.error();
  campaign.measurements = std::move(measurements).value();
  return campaign;
}

base::Result<CurveChoice> choose(const Campaign& campaign, CurveChoice choice) {
  std::set<std::string> kernels;
  for (const Measurement& m : campaign.measurements)
    if (m.step == "both") kernels.insert(m.kernel);
  if (kernels.empty()) return Error{ErrorCode::not_found, "the campaign has no measurements of both at once"};
  if (choice.kernel.empty()) {
    const auto moving = std::ranges::find_if(kernels, moves_data);
    choice.kernel = kernels.contains("memset") ? "memset" : moving != kernels.end() ? *moving : *kernels.begin();
  }
  std::set<unsigned> cursors;
  std::set<std::uint64_t> sizes;
  for (const Measurement& m : campaign.measurements)
    if (m.step == "both" && m.kernel == choice.kernel) cursors.insert(m.cursor), sizes.insert(m.message_bytes);
  if (cursors.empty())
    return Error{ErrorCode::not_found,
                 fmt::format("the campaign has no kernel {}; there are {}", choice.kernel, fmt::join(kernels, ", "))};
  if (!choice.cursor) choice.cursor = *cursors.begin();
  if (!cursors.contains(*choice.cursor))
    return Error{ErrorCode::not_found,
                 fmt::format("the campaign has no cursor {}; there are {}", *choice.cursor, fmt::join(cursors, ", "))};
  if (choice.message_bytes == 0) choice.message_bytes = *sizes.rbegin();
  if (!sizes.contains(choice.message_bytes))
    return Error{ErrorCode::not_found, fmt::format("the campaign has no messages of {} bytes; there are {}",
                                                   choice.message_bytes, fmt::join(sizes, ", "))};
  return choice;
}

std::vector<Curve> curves_of(const Campaign& campaign, const CurveChoice& choice) {
  std::map<std::tuple<unsigned, unsigned, unsigned>, double> computation;  // node, cores, repetition
  std::map<std::pair<unsigned, unsigned>, double> communication;           // node, repetition
  std::map<std::pair<unsigned, unsigned>, std::map<std::pair<unsigned, unsigned>, Sample>> both;
  const auto chosen = [&](const Measurement& m) { return m.kernel == choice.kernel && m.cursor == choice.cursor; };
  for (const Measurement& m : campaign.measurements) {
    if (m.step == "computation" && chosen(m) && m.computation_mb_s)
      computation[{*m.computation_node, m.cores, m.repetition}] = *m.computation_mb_s;
    if (m.step == "communication" && m.message_bytes == choice.message_bytes && m.communication_mb_s)
      communication[{*m.communication_node, m.repetition}] = *m.communication_mb_s;
    if (m.step == "both" && chosen(m) && m.message_bytes == choice.message_bytes) {
      Sample& sample = both[{*m.communication_node, *m.computation_node}][{m.cores, m.repetition}];
      sample.cores = m.cores;
      sample.computation_mb_s = m.computation_mb_s.value_or(Sample::none);
      sample.communication_mb_s = m.communication_mb_s.value_or(Sample::none);
    }
  }
  std::vector<Curve> curves;
  for (auto& [nodes, samples] : both) {
    Curve curve{{.computation = nodes.second, .communication = nodes.first}};
    std::set<unsigned>
        with_network;  // it is measured once for all numbers of cores, and so counts once in each repetition
    for (auto& [place, sample] : samples) {
      const auto [cores, repetition] = place;
      if (const auto found = computation.find({nodes.second, cores, repetition}); found != computation.end())
        sample.computation_alone_mb_s = found->second;
      const auto found = communication.find({nodes.first, repetition});
      if (found != communication.end() && with_network.insert(repetition).second)
        sample.communication_alone_mb_s = found->second;
      curve.samples.push_back(sample);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace tandem::tools::contention
