// tools/main.cpp: the `tandem` command: reads the configuration, then hands over to a subcommand.
#include <cstdio>
#include <exception>
#include <system_error>

#include <fmt/core.h>

#include "tandem/api/configure.hpp"
#include "tandem/api/options.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/standard_streams.hpp"
#include "tandem/comm/bootstrap/variables.hpp"
#include "tools/standard_output.hpp"
#include "tools/subcommands.hpp"
#include "tools/version.hpp"

namespace {

tandem::base::LogLevel log_level(const tandem::base::Config& config) {
  using tandem::base::LogLevel;
  for (const LogLevel level : {LogLevel::error, LogLevel::info, LogLevel::debug})
    if (config.get_string("log") == name_of(level)) return level;
  return LogLevel::warn;
}

int run(int argc, char** argv) {
  tandem::base::Log log;
  tandem::base::Registry registry;
  tandem::register_options(registry);
  const std::vector<std::string> arguments(argv, argv + argc);
  auto sources = tandem::base::ConfigSources::of_process(argc, argv);
  sources.reserved_variables = tandem::comm::job_variables();  // this may be a rank of `tandem run`
  const auto config = tandem::base::Config::load(registry, sources);
  if (!config) {
    log.error("{}", config.error().message);
    return tandem::tools::wrong_use;
  }
  log.set_level(log_level(config.value()));
  argc = tandem::base::remove_arguments(argc, argv, config.value().consumed_arguments());

  tandem::tools::CommandLine command_line("tandem",
                                          "Tandem: a distributed task-based runtime system and communication library.",
                                          fmt::format("tandem {} ({})", tandem::tools::version, tandem::tools::commit));
  tandem::tools::Subcommand app = command_line.root();
  app.footer(
      "Every subcommand also takes the options of the runtime, as --tandem.NAME=VALUE; `tandem config` lists them.");
  app.require_subcommand();
  tandem::tools::ToolContext context{.config = config.value(), .arguments = arguments, .log = log, .run = run};
  tandem::tools::add_all(app, context);
  if (const std::string wrong = command_line.parse(argc, argv); !wrong.empty()) {
    std::fprintf(stderr, "tandem: error: %s\n", wrong.c_str());
    return tandem::tools::wrong_use;
  }
  return context.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::base::hold_standard_streams();
  int status = 1, cause = 0;
  try {
    status = run(argc, argv);
  } catch (const tandem::StartError& error) {
    std::fprintf(stderr, "tandem: error: %s\n", error.what());
    status = tandem::tools::wrong_use;
  } catch (const std::system_error& error) {
    cause = error.code().value();
    if (std::ferror(stdout) == 0) std::fprintf(stderr, "tandem: error: %s\n", error.what());  // else it is said below
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tandem: error: %s\n", error.what());
  }
  const auto written = tandem::tools::finish_output(cause);
  if (written.ok()) return status;
  std::fprintf(stderr, "tandem: error: %s\n", written.error().message.c_str());
  return status == 0 ? 1 : status;
}
