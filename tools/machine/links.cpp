// tools/machine/links.cpp: measures links of this machine and messages of a job, and prints what is known of them.
#include "tools/machine/links.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tandem/api/machine_option.hpp"
#include "tandem/api/program_world.hpp"
#include "tandem/api/rank_cores.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/short_time.hpp"
#include "tandem/base/units.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/runtime/machine/machine_file.hpp"
#include "tools/counted.hpp"
#include "tools/machine/network_meter.hpp"
#include "tools/standard_output.hpp"

namespace tandem::tools {
namespace {

using runtime::LinkCurves;
using runtime::MachineLink;
using runtime::MachineNetwork;
using runtime::MessageTimes;

/// A progress line of a terminal, cleared at the end.
class ProgressLine {
 public:
  ~ProgressLine() { write(""); }
  void write(const std::string& text) {
    if (!is_shown_) return;
    print_note("\r{:<{}}\r{}", "", width_, text);
    std::fflush(stderr);
    width_ = text.size();
  }

 private:
  const bool is_shown_ = ::isatty(STDERR_FILENO) != 0;
  std::size_t width_ = 0;
};

std::string budget_text(const runtime::MachineNode& node) {
  return node.budget == 0 ? "no limit" : readable_bytes(node.budget);
}

/// A rate under load, and its share of the rate of the link alone.
std::string under_load(const MachineLink& link, const std::optional<double>& rate) {
  return rate ? fmt::format("{:>10.3g}  {:>5.0f} %", *rate, 100 * *rate / link.bytes_per_ns)
              : fmt::format("{:>10}  {:>7}", "-", "-");
}

/// `with_messages`: adds a column for the rate beside messages.
std::string link_text(const MachineLink& link, bool with_messages) {
  const std::string latency = base::short_time(static_cast<double>(link.latency_ns));
  const std::string beside =
      with_messages ? fmt::format("  {:>5}{}", "", under_load(link, link.beside_messages_bytes_per_ns)) : std::string();
  return fmt::format("{:>4} -> {:<3}  {:>8.3g}  {:>9}  {}{}  {}\n", link.from, link.to, link.bytes_per_ns, latency,
                     under_load(link, link.loaded_bytes_per_ns), beside, runtime::word_of(link.source));
}

std::optional<double> alone(const LinkCurves& curves, std::size_t bytes) {
  return LinkCurves::rate(curves.times.alone, bytes);
}
std::optional<double> at_once(const LinkCurves& curves, std::size_t bytes) {
  return LinkCurves::rate(curves.times.loaded, bytes);
}
std::optional<double> beside_messages(const LinkCurves& curves, std::size_t bytes) {
  return LinkCurves::rate(curves.beside_messages, bytes);
}
std::optional<double> ratio(const LinkCurves& curves, std::size_t bytes) {
  const auto free = alone(curves, bytes), full = at_once(curves, bytes);
  return free && full ? std::optional(*full / *free) : std::nullopt;
}

using Figure = std::function<std::optional<double>(const LinkCurves& curves, std::size_t bytes)>;

/// A table with a row for each link and a column for each size.
std::string size_table(std::string_view title, const LinkView& view, const Figure& figure) {
  std::string text = fmt::format("\n{}\n{:>4}    {:<3}", title, "from", "to");
  for (const std::size_t bytes : view.sizes)
    text += fmt::format("  {:>8}", base::format_bytes(static_cast<std::int64_t>(bytes)));
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

std::string network_text(const MachineNetwork& network) {
  const auto us = [](const std::optional<double>& ns) {
    return ns ? fmt::format("{:>10.4g}", *ns / 1e3) : fmt::format("{:>10}", "-");
  };
  std::string text = fmt::format("\nmessages over {} ({})\n{:>8}  {:>10}  {:>10}  {:>13}  {:>10}  {:>13}\n",
                                 network.transport, runtime::word_of(network.source), "bytes", "alone, us", "GB/s",
                                 "both ways, us", "loaded, us", "all pairs, us");
  for (const MessageTimes& one : network.times)
    text += fmt::format("{:>8}  {}  {:>10.3g}  {:>3}{}  {}  {:>3}{}\n",
                        base::format_bytes(static_cast<std::int64_t>(one.bytes)), us(one.alone_ns),
                        static_cast<double>(one.bytes) / one.alone_ns, "", us(one.both_ways_ns), us(one.loaded_ns), "",
                        us(one.all_pairs_ns));
  return text;
}

/// The table of messages, or how to measure them.
std::string networks_text(const LinkView& view) {
  std::string text;
  for (const MachineNetwork& network : view.machine.networks) text += network_text(network);
  if (text.empty() && !view.curves.empty() && view.ranks == 1)
    text =
        "\nMessages are measured on several ranks: tandem run -n 2 tandem machine --links, or on the hosts of a job.\n";
  return text;
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json sizes_json(const LinkView& view, const MachineLink& link) {
  Json sizes = Json::array();
  const auto measured = std::ranges::find_if(
      view.curves, [&](const LinkCurves& curves) { return curves.from == link.from && curves.to == link.to; });
  if (measured != view.curves.end())
    for (const std::size_t bytes : view.sizes)
      sizes.push_back({{"bytes", bytes},
                       {"alone_gb_s", number_or_null(alone(*measured, bytes))},
                       {"loaded_gb_s", number_or_null(at_once(*measured, bytes))},
                       {"beside_messages_gb_s", number_or_null(beside_messages(*measured, bytes))},
                       {"ratio", number_or_null(ratio(*measured, bytes))}});
  return sizes;
}

Json us_or_null(const std::optional<double>& ns) { return ns ? Json(*ns / 1e3) : Json(nullptr); }

Json network_json(const MachineNetwork& network) {
  Json sizes = Json::array();
  for (const MessageTimes& one : network.times)
    sizes.push_back({{"bytes", one.bytes},
                     {"alone_us", one.alone_ns / 1e3},
                     {"both_ways_us", us_or_null(one.both_ways_ns)},
                     {"loaded_us", us_or_null(one.loaded_ns)},
                     {"all_pairs_us", us_or_null(one.all_pairs_ns)}});
  return {{"transport", network.transport},
          {"latency_us", static_cast<double>(network.latency_ns()) / 1e3},
          {"gb_s", network.bytes_per_ns()},
          {"source", runtime::word_of(network.source)},
          {"sizes", std::move(sizes)}};
}

/// A rank of this host and a rank of another host, where they exist; the latter last.
std::vector<comm::Rank> partners_of(const comm::Job& job) {
  std::vector<comm::Rank> partners;
  const auto is_here = [&](std::uint32_t rank) {
    return std::ranges::find(job.here, comm::Rank(rank)) != job.here.end();
  };
  for (const bool here : {true, false})
    for (std::uint32_t rank = 1; rank < job.size; ++rank)
      if (is_here(rank) == here) {
        partners.emplace_back(rank);
        break;
      }
  return partners;
}

class LinkFinder {
 public:
  LinkFinder(const base::Config& config, const base::Log& log, std::optional<comm::Job> job)
      : config_(config), job_(std::move(job)) {
    resources_.log =
        std::make_unique<base::Log>(log.enabled(base::LogLevel::info) ? base::LogLevel::info : base::LogLevel::warn);
    if (job_) resources_.ranks_here = job_->ranks_here;
    find_cores(config, job_ ? &*job_ : nullptr, resources_);
    world_.emplace(make_program_world(config, resources_));
    options_ = link_curve_options(*resources_.topology);
  }

  void measure(LinkView& view) {
    if (job_ && job_->rank != comm::Rank(0)) return serve();
    ProgressLine line;
    options_.progress = [&](unsigned step, unsigned steps, std::string_view what) {
      line.write(fmt::format("links {}/{}: {}", step + 1, steps, what));
    };
    runtime::LinkMeter links(*world_, options_);
    links.measure();
    if (job_) measure_messages(links, line);
    view.curves = links.curves();
    view.sizes = options_.sizes;
    runtime::take_links(world_->machine, view.curves);
  }

  const runtime::Machine& machine() const noexcept { return world_->machine; }

 private:
  std::unique_ptr<comm::Endpoint> open() {
    auto endpoint = comm::Endpoint::open(std::move(*job_), comm::comm_options(config_), *resources_.log);
    if (!endpoint.ok()) throw StartError(endpoint.error().message);
    return std::move(endpoint).value();
  }

  void measure_messages(runtime::LinkMeter& links, ProgressLine& line) {
    const std::vector<comm::Rank> partners = partners_of(*job_);
    NetworkMeterOptions options{.here = job_->here};
    const auto endpoint = open();
    options.progress = [&](unsigned step, unsigned steps, std::string_view what) {
      line.write(fmt::format("messages {}/{}: {}", step + 1, steps, what));
    };
    auto networks = measure_networks(*endpoint, partners, links, *world_->clock, options);
    if (!networks.ok()) throw StartError(networks.error().message);
    for (MachineNetwork& network : networks.value()) world_->machine.set_network(std::move(network));
  }

  void serve() {
    const auto endpoint = open();
    std::optional<runtime::LinkMeter> links;
    const auto served = serve_network(*endpoint, [&]() -> runtime::LinkMeter& {
      if (!links) links.emplace(*world_, options_);
      return *links;
    });
    if (!served.ok()) throw StartError(served.error().message);
  }

  const base::Config& config_;
  std::optional<comm::Job> job_;
  WorldResources resources_;
  std::optional<runtime::World> world_;
  runtime::LinkCurveOptions options_;
};

}  // namespace

std::optional<comm::Job> find_job(const base::Config& config, base::Log& log) {
  if (config.get_string("ranks") == "alone") return {};
  auto job = comm::join_job({.environment = base::process_environment(),
                             .log = log,
                             .timeout_ns = config.get_duration_ns("comm.start_timeout")});
  if (!job.ok()) throw StartError(job.error().message);
  if (job.value().size == 1) return {};
  return std::move(job).value();
}

bool has_more_memories(const base::Config& config) {
  return config.get_int("opencl") != 0 || config.get_int("cuda") != 0 || config.get_bool("numa") ||
         config.get_bytes("memory") != 0;
}

LinkView find_links(const base::Config& config, const base::Log& log, bool measures, std::optional<comm::Job> job) {
  LinkView view;
  if (job) view.ranks = job->size;
  LinkFinder finder(config, log, std::move(job));
  if (measures) finder.measure(view);
  view.machine = finder.machine();
  return view;
}

std::string links_text(const LinkView& view) {
  const runtime::Machine& machine = view.machine;
  std::string text = "\nmemory  kind     data up to  name\n";
  for (std::size_t i = 0; i < machine.nodes.size(); ++i)
    text += fmt::format("{:>6}  {:<7}  {:<10}  {}\n", i, runtime::word_of(machine.nodes[i].kind),
                        budget_text(machine.nodes[i]), machine.nodes[i].name);
  if (machine.nodes.size() == 1)
    return text +
           "\nThere are no copies between memories. Name devices (--tandem.opencl=1, --tandem.cuda=1), or NUMA nodes "
           "(--tandem.numa=on).\n" +
           networks_text(view);
  if (machine.links.empty())
    return text +
           "\nThe links between them are not measured: --links does it now; programs whose scheduler looks ahead do it "
           "when they start.\n" +
           networks_text(view);
  const bool with_messages = std::ranges::any_of(
      machine.links, [](const MachineLink& link) { return link.beside_messages_bytes_per_ns.has_value(); });
  text += fmt::format("\nfrom    to       GB/s    latency  at once, GB/s     of it{}\n",
                      with_messages ? "  beside messages     of it" : "");
  for (const MachineLink& link : machine.links) text += link_text(link, with_messages);
  if (view.curves.empty()) return text + networks_text(view);
  text += size_table("GB/s of copies of a size, each link alone", view, alone);
  text += size_table("GB/s, all of these links at once", view, at_once);
  text += size_table("at once / alone", view, ratio);
  if (with_messages) text += size_table("GB/s, each link alone beside messages", view, beside_messages);
  return text + networks_text(view);
}

void add_links_json(const LinkView& view, Json& machine) {
  Json memories = Json::array(), links = Json::array(), messages = Json::array();
  for (const runtime::MachineNode& node : view.machine.nodes)
    memories.push_back({{"kind", runtime::word_of(node.kind)},
                        {"name", node.name},
                        {"budget_bytes", node.budget == 0 ? Json(nullptr) : Json(node.budget)}});
  for (const MachineLink& link : view.machine.links)
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"gb_s", link.bytes_per_ns},
                     {"latency_us", static_cast<double>(link.latency_ns) / 1e3},
                     {"loaded_gb_s", number_or_null(link.loaded_bytes_per_ns)},
                     {"beside_messages_gb_s", number_or_null(link.beside_messages_bytes_per_ns)},
                     {"source", runtime::word_of(link.source)},
                     {"sizes", sizes_json(view, link)}});
  machine["memories"] = std::move(memories);
  machine["links"] = std::move(links);
  for (const MachineNetwork& network : view.machine.networks) messages.push_back(network_json(network));
  machine["messages"] = std::move(messages);
}

}  // namespace tandem::tools
