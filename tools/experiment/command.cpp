// tools/experiment/command.cpp: `tandem experiment`: the command line of python/tandem/experiments.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tools/python_script.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {
namespace {

struct ExperimentArguments {
  std::vector<std::string> names;
  std::string folder = "experiment-results";
  std::string archive, source;
  double minutes = 0;  ///< 0: not given
  bool all = false, list = false, quick = false, smoke = false, json = false;
};

std::vector<std::string> words_of(const ExperimentArguments& arguments) {
  std::error_code unknown;
  std::vector<std::string> words{"--tandem", std::filesystem::read_symlink("/proc/self/exe", unknown), "--folder",
                                 arguments.folder};
  for (const auto& [is_given, word] : {std::pair(arguments.all, "--all"),
                                       {arguments.list, "--list"},
                                       {arguments.quick, "--quick"},
                                       {arguments.smoke, "--smoke"},
                                       {arguments.json, "--json"}})
    if (is_given) words.emplace_back(word);
  if (!arguments.source.empty()) words.insert(words.end(), {"--from", arguments.source});
  if (!arguments.archive.empty()) words.insert(words.end(), {"--archive", arguments.archive});
  if (arguments.minutes > 0) words.insert(words.end(), {"--minutes", fmt::format("{}", arguments.minutes)});
  words.emplace_back("--");
  words.insert(words.end(), arguments.names.begin(), arguments.names.end());
  return words;
}

}  // namespace

void add_experiment(Subcommand app, ToolContext& context) {
  auto arguments = std::make_shared<ExperimentArguments>();
  Subcommand command = app.add_subcommand(
      "experiment", "Rebuild a published experiment in virtual time, and say how far it is from what was published");
  command.add_option("NAME", arguments->names, "Experiments, as --list names them");
  command.add_flag("--all", arguments->all, "All experiments, and one page of them");
  command.add_flag("--list", arguments->list, "Say which there are");
  const Option quick = command.add_flag("--quick", arguments->quick, "Smaller, in a minute each");
  command.add_flag("--smoke", arguments->smoke, "Very small: whether they run").excludes(quick);
  command.add_option("--folder", arguments->folder, "Folder of the results, with which the next call goes on")
      .type_name("FOLDER")
      .show_default();
  command.add_option("--from", arguments->source, "Folder of experiments (default: those that come with Tandem)")
      .type_name("FOLDER");
  command.add_option("--archive", arguments->archive, "Pack the results and what made them: a .tar.gz")
      .type_name("FILE");
  command
      .add_option("--minutes", arguments->minutes,
                  "Most time of each (default: 120, or 1 with --quick, or 2 for all with --smoke)")
      .between(0.01, 1e4);
  command.add_flag("--json", arguments->json, "Print a JSON object");
  command.callback([arguments, &context] {
    const base::Error error = become_python(context.config.get_string("python"), "experiment", words_of(*arguments),
                                            "matplotlib, numpy");
    context.log.error("experiment: {}", error.message);
    context.exit_status = failure;
  });
}

}  // namespace tandem::tools
