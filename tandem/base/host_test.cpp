// tandem/base/host_test.cpp: the identity of the host does not change, and shows unknown parts.
#include "tandem/base/host.hpp"

#include <sys/stat.h>

#include <string>

#include <gtest/gtest.h>

namespace tandem::base::host_test {
namespace {

TEST(HostIdentity, IsTheSameAtEachLookAndNamesTheNetworkNamespace) {
  const HostIdentity identity = host_identity();
  EXPECT_EQ(identity, host_identity());
  struct stat network {};
  if (::stat("/proc/self/ns/net", &network) != 0) GTEST_SKIP() << "no /proc here";
  EXPECT_TRUE(identity.known());
  EXPECT_EQ(identity.boot_id.find_first_of(" \n/"), std::string::npos);
  EXPECT_EQ(identity.text(), identity.boot_id + "/" + std::to_string(network.st_ino));
}

TEST(HostIdentity, SaysWhatItDoesNotKnow) {
  EXPECT_FALSE(HostIdentity{}.known());
  EXPECT_EQ(HostIdentity{}.text(), "unknown/0");
  EXPECT_FALSE((HostIdentity{.boot_id = "1-2", .namespace_device = 4}).known());
}

TEST(HostName, IsOneWord) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(host_name().find_first_of(" \n"), std::string::npos);
}

}  // namespace
}  // namespace tandem::base::host_test
