// tandem/comm/sync/sync_engine_test.cpp: engines with their threads over queues of this process: time, barriers,
// leaving.
#include "tandem/comm/sync/sync_engine.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/clock/drifting_clock.hpp"

namespace tandem::comm::internal::sync::sync_engine_test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

/// A rank with a clock of its own, a queue of messages, and a thread that takes them when no other thread does.
class ThreadRank final : public Messenger {
 public:
  ThreadRank(std::vector<std::unique_ptr<ThreadRank>>& ranks, std::uint32_t rank, std::uint32_t size,
             const clock::Drift& drift, const ClockNode::Options& options)
      : clock_(truth, drift),
        ranks_(ranks),
        rank_(rank),
        engine_({Rank{rank}, size, &clock_, {}, {}}, options, *this) {}
  /// Called before any rank is destroyed, since engines say goodbye to each other.
  void stop() {
    engine_.close();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    filled_.notify_all();
    thread_.join();
  }

  void start() {
    thread_ = std::thread([this] { run(); });
    engine_.start();
  }
  void send(Rank to, std::span<const std::byte> bytes, bool) override {
    ThreadRank& other = *ranks_[to.index()];
    {
      const std::lock_guard lock(other.mutex_);
      other.queue_.emplace_back(rank_, std::vector(bytes.begin(), bytes.end()));
    }
    other.filled_.notify_one();
  }
  bool progress() override {
    const std::unique_lock taking(taking_, std::try_to_lock);  // one handler at a time, as an endpoint has it
    return taking.owns_lock() && take_one();
  }

  void expect(std::int64_t) override {}

  SyncEngine& engine() { return engine_; }
  const clock::Drift& drift() const { return clock_.drift(); }

  static inline const clock::RawMonotonicClock truth{};

 private:
  bool take_one() {
    std::pair<std::uint32_t, std::vector<std::byte>> message;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      message = std::move(queue_.front());
      queue_.pop_front();
    }
    engine_.arrived(Rank{message.first}, message.second);
    return true;
  }
  void run() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
      }
      const std::lock_guard taking(taking_);
      while (take_one()) {}
    }
  }

  const clock::DriftingClock clock_;
  std::vector<std::unique_ptr<ThreadRank>>& ranks_;
  const std::uint32_t rank_;
  std::mutex mutex_;  ///< guards queue_ and stopping_
  std::condition_variable filled_;
  std::deque<std::pair<std::uint32_t, std::vector<std::byte>>> queue_;
  bool stopping_ = false;
  std::mutex taking_;
  std::thread thread_;
  SyncEngine engine_;
};

struct Ranks : std::vector<std::unique_ptr<ThreadRank>> {
  ~Ranks() {
    for (auto& rank : *this) rank->stop();
  }
};

void start(Ranks& ranks, std::uint32_t size) {
  const std::int64_t origin_ns = ThreadRank::truth.now_ns();
  for (std::uint32_t i = 0; i < size; ++i) {
    const clock::Drift drift{.origin_ns = origin_ns, .offset_ns = 1'000'000'000LL * i, .rate = 20e-6 * i};
    ranks.push_back(std::make_unique<ThreadRank>(ranks, i, size, drift, ClockNode::Options{.interval_ns = 20'000'000}));
  }
  for (auto& rank : ranks) rank->start();
  for (auto& rank : ranks) ASSERT_TRUE(rank->engine().wait_known(20 * second_ns));
}

TEST(SyncEngine, PublishesTimesWithinTheirBoundWhileItKeepsMeasuring) {
  Ranks ranks;
  start(ranks, 4);
  for (int i = 0; i < 50; ++i) {
    for (auto& rank : ranks) {
      // The line is read before the time: a line may be used later, and its bound says so.
      const clock::GlobalClock line = rank->engine().to_reference();
      const std::int64_t truth_ns = ThreadRank::truth.now_ns();
      const clock::GlobalTime time = line.to_global(rank->drift().at(truth_ns));
      ASSERT_LE(std::abs(time.ns - ranks[0]->drift().at(truth_ns)), time.error_ns);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GT(ranks[1]->engine().measurements(), 1U) << "it measured in the background";
}

TEST(SyncEngine, LeavesTheBarrierNotBeforeTheAgreedTimeWhichIsOneForAll) {
  Ranks ranks;
  start(ranks, 4);
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<BarrierAgreement> agreements(ranks.size());
    std::vector<std::int64_t> left_ns(ranks.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      threads.emplace_back([&, i] {
        agreements[i] = ranks[i]->engine().barrier().value();
        left_ns[i] = ranks[i]->engine().clock().now_ns();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      EXPECT_EQ(agreements[i].global_ns, agreements[0].global_ns);
      EXPECT_GE(left_ns[i], agreements[i].local_ns);
    }
  }
}

TEST(SyncEngine, ABarrierFailsWhenARankHasLeft) {
  Ranks ranks;
  start(ranks, 4);
  std::thread leaver([&] { ranks[3]->engine().close(); });
  const auto answer = ranks[0]->engine().barrier();  // neighbours of neighbours learn it too
  leaver.join();
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("rank 3 has left"), std::string::npos) << answer.error().message;
  EXPECT_FALSE(ranks[2]->engine().barrier().ok());
}

TEST(SyncEngine, AChildFindsAnotherParentWhenItsOwnHasLeft) {
  Ranks ranks;
  start(ranks, 4);
  ASSERT_EQ(ranks[3]->engine().parent(), Rank{1});
  ranks[1]->engine().close();
  for (int i = 0; i < 5'000 && ranks[3]->engine().parent() == Rank{1}; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ranks[3]->engine().parent(), Rank{0});
}

/// Records its calls, and sends nothing.
struct Notes final : Messenger {
  void send(Rank, std::span<const std::byte> bytes, bool) override { sent.push_back(read_record(bytes).value()); }
  bool progress() override { return false; }
  void expect(std::int64_t within_ns) override { expected_ns.push_back(within_ns); }

  std::vector<Record> sent;
  std::vector<std::int64_t> expected_ns;
};

TEST(SyncEngine, ExpectsRecordsWhileAChildMeasuresAndNoLonger) {
  Notes notes;
  SyncEngine engine({.rank = Rank{0}, .size = 2, .clock = &ThreadRank::truth}, {}, notes);
  const auto arrives = [&](const Record& record) {
    notes.expected_ns.clear();
    engine.arrived(Rank{1}, PackedRecord(record).bytes());
    return notes.expected_ns;
  };
  EXPECT_TRUE(arrives(Ready{}).empty()) << "a barrier is none of its business";
  for (const Record& record : {Record(Ask{1}), Record(Ping{1, 0}), Record(Ping{1, 0})}) {
    const auto expected = arrives(record);
    ASSERT_EQ(expected.size(), 1U);
    EXPECT_GT(expected.front(), 0);
  }
  EXPECT_TRUE(std::holds_alternative<Pong>(notes.sent.back()));
  EXPECT_LT(std::get<Pong>(notes.sent.back()).processor, Pong::no_processor);
  EXPECT_EQ(arrives(End{1}), std::vector<std::int64_t>{0}) << "it takes back what it said";
  EXPECT_TRUE(arrives(Ready{}).empty()) << "once";
}

TEST(PublishedClock, IsNeverSeenHalfWritten) {
  PublishedClock published;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::int64_t i = 0; !stop.load(); ++i) {
      const auto number = static_cast<double>(i);
      published.set(clock::GlobalClock({.origin_ns = i, .offset_ns = i, .rate = number, .error_ns = number}));
    }
  });
  for (int i = 0; i < 100'000; ++i) {
    const auto terms = published.get().terms();
    ASSERT_EQ(terms.origin_ns, terms.offset_ns);
    ASSERT_EQ(terms.rate, terms.error_ns);
    ASSERT_EQ(terms.rate, static_cast<double>(terms.origin_ns));
  }
  stop.store(true);
  writer.join();
}

}  // namespace
}  // namespace tandem::comm::internal::sync::sync_engine_test
