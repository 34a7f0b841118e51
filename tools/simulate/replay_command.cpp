// tools/simulate/replay_command.cpp: `tandem replay`: a real run once more, one step at a time, for a debugger.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "tandem/analysis/history/history.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tools/simulate/one_run.hpp"
#include "tools/simulate/recorded_run.hpp"
#include "tools/subcommands.hpp"
#include "tools/trace/export.hpp"
#include "tools/work_folder.hpp"

namespace tandem::tools {
namespace {

/// The number of workers that each rank has.
base::Result<unsigned> workers_of_each_rank(const analysis::History& history) {
  const auto workers = count_workers(history);
  if (!workers) return workers.error();
  const unsigned each = workers.value().front();
  if (std::ranges::any_of(workers.value(), [each](unsigned count) { return count != each; }))
    return base::Error{base::ErrorCode::unsupported, "its ranks have different numbers of workers"};
  if (each == 0) return base::Error{base::ErrorCode::not_found, "the trace has no workers"};
  return each;
}

/// All ranks of the run, in virtual time: each kernel runs, and takes 1 us.
Scene scene_of(std::uint32_t ranks, unsigned workers) {
  Scene scene;
  scene.platform.ranks = ranks;
  scene.platform.cores = workers;
  scene.kernels = [](const runtime::EmulatedTask&, std::uint32_t) {
    return sim::KernelTime{.mean_ns = 1'000, .computes = true};
  };
  scene.execution = sim::Execution::all;
  return scene;
}

/// `until` is RANK:TASK; empty: the end.
void run_again(const std::string& until, Subcommand command, ToolContext& context) {
  const auto fail = [&](int status, const std::string& why) {
    context.log.error("replay: {}", why);
    context.exit_status = status;
  };
  auto call = program_call(command, context);
  if (!call) return fail(wrong_use, call.error().message);
  std::vector<std::string>& words = call.value().words;
  if (words.empty()) return fail(wrong_use, "of which trace? tandem replay run, or tandem replay run ./app ARGUMENTS");
  const std::filesystem::path folder = words.front();
  words.erase(words.begin());
  auto trace = trace::TraceReader::open(folder);
  if (!trace) return fail(failure, trace.error().message);
  auto read = analysis::History::read(*trace.value());
  if (!read) return fail(failure, read.error().message);
  const analysis::History& history = *read.value();
  const auto workers = workers_of_each_rank(history);
  if (!workers) return fail(failure, fmt::format("{}: {}", folder.string(), workers.error().message));
  if (words.empty()) {
    words.push_back(history.program);
    std::ranges::copy_if(history.arguments, std::back_inserter(words),
                         [](const std::string& word) { return !word.starts_with("--tandem.trace"); });
  }
  const auto work = WorkFolder::create(std::filesystem::temp_directory_path(), "tandem-replay-");
  if (!work) return fail(failure, work.error().message);
  const std::filesystem::path schedule = work.value().path() / "schedule";
  if (const auto written = export_schedule(history, schedule); !written) return fail(failure, written.error().message);
  std::string overrides = fmt::format("workers={} sched.recorded={}", workers.value(), schedule.string());
  if (!until.empty()) overrides += " debug.stop_before=" + until;
  call.value().variables.emplace_back("TANDEM_OVERRIDE", std::move(overrides));
  const Scene scene = scene_of(history.size, workers.value());
  const Ended ended = simulate_once(scene, 1, call.value(), context);
  const std::string complaint = complaint_of(ended, scene);
  if (!complaint.empty()) context.log.error("replay: {}", complaint);
  context.exit_status = ended.exit_code == 0 && !complaint.empty() ? failure : ended.exit_code;
}

}  // namespace

void add_replay(Subcommand app, ToolContext& context) {
  auto until = std::make_shared<std::string>();
  Subcommand command = app.add_subcommand(
      "replay", "Run a program again as a trace has recorded it, each task on its worker and in its order");
  command
      .add_option("--until", *until,
                  "Stop the process of a rank before the kernel of a task, for a debugger; its number as in the trace")
      .type_name("RANK:TASK");
  command.take_program("The folder of the trace, then the program and its arguments (default: those of the trace)");
  command.callback([until, command, &context] { run_again(*until, command, context); });
}

}  // namespace tandem::tools
