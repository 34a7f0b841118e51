// tools/bench_two_ranks.cpp: `tandem bench burst`, `priority` and `overlap`: two ranks of Tandem beside two of MPI.
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

using Words = std::vector<std::string>;

/// The two programs of a benchmark, each as two ranks. `peer_words` are the arguments of MPI's program, by default
/// ours.
struct TwoRanks {
  std::string name;
  Words words;
  std::string transport = {};  ///< of Open MPI; empty: it chooses
  std::optional<Words> peer_words = {};
  Words around = {};           ///< a launcher around both launchers: namespaces
};

std::vector<BenchProgram> programs_of(const Programs& programs, const TwoRanks& ranks) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::pair<std::string, std::string>> environment;
  if (!ranks.transport.empty()) {
    const bool shm = ranks.transport == "shm";
    environment = {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", shm ? "vader,self" : "tcp,self"}};
    if (!shm) environment.emplace_back("OMPI_MCA_btl_tcp_if_include", "lo");
  }
  std::vector<Words> own{{"tandem_ranks", self, "2"}}, mpi{{"mpi_ranks", "2"}};
  if (!ranks.around.empty()) {
    own.insert(own.begin(), ranks.around);
    mpi.insert(mpi.begin(), ranks.around);
  }
  return {programs.launched(programs.ours(fmt::format("bench_{}_tandem", ranks.name), ranks.words), own),
          programs.launched(programs.peer("openmpi", fmt::format("peer_{}_mpi", ranks.name),
                                          ranks.peer_words.value_or(ranks.words), environment), mpi)};
}

struct BurstOptions : BenchOptions {
  unsigned most = 200'000, peer_most = 10'000;
};

struct TransportOptions : BenchOptions {
  Words transports{"shm", "tcp"};
};

struct OverlapOptions : BenchOptions {
  unsigned bytes = 16 << 20;
  std::string rate = "200mbit";
};

BenchSuite burst_suite(const Programs& programs, const BurstOptions& options) {
  const auto words = [](unsigned most) { return Words{"--most", std::to_string(most), "--repetitions", "3"}; };
  return {"many requests at once, two processes on shm: time per message",
          programs_of(programs, {"burst", words(options.most), "shm", words(options.peer_most)}),
          false,
          {{"transport", "shm"}, {"bytes", 1}}};
}

BenchSuite priority_suite(const Programs& programs, const std::string& transport) {
  const Words words{"--transport", transport, "--repetitions", "3"};
  return {fmt::format("an urgent message of 1 KiB behind 64 MiB, {}", transport),
          programs_of(programs, {"priority", words, transport, words}),
          false,
          {{"transport", transport}, {"bytes", 1024}, {"behind_bytes", 64 << 20}}};
}

/// `rate` empty: over shm.
BenchSuite overlap_suite(const Programs& programs, const OverlapOptions& options, const std::string& rate) {
  TwoRanks ranks{"overlap", {"--bytes", std::to_string(options.bytes), "--repetitions", "1"}};
  if (rate.empty()) {
    ranks.words.insert(ranks.words.end(), {"--transport", "shm"});
    ranks.transport = "shm";
  } else {
    ranks.around = {"netns", "run", "2", "--rate", rate, "--"};
  }
  const std::string where = rate.empty() ? "shm" : fmt::format("two namespaces of {} each", rate);
  return {
      fmt::format("share of a transfer of {} bytes that computation hides, {}", options.bytes, where),
      programs_of(programs, ranks),
      true,
      {{"transport", rate.empty() ? "shm" : "tcp"}, {"bytes", options.bytes}, {"rate", rate.empty() ? "none" : rate}}};
}

}  // namespace

void add_bench_burst(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("burst", "Many pending requests, received in the reverse order of their sends");
  const auto options = std::make_shared<BurstOptions>();
  add_bench_options(command, *options);
  command.add_option("--most", options->most, "Largest number of requests of Tandem").positive().show_default();
  command.add_option("--peer-most", options->peer_most,
                     "Largest number of requests of the peer, whose time may grow with its square")
      .positive().show_default();
  command.callback([options, &context] {
    run_bench("burst", *options, context,
              [&](const Programs& programs, unsigned) { return std::vector{burst_suite(programs, *options)}; });
  });
}

void add_bench_priority(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand("priority", "An urgent small message behind a large one");
  const auto options = std::make_shared<TransportOptions>();
  add_bench_options(command, *options);
  command.add_option("--transport", options->transports, "shm, tcp, separated by commas")
      .list().one_of({"shm", "tcp"}).show_default();
  command.callback([options, &context] {
    run_bench("priority", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const std::string& transport : options->transports) suites.push_back(priority_suite(programs, transport));
      return suites;
    });
  });
}

void add_bench_overlap(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("overlap", "How much of a transfer is hidden by computation on both sides (needs root)");
  const auto options = std::make_shared<OverlapOptions>();
  add_bench_options(command, *options);
  command.add_option("--bytes", options->bytes, "Size of the transfer").positive().show_default();
  command.add_option("--rate", options->rate, "Rate of each of the two namespaces: 200mbit, 1gbit, none")
      .show_default();
  command.callback([options, &context] {
    run_bench("overlap", *options, context, [&](const Programs& programs, unsigned) {
      return std::vector{overlap_suite(programs, *options, options->rate), overlap_suite(programs, *options, "")};
    });
  });
}

}  // namespace tandem::tools
