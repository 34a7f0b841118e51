// tandem/comm/transport/shm/shm_test.cpp: the shared-memory transport's promises, ranks in one process stepped by one
// thread.
#include "tandem/comm/transport/shm/shm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <filesystem>
#include <random>
#include <thread>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/shm/shm_test_support.hpp"

namespace tandem::comm::shm_test {
namespace {

using namespace shm_test;
using ::testing::HasSubstr;

class ShmPair : public ::testing::Test {
 protected:
  explicit ShmPair(ShmOptions options = {}) : a(0, 2, options), b(1, 2, options) {}

  bool step(const std::function<bool()>& done, int seconds = 20) {
    return step_until(std::array{&a, &b}, done, seconds);
  }
  /// Sends and steps until the packet was taken.
  void send(Link& link, const Packet& packet) {
    SendStatus status = SendStatus::retry;
    ASSERT_TRUE(step([&] { return (status = link.try_send(packet)) != SendStatus::retry; }));
    if (status == SendStatus::posted) {
      ASSERT_TRUE(step([&] { return !a.sink.cookies.empty() && a.sink.cookies.back() == packet.cookie; }));
    }
  }
  void send_text(Link& link, std::string_view text) { send(link, {.control = bytes_of(text)}); }

  ShmRank a, b;
};

struct SmallRings : ShmPair {
  SmallRings() : ShmPair({.record_ring_bytes = 32 * 1024, .data_ring_bytes = 64 * 1024, .window_bytes = 32 * 1024}) {}
};

TEST_F(ShmPair, APacketArrivesAndTheAnswerComesOverTheSameLink) {
  Link& to_b = a.connect(b, 1);
  EXPECT_EQ(to_b.try_send({.control = bytes_of("early")}), SendStatus::retry) << "nobody has answered yet";
  ASSERT_TRUE(step([&] { return !a.sink.writables.empty(); })) << "a link that answered retry says when it is writable";
  EXPECT_EQ(to_b.try_send({.control = bytes_of("question")}), SendStatus::done);
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  EXPECT_EQ(text_of(b.sink.arrivals[0][0].control), "question");
  Link& to_a = b.connect(a, 0);
  EXPECT_EQ(&to_a, b.sink.links[0]) << "connect gives the link that the peer opened";
  EXPECT_EQ(to_a.try_send({.control = bytes_of("answer")}), SendStatus::done);
  ASSERT_TRUE(step([&] { return a.sink.landed_from(1) == 1; }));
  EXPECT_EQ(text_of(a.sink.arrivals[1][0].control), "answer");
}

TEST_F(ShmPair, PayloadsOfEverySizeLandWhereTheSinkWantsThem) {
  Link& link = a.connect(b, 1);
  b.sink.piece_bytes = 7777;
  std::uint32_t seed = 0;
  for (const std::size_t bytes :
       {1UL, 8UL, 55UL, 100UL, 1023UL, 1024UL, 1025UL, 8192UL, 8193UL, 65'536UL, 439'296UL, 5'000'001UL}) {
    const std::vector<std::byte> payload = pattern(bytes, ++seed);
    const std::size_t cut = bytes / 3;
    const std::array pieces{iovec{const_cast<std::byte*>(payload.data()), cut}, iovec{nullptr, 0},
                            iovec{const_cast<std::byte*>(payload.data()) + cut, bytes - cut}};
    send(link, {.control = bytes_of("with payload"), .payload = pieces, .payload_bytes = bytes, .cookie = seed});
    ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == seed; })) << bytes;
    EXPECT_EQ(text_of(b.sink.arrivals[0].back().control), "with payload");
    EXPECT_TRUE(b.sink.arrivals[0].back().payload == payload) << bytes;
  }
}

TEST_F(ShmPair, ControlBlocksUpToTheLargestArriveWhole) {
  Link& link = a.connect(b, 1);
  const std::size_t most = a.transport->capabilities().max_control_bytes;
  ASSERT_GE(most, 4096U);
  std::size_t count = 0;
  for (std::size_t bytes = 1; bytes <= most; bytes += bytes < 300 ? 1 : 1009) {
    const std::vector<std::byte> control = pattern(bytes, static_cast<std::uint32_t>(bytes));
    send(link, {.control = control});
    ++count;
    ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == count; }));
    ASSERT_EQ(b.sink.arrivals[0].back().control, control);
    b.sink.arrivals[0].erase(b.sink.arrivals[0].begin(), b.sink.arrivals[0].end() - 1);
    count = 1;
  }
}

TEST_F(ShmPair, ABlockThatIsWrittenIntoReservedRoomArrives) {
  Link& link = a.connect(b, 1);
  send_text(link, "first");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  std::size_t count = 1;
  for (std::size_t bytes = 8; bytes <= 3 * 1024; bytes += bytes < 200 ? 8 : 232) {
    const std::vector<std::byte> block = pattern(bytes, static_cast<std::uint32_t>(bytes));
    for (const bool by_default : {false, true}) {
      ASSERT_TRUE(step([&] {
        std::vector<std::byte> own(bytes);
        const std::span<std::byte> room = by_default ? link.Link::reserve(own) : link.reserve(own);
        if (room.empty()) return false;
        std::memcpy(room.data(), block.data(), bytes);
        return (by_default ? link.Link::send_reserved(room) : link.send_reserved(room)) == SendStatus::done;
      }));
      ++count;
      ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == count; }));
      ASSERT_EQ(b.sink.arrivals[0].back().control, block) << bytes;
      b.sink.arrivals[0].erase(b.sink.arrivals[0].begin(), b.sink.arrivals[0].end() - 1);
      count = 1;
    }
  }
}

// Records of many lines are followed by a gap when they answer something, but not in a series, nor when the ring has
// little room.
TEST_F(SmallRings, LongRecordsInTurnsAndInRowsArriveInOrder) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::size_t most_control = a.transport->capabilities().max_control_bytes;
  Link& there = a.connect(b, 1);
  Link& back = b.connect(a, 0);
  for (std::uint32_t turn = 0; turn < 400; ++turn) {
    const bool answers = turn % 2 == 1;
    std::deque<Arrival>& arrivals = answers ? a.sink.arrivals[1] : b.sink.arrivals[0];
    arrivals.clear();
    const std::size_t row = random() % 4 == 0 ? 1 + random() % 20 : 1;
    std::vector<std::vector<std::byte>> controls, payloads;
    for (std::size_t i = 0; i < row; ++i) {
      controls.push_back(pattern(1 + random() % (random() % 4 == 0 ? most_control : 2000), turn));
      payloads.push_back(pattern(random() % 3 == 0 ? random() % 9000 : 0, turn));
      const iovec piece{payloads.back().data(), payloads.back().size()};
      send(answers ? back : there, {.control = controls.back(),
                                    .payload = {&piece, piece.iov_len > 0 ? 1U : 0U},
                                    .payload_bytes = piece.iov_len});
    }
    ASSERT_TRUE(step([&] { return arrivals.size() == row && arrivals.back().landed; }));
    for (std::size_t i = 0; i < row; ++i) {
      ASSERT_TRUE(arrivals[i].control == controls[i]);
      ASSERT_TRUE(arrivals[i].payload == payloads[i]);
    }
  }
}

TEST_F(SmallRings, BlocksWrittenIntoTheLineArriveInOrderAmongOthers) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto next = [&random] { return static_cast<std::uint32_t>(random()); };
  Link& link = a.connect(b, 1);
  EXPECT_EQ(link.line, nullptr) << "not connected yet";
  send_text(link, "first");
  ASSERT_TRUE(step([&] { return b.sink.arrivals[0].size() == 1; }));
  std::size_t in_lines = 0;
  for (std::uint32_t row = 0; row < 200; ++row) {
    b.sink.arrivals[0].clear();
    std::vector<std::vector<std::byte>> controls;
    for (bool full = false; !full && controls.size() < 1000;) {
      if (link.line != nullptr && random() % 8 != 0) {
        const std::vector<std::byte> block = pattern(8 * (1 + random() % (Link::kFirstBytes / 8)), next());
        std::copy(block.begin(), block.end(), link.line);
        EXPECT_EQ(link.send_reserved({link.line, block.size()}), SendStatus::done);
        controls.push_back(block);
        ++in_lines;
      } else {
        controls.push_back(pattern(1 + random() % 600, next()));
        full = link.try_send({.control = controls.back()}) == SendStatus::retry;
        if (full) controls.pop_back();
      }
      full = full || random() % 300 == 0;
    }
    ASSERT_TRUE(step([&] { return b.sink.arrivals[0].size() == controls.size(); }));
    for (std::size_t i = 0; i < controls.size(); ++i) ASSERT_TRUE(b.sink.arrivals[0][i].control == controls[i]);
  }
  EXPECT_GT(in_lines, 1000U);
  a.sink.writables.clear();
  while (link.try_send({.control = bytes_of("x")}) == SendStatus::done) {}
  EXPECT_EQ(link.line, nullptr) << "the ring is full";
  ASSERT_TRUE(step([&] { return !a.sink.writables.empty(); }));
  send_text(link, "y");
  EXPECT_NE(link.line, nullptr) << "there is room again";
  b.transport->disconnect(Rank(0));
  ASSERT_TRUE(step([&] { return !a.sink.failures.empty(); }));
  EXPECT_EQ(link.line, nullptr) << "nobody reads";
}

TEST_F(ShmPair, APayloadWithoutRoomIsDroppedAndStillLands) {
  Link& link = a.connect(b, 1);
  const std::vector<std::byte> payload = pattern(200'000, 1);
  const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  b.sink.drop_payloads = true;
  send(link, {.control = bytes_of("dropped"), .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 1});
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  b.sink.drop_payloads = false;
  b.sink.room_bytes = 1000;
  send(link, {.control = bytes_of("cut"), .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 2});
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 2; }));
  const std::vector<std::byte>& got = b.sink.arrivals[0].back().payload;
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + 1000, payload.begin()));
  EXPECT_EQ(got[1000], std::byte{0}) << "bytes beyond the pieces are dropped";
  send_text(link, "next");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 3; }));
}

TEST_F(SmallRings, AFullRingAnswersRetryLeavesNoTraceAndSaysWhenThereIsRoom) {
  Link& link = a.connect(b, 1);
  send_text(link, "0");
  a.sink.writables.clear();
  std::uint32_t taken = 1;
  while (taken < 100'000 && link.try_send({.control = bytes_of(std::to_string(taken))}) == SendStatus::done) ++taken;
  EXPECT_LT(taken, 1000U) << "a ring of 32 KiB has 512 cells";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(link.try_send({.control = bytes_of("refused")}), SendStatus::retry);
  EXPECT_TRUE(a.sink.writables.empty());
  ASSERT_TRUE(step([&] { return !a.sink.writables.empty(); }));
  EXPECT_EQ(link.try_send({.control = bytes_of(std::to_string(taken))}), SendStatus::done);
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == taken + 1; }));
  for (std::uint32_t i = 0; i <= taken; ++i) ASSERT_EQ(text_of(b.sink.arrivals[0][i].control), std::to_string(i));
}

TEST_F(SmallRings, WhoWasRefusedAndHasNoTurnToPollSeesThatThereIsRoomAgain) {
  Link& link = a.connect(b, 1);
  EXPECT_FALSE(link.has_room_again()) << "nobody was refused";
  EXPECT_EQ(link.try_send({.control = bytes_of("early")}), SendStatus::retry);
  EXPECT_FALSE(link.has_room_again()) << "it is not connected";
  const std::vector<std::byte> control = pattern(1000, 1);
  send(link, {.control = control});
  std::size_t sent = 1;
  for (unsigned round = 0; round < 20; ++round) {
    while (link.try_send({.control = control}) == SendStatus::done) ++sent;
    EXPECT_FALSE(link.has_room_again());
    a.sink.writables.clear();
    while (b.sink.landed_from(0) < sent) b.poll();
    EXPECT_TRUE(link.has_room_again());
    EXPECT_FALSE(link.has_room_again()) << "it is reported once";
    a.poll();
    EXPECT_TRUE(a.sink.writables.empty()) << "a sender that knows it is not notified again";
  }
  for (const Arrival& arrival : b.sink.arrivals[0]) EXPECT_EQ(arrival.control, control);
}

TEST_F(SmallRings, APayloadManyTimesLargerThanTheRingsPassesAndLaterPacketsFollowInOrder) {
  Link& link = a.connect(b, 1);
  send_text(link, "first");
  const std::vector<std::byte> payload = pattern(1'000'003, 5);
  const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  ASSERT_EQ(link.try_send(
                {.control = bytes_of("large"), .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 42}),
            SendStatus::posted);
  EXPECT_TRUE(a.sink.cookies.empty());
  EXPECT_EQ(link.try_send({.control = bytes_of("too early")}), SendStatus::retry);
  send_text(link, "last");
  EXPECT_EQ(a.sink.cookies, std::vector<std::uint64_t>{42});
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 3; }));
  EXPECT_TRUE(b.sink.arrivals[0][1].payload == payload);
  EXPECT_EQ(text_of(b.sink.arrivals[0][2].control), "last");
}

TEST_F(SmallRings, RandomPacketsArriveInOrderAndWhole) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Link& link = a.connect(b, 1);
  std::deque<std::pair<std::vector<std::byte>, std::vector<std::byte>>> sent;
  b.sink.piece_bytes = 3001;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto up_to = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
    std::vector<std::byte> control = pattern(1 + up_to(up_to(4) == 0 ? 4000 : 60), i);
    std::vector<std::byte> payload = pattern(up_to(3) == 0 ? up_to(up_to(5) == 0 ? 150'000 : 2000) : 0, i + 1);
    const iovec piece{payload.data(), payload.size()};
    send(link, {.control = control,
                .payload = {&piece, payload.empty() ? 0U : 1U},
                .payload_bytes = payload.size(),
                .cookie = i + 1});
    sent.emplace_back(std::move(control), std::move(payload));
    std::deque<Arrival>& got = b.sink.arrivals[0];
    while (got.size() > 1) {
      ASSERT_TRUE(got.front().control == sent.front().first && got.front().payload == sent.front().second);
      got.pop_front();
      sent.pop_front();
    }
  }
}

TEST_F(ShmPair, BothMayCallEachOtherAtOnceAndShareOneLink) {
  for (int round = 0; round < 20; ++round) {
    ShmRank x(0, 2), y(1, 2);
    Link& to_y = x.connect(y, 1);
    Link& to_x = y.connect(x, 0);
    bool sent_x = false, sent_y = false;
    ASSERT_TRUE(step_until(std::array{&x, &y}, [&] {
      sent_x = sent_x || to_y.try_send({.control = bytes_of("x")}) == SendStatus::done;
      sent_y = sent_y || to_x.try_send({.control = bytes_of("y")}) == SendStatus::done;
      return x.sink.landed_from(1) == 1 && y.sink.landed_from(0) == 1;
    }));
    EXPECT_EQ(x.sink.links[1], &to_y);
    EXPECT_EQ(y.sink.links[0], &to_x);
    EXPECT_TRUE(x.lines.empty() && y.lines.empty()) << (x.lines.empty() ? y.lines : x.lines).front();
    EXPECT_TRUE(x.sink.failures.empty() && y.sink.failures.empty());
  }
}

bool readable(int descriptor, int timeout_ms) {
  pollfd look{descriptor, POLLIN, 0};
  return ::poll(&look, 1, timeout_ms) == 1;
}

TEST_F(ShmPair, ASleeperIsRungAndNobodyElse) {
  Link& link = a.connect(b, 1);
  send_text(link, "hello");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  ASSERT_TRUE(b.transport->arm());
  EXPECT_FALSE(readable(b.transport->wait_descriptor(), 0));
  ASSERT_EQ(link.try_send({.control = bytes_of("wake up")}), SendStatus::done);
  a.poll();
  EXPECT_TRUE(readable(b.transport->wait_descriptor(), 5000));
  b.transport->disarm();
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 2; }));

  ASSERT_EQ(link.try_send({.control = bytes_of("before you sleep")}), SendStatus::done);
  EXPECT_FALSE(b.transport->arm()) << "something is there already";
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 3; }));
  ASSERT_TRUE(b.transport->arm());
  EXPECT_FALSE(readable(b.transport->wait_descriptor(), 20)) << "an old ring was left in the doorbell";
  b.transport->disarm();
}

TEST_F(ShmPair, WhoSendsWhileNobodyPollsRingsAtOnce) {
  Link& link = a.connect(b, 1);
  send_text(link, "hello");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  ASSERT_TRUE(a.transport->arm() && b.transport->arm());
  ASSERT_EQ(link.try_send({.control = bytes_of("wake up")}), SendStatus::done);
  EXPECT_TRUE(readable(b.transport->wait_descriptor(), 5000));
  a.transport->disarm();
  b.transport->disarm();
}

TEST_F(SmallRings, ASenderThatSleepsWithoutRoomIsRungWhenThereIsRoom) {
  Link& link = a.connect(b, 1);
  send_text(link, "0");
  std::uint32_t taken = 1;
  while (link.try_send({.control = bytes_of(std::to_string(taken))}) == SendStatus::done) ++taken;
  a.sink.writables.clear();
  ASSERT_TRUE(a.transport->arm());
  EXPECT_FALSE(readable(a.transport->wait_descriptor(), 0));
  while (b.sink.landed_from(0) < taken) b.poll();
  EXPECT_TRUE(readable(a.transport->wait_descriptor(), 5000));
  a.transport->disarm();
  ASSERT_TRUE(step([&] { return !a.sink.writables.empty(); }));

  const std::vector<std::byte> payload = pattern(300'000, 5);
  const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  ASSERT_EQ(
      link.try_send({.control = bytes_of("L"), .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 1}),
      SendStatus::posted);
  while (a.sink.cookies.empty()) {  // asleep whenever it can be
    if (a.transport->arm()) {
      for (int i = 0; i < 100; ++i) b.poll();
      ASSERT_TRUE(readable(a.transport->wait_descriptor(), 5000));
      a.transport->disarm();
    }
    a.poll();
  }
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == taken + 1; }));
}

TEST_F(SmallRings, ASendThatIsRefusedWhileItsEndpointSleepsIsRungWhenThereIsRoom) {
  Link& link = a.connect(b, 1);
  send_text(link, "0");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  a.sink.writables.clear();
  ASSERT_TRUE(a.transport->arm());
  std::uint32_t taken = 1;
  while (link.try_send({.control = bytes_of(std::to_string(taken))}) == SendStatus::done) ++taken;
  EXPECT_FALSE(readable(a.transport->wait_descriptor(), 0)) << "nothing has changed yet";
  while (b.sink.landed_from(0) < taken) b.poll();
  EXPECT_TRUE(readable(a.transport->wait_descriptor(), 5000)) << "the peer has made room, and the sender sleeps";
  a.transport->disarm();
  ASSERT_TRUE(step([&] { return !a.sink.writables.empty(); }));
}

TEST_F(SmallRings, APayloadThatIsPostedWhileItsEndpointSleepsArrivesWhole) {
  Link& link = a.connect(b, 1);
  send_text(link, "0");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  const std::vector<std::byte> payload = pattern(300'000, 5);
  const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  ASSERT_TRUE(a.transport->arm());
  ASSERT_EQ(
      link.try_send({.control = bytes_of("L"), .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 1}),
      SendStatus::posted);
  EXPECT_EQ(link.try_send({.control = bytes_of("behind it")}), SendStatus::retry);
  for (bool asleep = true; a.sink.cookies.empty(); asleep = a.transport->arm()) {
    if (asleep) {
      for (int i = 0; i < 100; ++i) b.poll();
      ASSERT_TRUE(readable(a.transport->wait_descriptor(), 5000)) << "the peer has made room, and the sender sleeps";
      a.transport->disarm();
    }
    a.poll();
  }
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 2; }));
  EXPECT_TRUE(b.sink.arrivals[0][1].payload == payload);
}

/// A send copies a bounded part of a payload. The rest needs no room, and no peer would ring for it.
TEST_F(ShmPair, ASendWhoseRestHasRoomWakesItsOwnEndpoint) {
  Link& link = a.connect(b, 1);
  send_text(link, "0");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  const std::vector<std::byte> payload = pattern(300'000, 5);
  const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  ASSERT_TRUE(a.transport->arm());
  ASSERT_EQ(
      link.try_send({.control = bytes_of("L"), .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 1}),
      SendStatus::posted);
  EXPECT_TRUE(readable(a.transport->wait_descriptor(), 5000));
  a.transport->disarm();
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 2 && !a.sink.cookies.empty(); }));
}

TEST(ShmTransport, ManyPeersEachHearAll) {
  constexpr std::uint32_t kRanks = 12;
  std::vector<std::unique_ptr<ShmRank>> ranks;
  std::vector<ShmRank*> all;
  for (std::uint32_t r = 0; r < kRanks; ++r)
    all.push_back(ranks.emplace_back(std::make_unique<ShmRank>(r, kRanks)).get());
  const auto text = [](std::uint32_t from, int message) {
    return std::to_string(from) + "." + std::to_string(message);
  };
  std::vector<std::pair<Link*, std::string>> unsent;
  for (int message = 0; message < 3; ++message)
    for (std::uint32_t from = 0; from < kRanks; ++from)
      for (std::uint32_t to = 0; to < kRanks; ++to)
        if (from != to) unsent.emplace_back(&ranks[from]->connect(*ranks[to], to), text(from, message));
  ASSERT_TRUE(step_until(all, [&] {
    std::vector<std::pair<Link*, std::string>> left;
    for (auto& [link, words] : unsent) {
      const bool first = std::none_of(left.begin(), left.end(),
                                      [&, l = link](const auto& entry) { return entry.first == l; });
      if (!first || link->try_send({.control = bytes_of(words)}) != SendStatus::done) left.emplace_back(link, words);
    }
    unsent = std::move(left);
    return unsent.empty();
  }));
  for (std::uint32_t to = 0; to < kRanks; ++to)
    for (std::uint32_t from = 0; from < kRanks; ++from)
      if (from != to) {
        ASSERT_TRUE(step_until(all, [&] { return ranks[to]->sink.landed_from(from) == 3; })) << from << " to " << to;
        for (int message = 0; message < 3; ++message)
          EXPECT_EQ(text_of(ranks[to]->sink.arrivals[from][message].control), text(from, message));
      }
}

TEST_F(ShmPair, APeerThatSaidGoodbyeIsNotDead) {
  send_text(a.connect(b, 1), "goodbye");
  b.sink.arrivals.clear();
  a.transport.reset();
  bool notified = false;
  ASSERT_TRUE(step_until(std::array{&b}, [&] {
    // after that poll
    if (b.sink.landed_from(0) == 1 && !std::exchange(notified, true)) b.transport->peer_left(Rank(0));
    return notified;
  }));
  step_until(std::array{&b}, [] { return false; }, 1);
  EXPECT_TRUE(b.sink.failures.empty());
}

TEST_F(ShmPair, APeerThatClosedIsReportedOnceAndItsLastWordsComeFirst) {
  Link& link = a.connect(b, 1);
  send_text(link, "one");
  ASSERT_EQ(link.try_send({.control = bytes_of("two")}), SendStatus::done);
  a.transport.reset();
  ASSERT_TRUE(step_until(std::array{&b}, [&] { return !b.sink.failures.empty(); }));
  EXPECT_EQ(b.sink.landed_from(0), 2U);
  EXPECT_EQ(b.sink.failures.front().first, 0U);
  Link& dead = *b.sink.links[0];
  for (int i = 0; i < 100; ++i) b.poll();
  EXPECT_EQ(b.sink.failures.size(), 1U);
  EXPECT_EQ(dead.try_send({.control = bytes_of("too late")}), SendStatus::retry);
  for (int i = 0; i < 100; ++i) b.poll();
  EXPECT_TRUE(b.sink.writables.empty()) << "nothing is reported of a failed link";
}

TEST(ShmTransport, ARankThatIsNotThereFails) {
  ShmRank a(0, 2);
  std::string card;
  {
    ShmRank b(1, 2);
    card = b.transport->card();
  }
  ASSERT_TRUE(a.transport->reaches(Rank(1), card));
  a.transport->connect(Rank(1), card, 0);
  ASSERT_TRUE(step_until(std::array{&a}, [&] { return !a.sink.failures.empty(); }, 2));
  EXPECT_THAT(a.sink.failures[0].second, HasSubstr("nobody listens"));
}

TEST_F(ShmPair, DisconnectEndsTheLinkForTheOtherSideToo) {
  send_text(a.connect(b, 1), "hello");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  b.transport->disconnect(Rank(0));
  ASSERT_TRUE(step([&] { return !a.sink.failures.empty(); }, 2));
  EXPECT_TRUE(b.sink.failures.empty()) << "who disconnects knows it";
  EXPECT_EQ(b.sink.links[0]->try_send({.control = bytes_of("x")}), SendStatus::retry);
}

TEST_F(ShmPair, ABlockThatTheEngineCallsMalformedClosesThatLinkOnly) {
  ShmRank x(0, 3), y(1, 3), z(2, 3);
  const std::array all{&x, &y, &z};
  Link& x_to_z = x.connect(z, 2);
  Link& y_to_z = y.connect(z, 2);
  ASSERT_TRUE(step_until(all, [&] { return x_to_z.try_send({.control = bytes_of("x")}) == SendStatus::done; }));
  ASSERT_TRUE(step_until(all, [&] { return y_to_z.try_send({.control = bytes_of("y")}) == SendStatus::done; }));
  ASSERT_TRUE(step_until(all, [&] { return z.sink.landed_from(0) == 1 && z.sink.landed_from(1) == 1; }));
  z.sink.malformed = "a record of kind 77";
  ASSERT_EQ(x_to_z.try_send({.control = bytes_of("nonsense")}), SendStatus::done);
  ASSERT_TRUE(step_until(all, [&] { return !z.sink.failures.empty() && !x.sink.failures.empty(); }));
  EXPECT_EQ(z.sink.failures[0].first, 0U);
  EXPECT_THAT(z.sink.failures[0].second, HasSubstr("a record of kind 77"));
  z.sink.malformed = nullptr;
  ASSERT_EQ(y_to_z.try_send({.control = bytes_of("still here")}), SendStatus::done);
  ASSERT_TRUE(step_until(all, [&] { return z.sink.landed_from(1) == 2; }));
}

TEST_F(ShmPair, CardsOfOtherHostsNetworksAndFormatsAreNotReached) {
  const std::string card = b.transport->card();
  EXPECT_LE(card.size(), 512U);
  EXPECT_TRUE(a.transport->reaches(Rank(1), card));
  EXPECT_FALSE(a.transport->reaches(Rank(0), a.transport->card())) << "a rank does not call itself";
  EXPECT_FALSE(a.transport->reaches(Rank(2), card)) << "not a rank of this job";
  EXPECT_FALSE(a.transport->reaches(Rank(1), ""));
  EXPECT_FALSE(a.transport->reaches(Rank(1), "9" + card.substr(1)));
  std::string other_host = card;
  other_host[5] = other_host[5] == 'a' ? 'b' : 'a';
  EXPECT_FALSE(a.transport->reaches(Rank(1), other_host));
  EXPECT_FALSE(a.transport->reaches(Rank(1), card + ";x"));
}

TEST_F(ShmPair, RemoteCopiesWriteThePeersMemoryAndBothSidesShareAWordEachWay) {
  using Direction = Link::Direction;
  Link& to_b = a.connect(b, 1);
  EXPECT_EQ(to_b.shared_word(Direction::outgoing), nullptr) << "nobody has answered yet";
  send_text(to_b, "hello");
  ASSERT_TRUE(step([&] { return b.sink.landed_from(0) == 1; }));
  Link& to_a = *b.sink.links[0];
  for (const Direction direction : {Direction::outgoing, Direction::incoming}) {
    const Direction other = direction == Direction::outgoing ? Direction::incoming : Direction::outgoing;
    EXPECT_EQ(to_b.shared_word(direction)->load(), 0u);
    to_b.shared_word(direction)->store(5 + static_cast<std::uint64_t>(direction));
    EXPECT_EQ(to_a.shared_word(other)->load(), 5 + static_cast<std::uint64_t>(direction));
  }
  std::vector<std::byte> ours = pattern(100'000, 9), theirs(100'000);
  const auto address = reinterpret_cast<std::uintptr_t>(theirs.data());
  if (!to_b.write_remote(address, ours)) GTEST_SKIP() << "this kernel does not let processes copy from each other";
  EXPECT_EQ(ours, theirs);
  EXPECT_FALSE(to_b.write_remote(64, ours)) << "nothing is mapped there";
}

TEST_F(ShmPair, RemoteCopiesReadThePeersMemory) {
  Link& link = a.connect(b, 1);
  send_text(link, "hello");
  std::vector<std::byte> theirs = pattern(100'000, 9), ours(100'000);
  const auto address = reinterpret_cast<std::uintptr_t>(theirs.data());
  if (!link.read_remote(address, ours)) GTEST_SKIP() << "this kernel does not let processes copy from each other";
  EXPECT_EQ(ours, theirs);
  EXPECT_FALSE(link.read_remote(64, ours)) << "nothing is mapped there";
}

TEST(ShmTransport, WrongSizesAreRefusedWithTheRemedy) {
  NotingSink sink;
  const auto message = [&](ShmOptions options) {
    auto made = make_shm_transport(options, sink);
    return made ? std::string() : made.error().message;
  };
  EXPECT_THAT(message({.record_ring_bytes = 100'000}), HasSubstr("powers of two"));
  EXPECT_THAT(message({.window_bytes = 1 << 30}), HasSubstr("window"));
  EXPECT_THAT(message({.inline_bytes = 1 << 20}), HasSubstr("quarter of the record ring"));
  EXPECT_THAT(message({.rank = Rank(7)}), HasSubstr("not below the job's size"));
}

TEST(ShmTransport, AnEndpointThatNobodyTalksToHasNoRings) {
  const auto mapped = [] {
    std::uint64_t pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(std::fscanf(file, "%lu", &pages), 1);
    std::fclose(file);
    return pages * 4096;
  };
  NotingSink sink;
  std::vector<std::unique_ptr<Transport>> idle;
  idle.reserve(100);
  const std::uint64_t before = mapped();
  for (int i = 0; i < 100; ++i) idle.push_back(make_shm_transport({}, sink).value());
  EXPECT_LT(mapped() - before, 100U * 64 * 1024);
}

/// Each rank has one thread; both directions at once, sleeping whenever there is nothing to do.
TEST(ShmTransport, ThreadsThatSleepBetweenMessagesLoseNone) {
  ShmRank a(0, 2), b(1, 2);
  Link& to_b = a.connect(b, 1);
  ASSERT_TRUE(step_until(std::array{&a, &b},
                         [&] { return to_b.try_send({.control = bytes_of("0")}) == SendStatus::done; }));
  ASSERT_TRUE(step_until(std::array{&a, &b}, [&] { return b.sink.landed_from(0) == 1; }));
  b.sink.arrivals.clear();
  constexpr std::uint32_t kMessages = 3000;
  const auto run = [](ShmRank& me, Link& link, std::uint32_t peer) {
    const std::vector<std::byte> payload = pattern(20'000, 3);
    const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
    std::uint32_t sent = 0;
    std::size_t got = 0;
    std::uint32_t posted = 0;
    while (sent < kMessages || got < kMessages || me.sink.cookies.size() < posted) {
      if (sent < kMessages && (sent < 10 || got > sent / 2)) {
        const bool with_payload = sent % 16 == 0;
        const SendStatus status = link.try_send({.control = bytes_of("message"),
                                                 .payload = {&piece, with_payload ? 1U : 0U},
                                                 .payload_bytes = with_payload ? payload.size() : 0,
                                                 .cookie = sent});
        if (status != SendStatus::retry) {
          ++sent;
          posted += status == SendStatus::posted;
          continue;
        }
      }
      if (me.poll() == 0 && me.transport->arm()) {
        readable(me.transport->wait_descriptor(), sent < kMessages && got > sent / 2 ? 1 : 10'000);
        me.transport->disarm();
      }
      std::deque<Arrival>& arrivals = me.sink.arrivals[peer];
      while (arrivals.size() > 1 || (!arrivals.empty() && arrivals.front().landed)) arrivals.pop_front(), ++got;
    }
  };
  std::thread other([&] { run(b, *b.sink.links[0], 0); });
  run(a, to_b, 1);
  other.join();
}

TEST(ShmTransport, ManyRanksOfAMachineGetSmallerRings) {
  EXPECT_EQ(ShmOptions::for_ranks(1).data_ring_bytes, ShmOptions{}.data_ring_bytes);
  EXPECT_EQ(ShmOptions::for_ranks(16).window_bytes, ShmOptions{}.window_bytes);
  for (const std::uint32_t ranks : {1u, 17u, 33u, 64u, 128u, 1000u}) {
    ShmOptions options = ShmOptions::for_ranks(ranks);
    options.job_size = 2;
    NotingSink sink;
    const auto made = make_shm_transport(options, sink);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_GE(made.value()->capabilities().max_control_bytes, 4096u);
    if (ranks <= 128) {
      EXPECT_LE(ranks * (options.data_ring_bytes + options.record_ring_bytes) * 2, 100u << 20) << ranks;
    }
  }
}

/// At each point of the handshake the process lacks descriptors once.
TEST(ShmTransport, WithoutDescriptorsAConnectionIsMadeLater) {
  // Large numbers go first: the undefined-behaviour sanitizer needs some descriptors to look at a type for the first
  // time.
  for (rlim_t spare = 14; spare-- > 0;) {
    SCOPED_TRACE(spare);
    ShmRank a(0, 2), b(1, 2);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlimit few = limit;
    {
      const base::FileDescriptor next(::dup(0));  // the lowest free one
      few.rlim_cur = static_cast<rlim_t>(next.get()) + spare;
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    Link& link = a.connect(b, 1);
    for (int i = 0; i < 300; ++i) {
      a.transport->poll(now_ns());
      b.transport->poll(now_ns());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(a.sink.failures.empty());
    EXPECT_TRUE(step_until(std::array{&a, &b},
                           [&] { return link.try_send({.control = bytes_of("hello")}) == SendStatus::done; }));
    EXPECT_TRUE(step_until(std::array{&a, &b}, [&] { return b.sink.landed_from(0) == 1; }));
    EXPECT_TRUE(a.sink.failures.empty() && b.sink.failures.empty());
  }
}

/// How a connection ends if this process has this many descriptors for longer than its patience.
std::string ending_with_descriptors(rlim_t count) {
  ShmOptions options;
  options.descriptor_patience_ns = 100'000'000;
  ShmRank a(0, 2, options), b(1, 2, options);
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  few.rlim_cur = static_cast<rlim_t>(base::FileDescriptor(::dup(0)).get()) + count;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  a.connect(b, 1);
  EXPECT_TRUE(step_until(std::array{&a, &b}, [&] { return !a.sink.failures.empty(); }));
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  return a.sink.failures.empty() ? "none" : a.sink.failures.begin()->second;
}

TEST(ShmTransport, WithoutDescriptorsForLongAConnectionFailsWithTheRemedy) {
  EXPECT_EQ(ending_with_descriptors(0),
            "this rank has no file descriptors for the connection; raise the limit (`ulimit -n`)");
  EXPECT_EQ(ending_with_descriptors(1),
            "its process has no file descriptors for the connection; raise the limit (`ulimit -n`)");
}

}  // namespace
}  // namespace tandem::comm::shm_test
