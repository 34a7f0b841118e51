// tools/bench_pingpong.cpp: `tandem bench pingpong`: messages between two processes, on Tandem and on what else moves messages.
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct PingpongOptions : BenchOptions {
  std::vector<std::string> transports{"shm", "tcp"};
};

/// What a flag takes from one processor to the other.
std::optional<BenchWitness> flag_between_processors(const Programs& programs) {
  BenchProgram flag = programs.peer("bare", "peer_pingpong_bare", {"--repetitions", "1", "--most", "4"});
  if (!flag.exists) return std::nullopt;
  return BenchWitness{std::move(flag.command), "a flag from processor to processor"};
}

/// Two polling processes over one transport, then the same two asleep between messages.
std::vector<BenchSuite> pingpong_suites(const Programs& programs, const std::string& transport) {
  const auto words = [](const std::string& name) { return std::vector<std::string>{"--transport", name, "--repetitions", "1"}; };
  BenchSuite polling{fmt::format("messages between two processes, {}, both polling", transport),
                     {programs.ours("bench_pingpong_tandem", words(transport))}, false, {{"transport", transport}}};
  polling.name_ends_in_bytes = true;
  polling.programs.push_back(programs.peer("openmpi", "peer_pingpong_mpi", words(transport)));
  if (transport == "shm") polling.programs.push_back(programs.peer("openmpi_copy", "peer_pingpong_mpi", words("shm_copy")));
  polling.programs.push_back(programs.peer("ucx", "peer_pingpong_ucx", words(transport)));
  polling.programs.push_back(programs.peer("ucx_perftest", "peer_pingpong_ucx_perftest", words(transport)));
  polling.programs.push_back(programs.peer("bare", "peer_pingpong_bare", words(transport)));
  polling.parts.clear();  // one for each of the sizes in benchmarks/pingpong/harness.hpp
  for (const char* bytes : {"4", "1024", "4096", "65536", "439296", "8388608", "67108864"})
    polling.parts.push_back({"--least", bytes, "--most", bytes});
  polling.witness = flag_between_processors(programs);

  auto asleep = words(transport);
  asleep.push_back("--sleep");
  BenchSuite sleeping{fmt::format("messages between two processes, {}, to a side that sleeps", transport),
                      {programs.ours("bench_pingpong_tandem", asleep), programs.peer("bare", "peer_pingpong_bare", asleep)},
                      false, {{"transport", transport}}};
  sleeping.name_ends_in_bytes = true;
  return {std::move(polling), std::move(sleeping)};
}

}  // namespace

void add_bench_pingpong(CLI::App& bench, ToolContext& context) {
  CLI::App* command = bench.add_subcommand("pingpong", "Half round trips of 4 bytes to 64 MiB, and messages one way");
  const auto options = std::make_shared<PingpongOptions>();
  add_bench_options(command, *options);
  command->add_option("--transport", options->transports, "shm, tcp, by commas")
      ->delimiter(',')->check(CLI::IsMember({"shm", "tcp"}))->capture_default_str();
  command->callback([options, &context] {
    run_bench("pingpong", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const std::string& transport : options->transports)
        for (BenchSuite& suite : pingpong_suites(programs, transport)) suites.push_back(std::move(suite));
      return suites;
    });
  });
}

}  // namespace tandem::tools
