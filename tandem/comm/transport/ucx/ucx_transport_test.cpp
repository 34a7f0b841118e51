// tandem/comm/transport/ucx/ucx_transport_test.cpp: packets between UCP workers of one process, strangers, and a death.
#include "tandem/comm/transport/ucx/ucx_transport.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::comm::ucx_transport_test {
namespace {

using Bytes = std::vector<std::byte>;
using namespace std::chrono_literals;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes made(bytes);
  std::minstd_rand random(seed + 1);
  for (auto& b : made) b = static_cast<std::byte>(random() >> 7);
  return made;
}

/// Records its calls. Payloads land in memory of its own, in pieces of `piece_bytes`, unless `land` says otherwise.
struct Recorder : PacketSink {
  struct Received {
    Rank from;
    Bytes control, payload;
    bool landed = false;
  };

  Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(control.data()) % 8, 0u);
    EXPECT_TRUE(received.empty() || received.back().landed || received.back().from != link.peer());
    received.push_back(
        {link.peer(), Bytes(control.begin(), control.end()), Bytes(std::min(payload_bytes, room)), payload_bytes == 0});
    if (malformed != nullptr) return {.malformed = malformed};
    auto& list = pieces.emplace_back();
    Bytes& to = received.back().payload;
    for (std::size_t at = 0; at < to.size(); at += piece_bytes) {
      list.push_back({to.data() + at, std::min(piece_bytes, to.size() - at)});
    }
    return {.pieces = list, .token = received.size() - 1};
  }
  void landed(Link&, std::uint64_t token) override { received.at(token).landed = true; }
  void sent(Link&, std::uint64_t cookie) override { sent_cookies.push_back(cookie); }
  void writable(Link& link) override {
    ++writables;
    if (on_writable) on_writable(link);
  }
  void peer_failed(Rank peer, std::string_view reason) override { failed.emplace_back(peer, reason); }

  std::size_t complete() const {
    return static_cast<std::size_t>(std::count_if(received.begin(), received.end(),
                                                  [](const auto& r) { return r.landed; }));
  }

  std::deque<Received> received;
  std::deque<std::vector<iovec>> pieces;
  std::vector<std::uint64_t> sent_cookies;
  std::vector<std::pair<Rank, std::string>> failed;
  std::function<void(Link&)> on_writable;
  std::size_t piece_bytes = std::size_t{1} << 30, room = std::size_t{1} << 40;
  const char* malformed = nullptr;
  int writables = 0;
};

/// A rank of a test's job.
struct Node {
  Node(unsigned rank, const UcxOptions& with = {}, std::byte key = std::byte{7}) {
    UcxOptions options = with;
    options.rank = Rank(rank);
    options.devices = "lo";  // other interfaces may come and go while the tests run
    options.secret.fill(key);
    auto made = make_ucx_transport(options, sink, log);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    if (made) transport = std::move(made).value();
  }

  Recorder sink;
  std::vector<std::string> warnings;
  base::Log log{base::LogLevel::warn, [this](base::LogLevel, std::string_view line) { warnings.emplace_back(line); }};
  std::unique_ptr<Transport> transport;
};

template <class Condition>
bool step_until(std::vector<Node*> nodes, Condition condition, std::chrono::milliseconds within = 20s) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    unsigned events = 0;
    for (Node* node : nodes) events += node->transport->poll(0);
    if (events == 0) std::this_thread::yield();
  }
  return true;
}

/// Packets that one rank sends in order, retrying when the link is writable again.
struct Outgoing {
  Link& link;
  std::vector<std::pair<Bytes, Bytes>> packets;
  std::size_t pieces = 1;
  std::size_t next = 0, posted = 0;

  void push() {
    for (; next < packets.size(); ++next) {
      auto& [control, payload] = packets[next];
      std::vector<iovec> list;
      for (std::size_t i = 0; i < pieces && !payload.empty(); ++i) {
        const std::size_t from = payload.size() * i / pieces, to = payload.size() * (i + 1) / pieces;
        list.push_back({payload.data() + from, to - from});
      }
      const Packet packet{.control = control, .payload = list, .payload_bytes = payload.size(), .cookie = next};
      const SendStatus status = link.try_send(packet);
      if (status == SendStatus::retry) return;
      if (status == SendStatus::posted) ++posted;
    }
  }
};

Link& link_between(Node& from, Node& to, unsigned to_rank) {
  const std::string card = to.transport->card();
  EXPECT_LE(card.size(), 512u);
  EXPECT_TRUE(from.transport->reaches(Rank(to_rank), card));
  return from.transport->connect(Rank(to_rank), card, 0);
}

void expect_received(const Recorder& sink, const Outgoing& sent) {
  ASSERT_EQ(sink.received.size(), sent.packets.size());
  for (std::size_t i = 0; i < sent.packets.size(); ++i) {
    EXPECT_EQ(sink.received[i].control, sent.packets[i].first) << "packet " << i;
    EXPECT_EQ(sink.received[i].payload, sent.packets[i].second) << "packet " << i;
  }
}

/// Sends packets of these payload sizes from 0 to 1 and checks them.
void check_sizes(const std::vector<std::size_t>& sizes, const UcxOptions& options, std::size_t pieces,
                 std::size_t piece_bytes) {
  Node a(0, options), b(1, options);
  b.sink.piece_bytes = piece_bytes;
  Outgoing out{.link = link_between(a, b, 1), .packets = {}, .pieces = pieces};
  for (unsigned i = 0; i < sizes.size(); ++i)
    out.packets.emplace_back(pattern(1 + i * 977 % 4096, i), pattern(sizes[i], i));
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  EXPECT_EQ(out.next, 0u);  // nothing before the peer has proved the secret
  ASSERT_TRUE(step_until(
      {&a, &b}, [&] { return b.sink.complete() == sizes.size() && a.sink.sent_cookies.size() == out.posted; }));
  expect_received(b.sink, out);
  EXPECT_EQ(out.next, sizes.size());
  EXPECT_TRUE(a.sink.failed.empty() && b.sink.failed.empty());
}

const std::vector<std::size_t> many_sizes = {
    0, 1,      8,       100,     0,       8'000,   8'191,         8'192, 16'384,  65'535,
    3, 65'536, 262'143, 262'144, 439'296, 1 << 20, (1 << 20) + 1, 5,     8 << 20, 0};

TEST(UcxTransport, PacketsOfAllSizesArriveWholeAndInOrder) { check_sizes(many_sizes, {}, 1, std::size_t{1} << 30); }

TEST(UcxTransport, GathersAndScattersPieces) { check_sizes(many_sizes, {}, 7, 100'001); }

TEST(UcxTransport, ControlBlocksBeyondTheHeaderTravelAsData) {
  check_sizes(many_sizes, {.max_header_bytes = 24}, 2, 50'000);
}

TEST(UcxTransport, EveryPayloadMayGoByRendezvous) { check_sizes(many_sizes, {.rendezvous_only = true}, 3, 70'000); }

TEST(UcxTransport, ManySmallPacketsBothWaysAtOnceKeepTheirOrder) {
  constexpr unsigned count = 3000;
  Node a(0), b(1);
  Outgoing to_b{.link = link_between(a, b, 1), .packets = {}}, to_a{.link = link_between(b, a, 0), .packets = {}};
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t bytes = i % 100 == 99 ? 100'000 + i : i % 7 == 0 ? i : 0;
    to_b.packets.emplace_back(pattern(8 + i % 50, i), pattern(bytes, i));
    to_a.packets.emplace_back(pattern(9 + i % 60, i + 5), pattern(bytes, i + 5));
  }
  a.sink.on_writable = [&](Link&) { to_b.push(); };
  b.sink.on_writable = [&](Link&) { to_a.push(); };
  to_b.push();
  to_a.push();
  ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.complete() == count && b.sink.complete() == count; }));
  expect_received(b.sink, to_b);
  expect_received(a.sink, to_a);
}

TEST(UcxTransport, TheLinkThatAPeerOpenedIsOurs) {
  Node a(0), b(1);
  Outgoing out{.link = link_between(a, b, 1), .packets = {{pattern(16, 1), {}}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.complete() == 1; }));
  Link& back = link_between(b, a, 0);
  const Bytes control = pattern(24, 2);
  EXPECT_EQ(back.try_send({.control = control}), SendStatus::done);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.complete() == 1; }));
  EXPECT_EQ(a.sink.received[0].control, control);
  EXPECT_EQ(a.sink.received[0].from, Rank(1));
}

TEST(UcxTransport, ARankReachesItself) {
  Node a(3);
  Outgoing out{.link = link_between(a, a, 3), .packets = {{pattern(16, 1), pattern(1 << 20, 2)}, {pattern(8, 3), {}}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  ASSERT_TRUE(step_until({&a}, [&] { return a.sink.complete() == 2; }));
  expect_received(a.sink, out);
}

TEST(UcxTransport, PayloadsWithoutRoomAreDroppedAndSendersAreNotified) {
  for (const std::size_t room : {std::size_t{0}, std::size_t{1000}}) {
    Node a(0), b(1);
    b.sink.room = room;
    Outgoing out{.link = link_between(a, b, 1), .packets = {}};
    for (unsigned i = 0; i < 4; ++i) out.packets.emplace_back(pattern(16, i), pattern(i % 2 == 0 ? 2'000 : 3 << 20, i));
    a.sink.on_writable = [&](Link&) { out.push(); };
    out.push();
    ASSERT_TRUE(step_until({&a, &b},
                           [&] { return b.sink.complete() == 4 && a.sink.sent_cookies.size() == out.posted; }))
        << room;
    for (unsigned i = 0; i < 4; ++i) {
      const Bytes whole = out.packets[i].second;
      EXPECT_EQ(b.sink.received[i].payload, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(room)));
    }
    EXPECT_TRUE(a.sink.failed.empty() && b.sink.failed.empty());
  }
}

TEST(UcxTransport, AStrangerWithoutTheSecretIsDroppedAndLogged) {
  Node a(0), b(1), stranger(2, {}, std::byte{8});
  Link& link = link_between(stranger, b, 1);
  const Bytes control = pattern(16, 1);
  EXPECT_EQ(link.try_send({.control = control}), SendStatus::retry);
  ASSERT_TRUE(step_until({&a, &b, &stranger}, [&] { return !b.warnings.empty(); }));
  EXPECT_NE(b.warnings[0].find("does not prove the job's secret"), std::string::npos) << b.warnings[0];
  EXPECT_EQ(link.try_send({.control = control}), SendStatus::retry);
  EXPECT_TRUE(b.sink.received.empty() && b.sink.failed.empty());
  Outgoing out{.link = link_between(a, b, 1), .packets = {{control, {}}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  EXPECT_TRUE(step_until({&a, &b, &stranger}, [&] { return b.sink.complete() == 1; }));
}

TEST(UcxTransport, AMalformedPacketEndsThatLinkOnly) {
  Node a(0), b(1), c(2);
  b.sink.malformed = "a test says so";
  Outgoing out{.link = link_between(a, b, 1), .packets = {{pattern(16, 1), pattern(1 << 20, 1)}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  ASSERT_TRUE(step_until({&a, &b, &c}, [&] { return b.sink.failed.size() == 1 && a.sink.failed.size() == 1; }));
  EXPECT_EQ(b.sink.failed[0].first, Rank(0));
  EXPECT_NE(b.sink.failed[0].second.find("a test says so"), std::string::npos) << b.sink.failed[0].second;
  b.sink.malformed = nullptr;
  Outgoing other{.link = link_between(c, b, 1), .packets = {{pattern(16, 1), {}}}};
  c.sink.on_writable = [&](Link&) { other.push(); };
  other.push();
  EXPECT_TRUE(step_until({&a, &b, &c}, [&] { return b.sink.complete() == 1; }));
  EXPECT_EQ(out.link.try_send({.control = out.packets[0].first}), SendStatus::retry);
}

TEST(UcxTransport, APeerThatLeftIsNotAFailure) {
  Node a(0);
  auto b = std::make_unique<Node>(1);
  Outgoing out{.link = link_between(a, *b, 1), .packets = {{pattern(16, 1), {}}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  ASSERT_TRUE(step_until({&a, b.get()}, [&] { return b->sink.complete() == 1; }));
  a.transport->peer_left(Rank(1));
  b->transport->peer_left(Rank(0));
  b.reset();
  step_until(
      {&a}, [] { return false; }, 300ms);
  EXPECT_TRUE(a.sink.failed.empty());
}

TEST(UcxTransport, DisconnectTouchesNoMemoryAfterwards) {
  Node a(0), b(1);
  Outgoing out{.link = link_between(a, b, 1), .packets = {{pattern(16, 1), pattern(8 << 20, 1)}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.received.size() == 1; }));
  b.transport->disconnect(Rank(0));
  const Bytes before = b.sink.received[0].payload;
  EXPECT_FALSE(b.sink.received[0].landed);
  EXPECT_TRUE(step_until({&a, &b}, [&] { return a.sink.failed.size() == 1; }));
  EXPECT_EQ(b.sink.received[0].payload, before);
  EXPECT_TRUE(b.sink.failed.empty());
}

TEST(UcxTransport, ASleeperIsWokenByItsDescriptor) {
  Node a(0), b(1);
  Outgoing out{.link = link_between(a, b, 1), .packets = {{pattern(16, 1), {}}}};
  a.sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.complete() == 1; }));
  const auto fall_asleep = [&] {
    b.transport->poll(0);
    return b.transport->arm();
  };
  ASSERT_TRUE(step_until({&a}, fall_asleep));
  pollfd wait{.fd = b.transport->wait_descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_GE(wait.fd, 0);
  const Bytes control = pattern(16, 3);
  std::thread sender([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(out.link.try_send({.control = control}), SendStatus::done);
    step_until(
        {&a}, [] { return false; }, 20ms);
  });
  EXPECT_EQ(::poll(&wait, 1, 20'000), 1);
  b.transport->disarm();
  sender.join();
  EXPECT_TRUE(step_until({&a, &b}, [&] { return b.sink.complete() == 2; }));
}

TEST(UcxTransport, BadOptionsAreErrorsThatSayWhatToDo) {
  Recorder sink;
  base::Log log;
  auto made = make_ucx_transport({.transports = "nonsense"}, sink, log);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("UCX_TLS"), std::string::npos) << made.error().message;
  Node a(0);
  EXPECT_FALSE(a.transport->reaches(Rank(1), "not a card"));
  EXPECT_FALSE(a.transport->reaches(Rank(1), a.transport->card().substr(0, 20)));
}

void write_all(int to, const std::string& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  ASSERT_EQ(::write(to, &size, sizeof size), static_cast<ssize_t>(sizeof size));
  ASSERT_EQ(::write(to, bytes.data(), size), static_cast<ssize_t>(size));
}

std::string read_all(int from) {
  std::uint32_t size = 0;
  EXPECT_EQ(::read(from, &size, sizeof size), static_cast<ssize_t>(sizeof size));
  std::string bytes(size, '\0');
  EXPECT_EQ(::read(from, bytes.data(), size), static_cast<ssize_t>(size));
  return bytes;
}

constexpr const char* peer_pipes = "TANDEM_UCX_TEST_PIPES";

/// The other process of the next test, started by it: sends large packets until it is killed.
TEST(UcxTransport, DISABLED_PeerProcess) {
  const char* pipes = std::getenv(peer_pipes);
  if (pipes == nullptr) GTEST_SKIP() << "run by ADeadPeerIsReported";
  int in = -1, out = -1;
  ASSERT_EQ(std::sscanf(pipes, "%d,%d", &in, &out), 2);
  Node self(1);
  write_all(out, self.transport->card());
  Link& link = self.transport->connect(Rank(0), read_all(in), 0);
  const Bytes control = pattern(16, 1), payload = pattern(1 << 20, 1);
  iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  step_until({&self}, [&] {
    const Packet packet{.control = control, .payload = {&piece, 1}, .payload_bytes = payload.size()};
    while (link.try_send(packet) != SendStatus::retry) {
    }
    return !self.sink.failed.empty();
  });
}

pid_t start_peer(int in, int out) {
  const std::string pipes = std::to_string(in) + "," + std::to_string(out);
  std::string self(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  self.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  std::vector<std::string> environment = {std::string(peer_pipes) + "=" + pipes};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  std::vector<char*> envp;
  for (auto& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);
  char filter[] = "--gtest_filter=UcxTransport.DISABLED_PeerProcess", also[] = "--gtest_also_run_disabled_tests";
  char* argv[] = {self.data(), filter, also, nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDOUT_FILENO);  // its test report would interleave with ours
    ::execve(self.c_str(), argv, envp.data());
    ::_exit(127);
  }
  return child;
}

TEST(UcxTransport, ADeadPeerIsReported) {
  int to_child[2], from_child[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(from_child), 0);
  const pid_t child = start_peer(to_child[0], from_child[1]);
  Node self(0);
  write_all(to_child[1], self.transport->card());
  const std::string card = read_all(from_child[0]);
  self.transport->connect(Rank(1), card, 0);
  EXPECT_TRUE(step_until({&self}, [&] { return self.sink.received.size() >= 5; }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(step_until({&self}, [&] { return !self.sink.failed.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  ASSERT_EQ(self.sink.failed.size(), 1u);
  EXPECT_EQ(self.sink.failed[0].first, Rank(1));
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(end);
}

}  // namespace
}  // namespace tandem::comm::ucx_transport_test
