// tools/bench_pingpong.cpp: `tandem bench pingpong`: messages between two processes, by Tandem and by its peers.
#include <unistd.h>

#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct PingpongOptions : BenchOptions {
  std::vector<std::string> transports{"shm", "tcp"};
  bool traced = false;
};

/// Times a flag from one processor to the other.
std::optional<StabilityProbe> flag_between_processors(const Programs& programs) {
  BenchProgram flag = programs.peer("bare", "peer_pingpong_bare", {"--repetitions", "1", "--most", "4"});
  if (!flag.exists) return std::nullopt;
  return StabilityProbe{std::move(flag.command), "a flag from processor to processor"};
}

/// Two polling processes over one transport, then two that sleep between messages.
std::vector<BenchSuite> pingpong_suites(const Programs& programs, const std::string& transport) {
  const auto words = [](const std::string& name) {
    return std::vector<std::string>{"--transport", name, "--repetitions", "1"};
  };
  BenchSuite polling{fmt::format("messages between two processes, {}, both polling", transport),
                     {programs.ours("bench_pingpong_tandem", words(transport))}, false, {{"transport", transport}}};
  polling.name_ends_in_bytes = true;
  polling.programs.push_back(programs.peer("openmpi", "peer_pingpong_mpi", words(transport)));
  if (transport == "shm")
    polling.programs.push_back(programs.peer("openmpi_copy", "peer_pingpong_mpi", words("shm_copy")));
  polling.programs.push_back(programs.peer("ucx", "peer_pingpong_ucx", words(transport)));
  polling.programs.push_back(programs.peer("ucx_perftest", "peer_pingpong_ucx_perftest", words(transport)));
  polling.programs.push_back(programs.peer("bare", "peer_pingpong_bare", words(transport)));
  polling.parts.clear();  // one for each of the sizes in benchmarks/pingpong/harness.hpp
  for (const char* bytes : {"4", "1024", "4096", "65536", "439296", "8388608", "67108864"})
    polling.parts.push_back({"--least", bytes, "--most", bytes});
  polling.stability_probe = flag_between_processors(programs);

  auto asleep = words(transport);
  asleep.push_back("--sleep");
  BenchSuite sleeping{
      fmt::format("messages between two processes, {}, to a side that sleeps", transport),
      {programs.ours("bench_pingpong_tandem", asleep), programs.peer("bare", "peer_pingpong_bare", asleep)},
      false,
      {{"transport", transport}}};
  sleeping.name_ends_in_bytes = true;
  return {std::move(polling), std::move(sleeping)};
}

/// Where the traces of `--traced` go, until all are measured.
std::filesystem::path traces_folder() {
  return std::filesystem::temp_directory_path() / fmt::format("bench-pingpong-{}", ::getpid());
}

/// Small messages untraced, and with everything recorded into a flight recorder.
BenchSuite traced_suite(const Programs& programs, const std::string& transport) {
  const std::vector<std::string> words{"--transport", transport, "--repetitions", "3", "--least", "4", "--most", "4"};
  BenchProgram traced = programs.ours("bench_pingpong_tandem", words);
  traced.peer = "traced";
  traced.command.environment.emplace_back("PINGPONG_TRACE", traces_folder().string());
  BenchSuite suite{
      fmt::format("small messages between two processes, {}, untraced and with everything recorded", transport),
      {programs.ours("bench_pingpong_tandem", words), std::move(traced)},
      false,
      {{"transport", transport}}};
  suite.name_ends_in_bytes = true;
  suite.stability_probe = flag_between_processors(programs);
  return suite;
}

}  // namespace

void add_bench_pingpong(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("pingpong", "Half round trips of 4 bytes to 64 MiB, and one-way message rates");
  const auto options = std::make_shared<PingpongOptions>();
  add_bench_options(command, *options);
  command.add_option("--transport", options->transports, "shm, tcp, separated by commas")
      .list().one_of({"shm", "tcp"}).show_default();
  command.add_flag("--traced", options->traced,
                    "Only Tandem's small messages: without a trace, and while both sides record all events");
  command.callback([options, &context] {
    run_bench("pingpong", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const std::string& transport : options->transports) {
        if (options->traced) {
          suites.push_back(traced_suite(programs, transport));
          continue;
        }
        for (BenchSuite& suite : pingpong_suites(programs, transport)) suites.push_back(std::move(suite));
      }
      return suites;
    });
    std::error_code ignored;
    std::filesystem::remove_all(traces_folder(), ignored);
  });
}

}  // namespace tandem::tools
