// tandem/comm/transport/tcp/tcp_test.cpp: packets between ranks of one process, over real sockets.
#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/tcp/tcp.hpp"

#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "tandem/comm/transport/tcp/tcp_test_support.hpp"

namespace tandem::comm::tcp_test::tcp_test {
namespace {

void copy_always(TcpOptions& options) { options.least_spliced_bytes = SIZE_MAX; }
/// Makes a connection count as one to another host.
void judge_speed(TcpOptions& options) { options.host_segment_bytes = 0; }

TEST(Tcp, APacketArrivesWithItsPayload) {
  Node a(0), b(1);
  Link& link = a.connect(b, 1);
  EXPECT_EQ(link.try_send({.control = bytes_of("early")}), SendStatus::retry);
  const Bytes payload = pattern(100'000, 1);
  const iovec piece = piece_of(payload);
  send({&a, &b}, link, "hello", {&piece, 1}, 42);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.landed_count() == 1; }));
  EXPECT_GE(a.sink.writable_count, 1U);
  const Recorder::Received& got = *b.sink.packets[0];
  EXPECT_EQ(got.from, Rank(0));
  EXPECT_EQ(got.control, bytes_of("hello"));
  EXPECT_EQ(got.payload, payload);
  EXPECT_TRUE(a.sink.failures.empty() && b.sink.failures.empty());
}

TEST(Tcp, PacketsWithoutPayloadArriveInOrder) {
  Node a(0), b(1);
  Link& link = a.connect(b, 1);
  for (int i = 0; i < 5000; ++i) send({&a, &b}, link, "message " + std::to_string(i));
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.packets.size() == 5000; }));
  for (std::size_t i = 0; i < 5000; ++i)
    EXPECT_EQ(b.sink.packets[i]->control, bytes_of("message " + std::to_string(i)));
  EXPECT_TRUE(b.sink.aligned);
}

TEST(Tcp, AnAnswerTravelsOnTheConnectionThatThePeerOpened) {
  Node a(0), b(1);
  send({&a, &b}, a.connect(b, 1), "question");
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
  send({&a, &b}, b.connect(a, 0), "answer");
  ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.packets.size() == 1; }));
  EXPECT_EQ(a.internals().open_connections(), 1U);
  EXPECT_EQ(b.internals().open_connections(), 1U);
}

TEST(Tcp, BothMayConnectAtOnceAndKeepTheirOrder) {
  for (int round = 0; round < 20; ++round) {
    Node a(0), b(1);
    Link& to_b = a.connect(b, 1);
    Link& to_a = b.connect(a, 0);
    for (int i = 0; i < 100; ++i) {
      send({&a, &b}, to_b, std::to_string(i));
      send({&a, &b}, to_a, std::to_string(i));
    }
    ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.packets.size() == 100 && b.sink.packets.size() == 100; }));
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(a.sink.packets[i]->control, bytes_of(std::to_string(i)));
      EXPECT_EQ(b.sink.packets[i]->control, bytes_of(std::to_string(i)));
    }
    EXPECT_LE(a.internals().open_connections(), 2U);
  }
}

TEST(Tcp, WhoConnectedAtOnceStillSharesOneConnection) {
  for (const bool lower_begins : {true, false}) {
    Node a(0), b(1);
    Link& to_b = a.connect(b, 1);
    Link& to_a = b.connect(a, 0);
    const auto both_open = [&] {
      return a.internals().open_connections() == 2 && b.internals().open_connections() == 2;
    };
    ASSERT_TRUE(step_until({&a, &b}, both_open));
    for (int i = 0; i < 3; ++i) {
      send({&a, &b}, lower_begins ? to_b : to_a, "ping");
      ASSERT_TRUE(step_until({&a, &b},
                             [&] { return (lower_begins ? b : a).sink.packets.size() > static_cast<std::size_t>(i); }));
      send({&a, &b}, lower_begins ? to_a : to_b, "pong");
      ASSERT_TRUE(step_until({&a, &b},
                             [&] { return (lower_begins ? a : b).sink.packets.size() > static_cast<std::size_t>(i); }));
    }
    EXPECT_EQ(a.internals().used_connections(), 1U);
    EXPECT_EQ(b.internals().used_connections(), 1U);
  }
}

TEST(Tcp, ManyPiecesOnBothSidesAreOnePayload) {
  Node a(0), b(1);
  b.sink.piece_bytes = 13;
  const Bytes payload = pattern(60'000, 2);
  std::vector<iovec> pieces;  // more than the kernel takes in one call, empty ones among them
  for (std::size_t at = 0; at < payload.size(); at += 20) {
    pieces.push_back({const_cast<std::byte*>(payload.data()) + at, std::min<std::size_t>(20, payload.size() - at)});
    if (at % 100 == 0) pieces.push_back({nullptr, 0});
  }
  ASSERT_GT(pieces.size(), 1024U);
  Link& link = a.connect(b, 1);
  for (int i = 0; i < 10; ++i) {
    const SendStatus status = send({&a, &b}, link, "strided", pieces, static_cast<std::uint64_t>(i));
    if (status == SendStatus::posted) {
      const auto came_back = [&] {
        return !a.sink.cookies.empty() && a.sink.cookies.back() == static_cast<unsigned>(i);
      };
      ASSERT_TRUE(step_until({&a, &b}, came_back));
    }
  }
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.landed_count() == 10; }));
  for (const auto& packet : b.sink.packets) EXPECT_EQ(packet->payload, payload);
}

TEST(Tcp, PayloadOfEverySizeAndWhatHasNoPlaceIsDropped) {
  for (const std::size_t kept : {SIZE_MAX, std::size_t{0}, std::size_t{1000}}) {
    Node a(0), b(1);
    b.sink.most_kept = kept;
    Link& link = a.connect(b, 1);
    const Bytes all = pattern(300'000, 3);
    const std::vector<std::size_t> sizes = {1,    7,    999,  1000,  1001,    2031,    2032,
                                            4079, 4080, 4097, 65536, 131'072, 300'000, 3};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const iovec piece = {const_cast<std::byte*>(all.data()), sizes[i]};
      send({&a, &b}, link, std::string(1 + i, 'c'), {&piece, 1}, i);
    }
    ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.landed_count() == sizes.size(); }));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t size = std::min(sizes[i], kept);
      EXPECT_EQ(b.sink.packets[i]->control.size(), 1 + i);
      EXPECT_TRUE(std::equal(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size),
                             b.sink.packets[i]->payload.begin(), b.sink.packets[i]->payload.end()));
    }
  }
}

TEST(Tcp, AFullLinkAnswersRetryAndLaterReportsThatItIsWritable) {
  Node a(0, copy_always), b(1);
  Link& link = a.connect(b, 1);
  ASSERT_EQ(send({&a, &b}, link, "first"), SendStatus::done);
  const Bytes payload = pattern(32 << 20, 4);
  const iovec piece = piece_of(payload);
  ASSERT_EQ(send({&a}, link, "large", {&piece, 1}, 77), SendStatus::posted);
  EXPECT_EQ(link.try_send({.control = bytes_of("urgent")}), SendStatus::retry);
  EXPECT_TRUE(a.sink.cookies.empty());
  const unsigned before = a.sink.writable_count;
  ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.writable_count > before; }));
  EXPECT_EQ(a.sink.cookies, std::vector<std::uint64_t>{77});
  EXPECT_EQ(link.try_send({.control = bytes_of("urgent")}), SendStatus::done);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.landed_count() == 3; }));
  EXPECT_EQ(b.sink.packets[1]->payload, payload);
  EXPECT_EQ(b.sink.packets[2]->control, bytes_of("urgent"));
}

TEST(Tcp, APacketThatLeavesInPortionsArrivesWhole) {
  Node a(0, [](TcpOptions& options) { options.burst_bytes = 4096, options.host_segment_bytes = 0; }), b(1);
  Link& link = a.connect(b, 1);
  const Bytes payload = pattern(20'000, 5);
  const iovec piece = piece_of(payload);
  ASSERT_EQ(send({&a, &b}, link, "portions", {&piece, 1}, 5), SendStatus::done);
  const Bytes large = pattern(32 << 20, 6);  // the kernel does not take it at once, nor what follows
  const iovec large_piece = piece_of(large);
  ASSERT_EQ(send({&a}, link, "large", {&large_piece, 1}, 6), SendStatus::posted);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.landed_count() == 2 && !a.sink.cookies.empty(); }));
  EXPECT_EQ(a.sink.cookies, std::vector<std::uint64_t>{6});
  EXPECT_EQ(b.sink.packets[0]->payload, payload);
  EXPECT_EQ(b.sink.packets[1]->payload, large);
}

TEST(Tcp, AConnectionThatNeverWaitsIsSeenToBeFastOrNot) {
  for (const std::int64_t packet_ns : {30'000, 30'000'000}) {
    Node a(0, judge_speed), b(1, judge_speed);
    Link& link = a.connect(b, 1);
    ASSERT_EQ(send({&a, &b}, link, "first"), SendStatus::done);
    const Bytes payload = pattern(64 << 10, 5), control = bytes_of("turn");
    const iovec piece = piece_of(payload);
    std::int64_t clock_ns = now_ns();
    for (std::size_t i = 0; i < 20; ++i) {
      clock_ns += packet_ns;
      a.transport->poll(clock_ns);
      ASSERT_NE(link.try_send({.control = control, .payload = {&piece, 1}, .payload_bytes = payload.size()}),
                SendStatus::retry);
      while (b.sink.landed_count() < i + 2) {
        a.transport->poll(clock_ns);
        b.transport->poll(clock_ns);
      }
    }
    EXPECT_EQ(a.internals().fast_connections(), packet_ns == 30'000 ? 1U : 0U);
    // The kernels know what they carried, however slow the connection seemed.
    EXPECT_GT(a.transport->carried_bytes_per_ns(), 0.01);
    EXPECT_EQ(b.transport->carried_bytes_per_ns(), 0);
  }
}

TEST(Tcp, WithinAHostAConnectionIsFastAtOnceAndHasNoPacing) {
  Node a(0), b(1);
  Link& link = a.connect(b, 1);
  ASSERT_EQ(send({&a, &b}, link, "first"), SendStatus::done);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
  EXPECT_EQ(a.internals().fast_connections() + b.internals().fast_connections(), 2U);
  EXPECT_EQ(link.segment_bytes, TcpOptions{}.host_segment_bytes);
  EXPECT_EQ(a.internals().congestion_controls(), std::vector<std::string>{"reno"});
  EXPECT_EQ(b.internals().congestion_controls(), std::vector<std::string>{"reno"});

  Node c(0, judge_speed), d(1, judge_speed);
  Link& other = c.connect(d, 1);
  ASSERT_EQ(send({&c, &d}, other, "first"), SendStatus::done);
  ASSERT_TRUE(step_until({&c, &d}, [&] { return d.sink.packets.size() == 1; }));
  EXPECT_EQ(c.internals().fast_connections() + d.internals().fast_connections(), 0U);
  EXPECT_EQ(other.segment_bytes, 0U);
  const base::FileDescriptor untouched(socket(AF_INET, SOCK_STREAM, 0));
  const std::vector<std::string> expected{internal::congestion_control(untouched.get())};
  EXPECT_EQ(c.internals().congestion_controls(), expected);
  EXPECT_EQ(d.internals().congestion_controls(), expected);
}

TEST(Tcp, AWriterThatTakesAPacketInSeveralCallsHasNothingLeftAfterwards) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const base::FileDescriptor one(ends[0]), other(ends[1]);
  internal::FrameWriter writer;
  writer.set_burst(4096);
  const Bytes control = bytes_of("portions"), payload = pattern(20'000, 5);
  const iovec piece = piece_of(payload);
  const Packet packet{.control = control, .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 5};
  EXPECT_EQ(writer.write(one.get(), packet), internal::FrameWriter::Progress::whole);
  EXPECT_FALSE(writer.refers_to_payload());
  EXPECT_EQ(writer.written_bytes(), 16 + control.size() + payload.size());
}

TEST(Tcp, PacketsMayBeSentFromInsideTheSink) {
  Node a(0), b(1);
  Link& link = a.connect(b, 1);
  int left = 500;
  const auto bounce = [&left](Link& back, const Recorder::Received& packet) {
    if (--left > 0) {
      EXPECT_EQ(back.try_send({.control = packet.control}), SendStatus::done);
    }
  };
  a.sink.on_arrived = b.sink.on_arrived = bounce;
  send({&a, &b}, link, "ball");
  ASSERT_TRUE(step_until({&a, &b}, [&] { return left == 0; }));
}

TEST(Tcp, RailsAreConnectionsOfTheirOwn) {
  const auto two = [](TcpOptions& options) { options.rails = 2; };
  Node a(0, two), b(1, two);
  EXPECT_EQ(a.transport->capabilities().rails, 2U);
  Link& first = a.connect(b, 1, 0);
  Link& second = a.connect(b, 1, 1);
  EXPECT_NE(&first, &second);
  const Bytes payload = pattern(8 << 20, 5);
  const iovec piece = piece_of(payload);
  send({&a, &b}, second, "bulk", {&piece, 1});
  send({&a, &b}, first, "small");
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.landed_count() == 2; }));
  for (const auto& packet : b.sink.packets) EXPECT_EQ(packet->rail, packet->payload.empty() ? 0U : 1U);
  EXPECT_EQ(b.internals().open_connections(), 2U);
}

TEST(Tcp, RailsMayUseDifferentAddressesAndFamilies) {
  const auto all = internal::local_addresses();
  if (!internal::select_addresses(all.value(), "::1").ok()) GTEST_SKIP() << "no IPv6 here";
  const auto both = [](TcpOptions& options) {
    options.interfaces = "127.0.0.1,::1";
    options.rails = 2;
  };
  Node a(0, both), b(1, both), c(2, [](TcpOptions& options) { options.interfaces = "::1"; });
  for (unsigned rail = 0; rail < 2; ++rail)
    send({&a, &b, &c}, a.connect(b, 1, rail), "by rail " + std::to_string(rail));
  send({&a, &b, &c}, a.connect(c, 2), "by IPv6");
  ASSERT_TRUE(step_until({&a, &b, &c}, [&] { return b.sink.packets.size() == 2 && c.sink.packets.size() == 1; }));
  EXPECT_NE(b.sink.packets[0]->rail, b.sink.packets[1]->rail);
}

TEST(Tcp, SixtyFourRanksSpeakToOne) {
  Node root(0);
  std::vector<std::unique_ptr<Node>> others;
  std::vector<Node*> all{&root};
  for (unsigned rank = 1; rank < 64; ++rank) all.push_back(others.emplace_back(std::make_unique<Node>(rank)).get());
  for (const auto& node : others) node->connect(root, 0);
  for (const auto& node : others) send(all, node->connect(root, 0), "here");
  ASSERT_TRUE(step_until(all, [&] { return root.sink.packets.size() == others.size(); }));
  const Bytes payload = pattern(200'000, 6);
  const iovec piece = piece_of(payload);
  for (unsigned rank = 1; rank < 64; ++rank)
    send(all, root.connect(*others[rank - 1], rank), "take", {&piece, 1}, rank);
  ASSERT_TRUE(step_until(all, [&] {
    return std::all_of(others.begin(), others.end(), [](const auto& node) { return node->sink.landed_count() == 1; });
  }));
  for (const auto& node : others) EXPECT_EQ(node->sink.packets[0]->payload, payload);
  EXPECT_TRUE(root.sink.failures.empty());
}

TEST(Tcp, AGoodbyeMakesTheEndOfAConnectionSilent) {
  Node a(0);
  {
    Node b(1);
    send({&a, &b}, b.connect(a, 0), "goodbye");
    ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.packets.size() == 1; }));
    a.transport->peer_left(Rank(1));
  }
  step_for({&a}, 700'000'000);
  EXPECT_TRUE(a.sink.failures.empty());
  EXPECT_EQ(a.internals().open_connections(), 0U);
}

TEST(Tcp, AGoodbyeOnOneRailIsHeardBeforeTheEndOfAnother) {
  for (int round = 0; round < 20; ++round) {
    const auto two = [](TcpOptions& options) { options.rails = 2; };
    Node a(0, two);
    {
      Node b(1, two);
      send({&a, &b}, b.connect(a, 0, 1), "data");
      ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.packets.size() == 1; }));
      send({&a, &b}, b.connect(a, 0, 0), "goodbye");
    }
    // Like an engine, this acts after the poll on what the poll reported.
    ASSERT_TRUE(step_until({&a}, [&] {
      if (a.sink.packets.size() == 2) a.transport->peer_left(Rank(1));
      return a.internals().open_connections() == 0;
    }));
    EXPECT_TRUE(a.sink.failures.empty()) << a.sink.failures.begin()->second;
  }
}

TEST(Tcp, AnEndWithoutGoodbyeIsAFailureReportedOnce) {
  Node a(0);
  Node c(2);
  auto b = std::make_unique<Node>(1);
  send({&a, b.get(), &c}, a.connect(*b, 1), "x");
  send({&a, b.get(), &c}, a.connect(c, 2), "x");
  ASSERT_TRUE(step_until({&a, b.get(), &c}, [&] { return b->sink.packets.size() + c.sink.packets.size() == 2; }));
  Link& link = a.transport->connect(Rank(1), b->transport->card(), 0);
  b.reset();
  const std::int64_t start = now_ns();
  ASSERT_TRUE(step_until({&a, &c}, [&] { return !a.sink.failures.empty(); }));
  EXPECT_LT(now_ns() - start, 2'000'000'000);
  EXPECT_EQ(a.sink.failures[1], "its connection ended without a goodbye");
  EXPECT_EQ(link.try_send({.control = bytes_of("x")}), SendStatus::retry);
  send({&a, &c}, a.connect(c, 2), "the others go on");
  ASSERT_TRUE(step_until({&a, &c}, [&] { return c.sink.packets.size() == 2; }));
  EXPECT_EQ(a.sink.failures.size(), 1U);
}

TEST(Tcp, DisconnectingIsSilentHereAndAFailureThere) {
  Node a(0), b(1);
  Link& link = a.connect(b, 1);
  send({&a, &b}, link, "x");
  a.transport->disconnect(Rank(1));
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.failures.size() == 1; }));
  EXPECT_TRUE(a.sink.failures.empty());
  EXPECT_EQ(link.try_send({.control = bytes_of("x")}), SendStatus::retry);
}

TEST(Tcp, ASleeperIsWokenByWhatArrives) {
  Node a(0), b(1);
  Link& link = a.connect(b, 1);
  send({&a, &b}, link, "x");
  ASSERT_TRUE(step_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
  step_for({&a, &b}, 50'000'000);
  ASSERT_TRUE(b.transport->arm());
  pollfd wait{b.transport->wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0) << "asleep without cause";
  ASSERT_EQ(link.try_send({.control = bytes_of("y")}), SendStatus::done);
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
  b.transport->disarm();
  EXPECT_GE(b.transport->poll(now_ns()), 1U);
  EXPECT_EQ(b.sink.packets.size(), 2U);
}

TEST(Tcp, ASleeperIsWokenWhenItCanWriteAgain) {
  Node a(0, copy_always), b(1);
  Link& link = a.connect(b, 1);
  send({&a, &b}, link, "x");
  const Bytes payload = pattern(32 << 20, 4);
  const iovec piece = piece_of(payload);
  ASSERT_TRUE(a.transport->arm());
  ASSERT_EQ(send({}, link, "large", {&piece, 1}, 1), SendStatus::posted);  // posted while nobody polls
  std::thread receiver([&b] { EXPECT_TRUE(step_until({&b}, [&] { return b.sink.landed_count() == 2; })); });
  while (a.sink.cookies.empty()) {
    pollfd wait{a.transport->wait_descriptor(), POLLIN, 0};
    if (::poll(&wait, 1, 10'000) != 1) break;
    a.transport->disarm();
    a.transport->poll(now_ns());
    EXPECT_TRUE(a.transport->arm());
  }
  EXPECT_EQ(a.sink.cookies.size(), 1U);
  receiver.join();
  EXPECT_EQ(b.sink.packets[1]->payload, payload);
}

TEST(Tcp, RanksOfDifferentThreadsExchangeManyPackets) {
  Node a(0), b(1);
  const std::string card_a = a.transport->card();
  const std::string card_b = b.transport->card();
  constexpr std::size_t count = 2000;
  std::atomic<int> ready{0};
  const auto run = [&](Node& self, unsigned peer, const std::string& card) {
    Link& link = self.transport->connect(Rank(peer), card, 0);
    const Bytes payload = pattern(10'000, peer);
    const iovec piece = piece_of(payload);
    for (std::size_t i = 0; i < count; ++i) send({&self}, link, std::to_string(i), {&piece, i % 3 == 0 ? 1U : 0U});
    EXPECT_TRUE(step_until({&self}, [&] { return self.sink.landed_count() == count; }));
    for (std::size_t i = 0; i < self.sink.packets.size(); ++i) {
      EXPECT_EQ(self.sink.packets[i]->control, bytes_of(std::to_string(i)));
    }
    ++ready;
    EXPECT_TRUE(step_until({&self}, [&] { return ready == 2; }));
  };
  std::thread other([&] { run(b, 0, card_a); });
  run(a, 1, card_b);
  other.join();
}

/// Connections on which nothing was written lately cost no system call.
TEST(Tcp, IdleConnectionsAreNotAskedWhatTheyHold) {
  Node node(0);
  std::vector<std::unique_ptr<Node>> peers;
  std::vector<Node*> all{&node};
  for (unsigned rank = 1; rank <= 6; ++rank) all.push_back(peers.emplace_back(std::make_unique<Node>(rank)).get());
  std::vector<Link*> links;
  for (unsigned rank = 1; rank <= 6; ++rank) {
    links.push_back(&node.connect(*peers[rank - 1], rank));
    send(all, *links.back(), "hello");
  }
  ASSERT_TRUE(step_until(all, [&] { return node.internals().asked_for_unsent() == 0; }));
  EXPECT_EQ(node.transport->unsent_bytes(), 0u);
  send(all, *links[3], "again");
  EXPECT_EQ(node.internals().asked_for_unsent(), 1u);
}

TEST(Tcp, ManyIdleConnectionsProbeSeldom) {
  using internal::TcpTransport;
  EXPECT_EQ(TcpTransport::probe_pause_s(1), 1u);
  double probes_per_s = 0;
  for (std::size_t connections = 1; connections <= 1000; ++connections)
    probes_per_s += 1.0 / TcpTransport::probe_pause_s(connections);
  EXPECT_LT(probes_per_s, 60.0);
}

}  // namespace
}  // namespace tandem::comm::tcp_test::tcp_test
