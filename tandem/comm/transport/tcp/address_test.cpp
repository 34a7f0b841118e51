// tandem/comm/transport/tcp/address_test.cpp: addresses, the choice of interfaces, published texts, and the order of
// attempts.
#include "tandem/comm/transport/tcp/address.hpp"

#include <gtest/gtest.h>

#include "tandem/base/host.hpp"

namespace tandem::comm::internal::address_test {
namespace {

LocalAddress local(const char* interface, const char* address, unsigned bits) {
  return {interface, *SocketAddress::parse(address, 0), bits};
}

std::vector<std::string> hosts(const std::vector<LocalAddress>& list) {
  std::vector<std::string> result;
  for (const LocalAddress& entry : list) result.push_back(entry.address.host());
  return result;
}

std::vector<std::string> texts(const std::vector<SocketAddress>& list) {
  std::vector<std::string> result;
  for (const SocketAddress& entry : list) result.push_back(entry.text());
  return result;
}

using List = std::vector<std::string>;

const std::vector<LocalAddress> host = {local("lo", "127.0.0.1", 8),       local("docker0", "172.17.0.1", 16),
                                        local("eth0", "10.0.0.2", 24),     local("eth0", "fe80::2", 64),
                                        local("ib0", "10.1.0.2", 24),      local("eth0", "fd00::2", 64)};

TEST(TcpAddress, IsReadAndWritten) {
  EXPECT_EQ(SocketAddress::parse("10.0.0.1", 80)->text(), "10.0.0.1:80");
  EXPECT_EQ(SocketAddress::parse("fd00::1", 80)->text(), "[fd00::1]:80");
  EXPECT_EQ(SocketAddress::parse("::ffff:10.0.0.1", 80)->unmapped().text(), "10.0.0.1:80");
  EXPECT_FALSE(SocketAddress::parse("host", 80));
  EXPECT_TRUE(SocketAddress::parse("127.1.2.3", 0)->is_loopback());
  EXPECT_TRUE(SocketAddress::parse("10.0.0.1", 0)->shares_prefix(*SocketAddress::parse("10.0.0.254", 0), 24));
  EXPECT_FALSE(SocketAddress::parse("10.0.0.1", 0)->shares_prefix(*SocketAddress::parse("10.0.1.1", 0), 24));
  EXPECT_TRUE(SocketAddress::parse("10.0.0.1", 0)->shares_prefix(*SocketAddress::parse("10.0.1.1", 0), 23));
}

TEST(TcpAddress, AutomaticChoiceLeavesOutLoopbackAndPutsBridgesLast) {
  EXPECT_EQ(hosts(select_addresses(host, "").value()), (List{"10.0.0.2", "10.1.0.2", "172.17.0.1", "fd00::2"}));
  EXPECT_EQ(hosts(select_addresses({host[0]}, "").value()), List{"127.0.0.1"});
  EXPECT_FALSE(select_addresses({}, "").ok());
}

TEST(TcpAddress, InterfacesAreChosenByNameOrAddressInTheGivenOrder) {
  EXPECT_EQ(hosts(select_addresses(host, "ib0,10.0.0.2").value()), (List{"10.1.0.2", "10.0.0.2"}));
  EXPECT_EQ(hosts(select_addresses(host, "fd00::2").value()), List{"fd00::2"});
  const auto unknown = select_addresses(host, "ib0,eth7");
  ASSERT_FALSE(unknown.ok());
  const std::string& message = unknown.error().message;
  EXPECT_NE(message.find("`eth7`; there are lo (127.0.0.1), docker0"), std::string::npos) << message;
  EXPECT_FALSE(select_addresses(host, ",").ok());
}

TEST(TcpAddress, ACardIsReadAsItWasWritten) {
  TcpCard card{.port = 4000, .host = base::host_identity().text(), .addresses = {}};
  for (const char* address : {"10.0.0.1", "fd00::1"}) card.addresses.push_back(*SocketAddress::parse(address, 4000));
  const auto read = TcpCard::parse(card.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), card.text());
  EXPECT_LE(card.text().size(), 512U);
  EXPECT_EQ(read->addresses[1].port(), 4000);
  for (const char* bad :
       {"", "tcp1", "tcp1 port=1 host=x at=", "tcp1 port=0 host=x at=1.1.1.1", "tcp2 port=1 host=x at=1.1.1.1",
        "tcp1 port=70000 host=x at=10.0.0.1", "tcp1 port=1x host=x at=10.0.0.1", "tcp1 port=1 host=x at=name",
        "tcp1 port=1 host=x at=::1,::2,::3,::4,::5,::6,::7,::8,::9"}) {
    EXPECT_FALSE(TcpCard::parse(bad)) << bad;
  }
}

TEST(TcpAddress, OwnSubnetsAreTriedFirstEachRailOnItsOwn) {
  const auto card = *TcpCard::parse("tcp1 port=9 host=h at=127.0.0.1,192.168.7.7,10.1.0.9,10.0.0.9");
  const std::vector<LocalAddress> two = {host[2], host[4]};
  EXPECT_EQ(texts(candidates(card, two, "other", 0)), (List{"10.0.0.9:9", "10.1.0.9:9", "192.168.7.7:9"}));
  EXPECT_EQ(texts(candidates(card, two, "other", 1)), (List{"10.1.0.9:9", "10.0.0.9:9", "192.168.7.7:9"}));
  EXPECT_EQ(candidates(card, two, "h", 0).size(), 4U);
  EXPECT_EQ(texts(candidates(*TcpCard::parse("tcp1 port=9 host=h at=127.0.0.1"), two, "h", 0)), List{"127.0.0.1:9"});
}

}  // namespace
}  // namespace tandem::comm::internal::address_test
