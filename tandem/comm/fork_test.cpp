// tandem/comm/fork_test.cpp: a forked child has copies of its parent's endpoints that do nothing.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "tandem/base/sanitizers.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/thread_job.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm::fork_test {
namespace {

/// A mode of progress. "inline" has no progress thread: then a child's copy could do everything that it should not.
struct Way {
  const char* transport;
  const char* progress;
};

class Fork : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (base::under_thread_sanitizer)
      GTEST_SKIP() << "ThreadSanitizer takes threads of the parent for leaks of a child";
    EndpointOptions options;
    options.transports = {GetParam().transport};
    options.interface = "lo";
    options.progress = GetParam().progress;
    for (Job& job : make_thread_job(2)) {
      auto opened = Endpoint::open(std::move(job), options, log_);
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      at_.push_back(std::move(opened).value());
    }
    at_[0]->on_peer_death([this](Rank, std::string_view) { died_ = true; });
    at_[1]->on_peer_death([this](Rank, std::string_view) { died_ = true; });
    exchange();
  }
  void exchange() {
    const std::vector<std::byte> sent(1000);
    std::vector<std::byte> there(1000), back(1000);
    std::vector<Request> requests = {at_[1]->irecv(Rank{0}, Tag{1}, there), at_[0]->irecv(Rank{1}, Tag{1}, back),
                                     at_[0]->isend(Rank{1}, Tag{1}, sent), at_[1]->isend(Rank{0}, Tag{1}, sent)};
    for (const Request& request : requests) {
      while (!request.released())
        for (const auto& endpoint : at_) endpoint->progress();
      EXPECT_EQ(request.status().ending, Ending::done);
    }
  }
  /// Runs `act` in a child. Returns its exit code, or -1 when a signal ends it.
  template <class Act>
  static int in_child(Act act) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(act());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  base::Log log_{base::LogLevel::error};
  std::vector<std::unique_ptr<Endpoint>> at_;
  bool died_ = false;
};

TEST_P(Fork, AChildThatDestroysItsCopiesSaysNothingToThePeers) {
  EXPECT_EQ(in_child([&] {
    at_[0]->close();
    at_.clear();
    return 0;
  }), 0);
  exchange();
  EXPECT_FALSE(died_);
}

TEST_P(Fork, AChildIsToldThatItHasNoEndpoint) {
  EXPECT_EQ(in_child([&] {
    int told = 0;
    std::vector<std::byte> room(10);
    const auto tells = [&](auto act) {
      try {
        act();
      } catch (const UsageError& error) {
        told += std::string(error.what()).find("fork()") != std::string::npos;
      }
    };
    tells([&] { at_[0]->isend(Rank{1}, Tag{1}, room); });
    tells([&] { at_[0]->irecv(Rank{1}, Tag{1}, room); });
    tells([&] { at_[0]->progress(); });
    tells([&] { at_[0]->wait_all({}); });
    return told;
  }), 4);
  exchange();
  EXPECT_FALSE(died_);
}

TEST_P(Fork, APeersEndIsNoticedThoughAChildOfItLives) {
  int end[2] = {-1, -1};
  ASSERT_EQ(pipe(end), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    ::close(end[1]);
    char byte;
    (void)!read(end[0], &byte, 1);
    _exit(0);
  }
  std::vector<std::byte> room(10);
  const Request receive = at_[0]->irecv(Rank{1}, Tag{2}, room);
  at_[1]->abandon();
  at_[1].reset();
  at_[1] = nullptr;
  EXPECT_NE(at_[0]->wait(receive).ending, Ending::done);
  ::close(end[0]);
  ::close(end[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Fork, testing::Values(Way{"shm", "inline"}, Way{"shm", "thread"}, Way{"tcp", "inline"}, Way{"tcp", "thread"}),
    [](const auto& test) { return std::string(test.param.transport) + "_" + test.param.progress; });

}  // namespace
}  // namespace tandem::comm::fork_test
