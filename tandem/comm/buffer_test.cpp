// tandem/comm/buffer_test.cpp: pieces of memory, cut and copied.
#include "tandem/comm/buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace tandem::comm {
namespace {

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i);
  return made;
}

TEST(Pieces, OnePieceNeedsNoList) {
  auto bytes = numbered(10);
  const Pieces pieces(bytes.data(), bytes.size());
  EXPECT_TRUE(pieces.contiguous());
  EXPECT_EQ(pieces.list().size(), 1u);
  EXPECT_EQ(Pieces(nullptr, 0).list().size(), 0u);
}

TEST(Pieces, StridedBlocksWithoutGapsAreOnePiece) {
  auto bytes = numbered(100);
  EXPECT_TRUE(Pieces(MutableStrided{bytes.data(), 10, 10, 10}).contiguous());
  EXPECT_TRUE(Pieces(MutableStrided{bytes.data(), 10, 50, 1}).contiguous());
  const Pieces gaps(MutableStrided{bytes.data(), 10, 20, 5});
  EXPECT_FALSE(gaps.contiguous());
  EXPECT_EQ(gaps.bytes(), 50u);
}

TEST(Pieces, EverySliceOfAStridedBlockIsWhatItsBytesSay) {
  auto bytes = numbered(200);
  const Pieces pieces(MutableStrided{bytes.data(), 7, 20, 10});
  std::vector<std::byte> whole(70);
  pieces.copy_out(0, whole);
  for (std::size_t first = 0; first <= 70; first += 3) {
    for (std::size_t length = 0; first + length <= 70; length += 5) {
      std::vector<iovec> slice;
      pieces.slice(first, length, slice);
      std::vector<std::byte> joined;
      for (const iovec& piece : slice) {
        const auto* data = static_cast<const std::byte*>(piece.iov_base);
        joined.insert(joined.end(), data, data + piece.iov_len);
      }
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
      ASSERT_EQ(joined, std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(length))) << first << ' ' << length;
    }
  }
}

TEST(Pieces, WhatIsCopiedInComesOutAndNothingElseChanges) {
  std::vector<std::byte> memory(100, std::byte{255});
  const Pieces pieces(MutableStrided{memory.data(), 5, 10, 10});
  const auto sent = numbered(20);
  pieces.copy_in(13, sent);
  std::vector<std::byte> got(20);
  pieces.copy_out(13, got);
  EXPECT_EQ(got, sent);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i % 10 >= 5) { EXPECT_EQ(memory[i], std::byte{255}) << "a gap was written at " << i; }
  }
}

TEST(Pieces, AFewBytesAreCopiedAndNoneBeside) {
  const auto from = numbered(100);
  for (std::size_t bytes = 0; bytes <= 70; ++bytes) {
    for (const std::size_t offset : {0, 1, 5}) {
      std::vector<std::byte> to(100, std::byte{255});
      copy_few(to.data() + 10 + offset, from.data() + offset, bytes);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool inside = i >= 10 + offset && i < 10 + offset + bytes;
        ASSERT_EQ(to[i], inside ? from[i - 10] : std::byte{255}) << bytes << " bytes at " << offset << ": " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::comm
