// tandem/comm/transport/mpi/mpi_transport_check.cpp: tests of the transport mpi, run by every rank of an mpirun
// together.
//
// Usage: mpirun -n 3 mpi_transport_check [--alone | --funneled]. By default the program initialises MPI for many
// threads and uses it beside Tandem; with --alone Tandem initialises it; with --funneled the level does not suffice.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/comm/transport/mpi/mpi_transport.hpp"

namespace tandem::comm {
namespace {

using Bytes = std::vector<std::byte>;
using namespace std::chrono_literals;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes made(bytes);
  std::minstd_rand random(seed + 1);
  for (auto& b : made) b = static_cast<std::byte>(random() >> 7);
  return made;
}

/// Records its calls. Payloads land in memory of its own, in pieces.
struct Recorder : PacketSink {
  struct Received {
    Rank from;
    Bytes control, payload;
    bool landed = false;
  };

  Landing arrived(Link& link, std::span<const std::byte> control, std::size_t payload_bytes) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(control.data()) % 8, 0u);
    for (const auto& earlier : received) EXPECT_TRUE(earlier.landed || earlier.from != link.peer());
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
  void sent(Link&, std::uint64_t) override { ++sends_ended; }
  void writable(Link& link) override { on_writable(link); }
  void peer_failed(Rank peer, std::string_view reason) override { failed.emplace_back(peer, reason); }

  std::vector<const Received*> from(Rank rank) const {
    std::vector<const Received*> some;
    for (const auto& one : received) {
      if (one.from == rank && one.landed) some.push_back(&one);
    }
    return some;
  }

  std::deque<Received> received;
  std::deque<std::vector<iovec>> pieces;
  std::vector<std::pair<Rank, std::string>> failed;
  std::function<void(Link&)> on_writable = [](Link&) {};
  std::size_t piece_bytes = std::size_t{1} << 30, room = std::size_t{1} << 40;
  std::size_t sends_ended = 0;
  const char* malformed = nullptr;
};

bool alone = false;

/// This process's transport for one test; making it and leaving are collective. Ranks of the job are the
/// communicator's, reversed, so that a mix-up of the two shows.
class MpiTransport : public ::testing::Test {
 protected:
  static constexpr auto patience = 60s;

  void SetUp() override {
    int number = 0, size = 1;
    // With --alone only Tandem may call MPI before the first transport is there.
    const char* launched = std::getenv("OMPI_COMM_WORLD_RANK");
    const char* launched_size = std::getenv("OMPI_COMM_WORLD_SIZE");
    if (launched != nullptr && launched_size != nullptr) {
      number = std::atoi(launched);
      size = std::atoi(launched_size);
    }
    self = Rank(static_cast<unsigned>(size - 1 - number));
    ranks = static_cast<unsigned>(size);
    MpiOptions options{.rank = self, .program_calls_mpi = !alone, .payload_sends = 3};
    if (!alone) options.communicator = MPI_COMM_WORLD;
    auto made = make_mpi_transport(options, sink, log);
    ASSERT_TRUE(made.ok()) << made.error().message;
    transport = std::move(made).value();
    cards.resize(ranks);
    exchange_cards();
  }

  void TearDown() override {
    if (transport != nullptr) MPI_Barrier(MPI_COMM_WORLD);
    transport.reset();
  }

  void exchange_cards() {
    const std::string own = transport->card();
    ASSERT_EQ(own.size(), 16u);
    std::string all(own.size() * ranks, '\0');
    const int bytes = static_cast<int>(own.size());
    MPI_Allgather(own.data(), bytes, MPI_CHAR, all.data(), bytes, MPI_CHAR, MPI_COMM_WORLD);
    for (unsigned i = 0; i < ranks; ++i) cards[ranks - 1 - i] = all.substr(i * own.size(), own.size());
  }

  Link& link_to(unsigned rank) {
    EXPECT_TRUE(transport->reaches(Rank(rank), cards[rank]));
    return transport->connect(Rank(rank), cards[rank], 0);
  }

  template <class Condition>
  bool step_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (transport->poll(0) == 0) std::this_thread::yield();
    }
    return true;
  }

  /// Polls until all ranks are here, so that no rank waits for one that sleeps in a barrier.
  void finish_together() {
    MPI_Request all;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    EXPECT_TRUE(step_until([&] { return MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0; }));
  }

  Recorder sink;
  base::Log log;
  Rank self{0};
  unsigned ranks = 1;
  std::vector<std::string> cards;
  std::unique_ptr<Transport> transport;
};

/// Messages that one rank sends to another, in order.
struct Outgoing {
  Link* link;
  std::vector<std::pair<Bytes, Bytes>> packets = {};
  std::size_t pieces = 1, next = 0, posted = 0;

  void push() {
    for (; next < packets.size(); ++next) {
      auto& [control, payload] = packets[next];
      std::vector<iovec> list;
      for (std::size_t i = 0; i < pieces && !payload.empty(); ++i) {
        const std::size_t from = payload.size() * i / pieces, to = payload.size() * (i + 1) / pieces;
        list.push_back({payload.data() + from, to - from});
      }
      const SendStatus status =
          link->try_send({.control = control, .payload = list, .payload_bytes = payload.size(), .cookie = next});
      if (status == SendStatus::retry) return;
      if (status == SendStatus::posted) ++posted;
    }
  }
};

constexpr std::size_t many_sizes[] = {
    0, 1,      8,       100,     0,       4'000,   8'000, 8'175,         8'176,   16'384, 65'535,
    3, 65'536, 262'144, 262'145, 439'296, 1 << 20, 5,     (1 << 20) + 1, 8 << 20, 0};

std::vector<std::pair<Bytes, Bytes>> packets_between(Rank from, Rank to, std::span<const std::size_t> sizes) {
  std::vector<std::pair<Bytes, Bytes>> made;
  for (unsigned i = 0; i < sizes.size(); ++i) {
    const unsigned seed = i + 100 * from.value() + 1000 * to.value();
    made.emplace_back(pattern(1 + seed * 977 % 4096, seed), pattern(sizes[i], seed));
  }
  return made;
}

class MpiExchange : public MpiTransport {
 protected:
  /// Each rank sends these sizes to all ranks, itself included, at once, and checks what it received.
  void exchange(std::span<const std::size_t> sizes, std::size_t pieces, std::size_t piece_bytes) {
    sink.piece_bytes = piece_bytes;
    std::vector<Outgoing> out;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      out.push_back({.link = &link_to(rank), .packets = packets_between(self, Rank(rank), sizes), .pieces = pieces});
    }
    sink.on_writable = [&](Link& link) { out[link.peer().index()].push(); };
    for (auto& one : out) one.push();
    const std::size_t expected = sizes.size() * ranks;
    const auto over = [&] {
      std::size_t posted = 0, landed = 0;
      for (const auto& one : out) posted += one.next == sizes.size() ? one.posted : expected;
      for (const auto& one : sink.received) landed += one.landed;
      return landed == expected && sink.sends_ended == posted;
    };
    EXPECT_TRUE(step_until(over));
    for (unsigned rank = 0; rank < ranks; ++rank) check(Rank(rank), sizes);
    EXPECT_TRUE(sink.failed.empty());
    finish_together();
  }

  void check(Rank from, std::span<const std::size_t> sizes) {
    const auto got = sink.from(from);
    const auto sent = packets_between(from, self, sizes);
    ASSERT_EQ(got.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(got[i]->control, sent[i].first) << "packet " << i << " of rank " << from.value();
      EXPECT_EQ(got[i]->payload, sent[i].second) << "packet " << i << " of rank " << from.value();
    }
  }
};

TEST_F(MpiExchange, PacketsOfAllSizesArriveWholeAndInOrder) { exchange(many_sizes, 1, std::size_t{1} << 30); }

TEST_F(MpiExchange, GathersAndScattersPieces) { exchange(many_sizes, 7, 100'001); }

TEST_F(MpiExchange, ManySmallPacketsKeepTheirOrderAmongLargeOnes) {
  std::vector<std::size_t> sizes(1500);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = i % 100 == 99 ? 50'000 + i : i % 7 == 0 ? i : 0;
  exchange(sizes, 2, 20'000);
}

TEST_F(MpiTransport, PayloadsWithoutRoomAreDroppedAndSendersAreNotified) {
  sink.room = 1000;
  Outgoing out{.link = &link_to((self.value() + 1) % ranks)};
  for (unsigned i = 0; i < 4; ++i) out.packets.emplace_back(pattern(16, i), pattern(i % 2 == 0 ? 2'000 : 3 << 20, i));
  sink.on_writable = [&](Link&) { out.push(); };
  out.push();
  const Rank source((self.value() + ranks - 1) % ranks);
  EXPECT_TRUE(
      step_until([&] { return sink.from(source).size() == 4 && out.next == 4 && sink.sends_ended == out.posted; }));
  for (unsigned i = 0; i < sink.received.size(); ++i) {
    const Bytes whole = pattern(2'000 > sink.room && i % 2 == 0 ? 2'000 : 3 << 20, i);
    EXPECT_EQ(sink.received[i].payload, Bytes(whole.begin(), whole.begin() + 1000));
  }
  finish_together();
}

TEST_F(MpiTransport, AMalformedPacketEndsThatLinkOnly) {
  if (ranks < 3) GTEST_SKIP() << "needs three ranks";
  const Bytes control = pattern(16, 1), payload = pattern(100, 1);
  iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  const Packet packet{.control = control, .payload = {&piece, 1}, .payload_bytes = payload.size()};
  if (self == Rank(0)) {
    sink.malformed = "a test says so";
    EXPECT_TRUE(step_until([&] { return sink.failed.size() == 1; }));
    EXPECT_EQ(sink.failed.at(0).first, Rank(1));
    EXPECT_NE(sink.failed.at(0).second.find("a test says so"), std::string::npos);
    sink.malformed = nullptr;
    EXPECT_EQ(link_to(1).try_send(packet), SendStatus::retry);
    EXPECT_EQ(link_to(2).try_send(packet), SendStatus::done);
    EXPECT_TRUE(step_until([&] { return sink.from(Rank(2)).size() == 1; }));
  } else if (self == Rank(1)) {
    EXPECT_EQ(link_to(0).try_send(packet), SendStatus::done);
    EXPECT_TRUE(step_until([&] { return sink.failed.size() == 1; }));
  } else {
    EXPECT_TRUE(step_until([&] { return sink.from(Rank(0)).size() == 1; }));
    EXPECT_EQ(link_to(0).try_send(packet), SendStatus::done);
  }
  finish_together();
}

TEST_F(MpiTransport, DisconnectLeavesNoReceiveBehind) {
  if (ranks < 2) GTEST_SKIP() << "needs two ranks";
  if (self == Rank(0)) {
    EXPECT_TRUE(step_until([&] { return sink.received.size() == 1; }));
    transport->disconnect(Rank(1));
    const bool landed = sink.received[0].landed;
    const Bytes before = sink.received[0].payload;
    for (int i = 0; i < 100; ++i) transport->poll(0);
    EXPECT_EQ(sink.received[0].landed, landed);
    EXPECT_EQ(sink.received[0].payload, before);
    EXPECT_TRUE(sink.failed.empty());
    EXPECT_EQ(link_to(1).try_send({.control = sink.received[0].control}), SendStatus::retry);
  } else if (self == Rank(1)) {
    const Bytes control = pattern(16, 1), payload = pattern(8 << 20, 1);
    iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
    const SendStatus status =
        link_to(0).try_send({.control = control, .payload = {&piece, 1}, .payload_bytes = payload.size()});
    EXPECT_EQ(status, SendStatus::posted);
    EXPECT_TRUE(step_until([&] { return sink.failed.size() == 1; }));
  }
  finish_together();
}

TEST_F(MpiTransport, ACardOfAnotherCommunicatorIsRefused) {
  std::string card = cards[0];
  card[0] = static_cast<char>(card[0] ^ 1);
  EXPECT_FALSE(transport->reaches(Rank(0), card));
  EXPECT_FALSE(transport->reaches(Rank(0), cards[0].substr(1)));
  EXPECT_FALSE(transport->reaches(Rank(ranks), cards[0]));
  EXPECT_EQ(transport->wait_descriptor(), -1);
  EXPECT_FALSE(transport->rings());
}

TEST_F(MpiExchange, TheProgramsOwnMessagesAndOursDoNotMeet) {
  if (alone) GTEST_SKIP() << "the program does not call MPI";
  const int number = static_cast<int>(ranks - 1 - self.value()), count = static_cast<int>(ranks);
  const int to = (number + 1) % count, from = (number + count - 1) % count;
  std::vector<int> own(50'000, number), other(50'000, -1);
  std::vector<MPI_Request> requests(2);
  MPI_Irecv(other.data(), 50'000, MPI_INT, from, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(own.data(), 50'000, MPI_INT, to, 0, MPI_COMM_WORLD, &requests[1]);
  std::thread program([&] { MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE); });
  exchange(many_sizes, 1, std::size_t{1} << 30);
  program.join();
  EXPECT_EQ(other, std::vector<int>(50'000, from));
}

/// Run with --funneled only.
TEST(MpiLevel, ALevelThatDoesNotSufficeIsAnErrorWithTheRemedy) {
  Recorder sink;
  base::Log log;
  for (const bool program_calls : {false, true}) {
    auto made = make_mpi_transport({.communicator = MPI_COMM_WORLD, .program_calls_mpi = program_calls}, sink, log);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("MPI_THREAD_FUNNELED"), std::string::npos) << made.error().message;
    const char* needed = program_calls ? "MPI_THREAD_MULTIPLE is needed" : "MPI_THREAD_SERIALIZED is needed";
    EXPECT_NE(made.error().message.find(needed), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace tandem::comm

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  ::testing::InitGoogleTest(&argc, argv);
  tandem::comm::alone = mode == "--alone";
  const bool funneled = mode == "--funneled";
  if (!tandem::comm::alone) {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
  }
  if (::testing::GTEST_FLAG(filter) == "*") ::testing::GTEST_FLAG(filter) = funneled ? "MpiLevel.*" : "-MpiLevel.*";
  const int failed = RUN_ALL_TESTS();
  if (!tandem::comm::alone) MPI_Finalize();
  return failed;
}
