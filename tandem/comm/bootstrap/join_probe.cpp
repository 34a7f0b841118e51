// tandem/comm/bootstrap/join_probe.cpp: a rank that joins, publishes, looks up all others and reports; for tests of
// start-up. Usage: join_probe [--quiet] [--publish-nothing] [--wait SECONDS] [--wire VERSION]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/join.hpp"

using namespace tandem;

namespace {

struct Request {
  std::uint32_t wire_version = 1;
  unsigned wait_s = 0;  ///< between joining and publishing
  bool publishes = true;
  bool quiet = false;
};

Request read_arguments(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quiet") request.quiet = true;
    else if (word == "--publish-nothing") request.publishes = false;
    else if (word == "--wait" && i + 1 < argc) request.wait_s = static_cast<unsigned>(std::atoi(argv[++i]));
    else if (word == "--wire" && i + 1 < argc) request.wire_version = static_cast<std::uint32_t>(std::atoi(argv[++i]));
  }
  return request;
}

int fail(const base::Error& error) {
  std::fprintf(stderr, "join_probe: %s\n", error.message.c_str());
  return 3;
}

/// "0 1 2": what each of the others says it is.
base::Result<std::string> find_all(const comm::Job& job) {
  std::string found;
  for (std::uint32_t peer = 0; peer < job.size; ++peer) {
    const auto card = job.directory->lookup(base::Rank(peer));
    if (!card) return card.error();
    found += (peer == 0 ? "" : " ") + card.value().transports.at(0).second;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const Request request = read_arguments(argc, argv);
  base::Log log;
  const auto joined =
      comm::join_job({.environment = base::process_environment(), .log = log, .timeout_ns = 20'000'000'000});
  if (!joined) return fail(joined.error());
  const comm::Job& job = joined.value();
  std::string found = "0";
  sleep(request.wait_s);
  if (job.directory != nullptr && request.publishes) {
    const comm::PeerCard card{request.wire_version, fmt::format("0.{}", request.wire_version), "host", "host",
                              {{"tcp", std::to_string(job.rank.value())}}};
    if (const auto done = job.directory->publish(card); !done) return fail(done.error());
    const auto all = find_all(job);
    if (!all) return fail(all.error());
    found = all.value();
  }
  if (!request.quiet)
    fmt::print("{} of {} by {} found {}; secret {:02x}{:02x}, job {}\n", job.rank.value(), job.size, job.source, found,
               static_cast<unsigned>(job.secret[0]), static_cast<unsigned>(job.secret[1]), job.id);
  return 0;
}
