// tandem/comm/transport/rdma_test.cpp: made-up network cards.
#include "tandem/comm/transport/rdma.hpp"

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::comm::internal::rdma_test {
namespace {

using testing::ElementsAre;

TEST(Rdma, PortsThatAreConnectedChooseUcx) {
  std::string name = testing::TempDir() + "rdma-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path root = name;
  EXPECT_TRUE(active_rdma_ports(root).empty());
  EXPECT_THAT(automatic_transports(active_rdma_ports(root)), ElementsAre("shm", "tcp"));
  const auto add = [&](const std::string& port, const std::string& state) {
    const auto folder = root / "sys/class/infiniband" / port;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "state") << state << "\n";
  };
  add("mlx5_1/ports/1", "4: ACTIVE");
  add("mlx5_0/ports/1", "1: DOWN");
  add("mlx5_0/ports/2", "4: ACTIVE");
  EXPECT_THAT(active_rdma_ports(root), ElementsAre("mlx5_0:2", "mlx5_1:1"));
  EXPECT_THAT(automatic_transports(active_rdma_ports(root)), ElementsAre("shm", "ucx", "tcp"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace tandem::comm::internal::rdma_test
