// tools/simulate/calibrate.cpp: `tandem calibrate`: makes a platform from this machine and runs of a program.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tandem/api/world.hpp"
#include "tandem/base/cpu_quota.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/sim_rank/platform.hpp"
#include "tools/counted.hpp"
#include "tools/json/json.hpp"
#include "tools/json/json_report.hpp"
#include "tools/out_file.hpp"
#include "tools/simulate/own_costs.hpp"
#include "tools/simulate/prediction.hpp"
#include "tools/standard_output.hpp"
#include "tools/subcommands.hpp"
#include "tools/subprocess.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;
using Clock = std::chrono::steady_clock;

struct CalibrateArguments {
  std::string folder = "calibration";
  unsigned runs = 5;
  double minutes = 10;
  std::vector<unsigned> cores;  ///< empty: 1, 2, 4 and so on
  bool json = false;
  bool measures_messages = false;
};

// What ranks that measure messages print.
constexpr std::string_view packet_label = "packet_ns ", copy_label = "copy_bytes_per_ns ";

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Real runs with a number of busy cores, and what a simulation says of them. In seconds.
struct Compared {
  std::vector<double> real;
  double simulated_s = 0;
};

class Calibration {
 public:
  Calibration(const CalibrateArguments& arguments, ProgramCall call, const base::Config& config)
      : arguments_(arguments), call_(std::move(call)), config_(config), folder_(fs::absolute(arguments.folder)) {
    std::error_code unknown;
    self_ = fs::read_symlink("/proc/self/exe", unknown);
  }

  Result<void> run() {
    const auto topology = base::Topology::discover();
    if (!topology) return topology.error();
    for (const base::Core& core : topology.value().cores()) {
      if (core_of_each_rank_.find(';') != std::string::npos) break;
      core_of_each_rank_ += fmt::format("{}{}", core_of_each_rank_.empty() ? "" : ";", core.pus.front());
    }
    cores_ = static_cast<unsigned>(plan_workers(topology.value(), base::cpu_quota(), config_).size());
    // The platform is written once more, with what simulations on it were off by.
    for (const auto& step : {&Calibration::make_folder, &Calibration::measure_machine, &Calibration::measure_costs,
                             &Calibration::measure_messages, &Calibration::run_program_alone_and_beside,
                             &Calibration::write_platform, &Calibration::compare, &Calibration::write_platform})
      if (const auto done = (this->*step)(); !done.ok()) return done.error();
    if (arguments_.json)
      print_json(topology.value());
    else
      print_table();
    return {};
  }

 private:
  fs::path platform_file() const { return folder_ / "platform.toml"; }
  double left_s() const { return arguments_.minutes * 60 - seconds_since(begin_); }

  Result<void> make_folder() {
    std::error_code error;
    // Models of an earlier calibration would mix with these.
    if (fs::exists(folder_ / "models", error))
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("{} has models already: choose another folder with --save, or remove it", folder_.string())};
    fs::create_directories(folder_ / "models", error);
    if (error) return Error{ErrorCode::io, fmt::format("{}: {}", folder_.string(), error.message())};
    return {};
  }

  /// Cores, and messages between two ranks of this host, unless they were measured already.
  Result<void> measure_machine() {
    const std::string file = (folder_ / "node.toml").string();
    std::error_code error;
    if (fs::exists(file, error)) return {};
    print_note("calibrate: messages between two ranks of this machine\n");
    const auto measured =
        tandem({"run", "-n", "2", "--", self_.string(), "machine", "--links", "--save", file}, std::chrono::minutes(2));
    if (measured.ok()) return {};
    missing_.push_back(fmt::format("messages between ranks of a node ({})", measured.error().message));
    const auto saved = tandem({"machine", "--save", file}, std::chrono::minutes(1));
    if (!saved.ok()) return saved.error();
    return {};
  }

  Result<void> measure_costs() {
    print_note("calibrate: submission, tasks and wake-ups\n");
    costs_ = measure_task_costs();
    return {};
  }

  /// What messages take of cores that also compute: both ranks have one core.
  Result<void> measure_messages() {
    print_note("calibrate: kernels beside messages\n");
    const auto measured = tandem({"run", "-n", "2", "--", self_.string(), "calibrate", "--message-costs",
                                  "--tandem.cores=" + core_of_each_rank_},
                                 std::chrono::minutes(2));
    if (measured.ok()) {
      const std::string& text = measured.value().output;
      const auto value = [&text](std::string_view name) {
        const auto at = text.find(name);
        return at == text.npos ? 0 : std::strtod(text.c_str() + at + name.size(), nullptr);
      };
      messages_ = {.packet_ns = value(packet_label), .copy_bytes_per_ns = value(copy_label)};
    } else {
      missing_.push_back(fmt::format("what messages take of cores ({})", measured.error().message));
    }
    return {};
  }

  /// Interleaved, so that what changes on the machine meanwhile concerns all numbers of cores.
  Result<void> run_program_alone_and_beside() {
    std::vector<unsigned> counts = arguments_.cores;
    for (unsigned count = 1; arguments_.cores.empty() && count < cores_; count *= 2) counts.push_back(count);
    if (arguments_.cores.empty()) counts.push_back(cores_);
    for (unsigned run = 0; run < arguments_.runs; ++run)
      for (const unsigned count : counts) {
        // A half of the time is for what follows.
        if (run > 0 && left_s() < arguments_.minutes * 30) {
          missing_.push_back(fmt::format("further runs than {} of {}: --minutes", run, arguments_.runs));
          return {};
        }
        print_note("calibrate: run {} of {}, {}\n", run + 1, arguments_.runs, counted(count, "worker"));
        const auto begin = Clock::now();
        if (const auto ran = run_program_with(count); !ran.ok()) return ran.error();
        compared_[count].real.push_back(seconds_since(begin));
      }
    return {};
  }

  Result<ProgramOutput> run_program_with(unsigned workers) {
    Command command = started(call_.words);
    command.environment = call_.variables;
    const std::string models = (folder_ / "models" / std::to_string(workers)).string();
    for (const auto& [name, value] : {std::pair("TANDEM_MODELS", std::string("on")),
                                      {"TANDEM_MODEL_FOLDER", models},
                                      {"TANDEM_WORKERS", std::to_string(workers)}})
      command.environment.emplace_back(name, value);
    return run_program(command, limit());
  }

  /// The standard deviation of whole runs, relative to the mean of those with as many workers.
  double run_spread() const {
    double squares = 0;
    std::size_t degrees = 0;
    for (const auto& [cores, runs] : compared_) {
      double sum = 0;
      for (const double real : runs.real) sum += real;
      const double mean = sum / static_cast<double>(runs.real.size());
      for (const double real : runs.real) squares += (real / mean - 1) * (real / mean - 1);
      degrees += runs.real.size() - 1;
    }
    return degrees == 0 ? 0 : std::sqrt(squares / static_cast<double>(degrees));
  }

  /// What simulations of the runs were off by, relative: root of the mean square. 0: there are none yet.
  double model_error() const {
    double squares = 0;
    for (const auto& [cores, runs] : compared_)
      if (runs.simulated_s > 0) squares += std::pow(runs.simulated_s / median(runs.real) - 1, 2);
    return std::sqrt(squares / static_cast<double>(compared_.size()));
  }

  Result<void> write_platform() {
    auto file = OutFile::create(platform_file());
    if (!file.ok()) return file.error();
    // A run to predict is as far from a simulation as these were: by how they differ, and by what is not modelled.
    const double spread = std::hypot(run_spread(), model_error());
    const sim::Platform assumed;
    file.value().print("# Written by `tandem calibrate` on this machine.\n");
    file.value().print("machine = \"node.toml\"\nmodels = \"models\"\ncores = {}\n", cores_);
    file.value().print(
        "# Between nodes, unless node.toml has it, this is assumed:\n# latency = \"{}ns\"\n# bandwidth = {}\n",
        assumed.latency_ns, assumed.bytes_per_ns);
    file.value().print("submit = \"{}ns\"\ntask = \"{}ns\"\nwake = \"{}ns\"\n", costs_.submit_ns, costs_.task_ns,
                       costs_.wake_ns);
    file.value().print("packet = \"{:.0f}ns\"\ncopy = {:.3f}\nrun_spread = {:.4f}\n", messages_.packet_ns,
                       messages_.copy_bytes_per_ns, std::min(spread, 1.0));
    return file.value().close();
  }

  /// Simulates the runs that were made.
  Result<void> compare() {
    if (run_spread() == 0) missing_.emplace_back("how much runs differ: --runs 2 or more");
    for (auto& [cores, runs] : compared_) {
      print_note("calibrate: simulation with {}\n", counted(cores, "worker"));
      std::vector<std::string> words = {"simulate",
                                        "--platform",
                                        platform_file().string(),
                                        "--cores",
                                        std::to_string(cores),
                                        "--runs",
                                        std::to_string(std::clamp<std::size_t>(runs.real.size(), 1, 9)),
                                        "--json"};
      words.insert(words.end(), call_.words.begin(), call_.words.end());
      const auto simulated = predict_by_command(std::move(words), call_.variables, limit());
      if (!simulated.ok()) return simulated.error();
      runs.simulated_s = simulated.value().median;
    }
    return {};
  }

  void print_table() const {
    fmt::print(
        "{}: submission {} ns, a task {} ns, a wake-up {:.1f} us; a packet {:.0f} ns, copies {:.1f} GB/s; runs "
        "differ by {:.1f} %, simulations from them by {:.1f} %\n\n",
        platform_file().string(), costs_.submit_ns, costs_.task_ns, static_cast<double>(costs_.wake_ns) * 1e-3,
        messages_.packet_ns, messages_.copy_bytes_per_ns, 100 * run_spread(), 100 * model_error());
    fmt::print("{:>7}  {:>10}  {:>12}  {:>7}\n", "workers", "real s", "simulated s", "error %");
    for (const auto& [cores, runs] : compared_) {
      const double real = median(runs.real);
      fmt::print("{:>7}  {:>10.4f}  {:>12.4f}  {:>+7.1f}\n", cores, real, runs.simulated_s,
                 100 * (runs.simulated_s / real - 1));
    }
    fmt::print(
        "\nReal times are those of the whole process; what the program computes itself takes no virtual time.\n");
    for (const std::string& what : missing_) fmt::print("Not measured: {}\n", what);
    fmt::print("Next: tandem simulate --platform {} -n 16 {}\n", platform_file().string(), fmt::join(call_.words, " "));
  }

  void print_json(const base::Topology& topology) const {
    std::vector<Measurement> all;
    for (const auto& [cores, runs] : compared_) {
      Measurement one{.name = "program", .unit = "s", .samples = runs.real};
      one.params = {{"workers", cores}};
      one.peers = {{"simulated", runs.simulated_s}};
      one.details = {{"platform", platform_file().string()},
                     {"submit_ns", costs_.submit_ns},
                     {"task_ns", costs_.task_ns},
                     {"wake_ns", costs_.wake_ns},
                     {"packet_ns", messages_.packet_ns},
                     {"copy_bytes_per_ns", messages_.copy_bytes_per_ns},
                     {"run_spread", run_spread()},
                     {"model_error", model_error()},
                     {"missing", missing_}};
      all.push_back(std::move(one));
    }
    print(report("calibrate", topology, all));
  }

  std::chrono::milliseconds limit() const {
    return std::chrono::milliseconds(std::llround(std::max(left_s(), 60.0) * 1e3));
  }
  /// A command line as a person types it: words of `tandem` itself, or a program.
  Command started(const std::vector<std::string>& words) const {
    const bool is_own = words.front() == "linalg";
    const bool has_path = words.front().find('/') != std::string::npos;
    // `env` looks for the program in PATH.
    Command command;
    command.file = is_own ? self_ : has_path ? fs::path(words.front()) : fs::path("/usr/bin/env");
    command.explains = true;
    command.arguments.assign(words.begin() + (is_own || !has_path ? 0 : 1), words.end());
    return command;
  }
  Result<ProgramOutput> tandem(std::vector<std::string> arguments, std::chrono::milliseconds most) const {
    return run_program(
        {.file = self_, .arguments = std::move(arguments), .environment = call_.variables, .explains = true}, most);
  }

  const CalibrateArguments arguments_;
  const ProgramCall call_;
  const base::Config& config_;
  const fs::path folder_;
  fs::path self_;
  const Clock::time_point begin_ = Clock::now();
  unsigned cores_ = 1;
  std::string core_of_each_rank_;  ///< of two ranks, as option `cores` names them
  runtime::RuntimeCosts costs_;
  MessageCosts messages_;
  std::map<unsigned, Compared> compared_;  ///< by workers
  std::vector<std::string> missing_;       ///< what was not measured
};

}  // namespace

void add_calibrate(Subcommand app, ToolContext& context) {
  auto arguments = std::make_shared<CalibrateArguments>();
  Subcommand command = app.add_subcommand(
      "calibrate",
      "Run a program here, and write all that a simulation of it needs: durations of kernels alone and beside "
      "others, messages, and the runtime's own work");
  command.add_option("--save", arguments->folder, "New folder for the platform and its models")
      .type_name("FOLDER")
      .show_default();
  command.add_option("--runs", arguments->runs, "Runs of the program with each number of workers")
      .between(1, 100)
      .show_default();
  command.add_option("--minutes", arguments->minutes, "Most time for all of it; a run that lasts longer is made once")
      .between(0.1, 1e4)
      .show_default();
  command.add_option("--workers", arguments->cores, "Numbers of workers (default: 1, 2, 4 ... and all)")
      .positive()
      .repeatable();
  command.add_flag("--json", arguments->json, "Print a JSON object");
  // What this command starts as two ranks.
  command.add_flag("--message-costs", arguments->measures_messages, "").hide_from_help();
  command.take_program("The program, followed by its arguments; or linalg OP ...");
  command.callback([arguments, command, &context] {
    const auto fail = [&](int status, const std::string& why) {
      context.log.error("calibrate: {}", why);
      context.exit_status = status;
    };
    if (arguments->measures_messages) {
      if (const auto costs = measure_message_costs())
        fmt::print("{}{:.1f}\n{}{:.4f}\n", packet_label, costs->packet_ns, copy_label, costs->copy_bytes_per_ns);
      return;
    }
    auto call = program_call(command, context);
    if (!call) return fail(2, call.error().message);
    if (call.value().words.empty()) return fail(2, "which program? tandem calibrate ./app");
    if (const auto done = Calibration(*arguments, std::move(call).value(), context.config).run(); !done.ok())
      fail(1, done.error().message);
  });
}

}  // namespace tandem::tools
