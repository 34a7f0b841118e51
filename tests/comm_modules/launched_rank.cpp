// tests/comm_modules/launched_rank.cpp: a rank of whatever launcher started it, that knows of no transport but by name.
// Usage: launched_rank TRANSPORT
#include <fmt/core.h>

#include "exchange.hpp"
#include "tandem/comm/bootstrap/join.hpp"

int main(int argc, char** argv) {
  using namespace tandem;
  const std::string transport = argc > 1 ? argv[1] : "tcp";
  base::Log log;
  auto job = comm::join_job({.environment = base::process_environment(), .log = log});
  if (!job) return fmt::print(stderr, "{}\n", job.error().message), 1;
  const comm::Rank self = job.value().rank;
  auto endpoint = comm::Endpoint::open(std::move(job).value(), {.transports = {transport}}, log);
  if (!endpoint) return fmt::print(stderr, "{}\n", endpoint.error().message), 1;
  const std::string wrong = comm::exchange(*endpoint.value(), transport);
  if (!wrong.empty()) return fmt::print(stderr, "rank {}: {}\n", self.value(), wrong), 1;
  fmt::print("rank {} has everything\n", self.value());
}
