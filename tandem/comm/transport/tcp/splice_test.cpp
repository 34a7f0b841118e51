// tandem/comm/transport/tcp/splice_test.cpp: spliced payloads: they stay in the sender's memory until they are read.
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <random>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/tcp/tcp_test_support.hpp"

namespace tandem::comm::tcp_test::splice_test {
namespace {

using internal::FrameWriter;
using internal::SplicePipe;

constexpr std::size_t least_spliced = 100'000;

void splice_from(TcpOptions& options) { options.least_spliced_bytes = least_spliced; }
void splice_never(TcpOptions& options) { options.least_spliced_bytes = SIZE_MAX; }

/// Two ranks whose connection is fast, since it stays within the host.
struct FastPair {
  explicit FastPair(const std::function<void(TcpOptions&)>& change = splice_from)
      : a(0, change), b(1, change), to_b(a.connect(b, 1)), to_a(b.connect(a, 0)) {
    send({&a, &b}, to_b, "first");
    step([&] { return b.sink.packets.size() == 1; });
    first = b.sink.packets.size();
  }
  /// Sends from `a` to `b`, which is not polled.
  void splice(const Bytes& payload, std::uint64_t cookie = 7) {
    const iovec piece = piece_of(payload);
    ASSERT_EQ(send({&a}, to_b, "spliced", {&piece, 1}, cookie), SendStatus::posted);
  }
  void step(const std::function<bool()>& done) { ASSERT_TRUE(step_until({&a, &b}, done)); }
  /// Polls until `b` has one packet more, and not again.
  void receive() {
    const std::size_t before = b.sink.landed_count();
    const std::int64_t limit_ns = now_ns() + 20'000'000'000;
    while (b.sink.landed_count() == before && now_ns() < limit_ns) {
      a.transport->poll(now_ns());
      b.transport->poll(now_ns());
    }
    ASSERT_EQ(b.sink.landed_count(), before + 1);
  }

  Node a, b;
  Link& to_b;
  Link& to_a;
  std::size_t first = 0;  ///< the number of b's next packet
};

TEST(TcpSplice, APayloadIsPostedUntilItsReaderSaysSo) {
  FastPair pair;
  const Bytes payload = pattern(400'000, 1);
  pair.splice(payload, 42);
  step_for({&pair.a}, 20'000'000);
  EXPECT_TRUE(pair.a.sink.cookies.empty()) << "nobody has read it";
  pair.step([&] { return !pair.a.sink.cookies.empty(); });
  EXPECT_EQ(pair.a.sink.cookies, std::vector<std::uint64_t>{42});
  EXPECT_EQ(pair.b.sink.packets[pair.first]->payload, payload);
  ASSERT_EQ(send({&pair.a}, pair.to_b, "short", {}, 43), SendStatus::done);
}

TEST(TcpSplice, SomeAtATimeAndOthersAreCopiedMeanwhile) {
  FastPair pair([](TcpOptions& options) { options.least_spliced_bytes = 10'000; });
  constexpr std::size_t most = internal::TcpLink::most_splices;
  for (std::size_t round = 0; round < 3; ++round) {
    const std::size_t first = pair.b.sink.packets.size();
    std::vector<Bytes> payloads;
    std::vector<std::uint64_t> cookies;
    for (std::size_t i = 0; i < most; ++i) {
      payloads.push_back(pattern(20'000, static_cast<unsigned>(i)));
      cookies.push_back(10 * round + i);
    }
    for (std::size_t i = 0; i < most; ++i) pair.splice(payloads[i], cookies[i]);
    Bytes other = pattern(20'000, most);
    const iovec other_piece = piece_of(other);
    ASSERT_EQ(send({&pair.a}, pair.to_b, "copied", {&other_piece, 1}, 9), SendStatus::done);
    std::fill(other.begin(), other.end(), std::byte{0});
    pair.step([&] { return pair.b.sink.landed_count() == first + most + 1 && pair.a.sink.cookies.size() == most; });
    for (std::size_t i = 0; i < most; ++i) EXPECT_EQ(pair.b.sink.packets[first + i]->payload, payloads[i]);
    EXPECT_EQ(pair.b.sink.packets[first + most]->payload, pattern(20'000, most));
    EXPECT_EQ(std::exchange(pair.a.sink.cookies, {}), cookies) << "in the order of their posting";
  }
}

TEST(TcpSplice, AnAcknowledgementOfSomeLeavesTheOthers) {
  FastPair pair([](TcpOptions& options) { options.least_spliced_bytes = 10'000; });
  const Bytes one = pattern(20'000, 1), other = pattern(1'000'000, 2);  // the kernel does not hold the second
  pair.splice(one, 1);
  pair.splice(other, 2);
  ASSERT_TRUE(step_until({&pair.b}, [&] { return pair.b.sink.landed_count() == pair.first + 1; }));
  step_for({&pair.b}, 20'000'000);
  ASSERT_TRUE(pair.b.transport->arm()) << "which acknowledges";
  pair.b.transport->disarm();
  for (int i = 0; i < 100 && pair.a.sink.cookies.empty(); ++i) pair.a.transport->poll(now_ns());
  EXPECT_EQ(pair.a.sink.cookies, std::vector<std::uint64_t>{1});
  pair.step([&] { return pair.a.sink.cookies.size() == 2; });
  EXPECT_EQ(pair.a.sink.cookies.back(), 2U);
  EXPECT_EQ(pair.b.sink.packets[pair.first + 1]->payload, other);
}

TEST(TcpSplice, WhoSleepsSaysSoBefore) {
  FastPair pair;
  const Bytes payload = pattern(200'000, 1);
  pair.splice(payload);
  pair.receive();
  ASSERT_TRUE(pair.b.transport->arm());
  ASSERT_TRUE(step_until({&pair.a}, [&] { return !pair.a.sink.cookies.empty(); }));
}

TEST(TcpSplice, AnAnswerAcknowledgesAndIsReportedAfterwards) {
  const Bytes payload = pattern(400'000, 1);
  const iovec piece = piece_of(payload);
  for (const bool with_payload : {true, false}) {
    FastPair pair;
    pair.splice(payload);
    pair.receive();
    send({&pair.b}, pair.to_a, "answer", {&piece, with_payload ? 1U : 0U}, 8);
    const std::size_t packets = pair.a.sink.packets.size();
    const std::int64_t limit_ns = now_ns() + 20'000'000'000;
    while (pair.a.sink.cookies.empty() && now_ns() < limit_ns) pair.a.transport->poll(now_ns());
    EXPECT_EQ(pair.a.sink.packets.size(), packets) << "who got its payload back has had no time to await the answer";
    EXPECT_FALSE(pair.a.transport->arm()) << "the answer waits";
    EXPECT_GE(pair.a.transport->poll(now_ns()), 1U);
    EXPECT_EQ(pair.a.sink.packets.size(), packets + 1);
    pair.step([&] { return pair.a.sink.landed_count() == packets + 1; });
    EXPECT_EQ(pair.a.sink.packets.back()->payload, with_payload ? payload : Bytes{});
  }
}

TEST(TcpSplice, AnAnswerAndTheEndBehindItAreBothReported) {
  FastPair pair;
  const Bytes payload = pattern(200'000, 1);
  pair.splice(payload);
  pair.receive();
  ASSERT_EQ(send({&pair.b}, pair.to_a, "answer"), SendStatus::done);
  pair.b.transport->disconnect(Rank(0));
  const std::size_t before = pair.a.sink.packets.size();
  ASSERT_TRUE(step_until({&pair.a}, [&] { return !pair.a.sink.failures.empty(); }));
  EXPECT_EQ(pair.a.sink.cookies, std::vector<std::uint64_t>{7});
  ASSERT_EQ(pair.a.sink.packets.size(), before + 1);
  EXPECT_EQ(pair.a.sink.packets.back()->control, bytes_of("answer"));
}

TEST(TcpSplice, ACancelledSpliceIsNotReported) {
  FastPair pair;
  Bytes payload = pattern(200'000, 1);
  pair.splice(payload);
  pair.a.transport->disconnect(Rank(1));
  std::fill(payload.begin(), payload.end(), std::byte{0});
  const std::size_t before = pair.b.sink.landed_count();
  ASSERT_TRUE(step_until({&pair.b}, [&] { return !pair.b.sink.failures.empty(); }));
  EXPECT_EQ(pair.b.sink.landed_count(), before);
  EXPECT_TRUE(pair.a.sink.cookies.empty());
}

TEST(TcpSplice, AnEndpointThatEndsCancelsToo) {
  FastPair pair;
  Bytes payload = pattern(200'000, 1);
  pair.splice(payload);
  pair.a.transport.reset();
  std::fill(payload.begin(), payload.end(), std::byte{0});
  const std::size_t before = pair.b.sink.landed_count();
  ASSERT_TRUE(step_until({&pair.b}, [&] { return !pair.b.sink.failures.empty(); }));
  EXPECT_EQ(pair.b.sink.landed_count(), before);
}

TEST(TcpSplice, MoreThanTheSocketTakesGoesOnLater) {
  FastPair pair;
  const Bytes payload = pattern(20 << 20, 3);
  std::vector<iovec> pieces;
  for (std::size_t at = 0, size = 1; at < payload.size(); at += size) {
    size = std::min<std::size_t>(pieces.size() == 3 ? SIZE_MAX : 1'234'567, payload.size() - at);
    pieces.push_back({const_cast<std::byte*>(payload.data()) + at, size});
  }
  ASSERT_EQ(send({&pair.a, &pair.b}, pair.to_b, "large", pieces, 5), SendStatus::posted);
  pair.step([&] { return pair.a.sink.cookies.size() == 1; });
  EXPECT_EQ(pair.b.sink.packets.back()->payload, payload);
}

TEST(TcpSplice, RandomPacketsBothWaysArriveAsTheyWere) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    FastPair pair([](TcpOptions& options) { options.least_spliced_bytes = 3000; });
    struct Sent {
      Bytes control, payload;
      bool posted;
    };
    std::vector<std::unique_ptr<Sent>> sent[2];
    const std::size_t before[2] = {pair.b.sink.packets.size(), pair.a.sink.packets.size()};
    for (int i = 0; i < 300; ++i) {
      const unsigned side = random() % 2;
      Node& from = side == 0 ? pair.a : pair.b;
      Link& link = side == 0 ? pair.to_b : pair.to_a;
      auto one = std::make_unique<Sent>();
      one->control = pattern(1 + random() % 200, static_cast<unsigned>(i));
      one->payload = pattern(random() % 3 == 0 ? 0 : random() % (random() % 5 == 0 ? 700'000 : 20'000), seed + 1);
      const iovec piece = piece_of(one->payload);
      const Packet packet{.control = one->control, .payload = {&piece, one->payload.empty() ? 0U : 1U},
                          .payload_bytes = one->payload.size(), .cookie = sent[side].size()};
      const SendStatus status = link.try_send(packet);
      if (status != SendStatus::retry) {
        one->posted = status == SendStatus::posted;
        if (!one->posted) std::fill(one->payload.begin(), one->payload.end(), std::byte{0xee});  // the test owns it
        if (!one->posted) one->payload = pattern(one->payload.size(), seed + 1);
        sent[side].push_back(std::move(one));
      }
      for (unsigned polls = random() % 4; polls-- > 0;) (random() % 2 == 0 ? pair.a : pair.b).transport->poll(now_ns());
      if (random() % 8 == 0 && from.transport->arm()) from.transport->disarm();
    }
    const auto all_back = [&](unsigned side) {
      const auto posted = std::count_if(sent[side].begin(), sent[side].end(),
                                        [](const auto& one) { return one->posted; });
      return (side == 0 ? pair.a : pair.b).sink.cookies.size() == static_cast<std::size_t>(posted);
    };
    pair.step([&] {
      return pair.b.sink.landed_count() == before[0] + sent[0].size() &&
             pair.a.sink.landed_count() == before[1] + sent[1].size() && all_back(0) && all_back(1);
    });
    for (unsigned side = 0; side < 2; ++side) {
      const auto& got = (side == 0 ? pair.b : pair.a).sink.packets;
      for (std::size_t i = 0; i < sent[side].size(); ++i) {
        EXPECT_EQ(got[before[side] + i]->control, sent[side][i]->control);
        EXPECT_EQ(got[before[side] + i]->payload, sent[side][i]->payload);
      }
      for (const std::uint64_t cookie : (side == 0 ? pair.a : pair.b).sink.cookies) {
        EXPECT_TRUE(std::exchange(sent[side].at(cookie)->posted, false)) << "`sent` twice, or for no splice";
      }
    }
    EXPECT_TRUE(pair.a.sink.failures.empty() && pair.b.sink.failures.empty());
  }
}

TEST(TcpSplice, NoneWhereItIsNotWanted) {
  FastPair pair(splice_never);
  const Bytes payload = pattern(100'000, 1);
  const iovec piece = piece_of(payload);
  EXPECT_EQ(send({&pair.a, &pair.b}, pair.to_b, "copied", {&piece, 1}, 7), SendStatus::done);
}

TEST(TcpSplice, WithoutDescriptorsPayloadsAreCopied) {
  FastPair pair;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Bytes payload = pattern(100'000, 1);
  const iovec piece = piece_of(payload);
  const SendStatus status = send({&pair.a, &pair.b}, pair.to_b, "copied", {&piece, 1}, 7);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status, SendStatus::done);
  pair.step([&] { return pair.b.sink.landed_count() == pair.first + 1; });
  ASSERT_EQ(send({&pair.a, &pair.b}, pair.to_b, "spliced", {&piece, 1}, 8), SendStatus::posted);
  pair.step([&] { return !pair.a.sink.cookies.empty(); });
}

/// A pair of sockets, and writers that share a pipe.
struct Writers {
  Writers() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    in = base::FileDescriptor(ends[0]);
    out = base::FileDescriptor(ends[1]);
  }
  FrameWriter::Progress splice(const Bytes& control, const Bytes& payload) {
    const iovec piece = piece_of(payload);
    if (!pipe.open_to(&writer)) return FrameWriter::Progress::blocked;
    const Packet packet{.control = control, .payload = {&piece, 1}, .payload_bytes = payload.size(), .cookie = 1};
    return writer.write_spliced(in.get(), packet, 0, pipe);
  }

  base::FileDescriptor in, out;
  SplicePipe pipe;
  FrameWriter writer;
};

TEST(TcpSplice, ABrokenConnectionIsAnAnswerAndNoSignal) {
  Writers pair;
  const Bytes control = bytes_of("control"), payload = pattern(5 << 20, 1);
  ASSERT_EQ(pair.splice(control, payload), FrameWriter::Progress::partial);
  EXPECT_TRUE(pair.writer.splices());
  EXPECT_FALSE(pair.writer.refers_to_payload());
  pair.out.close();
  // a signal would have ended this process
  EXPECT_EQ(pair.writer.resume(pair.in.get()), FrameWriter::Progress::broken);
  sigset_t mask, pending;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGPIPE), 0);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  FrameWriter other;
  EXPECT_FALSE(pair.pipe.open_to(&other)) << "bytes of the first are in there";
  pair.writer.abandon();
  EXPECT_TRUE(pair.pipe.open_to(&other));
}

/// A page that processes may read but the kernel cannot reference: its clock data.
std::byte* page_that_cannot_be_referenced() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[vvar]") != std::string::npos) return reinterpret_cast<std::byte*>(std::stoull(line, nullptr, 16));
  }
  return nullptr;
}

TEST(TcpSplice, MemoryThatCannotBeReferencedIsCopied) {
  std::byte* const page = page_that_cannot_be_referenced();
  if (page == nullptr) GTEST_SKIP() << "no such memory here";
  const Bytes payload = pattern(300'000, 1);
  for (const bool begins : {true, false}) {
    FastPair pair;
    std::vector<iovec> pieces = {piece_of(payload), {page, 64}, piece_of(payload)};
    if (begins) std::swap(pieces[0], pieces[1]);
    const std::size_t count = pair.b.sink.packets.size();
    ASSERT_EQ(send({&pair.a, &pair.b}, pair.to_b, "mixed", pieces, 9), SendStatus::posted);
    pair.step([&] { return pair.b.sink.landed_count() == count + 1 && !pair.a.sink.cookies.empty(); });
    const Bytes& got = pair.b.sink.packets.back()->payload;
    const auto at = [&](std::size_t offset) { return got.begin() + static_cast<std::ptrdiff_t>(offset); };
    ASSERT_EQ(got.size(), 600'064U);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), at(begins ? 64 : 0)));
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), at(300'064)));
  }
}

TEST(TcpSplice, WhatIsCopiedInsteadCountsAsSplicedUntilItIsWritten) {
  std::byte* const page = page_that_cannot_be_referenced();
  if (page == nullptr) GTEST_SKIP() << "no such memory here";
  Writers pair;
  const Bytes control = bytes_of("control"), payload = pattern(5 << 20, 1);
  const std::array<iovec, 2> pieces = {iovec{page, 64}, piece_of(payload)};
  const Packet packet{.control = control, .payload = pieces, .payload_bytes = payload.size() + 64, .cookie = 1};
  ASSERT_TRUE(pair.pipe.open_to(&pair.writer));
  ASSERT_EQ(pair.writer.write_spliced(pair.in.get(), packet, 0, pair.pipe), FrameWriter::Progress::partial);
  EXPECT_EQ(pair.pipe.held_by(&pair.writer), 0U);
  Bytes read(1 << 20);
  while (pair.writer.unfinished()) {
    EXPECT_TRUE(pair.writer.splices());
    EXPECT_FALSE(pair.writer.refers_to_payload());
    ASSERT_GT(recv(pair.out.get(), read.data(), read.size(), MSG_DONTWAIT), 0);
    ASSERT_NE(pair.writer.resume(pair.in.get()), FrameWriter::Progress::broken);
  }
  EXPECT_FALSE(pair.writer.splices());
}

}  // namespace
}  // namespace tandem::comm::tcp_test::splice_test
