// benchmarks/bcast/bench_bcast_tandem.cpp: `Endpoint::mcast` along each tree; each recipient has posted an ordinary
// receive.
//
// A rank's priority is its number, so that higher ranks shall have the data earlier (thesis, figure 4.5).
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "benchmarks/bcast/harness.hpp"
#include "benchmarks/common/options.hpp"
#include "tandem/api/configure.hpp"
#include "tandem/api/options.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/variables.hpp"
#include "tandem/comm/endpoint.hpp"

namespace {

using namespace tandem;
using comm::Rank;
using comm::Tag;

constexpr Tag ready_tag{1}, data_tag{2}, times_tag{3}, over_tag{4};

struct Setting {
  std::size_t bytes = 439'296;
  std::size_t segment_bytes = 0;
  unsigned rounds = 3;
  unsigned pause_ms = 30;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_bcast_tandem: %s\n", what.c_str());
  std::exit(1);
}

void expect_done(const comm::Status& status, const char* what) {
  if (status.ending != comm::Ending::done) fail(std::string(what) + ": " + std::string(comm::name_of(status.ending)));
}

/// The root's side of one broadcast: waits until all have posted, lets the network rest, broadcasts, and collects the
/// times.
benchmarks::BroadcastTimes lead(comm::Endpoint& endpoint, std::vector<unsigned char>& message, const Setting& setting,
                                comm::TreeKind tree) {
  std::vector<comm::Recipient> recipients;
  std::vector<std::array<std::int64_t, 2>> ends(endpoint.size());
  std::vector<comm::Request> waits;
  for (std::uint32_t rank = 1; rank < endpoint.size(); ++rank) {
    recipients.push_back({.rank = Rank(rank), .priority = static_cast<int>(rank)});
    waits.push_back(endpoint.irecv(Rank(rank), ready_tag, {}));
  }
  endpoint.wait_all(waits);
  waits.clear();
  usleep(setting.pause_ms * 1000);
  const std::int64_t start_ns = benchmarks::shared_now_ns();
  const comm::Request sent =
      endpoint.mcast(recipients, data_tag, message, {.tree = {tree, setting.segment_bytes}});
  for (std::uint32_t rank = 1; rank < endpoint.size(); ++rank)
    waits.push_back(endpoint.irecv(Rank(rank), times_tag, std::span(ends[rank])));
  expect_done(endpoint.wait(sent), "the broadcast");
  endpoint.wait_all(waits);
  waits.clear();
  for (const comm::Recipient& recipient : recipients) waits.push_back(endpoint.isend(recipient.rank, over_tag, {}));
  endpoint.wait_all(waits);
  benchmarks::BroadcastTimes times;
  for (std::uint32_t rank = 1; rank < endpoint.size(); ++rank) {
    times.arrived_ns.push_back(ends[rank][0] - start_ns);
    times.released_ns.push_back(ends[rank][1] - start_ns);
  }
  return times;
}

void follow(comm::Endpoint& endpoint, std::vector<unsigned char>& message, std::uint32_t round) {
  std::array<std::int64_t, 2> ends{};
  const comm::Request data =
      endpoint.irecv(Rank(0), data_tag, message,
                     {.callbacks = {.arrived = [&](const comm::Status&) { ends[0] = benchmarks::shared_now_ns(); },
                                    .released = [&](const comm::Status&) { ends[1] = benchmarks::shared_now_ns(); }}});
  endpoint.wait(endpoint.isend(Rank(0), ready_tag, {}));
  expect_done(endpoint.wait(data), "the receive");
  endpoint.wait(endpoint.isend(Rank(0), times_tag, std::span(ends)));
  // Comparing bytes would take the core from those that have not got them yet.
  endpoint.wait(endpoint.irecv(Rank(0), over_tag, {}));
  if (!benchmarks::holds(message, round)) fail("wrong bytes on rank " + std::to_string(endpoint.rank().value()));
}

/// Adds `rounds` rounds to what is known of a tree.
void measure(comm::Endpoint& endpoint, const Setting& setting, comm::TreeKind tree, unsigned rounds,
             benchmarks::BroadcastResult& result) {
  std::vector<unsigned char> message(setting.bytes);
  // Two rounds warm up: connections are made in the first, or wake from their rest, and what the network carries is
  // learnt.
  for (std::uint32_t round = 0; round < rounds + 2; ++round) {
    if (endpoint.rank() != Rank(0)) {
      follow(endpoint, message, round);
      continue;
    }
    benchmarks::fill(message, round);
    const benchmarks::BroadcastTimes times = lead(endpoint, message, setting, tree);
    if (round >= 2) result.rounds.push_back(times);
  }
}

std::vector<comm::TreeKind> parse_trees(const std::string& text) {
  std::vector<comm::TreeKind> trees;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto kind = comm::tree_kind(word);
    if (!kind) fail("'" + word + "' is no tree");
    trees.push_back(*kind);
  }
  return trees;
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"bytes", "trees", "segment", "repetitions", "pause-ms"}, {"verbose"});
  const Setting setting{.bytes = options.count("bytes", 439'296),
                        .segment_bytes = options.has("segment") ? options.count("segment", 1) : 0,
                        .rounds = options.count("repetitions", 3),
                        .pause_ms = options.count("pause-ms", 30)};
  const std::vector<comm::TreeKind> trees =
      parse_trees(options.text("trees", "automatic,ordered,flat,binomial,binary,chain,two_tree"));

  base::Log log(options.has("verbose") ? base::LogLevel::debug : base::LogLevel::warn);
  base::Registry registry;
  register_options(registry);
  auto sources = base::ConfigSources::of_process(1, argv);  // the command line is the benchmark's
  sources.reserved_variables = comm::job_variables();
  const auto config = base::Config::load(registry, sources);
  if (!config) fail(config.error().message);
  auto job = comm::join_job({.environment = base::process_environment(), .log = log});
  if (!job) fail(job.error().message);
  if (job.value().size < 2) fail("needs two ranks or more; start it with tandem run");
  const auto endpoint = comm::Endpoint::open(std::move(job).value(), comm::comm_options(config.value()), log);
  if (!endpoint) fail(endpoint.error().message);

  // All trees once before any counts. Else the first is measured while memory and rates are new, and the last is not:
  // without a limit to the rates that made a difference of two, whichever trees these were. The first are slower by a
  // fifth even so, hence half of the rounds in the opposite order.
  std::vector<benchmarks::BroadcastResult> results;
  for (const comm::TreeKind tree : trees) results.push_back({std::string(comm::tree_name(tree)), {}});
  const auto go_on = [&](std::size_t i, unsigned rounds) {
    measure(*endpoint.value(), setting, trees[i], rounds, results[i]);
  };
  const unsigned again = setting.rounds / 2;
  for (std::size_t i = 0; i < trees.size(); ++i) go_on(i, 0);
  for (std::size_t i = 0; i < trees.size(); ++i) go_on(i, setting.rounds - again);
  for (std::size_t i = trees.size(); i-- > 0;) go_on(i, again);
  if (endpoint.value()->rank() == Rank(0)) benchmarks::print_broadcasts("tandem", "", results);
  endpoint.value()->close();
}
