// tools/contention/page.cpp: writes the page, with pictures as SVG within it.
#include "tools/contention/page.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tools/contention/applications.hpp"
#include "tools/contention/picture.hpp"
#include "tools/contention/summary.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/svg_text.hpp"
#include "tools/version.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools::contention {
namespace {

using namespace model::contention;

constexpr const char* head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76em; margin: 2em auto; padding: 0 1em; color: #1a1a1a; background: #fff }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums }
th, td { padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap }
figure { margin: 1em 0; overflow-x: auto }
figcaption, .quiet { color: #555 }
</style>
)";

template <class Cells>
std::string table_row(const Cells& cells, const char* tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += fmt::format("<{0}>{1}</{0}>", tag, svg_text(cell));
  return row + "</tr>\n";
}

std::string paragraph(std::string_view text, bool quiet = false) {
  return fmt::format("<p{}>{}</p>\n", quiet ? " class=\"quiet\"" : "", svg_text(text));
}

std::string plain(const Json& value) { return value.is_text() ? value.text() : value.dump(); }

/// The machine, the protocol and the notes of campaign.json, and whether other programs disturbed it.
std::string origin_of(const Campaign& campaign) {
  std::string text;
  const Json* const machine = campaign.about.find("machine");
  if (machine != nullptr && machine->contains("processor") && machine->contains("core_count"))
    text +=
        paragraph(fmt::format("{}, {} cores here.", plain((*machine)["processor"]), plain((*machine)["core_count"])));
  if (const Json* const notes = campaign.about.find("notes"))
    for (const Json& note : *notes) text += paragraph("Note: " + plain(note) + ".");
  if (const auto others = other_programs(campaign.measurements)) text += paragraph("Note: " + *others + ".");
  const Json* const protocol = campaign.about.find("protocol");
  if (protocol == nullptr || protocol->members().empty()) return text;
  text += "<details><summary>Protocol</summary><table>\n";
  for (const Json::Member& member : protocol->members())
    text += table_row(std::vector{member.key, plain(member.value)}, "td");
  return text + "</table></details>\n";
}

std::string comparison_of(const Campaign& campaign) {
  unsigned repetitions = 0;
  for (const auto& m : campaign.measurements) repetitions = std::max(repetitions, m.repetition + 1);
  std::string text =
      "<h2>What kernels and messages lose beside each other</h2>\n" +
      paragraph(summary_title(repetitions) +
                ". Nodes: the NUMA nodes of the kernel's data and of the messages' data. A loss that is smaller "
                "than the brackets are wide may be chance.") +
      "<table>\n" + table_row(summary_names(), "th");
  const auto rows = summary_of(campaign.measurements);
  std::string all;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string line = table_row(cells_of(rows[i]), "td");
    all += line;
    if (i + 1 < rows.size() && rows[i].of.group() == rows[i + 1].of.group()) continue;  // the next one has more cores
    text += line;
    ++shown;
  }
  text += "</table>\n";
  if (shown == rows.size()) return text;
  return text + fmt::format("<details><summary>All numbers of cores</summary><table>\n{}{}</table></details>\n",
                            table_row(summary_names(), "th"), all);
}

/// Medians of the cores' frequencies, as in figures 5.2 and 5.4 of the thesis; empty where they are not known.
std::string frequencies_of(const Campaign& campaign) {
  struct Mhz {
    std::vector<double> alone, both, network;
  };
  std::map<std::tuple<std::string, unsigned, unsigned>, Mhz> rows;  // by kernel, cursor and cores
  std::vector<double> network_alone, uncore;
  for (const auto& m : campaign.measurements) {
    if (m.uncore_mhz) uncore.push_back(*m.uncore_mhz);
    if (m.step == "communication" && m.communicating_mhz) network_alone.push_back(*m.communicating_mhz);
    if (m.step == "communication" || !m.computing_mhz) continue;
    Mhz& row = rows[{m.kernel, m.cursor, m.cores}];
    (m.step == "both" ? row.both : row.alone).push_back(*m.computing_mhz);
    if (m.communicating_mhz) row.network.push_back(*m.communicating_mhz);
  }
  if (rows.empty()) return "";
  const auto cell = [](const std::vector<double>& values) {
    return values.empty() ? std::string() : fmt::format("{:.0f}", median(values));
  };
  std::string text =
      "<h2>Frequencies</h2>\n" +
      paragraph(
          "Medians in MHz. Frequencies fall with the number of cores that compute, more so with wide vectors (fma); a "
          "core that only "
          "communicates may slow the network when it is clocked down. frequencies.csv has them over time." +
          (uncore.empty() ? std::string() : fmt::format(" Uncore: {:.0f} MHz.", median(uncore))) +
          (network_alone.empty()
               ? std::string()
               : fmt::format(" The core that communicates, alone: {:.0f} MHz.", median(network_alone)))) +
      "<table>\n" +
      table_row(std::vector<std::string>{"kernel", "cores", "computing, alone", "computing, with communication",
                                         "communicating, with computation"},
                "th");
  for (const auto& [of, row] : rows) {
    const auto& [kernel, cursor, cores] = of;
    text +=
        table_row(std::vector<std::string>{cursor == 1 ? kernel : fmt::format("{} x {}", kernel, cursor),
                                           std::to_string(cores), cell(row.alone), cell(row.both), cell(row.network)},
                  "td");
  }
  return text + "</table>\n";
}

/// The SVG without the header of a file; empty: it cannot be read.
std::string svg_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = text.find("<svg");
  return begin == std::string::npos ? "" : text.substr(begin);
}

std::string pictures_of(const std::string& folder, const Campaign& campaign, const std::string& python) {
  std::set<std::pair<std::string, unsigned>> kernels;  // with their cursors
  for (const auto& m : campaign.measurements)
    if (m.step == "both" && m.computation_mb_s && m.communication_mb_s) kernels.emplace(m.kernel, m.cursor);
  if (kernels.empty()) return "";
  const std::string title = "<h2>Bandwidths by number of computing cores</h2>\n";
  std::string text = title + paragraph(
                                 "A panel for each placement of data on NUMA nodes. Communication (blue, left scale) "
                                 "and computation (orange, right scale) have scales of "
                                 "their own. Round points: alone; triangles: both at once. Full lines: the soft model; "
                                 "dashed lines: the thesis's; panels with a "
                                 "thick frame gave the parameters.");
  const auto work = WorkFolder::create(std::filesystem::temp_directory_path(), "tandem-contention-");
  if (!work) return title + paragraph("No pictures: " + work.error().message);
  for (const auto& [kernel, cursor] : kernels) {
    const std::string name = cursor == 1 ? kernel : fmt::format("{} x {}", kernel, cursor);
    const auto picture = picture_of(folder, {.choice = {.kernel = kernel, .cursor = cursor}});
    if (!picture) {
      text += paragraph(fmt::format("{}: {}", name, picture.error().message));
      continue;
    }
    const std::filesystem::path file = work.value().path() / "picture.svg";
    if (const auto drawn = draw(picture.value(), {"--svg=" + file.string()}, python); !drawn)
      return title + paragraph("No pictures: " + drawn.error().message);
    text += fmt::format(
        "<figure>{}<figcaption>{}{}</figcaption></figure>\n", svg_in(file), svg_text(name),
        picture.value().why_no_lines.empty() ? "" : svg_text(" - no lines: " + picture.value().why_no_lines));
  }
  return text;
}

/// Section 5.5 of the thesis; empty where no application was run.
std::string applications_of(const std::string& folder, const Campaign& campaign,
                            const std::vector<ApplicationRun>& runs, const std::string& python) {
  if (runs.empty()) return "";
  unsigned repetitions = 0;
  for (const ApplicationRun& run : runs) repetitions = std::max(repetitions, run.repetition + 1);
  std::string text =
      "<h2>Applications</h2>\n" +
      paragraph(application_title(repetitions) +
                ". The same matrices with each number of workers of a rank, so the messages are the same, too. Sent: "
                "bandwidth as the sending rank sees it, of messages that do not leave at once; delivered: until "
                "messages have arrived; both while at least "
                "one is under way, means of both ranks. Stalled: share of the kernels' cycles that waited, for memory "
                "above all.") +
      paragraph(
          "Conjugate gradients read their matrix once in each iteration, so that some workers fill the memory bus and "
          "messages become slow; a matrix "
          "product computes much with each tile. On the thesis's machine (figure 5.14) messages of the first lose up "
          "to 90 %, of the second 20 %.");
  const Json* const about = campaign.about.find("applications");
  if (about != nullptr && about->contains("notes"))
    for (const Json& note : (*about)["notes"]) text += paragraph("Note: " + plain(note) + ".");
  text += "<table>\n" + table_row(application_names(), "th");
  for (const ApplicationRow& row : summary_of(runs)) text += table_row(cells_of(row), "td");
  text += "</table>\n";
  const auto picture = picture_of_applications(folder);
  if (!picture) return text + paragraph(picture.error().message);
  const auto work = WorkFolder::create(std::filesystem::temp_directory_path(), "tandem-contention-");
  if (!work) return text + paragraph("No picture: " + work.error().message);
  const std::filesystem::path file = work.value().path() / "picture.svg";
  if (const auto drawn = draw(picture.value(), {"--svg=" + file.string()}, python); !drawn)
    return text + paragraph("No picture: " + drawn.error().message);
  return text + fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg_in(file),
                            svg_text("By number of workers of a rank: medians, and all runs as points. All but stalls "
                                     "are relative to the greatest median of each application."));
}

std::string parameters_of(const std::string& folder, const Campaign& campaign) {
  std::string text = "<h2>The models' parameters</h2>\n";
  const auto fitted = fit_campaign(campaign, folder, {});
  if (!fitted) return text + paragraph(fitted.error().message + ".");
  const MachineFit& fit = *fitted.value().fit;
  const bool has_remote = fit.remote_placement.has_value();
  text +=
      paragraph(fmt::format("Kernel {}, messages of {}; in brackets 95 % intervals. The soft model errs by {:.1f} % on "
                            "average, the thesis's by {:.1f} %.",
                            fitted.value().choice->kernel, short_bytes(fitted.value().choice->message_bytes),
                            fit.soft_errors.average(), fit.threshold_errors.average()));
  text += "<table>\n" + table_row(std::vector<std::string>{"soft model", "local", has_remote ? "remote" : ""}, "th");
  struct Row {
    const char* name;
    double scale;
    int digits;
    CurveFit::Quantity quantity;
    double least = 0, most = std::numeric_limits<double>::max();
  };
  const Row rows[] = {
      {"what one core takes alone (B_comp_seq), GB/s", 1e-3, 2,
       [](const SoftParameters& p) { return p.bus.b_comp_seq_mb_s; }},
      {"what the network takes alone (B_comm_seq), GB/s", 1e-3, 2,
       [](const SoftParameters& p) { return p.bus.b_comm_seq_mb_s; }},
      {"the most that the bus carries with the network (T_par_max), GB/s", 1e-3, 2,
       [](const SoftParameters& p) { return p.bus.t_par_max_mb_s; }},
      {"the most without it (T_seq_max), GB/s", 1e-3, 2, [](const SoftParameters& p) { return p.bus.t_seq_max_mb_s; }},
      {"the share of its bandwidth that the network keeps (alpha)", 1, 3,
       [](const SoftParameters& p) { return p.bus.alpha; }, 0, 1},
      {"softness", 1, 3, [](const SoftParameters& p) { return p.softness; }, 0, 0.5},
  };
  for (const Row& row : rows) {
    const auto cell = [&](const CurveFit& curve) {
      const Interval interval = within(curve.interval(row.quantity), row.least, row.most);
      return with_interval(row.quantity(curve.parameters()) * row.scale,
                           {interval.low * row.scale, interval.high * row.scale}, row.digits);
    };
    text += table_row(std::vector<std::string>{row.name, cell(fit.soft_local), has_remote ? cell(fit.soft_remote) : ""},
                      "td");
  }
  return text + "</table>\n";
}

std::string words() {
  return "<h2>What this means</h2>\n" +
         paragraph(
             "Cores that compute and the network that transfers use the same memory. While both together ask for less "
             "than its bus carries, neither "
             "notices the other. When the bus is full, cores have what they ask for nearly in full, and the network "
             "falls to the share that it "
             "is sure of: large messages become several times slower, and what waits for them waits longer.") +
         paragraph(
             "Kernels that compute much with each number that they load (primes, triad with a high cursor) leave the "
             "bus to the network. So: larger tiles "
             "that stay in caches; fewer cores for memory-bound work while messages are urgent; data of kernels and "
             "messages on different NUMA "
             "nodes. Programs limit memory-bound work by themselves once tandem contention fit --install has stored "
             "the model of their host. tandem "
             "trace summary says how much longer kernels and messages of a run took beside each other.") +
         paragraph(
             "The method and both models: P. Swartvagher, On the Interactions between HPC Task-based Runtime Systems "
             "and Communication Libraries, 2022, "
             "chapters 5 and 6.",
             true);
}

}  // namespace

base::Result<std::string> page_of(const std::string& folder, const std::string& python) {
  const auto campaign = read_campaign(folder);
  if (!campaign) return campaign.error();
  const auto runs = read_applications(folder);
  if (!runs) return runs.error();
  const std::string title = "Memory contention: " + std::filesystem::path(folder).lexically_normal().string();
  return head + fmt::format("<title>{0}</title></head><body>\n<h1>{0}</h1>\n", svg_text(title)) +
         origin_of(campaign.value()) + comparison_of(campaign.value()) + pictures_of(folder, campaign.value(), python) +
         parameters_of(folder, campaign.value()) + applications_of(folder, campaign.value(), runs.value(), python) +
         frequencies_of(campaign.value()) + words() + paragraph(fmt::format("Written by Tandem {}.", version), true) +
         "</body></html>\n";
}

}  // namespace tandem::tools::contention
