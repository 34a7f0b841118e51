// tandem/comm/wire_test.cpp: records survive the way through a block, and no block makes a reader leave it.
#include "tandem/comm/wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace tandem::comm::wire {
namespace {

TEST(Wire, RecordsAndBytesComeBackAsTheyWereWritten) {
  alignas(8) std::array<std::byte, 256> room{};
  Writer writer(room);
  writer.put_head({.seen = 1, .freed_messages = 2, .freed_units = 3});
  const std::array<std::byte, 5> header{std::byte{9}, std::byte{8}, std::byte{7}, std::byte{6}, std::byte{5}};
  Eager eager{.bytes = 5, .channel = 3, .after = 0, .tag = 77};
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
}  // namespace tandem::comm::wire
