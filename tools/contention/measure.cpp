// tools/contention/measure.cpp: `tandem contention measure`: the campaign of chapters 5 and 6 of the thesis on two
// ranks.
#include "tools/contention/measure.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <map>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tandem/base/affinity.hpp"
#include "tandem/base/replace_file.hpp"
#include "tandem/base/units.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tools/contention/application_job.hpp"
#include "tools/contention/applications.hpp"
#include "tools/contention/campaign_plan.hpp"
#include "tools/contention/csv.hpp"
#include "tools/contention/frequencies.hpp"
#include "tools/contention/partner.hpp"
#include "tools/contention/summary.hpp"
#include "tools/contention/team.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/standard_output.hpp"
#include "tools/trace/command.hpp"
#include "tools/version.hpp"

namespace tandem::tools::contention {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

struct MeasureOptions {
  std::string folder;
  PlanOptions plan;
  ApplicationOptions applications;
  std::vector<std::string> messages{"64MiB"};
  std::string array = "32MiB";
  double seconds = 0.5;
  bool shortened = false;
  std::optional<std::int64_t> communication_core;
  std::optional<double> core_mhz, uncore_mhz;
  std::string turbo;  ///< on, off, or empty: unchanged
  std::string buffers = "recycled";  ///< or fresh
  bool json = false;

  FrequencyWish frequencies() const {
    return {.core_mhz = core_mhz,
            .uncore_mhz = uncore_mhz,
            .turbo = turbo.empty() ? std::nullopt : std::optional(turbo == "on")};
  }
};

/// Set by SIGINT and SIGTERM while frequencies are set, so that they are restored.
volatile std::sig_atomic_t is_interrupted = 0;
constexpr const char* interrupted =
    "interrupted: the same command goes on with the campaign; frequencies are as they were before";

Result<void> read_sizes(MeasureOptions& options) {
  options.plan.message_bytes.clear();
  for (const std::string& text : options.messages) {
    const auto bytes = base::parse_bytes(text);
    if (!bytes) return Error{bytes.error().code, "--messages: " + bytes.error().message};
    if (bytes.value() < 1 || bytes.value() > std::int64_t{1} << 34)
      return Error{ErrorCode::invalid_argument, "--messages are from 1 byte to 16 GiB"};
    options.plan.message_bytes.push_back(static_cast<std::uint64_t>(bytes.value()));
  }
  const auto array = base::parse_bytes(options.array);
  if (!array) return Error{array.error().code, "--array: " + array.error().message};
  if (array.value() < 64 || array.value() > std::int64_t{1} << 36)
    return Error{ErrorCode::invalid_argument, "--array is from 64 bytes to 64 GiB"};
  return {};
}

/// Members that must be equal when a campaign is continued. Repetitions may be added.
Json protocol_of(const MeasureOptions& options, const Layout& layout, std::string_view transport, bool one_host) {
  std::vector<unsigned> computing;
  for (const base::CoreId core : layout.computing) computing.push_back(core.value());
  Json protocol{{"kernels", Json(std::vector<std::string>(options.plan.kernels))},
          {"cursors", Json(options.plan.cursors)},
          {"messages", Json(options.messages)},
          {"array", options.array},
          {"seconds", options.seconds},
          {"cores", Json(options.plan.cores)},
          {"shortened", options.shortened},
          {"placements", options.plan.samples_only ? "samples" : "all"},
          {"transport", std::string(transport)},
          {"one_host", one_host},
          {"computing_cores", Json(computing)},
          {"communicating_core", layout.communicating.value()}};
  if (options.core_mhz) protocol["core_mhz"] = *options.core_mhz;
  if (options.uncore_mhz) protocol["uncore_mhz"] = *options.uncore_mhz;
  if (!options.turbo.empty()) protocol["turbo"] = options.turbo;
  if (options.buffers != "recycled") protocol["buffers"] = options.buffers;
  return protocol;
}

/// Members that must be equal when applications are continued, and the notes about them.
Json about_applications(const ApplicationOptions& options, const std::vector<unsigned>& workers,
                        const std::vector<std::string>& notes) {
  Json protocol{{"applications", Json(options.applications)}, {"workers", Json(workers)}, {"tile", options.tile}};
  for (const std::string& application : options.applications)
    protocol[application + "_order"] = options.order(application);
  if (std::ranges::find(options.applications, "cg") != options.applications.end())
    protocol["cg_iterations"] = options.cg_iterations;
  return {{"protocol", std::move(protocol)}, {"notes", Json(notes)}, {"runs", applications_file}};
}

const RowFormat<Measurement> sample_format{.header = header_line, .line = line_of, .read = read_samples};

/// The file of samples, to which each measurement is added when it is made, and that of frequencies.
class Results {
 public:
  Results(Results&& other) noexcept
      : samples_(std::move(other.samples_)), frequencies_(std::exchange(other.frequencies_, nullptr)) {}
  Results& operator=(Results&&) = delete;
  ~Results() {
    if (frequencies_ != nullptr) std::fclose(frequencies_);
  }

  /// Makes the folder, or continues an existing one. Its description of applications stays if `about` has none, and is
  /// added to it. Errors: io; invalid_argument, where the folder contains another campaign.
  static Result<Results> open(const fs::path& folder, Json& about) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return Error{ErrorCode::io, fmt::format("{}: cannot be made: {}", folder.string(), error.message())};
    const fs::path samples = folder / samples_file, campaign = folder / campaign_file;
    if (fs::exists(campaign)) {
      std::ifstream stream(campaign, std::ios::binary);
      const auto before = Json::parse(std::string{std::istreambuf_iterator<char>(stream), {}});
      const Json* protocol = before ? before->find("protocol") : nullptr;
      if (protocol == nullptr || protocol->dump() != about["protocol"].dump())
        return another(folder, "campaign", protocol != nullptr ? protocol->dump() : "its campaign.json is damaged");
      if (const Json* const applications = before->find("applications")) {
        const Json* const former = applications->find("protocol");
        if (!about.contains("applications")) about["applications"] = *applications;
        else if (former == nullptr || former->dump() != about["applications"]["protocol"].dump())
          return another(folder, "campaign of applications",
                         former != nullptr ? former->dump() : "its campaign.json is damaged");
      }
    } else if (fs::exists(samples)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} holds samples of an unknown campaign: choose another folder", folder.string())};
    }
    auto file = RowFile<Measurement>::open(samples, sample_format);
    if (!file) return file.error();
    Results results(std::move(file).value());
    if (const auto written = base::replace_file(campaign, about.dump(2) + "\n"); !written) return written.error();
    const fs::path frequencies = folder / frequencies_file;
    results.frequencies_ = std::fopen(frequencies.c_str(), "abe");
    if (results.frequencies_ == nullptr)
      return Error{ErrorCode::io, fmt::format("{}: cannot be written: {}", frequencies.string(), std::strerror(errno))};
    if (std::ftell(results.frequencies_) == 0) std::fputs("sample,seconds,core,mhz\n", results.frequencies_);
    return results;
  }

  bool has(const Measurement& m) const { return samples_.has(m); }
  Result<void> add(const Measurement& m) { return samples_.add(m); }
  /// Adds what was read during the last added measurement, of the cores with these numbers.
  Result<void> add(const std::vector<FrequencyReader::Reading>& readings, const std::vector<unsigned>& cores) {
    std::string text;
    for (const FrequencyReader::Reading& reading : readings) {
      const double seconds = static_cast<double>(reading.at_ns - readings.front().at_ns) / 1e9;
      for (std::size_t i = 0; i < cores.size(); ++i)
        if (reading.mhz[i] > 0)
          text += fmt::format("{},{:.3f},{},{:.0f}\n", all().size(), seconds, cores[i], reading.mhz[i]);
      if (reading.uncore_mhz)
        text += fmt::format("{},{:.3f},uncore,{:.0f}\n", all().size(), seconds, *reading.uncore_mhz);
    }
    if (std::fwrite(text.data(), 1, text.size(), frequencies_) != text.size() || std::fflush(frequencies_) != 0)
      return Error{ErrorCode::io, fmt::format("{} cannot be written: {}", frequencies_file, std::strerror(errno))};
    return {};
  }
  const std::vector<Measurement>& all() const noexcept { return samples_.rows(); }

 private:
  explicit Results(RowFile<Measurement> samples) : samples_(std::move(samples)) {}
  static Error another(const fs::path& folder, const char* what, const std::string& options) {
    return {ErrorCode::invalid_argument,
            fmt::format("{} holds another {}: choose another folder, or give the options of that one: {}",
                        folder.string(), what, options)};
  }
  RowFile<Measurement> samples_;
  std::FILE* frequencies_ = nullptr;
};

std::string values_of(const Measurement& m) {
  std::vector<std::string> words;
  if (m.computation_mb_s)
    words.push_back(fmt::format("computation {:.2f} GB/s", *m.computation_mb_s / 1e3));
  else if (m.iterations_per_s)
    words.push_back(fmt::format("computation {:.1f} iterations/s", *m.iterations_per_s));
  if (m.communication_mb_s) words.push_back(fmt::format("communication {:.2f} GB/s", *m.communication_mb_s / 1e3));
  if (m.latency_us) words.push_back(fmt::format("latency {:.2f} us", *m.latency_us));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Makes the measurements of a plan on rank 0.
class Runner {
 public:
  Runner(const base::Topology& topology, const Layout& layout, const MeasureOptions& options, Partner& partner)
      : topology_(topology), layout_(layout), options_(options), partner_(partner), cores_(cores_of(layout)), reader_(pus_of(topology, cores_)) {}
  const FrequencyReader& reader() const noexcept { return reader_; }

  Result<void> run(const std::vector<Measurement>& plan, Results& results) {
    auto left =
        static_cast<std::size_t>(std::ranges::count_if(plan, [&](const Measurement& m) { return !results.has(m); }));
    if (left < plan.size())
      print_note("{} of {} are there already\n", counted(plan.size() - left, "measurement"), plan.size());
    std::size_t made = 0;
    const auto start = std::chrono::steady_clock::now();
    for (Measurement m : plan) {
      if (results.has(m)) continue;
      if (options_.shortened && is_past_peaks(results.all(), m, plan.back().cores)) {
        --left;
        continue;
      }
      if (is_interrupted != 0) return Error{ErrorCode::io, interrupted};
      FrequencyLog log(reader_, static_cast<std::int64_t>(1e9 * std::min(0.1, options_.seconds / 5)));
      if (const auto good = measure(m); !good) return good;
      const auto readings = log.finish();
      note_frequencies(readings, m);
      if (const auto good = results.add(m); !good) return good;
      if (const auto good = results.add(readings, cores_); !good) return good;
      ++made;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      print_note("[{}/{}] {}: {}; {:.0f} s left\n", made, left, title_of(m), values_of(m),
                 spent.count() / static_cast<double>(made) * static_cast<double>(left - made));
    }
    return {};
  }

 private:
  static std::string title_of(const Measurement& m) {
    if (m.step == "communication")
      return fmt::format("communication alone, {} on node {}", short_bytes(m.message_bytes), *m.communication_node);
    const std::string kernel = m.cursor == 1 ? m.kernel : fmt::format("{} x {}", m.kernel, m.cursor);
    const std::string cores = fmt::format("{} on {}, node {}", kernel, counted(m.cores, "core"), *m.computation_node);
    if (m.step == "computation") return cores + ", alone";
    return fmt::format("{}, with {} on node {}", cores, short_bytes(m.message_bytes), *m.communication_node);
  }

  /// The computing cores, in the order in which they join, and then the one that communicates.
  static std::vector<unsigned> cores_of(const Layout& layout) {
    std::vector<unsigned> cores;
    for (const base::CoreId core : layout.computing) cores.push_back(core.value());
    cores.push_back(layout.communicating.value());
    return cores;
  }
  static std::vector<unsigned> pus_of(const base::Topology& topology, const std::vector<unsigned>& cores) {
    std::vector<unsigned> pus;
    for (const unsigned core : cores) pus.push_back(topology.cores()[core].pus.front());
    return pus;
  }

  void note_frequencies(const std::vector<FrequencyReader::Reading>& readings, Measurement& m) const {
    std::vector<std::size_t> computing(m.cores);
    std::iota(computing.begin(), computing.end(), std::size_t{0});
    if (m.step != "communication") m.computing_mhz = typical_mhz(readings, computing);
    if (m.step != "computation") m.communicating_mhz = typical_mhz(readings, {cores_.size() - 1});
    m.uncore_mhz = typical_uncore_mhz(readings);
  }

  Result<void> measure(Measurement& m) {
    NetworkRate network;
    Result<void> outcome;
    const auto receive = [&] {
      if (auto made = message_memory(m); !made) {
        outcome = made.error();
      } else if (auto rate = partner_.receive(*messages_, fresh_memory(m), m.message_bytes, options_.seconds); !rate) {
        outcome = rate.error();
      } else {
        network = rate.value();
      }
    };
    if (m.step == "communication") {
      receive();
    } else {
      if (const auto good = gather(m); !good) return good;
      if (m.step == "both")
        if (const auto made = message_memory(m); !made) return made;  // before the cores begin
      const TeamRate rate = team_->run(m.cores, options_.seconds, [&] {
        if (m.step == "both")
          receive();
        else
          std::this_thread::sleep_for(std::chrono::duration<double>(options_.seconds));
      });
      m.iterations_per_s = rate.per_second;
      m.cpu_share = rate.cpu_share;
      const double bytes =
          static_cast<double>(bytes_of(team_->options().kernel, team_->options().array_bytes / sizeof(double)));
      if (bytes > 0) m.computation_mb_s = *m.iterations_per_s * bytes / 1e6;
    }
    m.communication_mb_s = network.mb_s;
    m.latency_us = network.latency_us;
    return outcome;
  }

  /// The node to which data is bound; empty if there is one placement.
  std::optional<std::size_t> place_of(std::optional<unsigned> node) const {
    return layout_.nodes > 1 ? std::optional<std::size_t>(node) : std::nullopt;
  }

  /// Makes the computing cores with their arrays, which stay for the next measurement.
  Result<void> gather(const Measurement& m) {
    const auto kind = std::tuple(m.kernel, m.cursor, m.computation_node);
    if (team_ && kind == team_kind_) return {};
    team_.reset();
    std::size_t most = 1;
    if (options_.plan.cores.empty()) most = layout_.cores_per_socket;
    for (const unsigned n : options_.plan.cores) most = std::max<std::size_t>(most, n);
    auto team = Team::create(
        topology_, {.cores = {layout_.computing.begin(), layout_.computing.begin() + static_cast<std::ptrdiff_t>(most)},
                    .numa_place = place_of(m.computation_node),
                    .array_bytes = static_cast<std::size_t>(base::parse_bytes(options_.array).value()),
                    .kernel = *kernel_named(m.kernel),
                    .cursor = m.cursor});
    if (!team) return team.error();
    team_.emplace(std::move(team).value());
    team_kind_ = kind;
    return {};
  }

  /// Makes memory for each message, if that is requested.
  Partner::MakeMemory fresh_memory(const Measurement& m) const {
    if (options_.buffers != "fresh") return {};
    return [this, place = place_of(m.communication_node)](std::size_t bytes) {
      return NodeMemory::create(topology_, bytes, place);
    };
  }

  Result<void> message_memory(const Measurement& m) {
    const std::size_t bytes = std::max<std::size_t>(2 * m.message_bytes, 4096);  // two halves, for round trips
    const auto kind = std::tuple(m.communication_node, bytes);
    if (messages_ && kind == messages_kind_) return {};
    messages_.reset();
    auto made = NodeMemory::create(topology_, bytes, place_of(m.communication_node));
    if (!made) return made.error();
    messages_.emplace(std::move(made).value());
    messages_kind_ = kind;
    return {};
  }

  const base::Topology& topology_;
  const Layout& layout_;
  const MeasureOptions& options_;
  Partner& partner_;
  const std::vector<unsigned> cores_;  ///< whose frequencies are read
  const FrequencyReader reader_;
  std::optional<Team> team_;
  std::tuple<std::string, unsigned, std::optional<unsigned>> team_kind_;
  std::optional<NodeMemory> messages_;
  std::tuple<std::optional<unsigned>, std::size_t> messages_kind_;
};

/// Prints a table; `format` is that of a line.
template <class Names, class Row>
void print_rows(const std::string& title, const char* format, const Names& names, const std::vector<Row>& rows) {
  fmt::print("\n{}\n", title);
  const auto line = [&](const auto&... cells) { fmt::print(fmt::runtime(format), cells...); };
  std::apply(line, names);
  for (const Row& row : rows) std::apply(line, cells_of(row));
}

/// A quantity's name, its measured values, and their unit.
using Quantities = std::initializer_list<std::tuple<const char*, const Cell&, const char*>>;

void add_results(Json& results, const Json& params, Quantities quantities) {
  for (const auto& [name, cell, unit] : quantities)
    if (!cell.values.empty())
      results.push_back(result_json({.name = name, .params = params, .unit = unit, .samples = cell.values}));
}

Json applications_json(const std::vector<ApplicationRow>& rows, const ApplicationOptions& options) {
  Json results = Json::array();
  for (const ApplicationRow& row : rows) {
    const Json params{{"application", row.application},
                      {"workers", row.workers},
                      {"n", options.order(row.application)},
                      {"nb", options.tile}};
    add_results(results, params,
                {{"application_time", row.seconds, "s"},
                 {"application_rate", row.gflop_s, "GFlop/s"},
                 {"application_iterations", row.iterations_per_s, "iterations/s"},
                 {"send_bandwidth", row.send_mb_s, "MB/s"},
                 {"delivered_bandwidth", row.delivered_mb_s, "MB/s"},
                 {"stalled", row.stalled, "share"}});
  }
  return results;
}

Json kernels_json(const std::vector<SummaryRow>& rows) {
  Json results = Json::array();
  for (const SummaryRow& row : rows) {
    const Json params{{"kernel", row.of.kernel},
                      {"cursor", row.of.cursor},
                      {"cores", row.of.cores},
                      {"computation_node", *row.of.computation_node},
                      {"communication_node", *row.of.communication_node},
                      {"message_bytes", Json::exact(row.of.message_bytes)}};
    const char* unit = row.in_iterations ? "iterations/s" : "MB/s";
    const char* network_unit = row.is_latency ? "us" : "MB/s";
    add_results(results, params,
                {{"computation_alone", row.computation_alone, unit},
                 {"computation", row.computation, unit},
                 {"communication_alone", row.communication_alone, network_unit},
                 {"communication", row.communication, network_unit}});
  }
  return results;
}

/// The results of the campaign so far, and the settings while it goes on.
struct Kernels {
  Json about;
  std::vector<Measurement> all;
  std::optional<FrequencySetting> setting;
};


/// Cores of a rank, which may share a host's cores with the other one.
unsigned cores_of_rank(const base::Topology& topology, bool one_host) {
  const auto cores = static_cast<unsigned>(topology.cores().size());
  return std::max(1U, one_host ? cores / 2 : cores);
}

/// Rank 0: measures kernels. The folder then contains this campaign, or is made.
Result<Kernels> measure_kernels(comm::Endpoint& endpoint, const base::Topology& topology,
                                const MeasureOptions& options) {
  const bool one_host = endpoint.same_host(comm::Rank{0}, comm::Rank{1});
  auto layout =
      lay_out(topology, one_host, options.communication_core ? static_cast<int>(*options.communication_core) : -1);
  if (!layout) return layout.error();
  keep_if_bound(layout.value(), [&](unsigned node) -> Result<void> {
    const auto made = NodeMemory::create(topology, 4096, node);
    return made ? Result<void>() : made.error();
  });
  const auto steps = plan(layout.value(), options.plan);
  if (!steps) return steps.error();
  if (!has_non_temporal_stores() && std::ranges::find(options.plan.kernels, "memset") != options.plan.kernels.end())
    layout.value().notes.push_back(
        "no non-temporal stores on this processor: what memset writes goes through the caches");
  if (const auto bound = topology.bind_this_thread(layout.value().communicating); !bound)
    layout.value().notes.push_back("threads cannot be bound to cores (" + bound.error().message + "): they move");
  Partner partner(endpoint);
  Runner runner(topology, layout.value(), options, partner);
  if (const std::string missing = runner.reader().missing(); !missing.empty()) layout.value().notes.push_back(missing);
  std::optional<FrequencySetting> setting;
  if (const FrequencyWish wish = options.frequencies(); wish.any()) {
    auto set = FrequencySetting::apply(wish, runner.reader().pus());
    if (!set) return set.error();
    setting.emplace(std::move(set).value());
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { is_interrupted = 1; });
  }
  Json about = report("contention", topology);
  about["nodes_per_socket"] = layout.value().nodes_per_socket;
  about["cores_per_socket"] = layout.value().cores_per_socket;
  about["protocol"] = protocol_of(options, layout.value(), endpoint.transport_to(comm::Rank{1}), one_host);
  about["notes"] = Json(layout.value().notes);
  about["samples"] = samples_file;
  std::vector<std::string> notes = layout.value().notes;
  if (!options.applications.applications.empty()) {
    const unsigned cores = cores_of_rank(topology, one_host);
    const std::vector<unsigned> workers = worker_counts(options.applications, cores);
    const auto more = notes_of_applications(workers, cores, one_host, why_no_counters());
    about["applications"] = about_applications(options.applications, workers, more);
    notes.insert(notes.end(), more.begin(), more.end());
  }
  auto results = Results::open(options.folder, about);
  if (!results) return results.error();

  for (const std::string& note : notes) print_note("note: {}\n", note);
  if (const auto good = runner.run(steps.value(), results.value()); !good) return good.error();
  if (const auto others = other_programs(results.value().all())) print_note("note: {}\n", *others);
  return Kernels{.about = std::move(about), .all = results.value().all(), .setting = std::move(setting)};
}

std::string values_of(const ApplicationRun& run) {
  std::string text = fmt::format("{:.3f} s, {:.2f} GFlop/s", run.seconds, run.gflop_s);
  if (run.send_mb_s) text += fmt::format(", sent at {:.2f} GB/s", *run.send_mb_s / 1e3);
  if (run.delivered_mb_s) text += fmt::format(", delivered at {:.2f} GB/s", *run.delivered_mb_s / 1e3);
  if (run.stalled) text += fmt::format(", stalled {:.0f} %", 100 * *run.stalled);
  return text;
}

/// Rank 0: runs applications, after the kernels.
Result<std::vector<ApplicationRun>> measure_applications(const ToolContext& context, const MeasureOptions& options,
                                                         const std::vector<unsigned>& workers) {
  auto results = RowFile<ApplicationRun>::open(fs::path(options.folder) / applications_file, application_format);
  if (!results) return results.error();
  const auto plan = plan_applications(options.applications, workers, options.plan.repetitions);
  const auto there = static_cast<std::size_t>(
      std::ranges::count_if(plan, [&](const ApplicationRun& run) { return results.value().has(run); }));
  if (there > 0) print_note("{} of {} are there already\n", counted(there, "run"), plan.size());
  std::size_t made = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto tell = [&](const ApplicationRun& run, std::size_t left) -> Result<void> {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    ++made;
    print_note("[{}/{}] {} on {} of each rank: {}; {:.0f} s left\n", made, made + left, run.application,
               counted(run.workers, "worker"), values_of(run),
               spent.count() / static_cast<double>(made) * static_cast<double>(left));
    if (is_interrupted != 0) return Error{ErrorCode::io, interrupted};
    return {};
  };
  if (const auto good = run_applications(context, options.applications, plan, results.value(), tell); !good)
    return good.error();
  return results.value().rows();
}

/// Rank 0: prints the results when all is measured.
void print_results(const Kernels& kernels, const std::vector<ApplicationRun>& runs, const MeasureOptions& options) {
  const auto rows = summary_of(kernels.all);
  const auto applications = summary_of(runs);
  if (options.json) {
    Json about = kernels.about;
    about["results"] = kernels_json(rows);
    for (const Json& result : applications_json(applications, options.applications)) about["results"].push_back(result);
    return print(about);
  }
  const std::size_t repetitions = options.plan.repetitions;
  print_rows(summary_title(repetitions), "{:<12}{:>6}{:>7}{:>10}  {:<26}{:<32}{:<24}{}\n", summary_names(), rows);
  if (!applications.empty())
    print_rows(application_title(repetitions), "{:<12}{:>8}  {:<24}{:<28}{:<24}{:<24}{}\n", application_names(),
               applications);
  fmt::print("results: {}; next: tandem contention page {}, tandem contention fit {}\n", options.folder, options.folder,
             options.folder);
}

/// Becomes `tandem run` of two ranks of this command line.
Result<void> start_both(const ToolContext& context) {
  std::error_code error;
  const std::string self = fs::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> words{self, "run", "-n", "2", "--no-label", "--", self};
  words.insert(words.end(), context.arguments.begin() + 1, context.arguments.end());
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(self.c_str(), raw.data());
  return Error{ErrorCode::io, fmt::format("{} cannot be started: {}", self, std::strerror(errno))};
}

Result<void> run(MeasureOptions& options, ToolContext& context) {
  if (const auto good = read_sizes(options); !good) return good;
  const auto topology = base::Topology::discover();
  if (!topology) return topology.error();
  if (const auto good = check(options.applications, static_cast<unsigned>(topology.value().cores().size())); !good)
    return good;
  auto job = comm::join_job({.environment = base::process_environment(),
                             .log = context.log,
                             .timeout_ns = context.config.get_duration_ns("comm.start_timeout")});
  if (!job) return job.error();
  if (job.value().size == 1) return start_both(context);
  if (job.value().size != 2)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("contention measure works with 2 ranks, this job has {}", job.value().size)};
  const bool has_applications = !options.applications.applications.empty();
  if (has_applications && job.value().source != "tandem run")  // other directories serve one membership of a process
    return Error{ErrorCode::invalid_argument,
                 "contention measure: --applications needs ranks that tandem run has started, since each run joins the "
                 "job anew: tandem run -n 2 --host a,b "
                 "tandem contention measure ..."};
  const std::vector<unsigned> pus = base::affinity_of_this_thread();
  comm::EndpointOptions endpoint_options = comm::comm_options(context.config);
  endpoint_options.progress = "inline";  // the thread that waits communicates; no other does
  auto opened = comm::Endpoint::open(std::move(job).value(), endpoint_options, context.log);
  if (!opened) return opened.error();
  std::unique_ptr<comm::Endpoint> endpoint = std::move(opened).value();
  const auto leave = [&] {  // so that the next endpoint of this rank can join the job
    endpoint->close();
    endpoint.reset();
    (void)base::set_affinity_of_this_thread(pus);
  };
  const bool one_host = endpoint->same_host(comm::Rank{0}, comm::Rank{1});
  if (endpoint->rank().value() != 0) {
    const auto layout =
        lay_out(topology.value(), one_host,
                one_host && options.communication_core ? static_cast<int>(*options.communication_core) : -1);
    // rank 0 says whether threads can be bound
    if (layout) (void)topology.value().bind_this_thread(layout.value().sending);
    const auto applications_follow = serve(*endpoint, topology.value());
    leave();
    if (!applications_follow) return applications_follow.error();
    return applications_follow.value() ? serve_applications(context, options.applications) : Result<void>();
  }
  const auto kernels = measure_kernels(*endpoint, topology.value(), options);
  Partner(*endpoint).dismiss(kernels.ok() && has_applications);
  leave();
  if (!kernels) return kernels.error();
  std::vector<ApplicationRun> runs;
  if (has_applications) {
    auto made = measure_applications(context, options,
                                     worker_counts(options.applications, cores_of_rank(topology.value(), one_host)));
    if (!made) return made.error();
    runs = std::move(made).value();
  }
  print_results(kernels.value(), runs, options);
  return {};
}

}  // namespace

void add_measure(Subcommand contention, ToolContext& context) {
  Subcommand command =
      contention.add_subcommand("measure", "Measure computation and communication alone and together, on two ranks");
  const auto options = std::make_shared<MeasureOptions>();
  command.add_option("folder", options->folder, "Folder of the results; a campaign that was interrupted there goes on")
      .required();
  command
      .add_option("--kernels", options->plan.kernels,
                  "Kernels of the cores, separated by commas: primes, memset, copy, triad, fma")
      .list()
      .one_of({"primes", "memset", "copy", "triad", "fma"})
      .show_default();
  command.add_option("--cursors", options->plan.cursors, "How often triad computes each element, separated by commas")
      .list()
      .positive()
      .show_default();
  command.add_option("--messages", options->messages, "Sizes of messages, separated by commas; up to 64 bytes: latency")
      .list()
      .show_default();
  command
      .add_option("--cores", options->plan.cores,
                  "Numbers of computing cores, separated by commas (default: all of the first socket)")
      .list()
      .positive();
  command.add_flag("--samples", options->plan.samples_only,
                   "Only the two placements that give the models' parameters, not all");
  command.add_flag("--shortened", options->shortened,
                   "Leave out numbers of cores beyond the peaks, except the last one");
  command
      .add_option("--repetitions", options->plan.repetitions,
                  "How often everything is measured; may be more when a campaign goes on")
      .positive()
      .show_default();
  command.add_option("--seconds", options->seconds, "How long a measurement takes at least")
      .between(0.01, 3600)
      .show_default();
  command.add_option("--array", options->array, "Size of each array of a core").show_default();
  command
      .add_option("--communication-core", options->communication_core,
                  "Core of the thread that communicates (default: the last one)")
      .between(0, 1e6);
  command.add_option("--core-mhz", options->core_mhz, "Set the frequency of the cores meanwhile (needs root and cpufreq)").between(1, 1e5);
  command.add_option("--uncore-mhz", options->uncore_mhz, "Set the frequency of the uncore meanwhile (needs root and intel_uncore_frequency)").between(1, 1e5);
  command.add_option("--buffers", options->buffers, "recycled or fresh: whether messages lie where those before lay, or in memory that none was in")
      .one_of({"recycled", "fresh"});
  command.add_option("--turbo", options->turbo, "on or off: whether cores may exceed their nominal frequency meanwhile (needs root)").one_of({"on", "off"});
  ApplicationOptions& applications = options->applications;
  command
      .add_option(
          "--applications", applications.applications,
          "Then run these on the task runtime of both ranks, separated by commas: cg, gemm (section 5.5 of the thesis)")
      .list()
      .one_of({"cg", "gemm"});
  command
      .add_option("--workers", applications.workers,
                  "Applications: numbers of workers of each rank, separated by commas (default: 1, 2, 4, ... and all "
                  "cores of a rank)")
      .list()
      .positive();
  command.add_option("--gemm-order", applications.gemm_order, "Order of the matrices of gemm")
      .between(2, 1e6)
      .show_default();
  command.add_option("--cg-order", applications.cg_order, "Order of the matrix of cg").between(2, 1e6).show_default();
  command.add_option("--cg-iterations", applications.cg_iterations, "Iterations of cg").between(1, 1e6).show_default();
  command.add_option("--nb", applications.tile, "Order of a tile of both").between(1, 1e5).show_default();
  command.add_flag("--json", options->json, "Print a JSON object");
  command.footer(
      "Outside of a job, the command starts two ranks on this host. On two hosts: tandem run -n 2 --host a,b tandem "
      "contention measure ...");
  command.callback([options, &context] {
    if (const auto outcome = run(*options, context); !outcome) fail(context, outcome.error());
  });
}

}  // namespace tandem::tools::contention
