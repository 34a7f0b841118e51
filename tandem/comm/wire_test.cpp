// tandem/comm/wire_test.cpp: records survive the way through a block, and no block makes a reader leave it.
#include "tandem/comm/wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace tandem::comm::wire::wire_test {
namespace {

bool holds(std::span<const std::byte> block) {
  return block.size() >= kBeforeData && holds_one_plain_message(block, first_word(block));
}

TEST(Wire, RecordsAndBytesComeBackAsTheyWereWritten) {
  alignas(8) std::array<std::byte, 256> room{};
  Writer writer(room);
  writer.put_head({.seen = 1, .freed_messages = 2, .freed_units = 3});
  const std::array<std::byte, 5> header{std::byte{9}, std::byte{8}, std::byte{7}, std::byte{6}, std::byte{5}};
  Eager eager{.bytes = 5, .channel = 3, .reserved = 0, .tag = 77};
  eager.prefix.header_bytes = 5;
  writer.put(eager);
  writer.put_bytes(header);
  writer.put(Grant{.stream = 4, .up_to = 1000});
  Reader reader(writer.block());
  EXPECT_EQ(reader.get<BlockHead>().freed_units, 3u);
  EXPECT_EQ(reader.peek().kind, Kind::eager);
  const auto back = reader.get<Eager>();
  EXPECT_EQ(back.tag, 77u);
  const auto bytes = reader.get_bytes(back.prefix.header_bytes);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), header.begin(), header.end()));
  EXPECT_EQ(reader.get<Grant>().up_to, 1000u);
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(reader.ok());
}

TEST(Wire, ABlockOfOnePlainMessageIsRecognised) {
  for (std::uint32_t bytes = 0; bytes <= 40; ++bytes) {
    alignas(8) std::array<std::byte, 256> room{};
    const auto block_of = [&](std::uint8_t flags, std::uint16_t header_bytes, std::uint32_t after) {
      Writer writer(room);
      writer.put_head({.seen = 1});
      Eager eager{.bytes = bytes, .channel = 3, .reserved = after, .tag = 0x1234567890abcdefu};
      eager.prefix.flags = flags;
      eager.prefix.header_bytes = header_bytes;
      writer.put(eager);
      writer.claim(header_bytes);
      if ((flags & flag_payload) == 0) writer.claim(bytes);
      return writer.block();
    };
    const auto plain = block_of(0, 0, 0);
    ASSERT_TRUE(holds(plain));
    const Eager parsed = plain_message(plain, first_word(plain));
    EXPECT_EQ(parsed.bytes, bytes);
    EXPECT_EQ(parsed.channel, 3u);
    EXPECT_EQ(parsed.tag, 0x1234567890abcdefu);
    EXPECT_LE(kBeforeData + parsed.bytes, plain.size());
    EXPECT_FALSE(holds(plain.first(plain.size() - 8)));
    EXPECT_FALSE(holds(std::span(room).first(plain.size() + 8)));
    EXPECT_FALSE(holds(block_of(0, 5, 0)));
    EXPECT_FALSE(holds(block_of(flag_after, 0, 7)));
    EXPECT_FALSE(holds(block_of(flag_payload, 0, 0)));
  }
  // No sum of sizes may wrap.
  alignas(8) std::array<std::byte, 64> room{};
  Writer writer(room);
  writer.put_head({});
  writer.put(Eager{.bytes = UINT32_MAX});
  EXPECT_FALSE(holds(room));
}

TEST(Wire, PaddingIsZero) {
  alignas(8) std::array<std::byte, 16> room;
  room.fill(std::byte{255});
  Writer writer(room);
  const std::array<std::byte, 1> one{std::byte{1}};
  writer.put_bytes(one);
  EXPECT_EQ(writer.used(), 8u);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(room[i], std::byte{0});
}

TEST(Wire, ReaderOfAnyBytesStaysInside) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 10'000; ++round) {
    std::vector<std::byte> block(random() % 100);
    for (std::byte& byte : block) byte = static_cast<std::byte>(random());
    Reader reader(block);
    for (int i = 0; i < 10 && reader.ok() && !reader.at_end(); ++i) {
      const Prefix prefix = reader.peek();
      switch (random() % 3) {
        case 0: (void)reader.get<Eager>(); break;
        case 1: (void)reader.get<Mcast>(); break;
        default: {
          const auto bytes = reader.get_bytes(random() % 4 == 0 ? SIZE_MAX - random() % 8 : prefix.header_bytes);
          if (!bytes.empty()) { EXPECT_LE(bytes.data() + bytes.size(), block.data() + block.size()); }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::comm::wire::wire_test
