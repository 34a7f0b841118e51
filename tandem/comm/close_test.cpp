// tandem/comm/close_test.cpp: a rank that leaves in order is not taken for a dead one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/thread_job.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm::close_test {
namespace {

class Close : public testing::TestWithParam<const char*> {};

/// Rank 0 waits for rank 1, which has never polled when it leaves: the connection is made while rank 1 closes.
TEST_P(Close, OfARankThatNeverSpokeIsNoDeath) {
  base::Log log(base::LogLevel::error);
  std::vector<Job> jobs = make_thread_job(2);
  EndpointOptions options;
  options.transports = {GetParam()};
  options.interface = "lo";
  options.progress = "inline";
  std::vector<std::unique_ptr<Endpoint>> at;
  for (Job& job : jobs) {
    auto opened = Endpoint::open(std::move(job), options, log);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    at.push_back(std::move(opened).value());
  }
  bool died = false;
  at[0]->on_peer_death([&](Rank, std::string_view) { died = true; });
  std::vector<std::byte> room(10);
  const Request receive = at[0]->irecv(Rank{1}, Tag{1}, room);
  while (at[0]->connected_ranks().empty()) at[0]->progress();
  for (int i = 0; i < 200; ++i) at[0]->progress();  // it has called rank 1 now
  std::thread leaving([&] { at[1]->close(); });
  EXPECT_EQ(at[0]->wait(receive).ending, Ending::peer_left);
  leaving.join();
  while (at[0]->progress()) {}
  EXPECT_FALSE(died);
  EXPECT_EQ(at[0]->isend(Rank{1}, Tag{1}, room).status().ending, Ending::peer_left);
}

INSTANTIATE_TEST_SUITE_P(Transports, Close, testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tandem::comm::close_test
