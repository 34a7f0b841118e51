// tandem/api/near_network_test.cpp: the cores beside a network card, on made-up machines.
#include "tandem/api/near_network.hpp"

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::near_network_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NearNetwork : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "network-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void add(const std::string& device, int node, const std::string& state = "", int speed = -1) {
    const auto folder = root_ / "sys/class" / device;
    std::filesystem::create_directories(folder / "device");
    std::ofstream(folder / "device/numa_node") << node << "\n";
    if (!state.empty()) std::ofstream(folder / "operstate") << state << "\n";
    if (speed >= 0) std::ofstream(folder / "speed") << speed << "\n";
  }
  std::filesystem::path root_;
  base::Topology machine_ = base::Topology::synthetic("package:2 numa:1 core:2 pu:1").value();
};

TEST_F(NearNetwork, TheFastestInterfaceThatIsUpCounts) {
  EXPECT_THAT(pus_near_network(machine_, root_), IsEmpty());
  EXPECT_EQ(node_of_network(root_), std::nullopt);
  add("net/eth0", 0, "up", 1000);
  EXPECT_THAT(pus_near_network(machine_, root_), ElementsAre(0, 1));
  EXPECT_EQ(node_of_network(root_), 0U);
  add("net/eth1", 1, "up", 25000);
  EXPECT_THAT(pus_near_network(machine_, root_), ElementsAre(2, 3));
  add("net/eth2", 0, "down", 100000);
  EXPECT_THAT(pus_near_network(machine_, root_), ElementsAre(2, 3));
}

TEST_F(NearNetwork, AnRdmaCardComesFirst) {
  add("net/eth0", 0, "up", 100000);
  add("infiniband/mlx5_0", 1);
  EXPECT_THAT(pus_near_network(machine_, root_), ElementsAre(2, 3));
}

TEST_F(NearNetwork, ANodeThatIsUnknownOrNotOursIsNone) {
  add("net/eth0", -1, "up", 1000);
  EXPECT_THAT(pus_near_network(machine_, root_), IsEmpty());
  add("net/eth0", 1, "up", 1000);
  const auto half = machine_.restricted_to(std::vector<unsigned>{0, 1}).value();
  EXPECT_THAT(pus_near_network(half, root_), IsEmpty());
}

}  // namespace
}  // namespace tandem::near_network_test
