// tandem/comm/peers_bench.cpp: memory and descriptors that a peer takes. All ranks are endpoints of one process; rank 0
// speaks to each of them. Usage: comm_peers [RANKS [TRANSPORT]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/thread_job.hpp"
#include "tandem/comm/endpoint.hpp"

namespace {

using namespace tandem;
using comm::Endpoint;
using comm::Rank;
using comm::Request;
using comm::Tag;

struct Use {
  double kib = 0;          ///< of memory; shared pages count once
  double descriptors = 0;
};

Use use_now() {
  Use use;
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    if (word == "Pss:") rollup >> use.kib;
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) (void)entry, ++use.descriptors;
  return use;
}

class Crowd {
 public:
  Crowd(std::uint32_t ranks, const std::string& transport) : log_(base::LogLevel::warn) {
    auto jobs = comm::make_thread_job(ranks);
    for (comm::Job& job : jobs) {
      job.ranks_here = ranks;
      comm::EndpointOptions options;
      options.transports = {transport};
      options.interface = "lo";
      options.progress = "inline";
      auto opened = Endpoint::open(std::move(job), options, log_);
      if (!opened) fail(opened.error().message);
      at_.push_back(std::move(opened).value());
    }
  }
  /// Rank 0 sends `bytes` bytes to each other rank, and gets as many back, `rounds` times.
  void talk(std::size_t bytes, unsigned rounds) {
    std::vector<std::byte> sent(bytes), got(bytes);
    for (std::uint32_t peer = 1; peer < at_.size(); ++peer) {
      for (unsigned round = 0; round < rounds; ++round) {
        const Request there = at_[peer]->irecv(Rank{0}, Tag{1}, got);
        const Request out = at_[0]->isend(Rank{peer}, Tag{1}, sent);
        step_until({there, out}, peer);
        const Request back = at_[0]->irecv(Rank{peer}, Tag{2}, got);
        const Request answer = at_[peer]->isend(Rank{0}, Tag{2}, sent);
        step_until({back, answer}, peer);
      }
    }
  }
  void close() {
    for (int i = 0; i < 100; ++i)
      for (const auto& endpoint : at_) endpoint->progress();
    for (const auto& endpoint : at_) endpoint->abandon();
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    std::fprintf(stderr, "comm_peers: %s\n", why.c_str());
    std::exit(1);
  }
  void step_until(const std::vector<Request>& requests, std::uint32_t peer) {
    for (const Request& request : requests) {
      while (!request.released()) {
        at_[0]->progress();
        at_[peer]->progress();
      }
      if (request.status().ending != comm::Ending::done) fail("a message did not arrive");
    }
  }

  base::Log log_;
  std::vector<std::unique_ptr<Endpoint>> at_;
};

void print(const char* what, const Use& before, const Use& after, double count) {
  std::printf("  %-44s %9.1f KiB, %5.2f descriptors\n", what, (after.kib - before.kib) / count,
              (after.descriptors - before.descriptors) / count);
}

}  // namespace

int main(int argc, char** argv) {
  const auto ranks = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100);
  const std::string transport = argc > 2 ? argv[2] : "shm";
  if (ranks < 2) {
    std::fprintf(stderr, "usage: comm_peers [RANKS [TRANSPORT]], with two ranks or more\n");
    return 2;
  }
  tandem::base::raise_descriptor_limit();
  const Use nothing = use_now();
  Crowd crowd(ranks, transport);
  const Use opened = use_now();
  crowd.talk(8, 1);
  const Use met = use_now();
  crowd.talk(32 * 1024, 64);
  const Use busy = use_now();
  const double peers = ranks - 1;
  std::printf("%s, %u ranks on one machine:\n", transport.c_str(), ranks);
  print("an endpoint that has spoken to nobody", nothing, opened, ranks);
  print("a pair that has spoken, both sides together", opened, met, peers);
  print("a pair after 2 MiB each way, both sides", opened, busy, peers);
  crowd.close();
}
