// tandem/base/topology_test.cpp: a known synthetic machine, and invariants of the real one.
#include "tandem/base/topology.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/base/large_memory.hpp"

namespace tandem::base::topology_test {
namespace {

/// Two packages of one NUMA node and one L3 each, two L2 in each, two cores under each L2, two hardware threads per
/// core.
Topology eight_cores() { return Topology::synthetic("package:2 numa:1 l3:1 l2:2 core:2 pu:2").value(); }

/// Binds all threads, like a launcher before a program starts: a sanitizer has a thread of its own in here.
void bind_all_threads(const std::vector<unsigned>& pus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const unsigned pu : pus) CPU_SET(pu, &mask);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    sched_setaffinity(std::stoi(entry.path().filename().string()), sizeof mask, &mask);
}

TEST(Topology, ASyntheticMachineIsReadAsDescribed) {
  const Topology machine = eight_cores();
  EXPECT_EQ(machine.cores().size(), 8U);
  EXPECT_EQ(machine.pu_count(), 16U);
  EXPECT_EQ(machine.package_count(), 2U);
  ASSERT_EQ(machine.numa_nodes().size(), 2U);
  EXPECT_EQ(machine.numa_nodes()[1].cores.front(), CoreId(4));
  EXPECT_EQ(machine.cores()[5].package, 1U);
  EXPECT_EQ(machine.cores()[5].numa_node, 1U);
  const auto l3 = std::count_if(machine.caches().begin(), machine.caches().end(),
                                [](const Cache& c) { return c.level == 3; });
  EXPECT_EQ(l3, 2);
  EXPECT_TRUE(machine.is_synthetic());
}

TEST(Topology, DistanceGrowsWithEachLevelThatIsNotShared) {
  const Topology machine = eight_cores();
  const auto distance = [&](unsigned a, unsigned b) { return machine.distance(CoreId(a), CoreId(b)); };
  EXPECT_EQ(distance(3, 3), 0U);
  EXPECT_LT(distance(0, 0), distance(0, 1));  // the same L2
  EXPECT_LT(distance(0, 1), distance(0, 2));  // the same L3
  EXPECT_LT(distance(0, 2), distance(0, 4));  // another package
  EXPECT_EQ(distance(0, 4), distance(4, 0));
}

TEST(Topology, NearestFirstListsAllOthersAndStartsAtDifferentVictims) {
  const Topology machine = eight_cores();
  const std::vector<CoreId> expected{CoreId(1), CoreId(2), CoreId(3), CoreId(4), CoreId(5), CoreId(6), CoreId(7)};
  EXPECT_EQ(machine.nearest_first(CoreId(0)), expected);
  const std::vector<CoreId> of_six{CoreId(7), CoreId(4), CoreId(5), CoreId(0), CoreId(1), CoreId(2), CoreId(3)};
  EXPECT_EQ(machine.nearest_first(CoreId(6)), of_six);
}

TEST(Topology, CoresKnowTheirNumaNodesPlace) {
  const Topology machine = eight_cores();
  ASSERT_EQ(machine.numa_nodes().size(), 2u);
  for (std::uint32_t core = 0; core < machine.cores().size(); ++core)
    EXPECT_EQ(machine.numa_place_of(CoreId(core)), core / (machine.cores().size() / 2)) << core;
  int there = 0;
  EXPECT_EQ(machine.numa_place_of(&there, sizeof(there)), std::nullopt)
      << "nothing lies in a machine that does not exist";
  EXPECT_TRUE(machine.bind_memory(&there, sizeof(there), 1).ok());
}

TEST(Topology, MemoryThatWasTouchedLiesOnANumaNode) {
  const Topology machine = Topology::discover().value();
  if (machine.numa_nodes().empty()) GTEST_SKIP() << "the system does not say which NUMA nodes there are";
  std::vector<char> touched(100'000, 'x');
  const auto place = machine.numa_place_of(touched.data(), touched.size());
  ASSERT_TRUE(place);
  EXPECT_LT(*place, machine.numa_nodes().size());
  const auto last = machine.numa_nodes().size() - 1;
  const auto fresh = allocate_large(std::size_t{4} << 20);
  // Containers may forbid it.
  if (const auto bound = machine.bind_memory(fresh.get(), std::size_t{4} << 20, last); !bound.ok())
    GTEST_SKIP() << bound.error().message;
  std::memset(fresh.get(), 1, std::size_t{4} << 20);
  EXPECT_EQ(machine.numa_place_of(fresh.get(), std::size_t{4} << 20), last);
}

TEST(Topology, AMalformedDescriptionIsRefused) {
  const auto machine = Topology::synthetic("eleven cores");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, ErrorCode::invalid_argument);
}

TEST(Topology, TheRealMachineHasDisjointCoresThatWeMayUse) {
  const Topology machine = Topology::discover().value();
  ASSERT_FALSE(machine.cores().empty());
  const std::vector<unsigned> allowed = machine.binding_of_this_thread();
  std::set<unsigned> seen;
  for (std::size_t i = 0; i < machine.cores().size(); ++i) {
    EXPECT_EQ(machine.cores()[i].id.index(), i);
    for (unsigned pu : machine.cores()[i].pus) {
      EXPECT_TRUE(seen.insert(pu).second);
      EXPECT_TRUE(allowed.empty() || std::count(allowed.begin(), allowed.end(), pu) == 1);
    }
  }
}

TEST(Topology, AThreadIsBoundAndTheCallersBindingIsRestored) {
  const Topology machine = Topology::discover().value();
  const std::vector<unsigned> before = machine.binding_of_this_thread();
  if (before.empty()) GTEST_SKIP() << "this system does not report bindings";
  const Core& last = machine.cores().back();
  {
    const ScopedBinding bound(machine, last.id);
    ASSERT_TRUE(bound.result()) << bound.result().error().message;
    EXPECT_EQ(machine.binding_of_this_thread(), last.pus);
  }
  EXPECT_EQ(machine.binding_of_this_thread(), before);
}

TEST(Topology, AProcessThatALauncherHasBoundSeesItsCoresOnly) {
  const Topology whole = Topology::discover().value();
  if (whole.cores().size() < 2) GTEST_SKIP() << "one core only";
  const Core& last = whole.cores().back();
  const std::vector<unsigned> before = whole.binding_of_this_thread();
  bind_all_threads(last.pus);
  const Topology part = Topology::discover().value();
  bind_all_threads(before);
  ASSERT_EQ(part.cores().size(), 1U);
  EXPECT_EQ(part.cores()[0].pus, last.pus);
}

TEST(Topology, ACallerThatAnEarlierRuntimeBoundDoesNotHideTheOtherCores) {
  const Topology whole = Topology::discover().value();
  if (whole.cores().size() < 2) GTEST_SKIP() << "one core only";
  std::size_t seen_by_bound_thread = 0;
  std::thread([&] {
    ASSERT_TRUE(whole.bind_this_thread(whole.cores().front().id));
    seen_by_bound_thread = Topology::discover().value().cores().size();
  }).join();
  EXPECT_EQ(seen_by_bound_thread, whole.cores().size());
}

}  // namespace
}  // namespace tandem::base::topology_test
