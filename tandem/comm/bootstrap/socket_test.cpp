// tandem/comm/bootstrap/socket_test.cpp: where a server listens, and which of its addresses a connection takes.
#include "tandem/comm/bootstrap/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/comm/bootstrap/host_address.hpp"

namespace tandem::comm::internal::socket_test {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;

Deadline in_seconds(int seconds) { return std::chrono::steady_clock::now() + std::chrono::seconds(seconds); }

HostAddress address(const std::string& host) { return numeric_address({host, 1}).value(); }

std::vector<std::string> hosts_of(const std::vector<HostAddress>& addresses) {
  std::vector<std::string> hosts;
  for (const HostAddress& each : addresses) hosts.push_back(each.host());
  return hosts;
}

/// Listens and never accepts; its queue is full, so that the kernel silently drops further connections.
class Swallower {
 public:
  Swallower() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(listener_.get(), 0), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    place = {"127.0.0.1", ntohs(at.sin_port)};
    for (base::FileDescriptor& guest : guests_) {
      guest = base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)!::connect(guest.get(), reinterpret_cast<sockaddr*>(&at), sizeof at);
    }
  }
  HostPort place;

 private:
  base::FileDescriptor listener_;
  base::FileDescriptor guests_[4];
};

TEST(HostPorts, AreAListThatReadsBack) {
  const auto places = parse_host_ports("10.0.0.1:4711,[fd00::1]:4712,node:1", "X");
  ASSERT_TRUE(places) << places.error().message;
  ASSERT_EQ(places.value().size(), 3u);
  EXPECT_EQ(places.value()[1].host, "fd00::1");
  EXPECT_EQ(text_of(places.value()), "10.0.0.1:4711,[fd00::1]:4712,node:1");
  for (const char* wrong : {"", ",", "a:1,", ",a:1", "a:1,,b:2", "a:1,b"})
    EXPECT_THAT(parse_host_ports(wrong, "X").error().message, HasSubstr("X is '")) << wrong;
}

TEST(HostAddresses, OfBothFamiliesTakeTurns) {
  const auto order =
      in_turns({address("fd00::1"), address("fd00::2"), address("fd00::3"), address("10.0.0.1"), address("10.0.0.2")});
  EXPECT_THAT(hosts_of(order), ElementsAre("fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2", "fd00::3"));
  EXPECT_THAT(hosts_of(in_turns({address("10.0.0.1"), address("::1")})), ElementsAre("10.0.0.1", "::1"));
  EXPECT_TRUE(in_turns({}).empty());
}

TEST(HostAddresses, KnowWhatTheyAre) {
  EXPECT_TRUE(address("127.0.1.1").is_loopback() && address("::1").is_loopback());
  EXPECT_FALSE(address("10.0.0.1").is_loopback() || address("fd00::1").is_loopback());
  EXPECT_TRUE(address("fe80::1").is_of_one_link());
  EXPECT_TRUE(HostAddress::any(AF_INET, 0).is_any() && HostAddress::any(AF_INET6, 0).is_any());
  EXPECT_EQ(address("::ffff:10.0.0.1").text(), "10.0.0.1:1");
  EXPECT_EQ(address("fd00::1").text(), "[fd00::1]:1");
  EXPECT_FALSE(numeric_address({"localhost", 1}));
}

TEST(Listening, AtANameIsListeningAtAllAddressesOfBothFamilies) {
  for (const char* name : {"", "a-name-that-nobody-resolves"}) {
    const auto listener = listen_at({name, 0});
    ASSERT_TRUE(listener) << listener.error().message;
    EXPECT_TRUE(TimedSocket::connect({{"127.0.0.1", listener.value().port}}, in_seconds(20)));
    EXPECT_TRUE(TimedSocket::connect({{"127.0.1.1", listener.value().port}}, in_seconds(20)));
    EXPECT_EQ(place_on_this_host(listener.value()).text(), "127.0.0.1:" + std::to_string(listener.value().port));
    const bool has_ipv6 = listen_at({"::1", 0}).ok();
    EXPECT_TRUE(!has_ipv6 || TimedSocket::connect({{"::1", listener.value().port}}, in_seconds(20)).ok());
  }
}

TEST(Listening, AtAnOwnAddressIsListeningThereAlone) {
  const auto listener = listen_at({"127.0.0.2", 0});
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_FALSE(TimedSocket::connect({{"127.0.0.1", listener.value().port}}, in_seconds(1)));
  EXPECT_TRUE(TimedSocket::connect({place_on_this_host(listener.value())}, in_seconds(20)));
}

TEST(Listening, AtAnAddressThatThisHostDoesNotHaveIsListeningAtAll) {
  const auto listener = listen_at({"192.0.2.7", 0});  // an address for documentation, which no machine has
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(TimedSocket::connect({{"127.0.0.1", listener.value().port}}, in_seconds(20)));
}

TEST(Connecting, TakesTheAddressThatAnswersBesideOneThatSwallowsPackets) {
  const Swallower swallower;
  const auto listener = listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(TimedSocket::connect({swallower.place, {"127.0.0.1", listener.value().port}}, in_seconds(60)));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20)) << "as long as nothing answers";
}

TEST(Connecting, TriesAnAddressAgainWhileAnotherSwallowsPackets) {
  const Swallower swallower;
  auto first = listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(first);
  const std::uint16_t port = first.value().port;
  first.value().socket.close();
  base::Result<Listener> late = base::Error{};
  std::thread server([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    late = listen_at({"127.0.0.1", port});
  });
  const auto socket = TimedSocket::connect({swallower.place, {"127.0.0.1", port}}, in_seconds(60));
  server.join();
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_TRUE(socket) << socket.error().message;
}

TEST(Connecting, IsAnErrorAtOnceWhereNoRouteLeads) {
  const auto begun = std::chrono::steady_clock::now();
  const auto socket = TimedSocket::connect({{"fe80::1", 4711}}, in_seconds(60));  // on which link?
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::io);
  EXPECT_THAT(socket.error().message, HasSubstr("no network leads to [fe80::1]:4711"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

TEST(Connecting, EndsAtItsDeadlineWithTheReason) {
  auto listener = listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  const std::string place = "127.0.0.1:" + std::to_string(listener.value().port);
  const HostPort where{"127.0.0.1", listener.value().port};
  listener.value().socket.close();
  const auto socket = TimedSocket::connect({where}, std::chrono::steady_clock::now() + std::chrono::milliseconds(300));
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::exhausted);
  EXPECT_THAT(socket.error().message, HasSubstr("nobody answers at " + place + ": " + place + ": Connection refused"));
}

}  // namespace
}  // namespace tandem::comm::internal::socket_test
