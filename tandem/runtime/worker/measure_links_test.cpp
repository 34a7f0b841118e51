// tandem/runtime/worker/measure_links_test.cpp: links between memories whose copies take a known time.
#include "tandem/runtime/worker/measure_links.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace tandem::runtime::measure_links_test {
namespace {

struct PlainMemory final : MemoryNode {
  std::string name() const override { return "memory"; }
  void* allocate(std::size_t bytes) override { return bytes <= most ? ::operator new(bytes) : nullptr; }
  void release(void* memory, std::size_t) noexcept override { ::operator delete(memory); }
  std::size_t most = SIZE_MAX;
};

/// Copies with different rates to and from the device, each slower the first time.
struct TimedCopier : Copier {
  explicit TimedCopier(clock::ManualClock& c) : clock(c) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override {
    ++copies;
    if (fails) throw std::runtime_error("no copy");
    clock.advance_ns(1'000 + static_cast<std::int64_t>(request.shape.bytes()) / (request.to_node == 0 ? 2 : 4) +
                     (copies == 1 ? 1'000'000 : 0));
    ended(nullptr);
    return CopyState::posted;
  }
  clock::ManualClock& clock;
  int copies = 0;
  bool fails = false;
};
struct OtherCopier final : TimedCopier {
  using TimedCopier::TimedCopier;
};

class MeasuredLinks : public testing::Test {
 protected:
  MeasuredLinks() {
    world.clock = &clock;
    world.add_cpu_workers(1);
  }
  template <class Kind = TimedCopier>
  TimedCopier& add(DeviceKind kind, std::size_t budget = 0, std::size_t most = SIZE_MAX) {
    auto memory = std::make_unique<PlainMemory>();
    memory->most = most;
    auto copier = std::make_unique<Kind>(clock);
    TimedCopier& added = *copier;
    const NodeIndex node = world.add_memory({.kind = NodeKind::device, .name = "device", .budget = budget},
                                            std::move(memory), std::move(copier));
    world.machine.workers.push_back({.kind = kind, .node = node});
    return added;
  }
  clock::ManualClock clock;
  World world;
};

TEST_F(MeasuredLinks, HaveTheRateAndLatencyOfEachDirection) {
  add(DeviceKind::opencl);
  measure_links(world);
  ASSERT_EQ(world.machine.links.size(), 2U);
  EXPECT_NEAR(world.machine.link(0, 1).bytes_per_ns, 4, 0.01);
  EXPECT_NEAR(world.machine.link(1, 0).bytes_per_ns, 2, 0.01);
  EXPECT_NEAR(static_cast<double>(world.machine.link(0, 1).latency_ns), 1'000, 10);
  EXPECT_EQ(world.machine.link(1, 0).source, LinkSource::measured);
  world.machine.check();
}

TEST_F(MeasuredLinks, AreThoseOfWhichNothingIsKnown) {
  add(DeviceKind::cuda);
  world.machine.add_links(0, 1, 16, 5, LinkSource::given);
  add(DeviceKind::user);  // one of the program's own devices
  measure_links(world);
  EXPECT_EQ(world.machine.link(0, 1).source, LinkSource::given);
  EXPECT_EQ(world.machine.link(0, 2).source, LinkSource::measured);
}

TEST_F(MeasuredLinks, LeadBetweenDevicesWhoseCopiersAreOfOneClass) {
  add(DeviceKind::cuda), add(DeviceKind::cuda), add<OtherCopier>(DeviceKind::opencl);
  measure_links(world);
  EXPECT_EQ(world.machine.link(1, 2).source, LinkSource::measured);
  EXPECT_EQ(world.machine.link(2, 1).source, LinkSource::measured);
  EXPECT_EQ(world.machine.link(0, 3).source, LinkSource::measured);
  EXPECT_EQ(world.machine.link(1, 3).source, LinkSource::assumed);
  EXPECT_EQ(world.machine.link(3, 2).source, LinkSource::assumed);
}

TEST_F(MeasuredLinks, NeedNoMoreMemoryThanTheDeviceHas) {
  add(DeviceKind::cuda, 40'000, 10'000);
  measure_links(world);
  EXPECT_EQ(world.machine.link(0, 1).source, LinkSource::measured);
  EXPECT_NEAR(world.machine.link(0, 1).bytes_per_ns, 4, 0.1);
}

TEST_F(MeasuredLinks, OfATinyDeviceHaveNoLatency) {
  add(DeviceKind::cuda, 4'000);
  measure_links(world);
  EXPECT_EQ(world.machine.link(0, 1).latency_ns, 0);
  EXPECT_GT(world.machine.link(0, 1).bytes_per_ns, 0);
  add(DeviceKind::cuda, 3);  // a quarter of the budget is 0 bytes
  measure_links(world);
  EXPECT_EQ(world.machine.link(0, 2).source, LinkSource::assumed);
  EXPECT_EQ(world.machine.link(1, 2).source, LinkSource::assumed);
}

TEST_F(MeasuredLinks, StayUnknownWhereCopiesFail) {
  add(DeviceKind::cuda).fails = true;
  add(DeviceKind::cuda, 0, 10);  // has no memory
  measure_links(world);
  EXPECT_TRUE(world.machine.links.empty());
}

}  // namespace
}  // namespace tandem::runtime::measure_links_test
