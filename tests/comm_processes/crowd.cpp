// tests/comm_processes/crowd.cpp: a program for `tandem run -n N`: rounds of a ring that no rank leaves before all have
// come, and broadcasts from changing roots.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

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

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "crowd: %s\n", what.c_str());
  std::exit(1);
}

void expect_done(const comm::Status& status, const char* what) {
  if (status.ending != comm::Ending::done) fail(std::string(what) + " ended as " + std::string(name_of(status.ending)));
}

/// A token goes round twice: after the first round all ranks are here, and the second round releases them.
void barrier(comm::Endpoint& endpoint) {
  const std::uint32_t rank = endpoint.rank().value(), size = endpoint.size();
  const Rank next{(rank + 1) % size}, previous{(rank + size - 1) % size};
  for (std::uint64_t lap = 0; lap < 2; ++lap) {
    std::uint64_t token = lap;
    if (rank == 0)
      expect_done(endpoint.wait(endpoint.isend(next, Tag{lap}, {&token, sizeof token})), "the token's start");
    expect_done(endpoint.wait(endpoint.irecv(previous, Tag{lap}, {&token, sizeof token})), "the token's arrival");
    if (token != lap) fail("another token came");
    if (rank != 0)
      expect_done(endpoint.wait(endpoint.isend(next, Tag{lap}, {&token, sizeof token})), "the token's way on");
  }
}

void broadcast(comm::Endpoint& endpoint, Rank root, std::size_t bytes) {
  std::vector<std::uint8_t> memory(bytes);
  const auto value_at = [&](std::size_t i) { return static_cast<std::uint8_t>(i * 7 + root.value()); };
  if (endpoint.rank() == root) {
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = value_at(i);
    std::vector<comm::Recipient> recipients;
    for (std::uint32_t rank = 0; rank < endpoint.size(); ++rank) recipients.push_back({Rank{rank}, 0});
    expect_done(endpoint.wait(endpoint.mcast(recipients, Tag{100}, memory)), "a broadcast");
    return;
  }
  expect_done(endpoint.wait(endpoint.irecv(root, Tag{100}, memory)), "the receive of a broadcast");
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != value_at(i)) fail("wrong bytes");
  }
}

}  // namespace

int main(int argc, char** argv) {
  base::Log log(base::LogLevel::warn);
  base::Registry registry;
  register_options(registry);
  auto sources = base::ConfigSources::of_process(argc, argv);
  sources.reserved_variables = comm::job_variables();
  const auto config = base::Config::load(registry, sources);
  if (!config) fail(config.error().message);
  auto job = comm::join_job({.environment = base::process_environment(), .log = log});
  if (!job) fail(job.error().message);
  const auto endpoint = comm::Endpoint::open(std::move(job).value(), comm::comm_options(config.value()), log);
  if (!endpoint) fail(endpoint.error().message);
  if (endpoint.value()->size() < 2) fail("needs two ranks or more; start it with tandem run");
  for (unsigned round = 0; round < 3; ++round) {
    barrier(*endpoint.value());
    broadcast(*endpoint.value(), Rank{round % endpoint.value()->size()}, round * 200'000 + 1000);
  }
  barrier(*endpoint.value());
  endpoint.value()->close();
  if (endpoint.value()->rank() == Rank{0}) std::printf("%u ranks met\n", endpoint.value()->size());
}
