// tandem/runtime/worker/link_curves_test.cpp: links of known figures, which share a bus or do not.
#include "tandem/runtime/worker/link_curves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::runtime::link_curves_test {
namespace {

struct PlainMemory final : MemoryNode {
  std::string name() const override { return "memory"; }
  void* allocate(std::size_t bytes) override {
    most = std::max(most, bytes);
    return ::operator new(bytes);
  }
  void release(void* memory, std::size_t) noexcept override { ::operator delete(memory); }
  std::size_t most = 0;
};

constexpr double kLatency_ns = 2'000, kRate = 4;
double alone_ns(std::size_t bytes) { return kLatency_ns + static_cast<double>(bytes) / kRate; }

/// A bus with times of its own: each copy occupies it for its time, in the order of arrival.
class Bus {
 public:
  explicit Bus(clock::ManualClock& clock) : clock_(clock) {}
  void pass(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    const unsigned turn = last_++;
    most_waiting = std::max(most_waiting, last_ - next_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return turn == next_; });
    // Waits for the next copy, which comes meanwhile unless there is none any more.
    if (waits_) changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return last_ - next_ > 1; });
    clock_.advance_ns(static_cast<std::int64_t>(alone_ns(bytes)));
    ++next_;
    changed_.notify_all();
  }
  /// From now on a copy ends when the next one has come.
  void expect_company() { waits_ = true; }
  unsigned most_waiting = 0;

 private:
  clock::ManualClock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned next_ = 0, last_ = 0;
  bool waits_ = false;
};

struct BusCopier : Copier {
  explicit BusCopier(Bus& b) : bus(b) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override {
    if (fails) throw std::runtime_error("no copy");
    bus.pass(request.shape.bytes());
    {
      const std::lock_guard guard(mutex);
      ends.emplace(request.from_node, request.to_node);
      most = std::max(most, request.shape.bytes());
    }
    ended(nullptr);
    return CopyState::posted;
  }
  Bus& bus;
  bool fails = false;
  std::mutex mutex;
  std::set<std::pair<NodeIndex, NodeIndex>> ends;
  std::size_t most = 0;
};
struct OtherCopier final : BusCopier {
  using BusCopier::BusCopier;
};

class MeasuredCurves : public testing::Test {
 protected:
  MeasuredCurves() {
    world.clock = &clock;
    world.add_cpu_workers(2);
    options.sizes = {4'096, 65'536, 1 << 20};
    options.copies = 5;
  }
  template <class Kind = BusCopier>
  BusCopier& add(NodeKind kind, DeviceKind device = DeviceKind::cuda, std::size_t budget = 0) {
    auto copier = std::make_unique<Kind>(bus);
    BusCopier& added = *copier;
    const NodeIndex node = world.add_memory({.kind = kind, .name = "memory", .budget = budget},
                                            std::make_unique<PlainMemory>(), std::move(copier));
    if (kind == NodeKind::device) world.machine.workers.push_back({.kind = device, .node = node});
    return added;
  }
  std::set<std::pair<NodeIndex, NodeIndex>> measured() {
    std::set<std::pair<NodeIndex, NodeIndex>> links;
    for (const LinkCurves& curves : measure_link_curves(world, options)) links.emplace(curves.from, curves.to);
    return links;
  }
  using Links = std::set<std::pair<NodeIndex, NodeIndex>>;
  clock::ManualClock clock;
  Bus bus{clock};
  World world;
  LinkCurveOptions options;
};

TEST_F(MeasuredCurves, HaveLatencyAndRateAlone) {
  add(NodeKind::device);
  const std::vector<LinkCurves> curves = measure_link_curves(world, options);
  ASSERT_EQ(curves.size(), 2U);
  for (const LinkCurves& one : curves) {
    for (const std::size_t bytes : options.sizes)
      EXPECT_NEAR(LinkCurves::rate(one.times.alone, bytes).value_or(0), static_cast<double>(bytes) / alone_ns(bytes),
                  0.01)
          << bytes;
    const auto link = one.link();
    ASSERT_TRUE(link);
    EXPECT_NEAR(link->bytes_per_ns, kRate, 0.05);
    EXPECT_NEAR(static_cast<double>(link->latency_ns), kLatency_ns, 50);
    EXPECT_EQ(link->source, LinkSource::measured);
    world.machine.set_link(*link);
  }
  world.machine.check();
}

TEST_F(MeasuredCurves, OfOneBusAreSlowerAllAtOnce) {
  add(NodeKind::device);
  options.sizes = {65'536, 1 << 20};
  // Without traffic no copy comes meanwhile.
  options.progress = [&](unsigned, unsigned, std::string_view what) {
    if (what.starts_with("all links at once")) bus.expect_company();
  };
  for (const LinkCurves& one : measure_link_curves(world, options)) {
    const auto link = one.link();
    ASSERT_TRUE(link && link->loaded_bytes_per_ns);
    EXPECT_NEAR(link->bytes_per_ns, kRate, 0.05);
    EXPECT_GT(*link->loaded_bytes_per_ns / link->bytes_per_ns, 0.4);
    EXPECT_LT(*link->loaded_bytes_per_ns / link->bytes_per_ns, 0.75) << "two copies share the bus";
  }
  EXPECT_EQ(bus.most_waiting, 2U);
}

TEST(LinkCurves, HaveTheRateOfLargeCopiesAlsoWhereSmallOnesStayInCaches) {
  LinkCurves curves{.from = 0, .to = 1, .times = {}};
  EXPECT_FALSE(curves.link());
  for (int i = 0; i < 8; ++i)
    for (std::size_t bytes = 4'096; bytes <= 16 << 20; bytes *= 4) {
      const double rate = bytes <= 1 << 20 ? 80 : 10;
      curves.times.alone.add(bytes, 500 + static_cast<double>(bytes) / rate);
      curves.times.loaded.add(bytes, 500 + 2 * static_cast<double>(bytes) / rate);
    }
  const auto link = curves.link();
  ASSERT_TRUE(link);
  EXPECT_NEAR(link->bytes_per_ns, 10, 0.1);
  EXPECT_NEAR(link->loaded_bytes_per_ns.value_or(0), 5, 0.1);
  EXPECT_NEAR(link->copy_ns(16 << 20) / 1'677'721.6, 1, 0.01);
  EXPECT_NEAR(link->copy_ns(4'096), 500 + 4'096 / 80.0, 1) << "the latency is made for it";
}

TEST_F(MeasuredCurves, AreThoseOverWhichOneCopyLeads) {
  add(NodeKind::device);
  add<OtherCopier>(NodeKind::device, DeviceKind::opencl);
  add<OtherCopier>(NodeKind::storage);
  EXPECT_EQ(measured(), (Links{{0, 1}, {1, 0}, {0, 2}, {2, 0}, {0, 3}, {3, 0}})) << "no copier knows two of them";
}

TEST_F(MeasuredCurves, LeadBetweenDevicesOfOneKindAndNumaNodes) {
  add(NodeKind::device), add(NodeKind::device);
  BusCopier& numa = add<OtherCopier>(NodeKind::numa);
  EXPECT_EQ(measured().size(), 12U);
  EXPECT_EQ(numa.ends, (Links{{0, 3}, {3, 0}})) << "a device's copier brings its data there, as to main memory";
}

TEST_F(MeasuredCurves, AreThoseOfDevicesOfTheProgramToo) {
  add(NodeKind::device, DeviceKind::user);
  EXPECT_EQ(measured(), (Links{{0, 1}, {1, 0}}));
}

TEST_F(MeasuredCurves, LeaveOutSizesBeyondTheBudget) {
  const BusCopier& copier = add(NodeKind::device, DeviceKind::cuda, 8 * 65'536);
  for (const LinkCurves& one : measure_link_curves(world, options)) {
    EXPECT_TRUE(LinkCurves::rate(one.times.alone, 65'536));
    EXPECT_FALSE(LinkCurves::rate(one.times.alone, 1 << 20));
    EXPECT_FALSE(LinkCurves::rate(one.times.loaded, 1 << 20));
  }
  EXPECT_EQ(copier.most, 65'536U);
}

TEST_F(MeasuredCurves, EndInTime) {
  add(NodeKind::device);
  options.most_ns = 1;
  unsigned steps = 0;
  options.progress = [&](unsigned step, unsigned all, std::string_view) {
    EXPECT_EQ(step, steps++);
    EXPECT_EQ(all, 2U + 3U);
  };
  for (const LinkCurves& one : measure_link_curves(world, options)) EXPECT_FALSE(one.link()) << "too few copies";
  EXPECT_EQ(steps, 5U);
}

TEST_F(MeasuredCurves, LeaveOutLinksWhoseCopiesFail) {
  add(NodeKind::device);
  add(NodeKind::device, DeviceKind::opencl).fails = true;
  for (const auto& [from, to] : measured()) EXPECT_TRUE(from != 2 && to != 2) << from << " to " << to;
}

TEST_F(MeasuredCurves, RunOnCoresOfTheWorkersThere) {
  add<OtherCopier>(NodeKind::numa);
  world.machine.workers[0].core = 4;
  world.machine.workers[1].core = 7;
  world.machine.workers[1].node = 1;
  std::mutex mutex;
  std::set<int> cores;
  options.bind = [&](int core) {
    const std::lock_guard guard(mutex);
    cores.insert(core);
  };
  EXPECT_EQ(measured().size(), 2U);
  EXPECT_EQ(cores, (std::set<int>{4, 7}));
}

TEST_F(MeasuredCurves, HaveARateBesideMessagesWhenThatIsMeasured) {
  add(NodeKind::device);
  LinkMeter meter(world, options);
  EXPECT_TRUE(meter.has_links());
  meter.measure_beside_messages();
  for (const LinkCurves& one : meter.curves()) {
    EXPECT_FALSE(one.link()) << "nothing is known of the link alone";
    for (const std::size_t bytes : options.sizes)
      EXPECT_NEAR(LinkCurves::rate(one.beside_messages, bytes).value_or(0),
                  static_cast<double>(bytes) / alone_ns(bytes), 0.01)
          << bytes;
  }
  meter.measure();
  const std::vector<LinkCurves> curves = meter.curves();
  ASSERT_EQ(curves.size(), 2U);
  for (const LinkCurves& one : curves)
    EXPECT_NEAR(one.link().value().beside_messages_bytes_per_ns.value_or(0), kRate, 0.05);
}

TEST_F(MeasuredCurves, TrafficGoesOverAllLinksUntilItStops) {
  BusCopier& copier = add(NodeKind::device);
  LinkMeter meter(world, options);
  copier.ends.clear();
  meter.start_traffic(std::size_t{1} << 30);
  const auto both_have_copied = [&] {
    const std::lock_guard guard(copier.mutex);
    return copier.ends.size() == 2;
  };
  while (!both_have_copied()) std::this_thread::yield();
  meter.stop_traffic();
  EXPECT_EQ(copier.most, std::size_t{1} << 20) << "there is room for the largest size";
  copier.ends.clear();
  EXPECT_TRUE(copier.ends.empty()) << "nobody copies any more";
  meter.stop_traffic();
}

TEST_F(MeasuredCurves, NobodyMeasuresOneMemory) { EXPECT_TRUE(measured().empty()); }

}  // namespace
}  // namespace tandem::runtime::link_curves_test
