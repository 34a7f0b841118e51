// tests/comm_processes/many_endpoints_test.cpp: thousands of ranks in one process. COMM_PROCESSES_RANKS=n says how
// many.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::comm_processes::many_endpoints_test {
namespace {

using comm::Endpoint;
using comm::Rank;
using comm::Request;
using comm::Tag;

std::size_t allocated_bytes() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

TEST(ManyEndpoints, ThousandsOfOneProcessPassAMessageRoundAndCostLittle) {
  const char* const wanted = std::getenv("COMM_PROCESSES_RANKS");
  const auto ranks = static_cast<std::uint32_t>(wanted ? std::strtoul(wanted, nullptr, 10) : 1'500);
  base::EventLoop loop(1);
  base::Log log(base::LogLevel::error);
  comm::LoopNetwork network({.ranks = ranks, .latency_max_ns = 1'000}, &loop);
  const std::size_t before = allocated_bytes();
  std::vector<std::unique_ptr<Endpoint>> at;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    at.push_back(Endpoint::open_loop(network, Rank{rank}, {}, log, &loop));
  const double idle_bytes = static_cast<double>(allocated_bytes() - before) / ranks;

  std::vector<std::uint64_t> got(ranks), sent(ranks);
  std::vector<Request> requests;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    sent[rank] = rank + 1;
    requests.push_back(at[rank]->irecv(Rank{(rank + ranks - 1) % ranks}, Tag{1}, {&got[rank], sizeof got[rank]}));
    requests.push_back(at[rank]->isend(Rank{(rank + 1) % ranks}, Tag{1}, {&sent[rank], sizeof sent[rank]}));
  }
  at[0]->wait_all(requests);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ASSERT_EQ(got[rank], (rank + ranks - 1) % ranks + 1);
  const double used_bytes = static_cast<double>(allocated_bytes() - before) / ranks;
  std::printf("an idle endpoint: %.0f B; one that has spoken to two peers: %.0f B\n", idle_bytes, used_bytes);
  if (!base::under_sanitizer) {
    EXPECT_LT(idle_bytes, 64 * 1024);
    EXPECT_LT(used_bytes, 64 * 1024);
  }
}

}  // namespace
}  // namespace tandem::comm_processes::many_endpoints_test
