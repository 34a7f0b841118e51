// tandem/comm/transport/tcp/tcp_fuzz_test.cpp: for any bytes, only the connection that they came from ends.
#include <cstdlib>
#include <optional>
#include <random>

#include "tandem/comm/transport/tcp/raw_peer.hpp"

namespace tandem::comm::tcp_test::tcp_fuzz_test {
namespace {

/// The seed of a random test: TANDEM_TEST_SEED, or a constant.
unsigned first_seed() {
  const char* given = std::getenv("TANDEM_TEST_SEED");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 1;
}

/// A real peer that goes on speaking with the node while others misbehave.
class TcpFuzz : public testing::Test {
 protected:
  void SetUp() override {
    send({&node_, &friend_}, friend_.connect(node_, 0), "before");
    wait_for(1);
  }
  void TearDown() override {
    send({&node_, &friend_}, friend_.connect(node_, 0), "after");
    wait_for(friends_packets() + 1);
    EXPECT_FALSE(node_.sink.failures.contains(1));
    EXPECT_TRUE(friend_.sink.failures.empty());
  }
  std::size_t friends_packets() const {
    return static_cast<std::size_t>(std::count_if(node_.sink.packets.begin(), node_.sink.packets.end(),
                                                  [](const auto& packet) { return packet->from == Rank(1); }));
  }
  void wait_for(std::size_t packets) {
    EXPECT_TRUE(step_until({&node_, &friend_}, [&] { return friends_packets() >= packets; }));
  }
  void expect_failure(unsigned rank, std::string_view reason) {
    EXPECT_TRUE(step_until({&node_}, [&] { return node_.sink.failures.contains(rank); })) << rank << ": " << reason;
    EXPECT_NE(node_.sink.failures[rank].find(reason), std::string::npos) << node_.sink.failures[rank];
  }

  Node node_{0};
  Node friend_{1};
};

TEST_F(TcpFuzz, RandomBytesBeforeTheProofAreDropped) {
  for (unsigned seed = first_seed(); seed < first_seed() + 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "TANDEM_TEST_SEED=" << seed);
    std::mt19937 random(seed);
    Bytes bytes = pattern(1 + random() % 300, seed);
    if (seed % 2 == 0) {  // a good beginning
      const auto hello = ConnectionProof::opener(ProofParty{}, Rank(0), 0);
      std::copy_n(hello.output().begin(), std::min(bytes.size(), 8 + random() % 80), bytes.begin());
    }
    RawPeer stranger(node_);
    stranger.write(bytes, 1 + random() % 64);
    stranger.close();
    node_.transport->poll(now_ns());
  }
  EXPECT_TRUE(step_until({&node_}, [&] { return node_.internals().open_connections() == 1; }));
  EXPECT_TRUE(node_.sink.failures.empty());
}

TEST_F(TcpFuzz, ADamagedProofIsNoProof) {
  // The hello and the proof of a real exchange, with one bit flipped anywhere in one of them.
  for (std::size_t bit = 0; bit < 8 * (ConnectionProof::hello_bytes + ConnectionProof::proof_bytes); bit += 3) {
    ProofParty party{
        .rank = Rank(2), .size = 4096, .wire_version = 1, .version = "1.0", .job_id = "test", .secret = {}};
    party.secret.fill(std::byte{7});
    ProofParty other = party;
    other.rank = Rank(0);
    auto opener = ConnectionProof::opener(party, Rank(0), 0);
    auto accepter = ConnectionProof::accepter(other);
    std::size_t position = 0;
    const auto pass = [&](ConnectionProof& from, ConnectionProof& to, bool damage) {
      while (!from.output().empty() && !to.input().empty()) {
        std::byte byte = from.output()[0];
        if (damage && position++ == bit / 8) byte ^= static_cast<std::byte>(1U << bit % 8);
        to.input()[0] = byte;
        from.sent(1);
        to.received(1);
      }
    };
    for (int round = 0; round < 3; ++round) {
      pass(opener, accepter, true);
      pass(accepter, opener, false);
    }
    EXPECT_NE(accepter.state(), ConnectionProof::State::proved) << "bit " << bit;
    EXPECT_FALSE(accepter.authentic()) << "bit " << bit;
  }
}

TEST_F(TcpFuzz, RandomBytesAfterTheProofEndThatConnection) {
  for (unsigned i = 0; i < 60; ++i) {
    const unsigned seed = first_seed() + i;
    SCOPED_TRACE(testing::Message() << "TANDEM_TEST_SEED=" << seed);
    std::mt19937 random(seed);
    RawPeer peer(node_);
    peer.prove(10 + i);
    const Bytes good = wire_packet(bytes_of("good"), pattern(random() % 100, seed));
    for (unsigned packets = random() % 4; packets-- > 0;) EXPECT_TRUE(peer.write(good));
    peer.write(pattern(16 + random() % 100'000, seed), 1 + random() % 5000);
    expect_failure(10 + i, "malformed");
    EXPECT_TRUE(peer.closed_by_node());
  }
}

TEST_F(TcpFuzz, EveryFlippedBitOfAHeaderIsNoticed) {
  for (unsigned bit = 0; bit < 128; ++bit) {
    RawPeer peer(node_);
    peer.prove(10 + bit);
    Bytes bytes = wire_packet(bytes_of("control"), pattern(500, bit));
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    peer.write(bytes);
    expect_failure(10 + bit, "header is damaged");
  }
}

TEST_F(TcpFuzz, ImpossibleSizesAreRefused) {
  const std::size_t most_control = internal::TcpTransport::most_control_bytes;
  const std::size_t most_payload = internal::TcpTransport::most_payload_bytes;
  const std::vector<std::pair<std::size_t, std::size_t>> sizes = {
      {0, 5}, {most_control + 1, 0}, {UINT16_MAX, 0}, {8, most_payload + 1}, {8, UINT32_MAX}, {UINT16_MAX, UINT32_MAX}};
  for (unsigned i = 0; i < sizes.size(); ++i) {
    RawPeer peer(node_);
    peer.prove(10 + i);
    const auto header = internal::FrameHeader::of(sizes[i].first, sizes[i].second);
    peer.write(std::as_bytes(std::span(&header, 1)));
    expect_failure(10 + i, "impossible size");
  }
}

TEST_F(TcpFuzz, AHeaderAloneIsNoPacket) {
  RawPeer peer(node_);
  peer.prove(10);
  const auto word = internal::FrameHeader::of(0, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(peer.write(std::as_bytes(std::span(&word, 1)), 5));
  EXPECT_TRUE(peer.write(wire_packet(bytes_of("control"), pattern(500, 1))));
  ASSERT_TRUE(step_until({&node_}, [&] { return node_.sink.landed_count() == 2; }));
  EXPECT_EQ(node_.sink.packets[1]->payload, pattern(500, 1));
}

TEST_F(TcpFuzz, WordsAboutLoansThatWereNotMadeAreRefused) {
  using internal::FrameHeader;
  const std::vector<std::pair<FrameHeader, std::string_view>> headers = {
      {FrameHeader::of(0, 0, 1), "was not spliced"},
      {FrameHeader::of(7, 0, 1), "was not spliced"},
      {FrameHeader::of(0, 0, UINT32_MAX), "was not spliced"},
      {FrameHeader::of(7, 0, 0, true), "says that it was spliced"},
      {FrameHeader::of(0, 0, 0, true), "says that it was spliced"}};
  for (unsigned i = 0; i < headers.size(); ++i) {
    RawPeer peer(node_);
    peer.prove(10 + i);
    peer.write(std::as_bytes(std::span(&headers[i].first, 1)));
    expect_failure(10 + i, headers[i].second);
  }
}

TEST_F(TcpFuzz, APacketThatEndsAnywhereBeforeItsEndIsAFailure) {
  const Bytes bytes = wire_packet(bytes_of("control"), pattern(30, 1));
  for (unsigned size = 0; size < bytes.size(); ++size) {
    RawPeer peer(node_);
    peer.prove(10 + size);
    peer.write(std::span(bytes).first(size));
    peer.close();
    expect_failure(10 + size, size == 0 ? "without a goodbye" : "in the middle of a packet");
  }
}

TEST_F(TcpFuzz, SlowDeliveryChangesNothing) {
  RawPeer peer(node_);
  peer.prove(2);
  Bytes bytes;
  for (unsigned i = 0; i < 30; ++i) {
    const Bytes packet = wire_packet(pattern(1 + i * 7, i), pattern(i % 3 * 11, i));
    bytes.insert(bytes.end(), packet.begin(), packet.end());
  }
  EXPECT_TRUE(peer.write(bytes, 1));
  ASSERT_TRUE(step_until({&node_}, [&] { return node_.sink.landed_count() == 31; }));
  for (unsigned i = 0; i < 30; ++i) {
    EXPECT_EQ(node_.sink.packets[i + 1]->control, pattern(1 + i * 7, i));
    EXPECT_EQ(node_.sink.packets[i + 1]->payload, pattern(i % 3 * 11, i));
  }
  EXPECT_TRUE(node_.sink.aligned);
}

TEST_F(TcpFuzz, RandomPacketsInRandomPiecesArriveAsTheyWere) {
  for (unsigned seed = first_seed(); seed < first_seed() + 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "TANDEM_TEST_SEED=" << seed);
    std::mt19937 random(seed);
    node_.sink.piece_bytes = random() % 2 == 0 ? 0 : 1 + random() % 3000;
    const std::size_t before = node_.sink.packets.size();
    RawPeer peer(node_);
    peer.prove(10 + seed - first_seed());
    std::vector<std::pair<Bytes, Bytes>> packets;
    Bytes bytes;
    for (unsigned i = 0; i < 20; ++i) {
      const std::size_t payload = random() % 3 == 0 ? 0 : random() % (random() % 4 == 0 ? 200'000 : 300);
      packets.emplace_back(pattern(1 + random() % (random() % 5 == 0 ? 16'384 : 100), i), pattern(payload, seed + i));
      const Bytes packet = wire_packet(packets.back().first, packets.back().second);
      bytes.insert(bytes.end(), packet.begin(), packet.end());
    }
    EXPECT_TRUE(peer.write(bytes, 1 + random() % 20'000));
    ASSERT_TRUE(step_until({&node_}, [&] { return node_.sink.landed_count() == before + packets.size(); }));
    for (std::size_t i = 0; i < packets.size(); ++i) {
      EXPECT_EQ(node_.sink.packets[before + i]->control, packets[i].first);
      EXPECT_EQ(node_.sink.packets[before + i]->payload, packets[i].second);
    }
  }
  EXPECT_TRUE(node_.sink.aligned);
}

/// Rank 10 with both connections of a pair: one made by the node, one by rank 10.
struct BothConnections {
  explicit BothConnections(Node& node) {
    node.transport->connect(Rank(10), listener.card(node), 0);
    called.emplace(node, listener);
    called->prove(10);
    caller.emplace(node);
    caller->prove(10);
  }
  RawListener listener;
  std::optional<RawPeer> called, caller;
};

/// One connection brings a payload and the other one a packet: both would land where the engine wanted the last.
TEST_F(TcpFuzz, PacketsOnBothConnectionsOfOnePairEndThatPeer) {
  BothConnections pair(node_);
  const Bytes first = wire_packet(bytes_of("first"), pattern(1000, 1));
  EXPECT_TRUE(pair.called->write(std::span(first).first(500)));
  step_for({&node_}, 5'000'000);
  pair.caller->write(wire_packet(bytes_of("second"), pattern(1000, 2)));
  expect_failure(10, "one rail on two connections");
  EXPECT_EQ(node_.sink.landed_count(), 1u) << "of the friend";
}

TEST_F(TcpFuzz, TheOtherConnectionOfAPairMayBeTheOnlyOneThatSpeaks) {
  BothConnections pair(node_);
  for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(pair.caller->write(wire_packet(bytes_of("one"), pattern(1000, i))));
  EXPECT_TRUE(step_until({&node_}, [&] { return node_.sink.landed_count() == 4; }));
}

TEST_F(TcpFuzz, WhatTheEngineCallsMalformedEndsThatPeer) {
  node_.sink.malformed = "a record has no end";
  Node other(2);
  send({&node_, &other}, other.connect(node_, 0), "bad block");
  ASSERT_TRUE(step_until({&node_, &other}, [&] { return other.sink.failures.size() == 1; }));
  EXPECT_EQ(node_.sink.failures[2], "it sent malformed bytes: a record has no end");
}

}  // namespace
}  // namespace tandem::comm::tcp_test::tcp_fuzz_test
