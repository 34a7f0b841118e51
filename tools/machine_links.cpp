// tools/machine_links.cpp: measures links of this machine, and prints what is known of them.
#include "tools/machine_links.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tandem/api/program_world.hpp"
#include "tandem/api/rank_cores.hpp"
#include "tandem/base/short_time.hpp"
#include "tandem/base/units.hpp"
#include "tandem/runtime/machine/machine_file.hpp"
#include "tools/counted.hpp"

namespace tandem::tools {
namespace {

using runtime::LinkCurves;
using runtime::MachineLink;

/// A line of a terminal, which is empty at the end.
class ProgressLine {
 public:
  ~ProgressLine() { write(""); }
  void write(const std::string& text) {
    if (!is_shown_) return;
    fmt::print(stderr, "\r{:<{}}\r{}", "", width_, text);
    std::fflush(stderr);
    width_ = text.size();
  }

 private:
  const bool is_shown_ = ::isatty(STDERR_FILENO) != 0;
  std::size_t width_ = 0;
};

std::string budget_text(const runtime::MachineNode& node) { return node.budget == 0 ? "no limit" : readable_bytes(node.budget); }

std::string link_text(const MachineLink& link) {
  const std::string loaded = link.loaded_bytes_per_ns
                                 ? fmt::format("{:>10.3g}  {:>5.0f} %", *link.loaded_bytes_per_ns, 100 * *link.loaded_bytes_per_ns / link.bytes_per_ns)
                                 : fmt::format("{:>10}  {:>7}", "-", "-");
  const std::string latency = base::short_time(static_cast<double>(link.latency_ns));
  return fmt::format("{:>4} -> {:<3}  {:>8.3g}  {:>9}  {}  {}\n", link.from, link.to, link.bytes_per_ns, latency, loaded, runtime::word_of(link.source));
}

std::optional<double> alone(const LinkCurves& curves, std::size_t bytes) { return LinkCurves::rate(curves.times.alone, bytes); }
std::optional<double> at_once(const LinkCurves& curves, std::size_t bytes) { return LinkCurves::rate(curves.times.loaded, bytes); }
std::optional<double> ratio(const LinkCurves& curves, std::size_t bytes) {
  const auto free = alone(curves, bytes), full = at_once(curves, bytes);
  return free && full ? std::optional(*full / *free) : std::nullopt;
}

using Figure = std::function<std::optional<double>(const LinkCurves& curves, std::size_t bytes)>;

/// A row for each link, a column for each size.
std::string size_table(std::string_view title, const LinkView& view, const Figure& figure) {
  std::string text = fmt::format("\n{}\n{:>4}    {:<3}", title, "from", "to");
  for (const std::size_t bytes : view.sizes) text += fmt::format("  {:>8}", base::format_bytes(static_cast<std::int64_t>(bytes)));
  text += '\n';
  for (const LinkCurves& curves : view.curves) {
    text += fmt::format("{:>4} -> {:<3}", curves.from, curves.to);
    for (const std::size_t bytes : view.sizes) {
      const auto value = figure(curves, bytes);
      text += value ? fmt::format("  {:>8.3g}", *value) : fmt::format("  {:>8}", "-");
    }
    text += '\n';
  }
  return text;
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json sizes_json(const LinkView& view, const MachineLink& link) {
  Json sizes = Json::array();
  const auto measured = std::ranges::find_if(view.curves, [&](const LinkCurves& curves) { return curves.from == link.from && curves.to == link.to; });
  if (measured != view.curves.end())
    for (const std::size_t bytes : view.sizes)
      sizes.push_back({{"bytes", bytes},
                       {"alone_gb_s", number_or_null(alone(*measured, bytes))},
                       {"loaded_gb_s", number_or_null(at_once(*measured, bytes))},
                       {"ratio", number_or_null(ratio(*measured, bytes))}});
  return sizes;
}

}  // namespace

bool has_more_memories(const base::Config& config) {
  return config.get_int("opencl") != 0 || config.get_int("cuda") != 0 || config.get_bool("numa") || config.get_bytes("memory") != 0;
}

LinkView find_links(const base::Config& config, const base::Log& log, bool measures) {
  WorldResources resources;
  resources.log = std::make_unique<base::Log>(log.enabled(base::LogLevel::info) ? base::LogLevel::info : base::LogLevel::warn);
  find_cores(config, nullptr, resources);
  runtime::World world = make_program_world(config, resources);
  LinkView view;
  if (measures) {
    ProgressLine line;
    runtime::LinkCurveOptions options;
    options.bind = [&](int core) { static_cast<void>(resources.topology->bind_this_thread(base::CoreId(static_cast<std::uint32_t>(core)))); };
    options.progress = [&](unsigned step, unsigned steps, std::string_view what) { line.write(fmt::format("links {}/{}: {}", step + 1, steps, what)); };
    view.curves = runtime::measure_link_curves(world, options);
    view.sizes = options.sizes;
    for (const LinkCurves& curves : view.curves)
      if (const auto link = curves.link()) world.machine.set_link(*link);
  }
  view.machine = world.machine;
  return view;
}

std::string links_text(const LinkView& view) {
  const runtime::Machine& machine = view.machine;
  std::string text = "\nmemory  kind     data up to  name\n";
  for (std::size_t i = 0; i < machine.nodes.size(); ++i)
    text += fmt::format("{:>6}  {:<7}  {:<10}  {}\n", i, runtime::word_of(machine.nodes[i].kind), budget_text(machine.nodes[i]), machine.nodes[i].name);
  if (machine.nodes.size() == 1)
    return text + "\nThere are no copies between memories. Name devices (--tandem.opencl=1, --tandem.cuda=1), or NUMA nodes (--tandem.numa=on).\n";
  if (machine.links.empty())
    return text + "\nThe links between them are not measured: --links does it now; programs whose scheduler looks ahead do it when they start.\n";
  text += "\nfrom    to       GB/s    latency  at once, GB/s     of it\n";
  for (const MachineLink& link : machine.links) text += link_text(link);
  if (view.curves.empty()) return text;
  text += size_table("GB/s of copies of a size, each link alone", view, alone);
  text += size_table("GB/s, all of these links at once", view, at_once);
  return text + size_table("at once / alone", view, ratio);
}

void add_links_json(const LinkView& view, Json& machine) {
  Json memories = Json::array(), links = Json::array();
  for (const runtime::MachineNode& node : view.machine.nodes)
    memories.push_back({{"kind", runtime::word_of(node.kind)}, {"name", node.name}, {"budget_bytes", node.budget == 0 ? Json(nullptr) : Json(node.budget)}});
  for (const MachineLink& link : view.machine.links)
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"gb_s", link.bytes_per_ns},
                     {"latency_us", static_cast<double>(link.latency_ns) / 1e3},
                     {"loaded_gb_s", number_or_null(link.loaded_bytes_per_ns)},
                     {"source", runtime::word_of(link.source)},
                     {"sizes", sizes_json(view, link)}});
  machine["memories"] = std::move(memories);
  machine["links"] = std::move(links);
}

}  // namespace tandem::tools
