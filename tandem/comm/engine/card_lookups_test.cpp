// tandem/comm/engine/card_lookups_test.cpp: ranks that start late delay nothing but what is for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tandem/comm/bootstrap/thread_job.hpp"
#include "tandem/comm/endpoint_test_support.hpp"
#include "tandem/comm/engine/card_lookups.hpp"

namespace tandem::comm::card_lookups_test {
namespace {

using endpoint_test::Bytes;
using endpoint_test::pattern;

/// A directory that answers for a rank once it was admitted.
class Gate final : public Directory {
 public:
  base::Result<void> publish(const PeerCard&) override { return {}; }
  base::Result<PeerCard> lookup(Rank rank) override { return *lookup_for(rank, 3'600'000'000'000); }
  std::optional<base::Result<PeerCard>> lookup_for(Rank rank, std::int64_t slice_ns) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::nanoseconds(slice_ns),
                      [&] { return gave_up_ || admitted_.contains(rank.value()); });
    --waiting_;
    if (admitted_.contains(rank.value())) {
      PeerCard card;
      card.version = std::to_string(rank.value());
      return card;
    }
    if (!gave_up_) return std::nullopt;
    return base::Error{base::ErrorCode::io, "over"};
  }
  void give_up() override {
    const std::lock_guard guard(mutex_);
    gave_up_ = true;
    changed_.notify_all();
  }
  void admit(std::uint32_t rank) {
    const std::lock_guard guard(mutex_);
    admitted_.insert(rank);
    changed_.notify_all();
  }
  void until_waiting(unsigned lookups) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= lookups; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::uint32_t> admitted_;
  unsigned waiting_ = 0;
  bool gave_up_ = false;
};

TEST(CardLookups, EachAnswerComesWhenItIsThere) {
  const auto gate = std::make_shared<Gate>();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::uint32_t> found;
  internal::CardLookups lookups(gate, [&](Rank rank, base::Result<PeerCard> card) {
    EXPECT_TRUE(card.ok());
    const std::lock_guard guard(mutex);
    found.push_back(rank.value());
    changed.notify_all();
  });
  const auto until_found = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return found.size() >= count; });
  };
  for (const std::uint32_t rank : {1u, 2u, 3u}) lookups.ask(Rank{rank});
  gate->admit(3);
  until_found(1);
  gate->admit(1);
  until_found(2);
  gate->admit(2);
  until_found(3);
  EXPECT_THAT(found, testing::ElementsAre(3, 1, 2));
}

TEST(CardLookups, AStopEndsThoseThatWait) {
  const auto gate = std::make_shared<Gate>();
  std::atomic<unsigned> found = 0;
  internal::CardLookups lookups(gate, [&](Rank, const base::Result<PeerCard>&) { ++found; });
  for (std::uint32_t rank = 0; rank < 100; ++rank) lookups.ask(Rank{rank});
  gate->until_waiting(internal::CardLookups::kMostThreads - 1);
  lookups.stop();
  EXPECT_EQ(found, 0u);
  lookups.ask(Rank{200});  // no more
}

TEST(CardLookups, RanksThatAreAbsentDelayNoneThatIsPresent) {
  constexpr std::uint32_t absent = 500, present = 1000;
  const auto gate = std::make_shared<Gate>();
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::uint32_t> found;
  internal::CardLookups lookups(gate, [&](Rank rank, const base::Result<PeerCard>& card) {
    EXPECT_TRUE(card.ok());
    const std::lock_guard guard(mutex);
    found.insert(rank.value());
    changed.notify_all();
  });
  const auto comes = [&](std::uint32_t rank) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return found.contains(rank); });
  };
  gate->admit(present);
  for (std::uint32_t rank = 0; rank < absent; ++rank) lookups.ask(Rank{rank});
  gate->until_waiting(internal::CardLookups::kMostThreads - 1);
  lookups.ask(Rank{present});
  EXPECT_TRUE(comes(present)) << "it waits for those that are absent";
  EXPECT_EQ(found.size(), 1u);
  gate->admit(absent - 1);  // each gets its turns
  EXPECT_TRUE(comes(absent - 1));
}

TEST(CardLookups, ARankThatStaysAwayIsAskedForUntilItsTimeIsOver) {
  auto jobs = make_thread_job(2, 700'000'000);
  ASSERT_TRUE(jobs[0].directory->publish(PeerCard()));
  const auto begun = std::chrono::steady_clock::now();
  unsigned slices = 0;
  for (;; ++slices) {
    const auto card = jobs[0].directory->lookup_for(Rank{1}, 50'000'000);
    if (!card) continue;
    ASSERT_FALSE(card->ok());
    EXPECT_EQ(card->error().code, base::ErrorCode::exhausted);
    EXPECT_THAT(card->error().message, testing::HasSubstr("comm.start_timeout"));
    break;
  }
  EXPECT_GT(slices, 0u);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(600));
}

/// A job over sockets, whose ranks come one after the other.
struct LateJob {
  explicit LateJob(std::uint32_t size) : jobs(make_thread_job(size)) {
    options.transports = {"tcp"};
    options.interface = "lo";
  }
  void come(std::uint32_t rank) {
    auto opened = Endpoint::open(jobs[rank], options, log);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    if (at.size() <= rank) at.resize(rank + 1);
    at[rank] = std::move(opened).value();
  }

  base::Log log{base::LogLevel::error};
  std::vector<Job> jobs;
  EndpointOptions options;
  std::vector<std::unique_ptr<Endpoint>> at;
};

TEST(LateRank, DelaysNoMessagesOfOthersAndGetsItsOwnInOrder) {
  LateJob job(3);
  job.come(0);
  job.come(1);
  const Bytes small = pattern(100, 1), middle = pattern(10'000, 2), large = pattern(1'000'000, 3);
  std::vector<Request> sends;
  for (const Bytes* bytes : {&small, &middle, &large, &small})
    sends.push_back(job.at[0]->isend(Rank{2}, Tag{1}, *bytes));
  Bytes got(100);
  const Request early = job.at[1]->irecv(Rank{0}, Tag{1}, got);
  EXPECT_EQ(job.at[0]->wait(job.at[0]->isend(Rank{1}, Tag{1}, small)).ending, Ending::done);
  EXPECT_EQ(job.at[1]->wait(early).ending, Ending::done);
  EXPECT_FALSE(sends[0].released());
  EXPECT_THAT(job.at[0]->describe(), testing::HasSubstr("has not joined the job yet"));
  job.come(2);
  for (const Bytes* bytes : {&small, &middle, &large, &small}) {
    Bytes room(bytes->size());
    EXPECT_EQ(job.at[2]->wait(job.at[2]->irecv(Rank{0}, Tag{1}, room)).ending, Ending::done);
    EXPECT_EQ(room, *bytes);
  }
  job.at[0]->wait_all(sends);
}

TEST(LateRank, DelaysNoBroadcastToOthers) {
  for (const std::size_t bytes : {0u, 100u, 10'000u, 1'000'000u}) {
    LateJob job(5);
    const TreeKind tree = bytes == 100 ? TreeKind::chain : TreeKind::binomial;
    for (const std::uint32_t rank : {0u, 1u, 3u}) job.come(rank);
    const Bytes sent = pattern(bytes, 1);
    const std::array<Recipient, 4> recipients{{{Rank{1}, 0}, {Rank{2}, 0}, {Rank{3}, 0}, {Rank{4}, 0}}};
    const Request mcast = job.at[0]->mcast(recipients, Tag{1}, sent, {.tree = tree});
    const auto receive = [&](std::uint32_t rank) {
      Bytes got(bytes);
      EXPECT_EQ(job.at[rank]->wait(job.at[rank]->irecv(Rank{0}, Tag{1}, got)).ending, Ending::done);
      EXPECT_EQ(got, sent);
    };
    receive(1);
    receive(3);
    EXPECT_FALSE(mcast.released());
    job.come(2);
    receive(2);
    job.come(4);
    receive(4);
    EXPECT_EQ(job.at[0]->wait(mcast).ending, Ending::done);
  }
}

/// A rank that speaks first is answered once its address is here, which says how to reach it.
TEST(LateRank, MaySpeakFirst) {
  LateJob job(2);
  job.come(1);
  Bytes got(100), answer(100'000);
  const Request receive = job.at[1]->irecv(any_source, Tag{1}, got);
  job.come(0);
  const Bytes small = pattern(100, 1), large = pattern(100'000, 2);
  const Request back = job.at[0]->irecv(Rank{1}, Tag{2}, answer);
  job.at[0]->isend(Rank{1}, Tag{1}, small);
  EXPECT_EQ(job.at[1]->wait(receive).ending, Ending::done);
  const Request send = job.at[1]->isend(Rank{0}, Tag{2}, large);
  EXPECT_EQ(job.at[0]->wait(back).ending, Ending::done);
  EXPECT_EQ(answer, large);
  job.at[1]->wait(send);
}

TEST(LateRank, ThatNeverComesEndsWhatIsForIt) {
  LateJob job(2);
  job.jobs = make_thread_job(2, 50'000'000);
  job.log.set_level(base::LogLevel::error);
  job.come(0);
  const Bytes sent = pattern(100, 1);
  EXPECT_EQ(job.at[0]->wait(job.at[0]->isend(Rank{1}, Tag{1}, sent)).ending, Ending::peer_dead);
  EXPECT_EQ(job.at[0]->isend(Rank{1}, Tag{1}, sent).status().ending, Ending::peer_dead);
}

}  // namespace
}  // namespace tandem::comm::card_lookups_test
