// tandem/comm/sync/clock_sync_test.cpp: one time over endpoints of this process: drifts, exactness on one host,
// barriers, leaving.
#include "tandem/comm/sync/clock_sync.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/clock/drifting_clock.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::comm::clock_sync_test {
namespace {

/// Ranks with a progress thread each, destroyed in the order of user programs: clocks outlive endpoints.
class Job {
 public:
  Job(std::uint32_t size, bool drift) : network_({.ranks = size}) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      drifts_.push_back({.origin_ns = truth_.now_ns(), .offset_ns = 5'000'000'000LL * rank, .rate = 30e-6 * rank});
      clocks_.push_back(drift ? std::make_unique<clock::DriftingClock>(truth_, drifts_.back()) : nullptr);
      endpoints_.push_back(Endpoint::open_loop(network_, Rank{rank}, {}, log_, nullptr));
    }
    syncs_.resize(size);
    on_all([this](std::size_t i) {
      auto opened = ClockSync::open(*endpoints_[i], {.interval_ns = 20'000'000, .clock = clocks_[i].get()}, log_);
      if (opened) syncs_[i] = std::move(opened).value();
    });
  }
  ~Job() {
    syncs_.clear();
    on_all([this](std::size_t i) { endpoints_[i]->close(); });
  }

  /// Calls `act` for each rank on a thread of its own.
  void on_all(const std::function<void(std::size_t)>& act) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < endpoints_.size(); ++i) threads.emplace_back([&act, i] { act(i); });
    for (std::thread& thread : threads) thread.join();
  }
  std::unique_ptr<ClockSync>& operator[](std::size_t rank) { return syncs_[rank]; }
  const clock::Drift& drift(std::size_t rank) const { return drifts_[rank]; }
  std::int64_t truth_ns() const { return truth_.now_ns(); }

 private:
  base::Log log_;
  clock::RawMonotonicClock truth_;
  LoopNetwork network_;
  std::vector<clock::Drift> drifts_;
  std::vector<std::unique_ptr<clock::DriftingClock>> clocks_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<ClockSync>> syncs_;
};

TEST(ClockSync, KnowsTheReferencesTimeWithinItsBoundWhateverTheClocks) {
  Job job(3, true);
  for (int i = 0; i < 30; ++i) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      ASSERT_NE(job[rank], nullptr);
      const clock::GlobalClock line = job[rank]->global_clock();
      const std::int64_t truth_ns = job.truth_ns();
      const clock::GlobalTime time = line.to_global(job.drift(rank).at(truth_ns));
      ASSERT_LE(std::abs(time.ns - job.drift(0).at(truth_ns)), time.error_ns) << "rank " << rank;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(job[2]->parent(), Rank{0});
  EXPECT_EQ(job[0]->parent(), std::nullopt);
  EXPECT_GT(job[2]->corrections(), 1U);
}

TEST(ClockSync, RanksOfOneHostAreExact) {
  Job job(4, false);  // the machine's own clocks, calibrated apart
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ASSERT_NE(job[rank], nullptr);
    EXPECT_LE(job[rank]->global_now().error_ns, 12) << "rank " << rank;
    const std::int64_t before_ns = job[0]->global_now().ns;
    const std::int64_t now_ns = job[rank]->global_now().ns;
    const std::int64_t after_ns = job[0]->global_now().ns;
    EXPECT_GE(now_ns, before_ns - 12);
    EXPECT_LE(now_ns, after_ns + 12);
  }
}

TEST(ClockSync, AllRanksLeaveABarrierAtOneTime) {
  Job job(4, true);
  std::vector<BarrierExit> exits(4);
  for (int repetition = 0; repetition < 3; ++repetition) {
    job.on_all([&](std::size_t i) {
      exits[i] = job[i]->barrier().value();
      EXPECT_GE(job[i]->local_clock().now_ns(), exits[i].local_ns);
    });
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(exits[i].global_ns, exits[0].global_ns);
  }
}

TEST(ClockSync, ABarrierWithoutAllRanksIsAnErrorThatNamesWhoLeft) {
  Job job(3, true);
  std::optional<base::Result<BarrierExit>> answer;
  job.on_all([&](std::size_t i) {
    if (i == 2) job[2].reset();
    if (i == 0) answer = job[0]->barrier();
  });
  ASSERT_FALSE(answer->ok());
  EXPECT_NE(answer->error().message.find("rank 2 has left"), std::string::npos) << answer->error().message;
  EXPECT_GT(job[1]->global_now().ns, 0) << "time goes on";
}

TEST(ClockSync, ARankAloneHasItsOwnTime) {
  Job job(1, true);
  ASSERT_NE(job[0], nullptr);
  const std::int64_t local_ns = job[0]->local_clock().now_ns();
  EXPECT_EQ(job[0]->to_global(local_ns).ns, local_ns);
  EXPECT_TRUE(job[0]->barrier().ok());
}

TEST(ClockSync, SaysWhoDoesNotAnswer) {
  base::Log log;
  LoopNetwork network({.ranks = 2});
  const auto reference =
      Endpoint::open_loop(network, Rank{0}, {}, log, nullptr);  // which opens no clock synchronisation
  const auto endpoint = Endpoint::open_loop(network, Rank{1}, {}, log, nullptr);
  const auto sync = ClockSync::open(*endpoint, {.timeout_ns = 50'000'000}, log);
  ASSERT_FALSE(sync.ok());
  EXPECT_EQ(sync.error().code, base::ErrorCode::exhausted);
  EXPECT_NE(sync.error().message.find("from rank 0"), std::string::npos) << sync.error().message;
  std::thread leaver([&] { reference->close(); });  // both at once: leaving is a handshake
  endpoint->close();
  leaver.join();
}

TEST(ClockSyncOptions, AreOptionsOfTheRegistry) {
  base::Registry registry;
  add_clock_options(registry);
  base::ConfigSources sources;
  sources.environment = {{"TANDEM_CLOCK_INTERVAL", "250ms"}, {"TANDEM_CLOCK_RATE_LIMIT_PPM", "200"}};
  const auto config = base::Config::load(registry, sources);
  ASSERT_TRUE(config.ok()) << config.error().message;
  const ClockSyncOptions options = clock_options(config.value());
  EXPECT_EQ(options.interval_ns, 250'000'000);
  EXPECT_EQ(options.ping_pongs, ClockSyncOptions{}.ping_pongs);
  EXPECT_DOUBLE_EQ(options.rate_limit, 200e-6);
  EXPECT_DOUBLE_EQ(options.rate_change_per_s, ClockSyncOptions{}.rate_change_per_s);
}

}  // namespace
}  // namespace tandem::comm::clock_sync_test
