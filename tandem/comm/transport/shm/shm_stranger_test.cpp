// tandem/comm/transport/shm/shm_stranger_test.cpp: what callers without the secret and peers that break the format
// achieve.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <random>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/transport/shm/handshake.hpp"
#include "tandem/comm/transport/shm/receiver.hpp"
#include "tandem/comm/transport/shm/sender.hpp"
#include "tandem/comm/transport/shm/shm_test_support.hpp"

namespace tandem::comm::internal::shm_stranger_test {
namespace {

using namespace shm_test;
using ::testing::Contains;
using ::testing::HasSubstr;

/// A rank, and a caller whose messages the test writes.
struct ShmStranger : ::testing::Test {
  ShmStranger() : victim(0, 3), friendly(1, 3) {
    EXPECT_GE(sodium_init(), 0);
    link = &friendly.connect(victim, 0);
    EXPECT_TRUE(step([&] { return link->try_send({.control = bytes_of("hello")}) == SendStatus::done; }));
    EXPECT_TRUE(step([&] { return victim.sink.landed_from(1) == 1; }));
  }
  bool step(const std::function<bool()>& done) { return step_until(std::array{&victim, &friendly}, done, 5); }

  /// Calls and receives the challenge.
  Nonce call() {
    EXPECT_EQ(connect_to(ShmCard::parse(victim.transport->card())->name, socket), Connected::yes);
    std::array<std::byte, 256> room;
    Received received;
    EXPECT_TRUE(step([&] { return (received = receive_message(socket, room)).outcome == Received::Outcome::message; }));
    const auto challenge = read_message({room.data(), received.bytes}, MessageKind::challenge);
    EXPECT_TRUE(challenge.has_value());
    return challenge ? challenge->nonce : Nonce{};
  }
  HandshakeMessage hello() {
    HandshakeMessage message;
    message.kind = MessageKind::hello;
    message.from = 2;
    message.sizes = {32 * 1024, 64 * 1024};
    message.nonce = fresh_nonce();
    return message;
  }
  void say(const HandshakeMessage& message, std::span<const int> fds = {}) {
    EXPECT_TRUE(send_message(socket, std::as_bytes(std::span(&message, 1)), fds));
  }
  /// Checks that the victim hangs up, logs why, and goes on with its friend.
  void expect_dropped(const std::string& why) {
    std::array<std::byte, 256> room;
    EXPECT_TRUE(step([&] { return receive_message(socket, room).outcome == Received::Outcome::closed; })) << why;
    EXPECT_THAT(victim.lines, Contains(HasSubstr(why)));
    const std::size_t before = victim.sink.landed_from(1);
    EXPECT_TRUE(step([&] { return link->try_send({.control = bytes_of("still friends")}) == SendStatus::done; }));
    EXPECT_TRUE(step([&] { return victim.sink.landed_from(1) == before + 1; }));
    EXPECT_TRUE(victim.sink.failures.empty());
  }

  ShmRank victim, friendly;
  Link* link = nullptr;
  base::FileDescriptor socket;
};

TEST_F(ShmStranger, WithAnotherSecretIsDropped) {
  const Nonce challenge = call();
  HandshakeMessage message = hello();
  prove(message, JobSecret{std::byte{1}}, challenge);
  say(message);
  expect_dropped("does not have the job's secret");
}

TEST_F(ShmStranger, ThatRepeatsAnOldProofIsDropped) {
  HandshakeMessage message = hello();
  prove(message, JobSecret{}, call());
  call();
  say(message);
  expect_dropped("does not have the job's secret");
}

TEST_F(ShmStranger, ThatTalksNonsenseIsDropped) {
  std::mt19937 random(1);
  for (const std::size_t bytes : {1UL, 4UL, 119UL, 120UL, 121UL, 5000UL}) {
    call();
    std::vector<std::byte> nonsense(bytes);
    for (std::byte& byte : nonsense) byte = static_cast<std::byte>(random());
    EXPECT_TRUE(send_message(socket, nonsense));
    expect_dropped("does not speak Tandem's handshake");
  }
  call();
  socket.close();
  EXPECT_TRUE(step([&] { return victim.lines.back().find("closed during the handshake") != std::string::npos; }));
}

TEST_F(ShmStranger, OfAnotherFormatIsNotified) {
  call();
  HandshakeMessage message = hello();
  message.format = 99;
  say(message);
  expect_dropped("in format 99, ours in " + std::to_string(kShmFormat));
}

TEST_F(ShmStranger, WithTheSecretButWrongClaimsIsDropped) {
  const auto try_with = [&](auto&& change, std::span<const int> fds, const char* why) {
    const Nonce challenge = call();
    HandshakeMessage message = hello();
    change(message);
    prove(message, JobSecret{}, challenge);
    say(message, fds);
    expect_dropped(why);
  };
  const auto nothing = [](HandshakeMessage&) {};
  const std::size_t bytes = segment_file_bytes(hello().sizes);
  const base::FileDescriptor rings = make_shared_file("test", bytes).value();
  const base::FileDescriptor hub = make_shared_file("test", kHubBytes).value();
  const base::FileDescriptor bell(::eventfd(0, EFD_NONBLOCK));
  const std::array good{rings.get(), hub.get(), bell.get()};
  try_with([](HandshakeMessage& m) { m.to = 1; }, good, "makes no sense");
  try_with([](HandshakeMessage& m) { m.from = 0; }, good, "makes no sense");
  try_with([](HandshakeMessage& m) { m.from = 3; }, good, "makes no sense");
  try_with([](HandshakeMessage& m) { m.sizes.data_bytes = 100'000; }, good, "makes no sense");
  try_with(nothing, {}, "makes no sense");
  try_with([](HandshakeMessage& m) { m.from = 1; }, good, "a second time");
  try_with([](HandshakeMessage& m) { m.sizes.data_bytes *= 2; }, good, "no memory could be shared");
  const base::FileDescriptor shrinkable(::memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(shrinkable.get(), static_cast<off_t>(bytes)), 0);
  try_with(nothing, std::array{shrinkable.get(), hub.get(), bell.get()}, "no memory could be shared");
  try_with(nothing, std::array{rings.get(), shrinkable.get(), bell.get()}, "no memory could be shared");

  const Nonce challenge = call();
  HandshakeMessage message = hello();
  prove(message, JobSecret{}, challenge);
  say(message, good);
  std::array<std::byte, 256> room;
  Received received;
  EXPECT_TRUE(step([&] { return (received = receive_message(socket, room)).outcome == Received::Outcome::message; }));
  const auto welcome = read_message({room.data(), received.bytes}, MessageKind::welcome);
  ASSERT_TRUE(welcome.has_value()) << "the tests above must not fail for another reason";
  EXPECT_TRUE(is_proven(*welcome, JobSecret{}, message.nonce));
}

TEST_F(ShmStranger, CannotImpersonateAListener) {
  const base::FileDescriptor listener = listen_on("tandem-test-impostor-" + std::to_string(::getpid())).value();
  const std::string card = victim.transport->card();
  const std::string name = ShmCard::parse(card)->name;
  std::string false_card = card;
  false_card.replace(card.find(name), name.size(), "tandem-test-impostor-" + std::to_string(::getpid()));
  victim.transport->connect(Rank(2), false_card, 0);
  base::FileDescriptor served;
  ASSERT_TRUE(step([&] { return static_cast<bool>(served = accept_from(listener)); }));
  HandshakeMessage message;
  message.to = 0;
  message.from = 2;
  message.nonce = fresh_nonce();
  EXPECT_TRUE(send_message(served, std::as_bytes(std::span(&message, 1))));
  std::array<std::byte, 256> room;
  Received received;
  ASSERT_TRUE(step([&] { return (received = receive_message(served, room)).outcome == Received::Outcome::message; }));
  const auto heard = read_message({room.data(), received.bytes}, MessageKind::hello);
  ASSERT_TRUE(heard.has_value());
  HandshakeMessage welcome = message;
  welcome.kind = MessageKind::welcome;
  prove(welcome, JobSecret{std::byte{5}}, heard->nonce);
  const std::array fds{received.fds[1].get(), received.fds[2].get()};
  EXPECT_TRUE(send_message(served, std::as_bytes(std::span(&welcome, 1)), fds));
  ASSERT_TRUE(step([&] { return !victim.sink.failures.empty(); }));
  EXPECT_THAT(victim.sink.failures[0].second, HasSubstr("does not have the job's secret"));
}

/// Both ends of one segment, as two processes would have it, without a handshake.
struct Ends {
  Ends() {
    const RingSizes sizes{32 * 1024, 64 * 1024};
    const base::FileDescriptor file = make_shared_file("test", segment_file_bytes(sizes)).value();
    const base::FileDescriptor hub = make_shared_file("test", kHubBytes).value();
    for (unsigned side = 0; side < 2; ++side) {
      attachments[side].segment = map_segment(file.get(), sizes).value();
      attachments[side].outgoing = side;
      attachments[side].peer.hub = map_hub(hub.get()).value();
      attachments[side].peer.room_request = &attachments[side].segment.control[1 - side]->room_request;
    }
  }
  std::array<Attachment, 2> attachments;
  BellRound round;
};

struct NoLink final : Link {
  NoLink() : Link(Rank(0), 0) {}
  SendStatus try_send(const Packet&) override { return SendStatus::retry; }
};

/// Checks that all ranges it is given lie in the ring.
struct BoundsSink final : PacketSink {
  explicit BoundsSink(const Segment& segment)
      : begin(segment.records[0]), end(begin + 2 * segment.sizes.record_bytes) {}
  Landing arrived(Link&, std::span<const std::byte> control, std::size_t) override {
    EXPECT_GE(control.data(), begin);
    EXPECT_LE(control.data() + control.size(), end);
    for (const std::byte& byte : control) sum += static_cast<unsigned>(byte);
    return {.pieces = {&piece, 1}};
  }
  void landed(Link&, std::uint64_t) override {}
  void sent(Link&, std::uint64_t) override {}
  void writable(Link&) override {}
  void peer_failed(Rank, std::string_view) override {}
  const std::byte* begin;
  const std::byte* end;
  unsigned sum = 0;
  std::array<std::byte, 4096> room;
  iovec piece{room.data(), room.size()};
};

TEST(ShmFuzz, WhateverIsInARingNothingOutsideIsRead) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Ends ends;
  NoLink link;
  std::size_t malformed = 0;
  for (int round = 0; round < 2000; ++round) {
    Segment& writer = ends.attachments[0].segment;
    auto* words = reinterpret_cast<std::uint64_t*>(writer.records[0]);
    for (std::size_t i = 0; i < writer.sizes.record_bytes / 8; ++i) {
      const std::uint64_t word = random();
      // Often nearly right: small lengths and known kinds.
      const RecordHead nearly{static_cast<RecordKind>(word >> 8 & 3), static_cast<std::uint32_t>(word >> 16 & 0xff),
                              static_cast<std::uint32_t>(word >> 40 & (round % 2 ? 0xff : 0x1ffff)),
                              (word >> 10 & 1) != 0};
      words[i] = word % 4 == 0 ? word : nearly.word();
    }
    Receiver receiver(ends.attachments[1], ends.round);
    BoundsSink sink(ends.attachments[1].segment);
    for (int i = 0; i < 50 && receiver.malformed() == nullptr; ++i) receiver.receive(link, sink);
    malformed += receiver.malformed() != nullptr;
  }
  EXPECT_GT(malformed, 1000U);
}

TEST(ShmFuzz, AConsumersSenselessCountsBreakTheSenderOnly) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    Ends ends;
    Sender sender(ends.attachments[0], {.inline_bytes = 8192, .window_bytes = 32 * 1024}, ends.round);
    const std::vector<std::byte> payload = pattern(200'000, 1);
    const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
    DirectionControl& control = *ends.attachments[1].segment.control[0];
    for (int i = 0; i < 600; ++i) {
      if (i % 50 == 0)
        control.consumed_cells = random() >> (random() % 64), control.consumed_data = random() >> (random() % 64);
      if (sender.waits()) sender.advance();
      else
        sender.try_send(
            {.control = bytes_of("x"), .payload = {&piece, 1}, .payload_bytes = i % 3 ? 0U : payload.size()},
            static_cast<std::uint64_t>(i / 2));
    }
  }
}

}  // namespace
}  // namespace tandem::comm::internal::shm_stranger_test
