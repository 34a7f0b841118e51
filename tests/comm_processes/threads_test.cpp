// tests/comm_processes/threads_test.cpp: several threads that post on one endpoint, and callbacks that post; for
// ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "crew.hpp"
#include "tandem/comm/endpoint.hpp"
#include "team.hpp"

namespace tandem::comm_processes::threads_test {
namespace {

using comm::Ending;
using comm::Endpoint;
using comm::Rank;
using comm::Request;
using comm::Status;
using comm::Tag;

class Threads : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, Threads, testing::Values("loop", "shm", "tcp"),
                         [](const auto& test) { return test.param; });

/// Runs `act` on that many threads of each rank, with the rank and the thread's number.
void on_threads(unsigned ranks, unsigned threads, const std::function<void(unsigned rank, unsigned thread)>& act) {
  std::vector<std::thread> running;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    for (unsigned thread = 0; thread < threads; ++thread) running.emplace_back(act, rank, thread);
  }
  for (std::thread& one : running) one.join();
}

TEST_P(Threads, FourOfThemPostOnOneEndpointAtOnce) {
  constexpr unsigned messages = 200;
  Crew crew(2, GetParam());
  std::atomic<unsigned> wrong{0};
  on_threads(2, 4, [&](unsigned rank, unsigned thread) {
    Endpoint& endpoint = *crew.at[rank];
    const Rank other{1 - rank};
    std::vector<Request> requests;
    std::vector<Bytes> in, out;
    for (unsigned i = 0; i < messages; ++i) {
      const std::size_t bytes = i % 20 == 0 ? 100'000 : i % 7 * 300;
      out.push_back(pattern(bytes, thread * messages + i));
      in.emplace_back(bytes);
    }
    for (unsigned i = 0; i < messages; ++i) {
      requests.push_back(endpoint.irecv(other, Tag{thread}, in[i]));
      requests.push_back(endpoint.isend(other, Tag{thread}, out[i], {.priority = static_cast<int>(thread)}));
      if (i % 50 == 49) endpoint.wait(requests.back());
    }
    endpoint.wait_all(requests);
    for (const Request& request : requests) wrong += request.status().ending != Ending::done;
    for (unsigned i = 0; i < messages; ++i) wrong += in[i] != out[i];  // both ranks send the same
  });
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_P(Threads, CallbacksPostTheNextMessageOfAConversation) {
  constexpr unsigned turns = 500;
  Crew crew(2, GetParam());
  std::atomic<unsigned> done{0};
  struct Talker {
    Endpoint& endpoint;
    Rank other;
    std::atomic<unsigned>& done;
    std::uint64_t value = 0;
    unsigned turn = 0;

    void listen() {
      endpoint.irecv(other, Tag{1}, {&value, sizeof value},
                     {.callbacks = {.released = [this](const Status&) { answer(); }}});
    }
    void answer() {
      if (++turn == turns) {
        ++done;
        return;
      }
      listen();
      endpoint.isend(other, Tag{1}, {&value, sizeof value});
    }
  };
  Talker first{*crew.at[0], Rank{1}, done}, second{*crew.at[1], Rank{0}, done};
  first.listen();
  second.listen();
  const std::uint64_t start = 1;
  crew.at[0]->isend(Rank{1}, Tag{1}, {&start, sizeof start});
  crew.at[1]->isend(Rank{0}, Tag{1}, {&start, sizeof start});
  while (done.load() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(first.turn + second.turn, 2 * turns);
}

TEST_P(Threads, SomeBroadcastWhileOthersSendAndProbe) {
  constexpr unsigned rounds = 30;
  Crew crew(4, GetParam());
  std::atomic<unsigned> wrong{0};
  on_threads(4, 3, [&](unsigned rank, unsigned thread) {
    Endpoint& endpoint = *crew.at[rank];
    if (thread == 0) {  // rank 0 broadcasts
      const Bytes sent = pattern(60'000, 5);
      std::vector<comm::Recipient> recipients{{Rank{1}, 1}, {Rank{2}, 2}, {Rank{3}, 3}};
      for (unsigned i = 0; i < rounds; ++i) {
        Bytes got(sent.size());
        const Request request =
            rank == 0 ? endpoint.mcast(recipients, Tag{7}, sent) : endpoint.irecv(Rank{0}, Tag{7}, got);
        wrong += endpoint.wait(request).ending != Ending::done || (rank != 0 && got != sent);
      }
    } else if (thread == 1) {  // all send in a ring
      for (unsigned i = 0; i < rounds * 10; ++i) {
        std::uint64_t value = 0;
        const std::uint64_t mine = rank * 1000 + i;
        const Request send = endpoint.isend(Rank{(rank + 1) % 4}, Tag{8}, {&mine, sizeof mine});
        endpoint.wait(endpoint.irecv(Rank{(rank + 3) % 4}, Tag{8}, {&value, sizeof value}));
        wrong += endpoint.wait(send).ending != Ending::done || value != (rank + 3) % 4 * 1000 + i;
      }
    } else {  // all look, and take back what they posted
      for (unsigned i = 0; i < rounds * 10; ++i) {
        endpoint.probe(comm::any_source, Tag{9});
        wrong += endpoint.statistics().peers > 4;
        const Request never = endpoint.irecv(comm::any_source, Tag{9}, {});
        wrong += !endpoint.cancel(never);
        std::this_thread::yield();
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_P(Threads, ActiveMessagesAreAnsweredFromTheirHandlers) {
  constexpr unsigned calls = 300;
  Crew crew(2, GetParam());
  const comm::Channel ask = crew.at[0]->channel("ask"), reply = crew.at[0]->channel("reply");
  std::atomic<unsigned> replies{0};
  std::atomic<std::uint64_t> sum{0};
  crew.at[1]->register_rpc(ask, {.done = [&](const Status& status) {
                             std::uint64_t value;
                             std::memcpy(&value, status.owned.data(), sizeof value);
                             // The answer is its header, which is copied when it is posted.
                             crew.at[1]->rpc(status.source, reply, status.tag, std::as_bytes(std::span(&value, 1)), {});
                           }});
  crew.at[0]->register_rpc(reply, {.done = [&](const Status& status) {
                             std::uint64_t value;
                             std::memcpy(&value, status.header.data(), sizeof value);
                             sum += value;
                             ++replies;
                           }});
  std::vector<std::uint64_t> values(4 * calls);
  on_threads(1, 4, [&](unsigned, unsigned thread) {
    for (unsigned i = 0; i < calls; ++i) {
      std::uint64_t& value = values[thread * calls + i] = i;
      crew.at[0]->rpc(Rank{1}, ask, Tag{thread}, {}, {&value, sizeof value});
    }
  });
  while (replies.load() < 4 * calls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(sum.load(), 4ULL * calls * (calls - 1) / 2);
}

}  // namespace
}  // namespace tandem::comm_processes::threads_test
