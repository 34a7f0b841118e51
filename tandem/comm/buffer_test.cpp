// tandem/comm/buffer_test.cpp: pieces of memory, cut and copied.
#include "tandem/comm/buffer.hpp"

#include <gtest/gtest.h>

#include <sys/uio.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tandem/base/exceptions.hpp"

namespace tandem::comm::buffer_test {
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
  std::vector<iovec> slice;
  pieces.slice(2, 5, slice);
  Pieces(nullptr, 0).slice(0, 0, slice);
  ASSERT_EQ(slice.size(), 1u);
  EXPECT_EQ(slice[0].iov_base, bytes.data() + 2);
  EXPECT_EQ(slice[0].iov_len, 5u);
}

TEST(Pieces, EmptyPiecesOfAListCountForNothing) {
  auto bytes = numbered(10);
  const std::vector<iovec> one{{nullptr, 0}, {bytes.data(), 10}, {nullptr, 0}};
  EXPECT_TRUE(Pieces(one).contiguous());
  EXPECT_EQ(Pieces(one).data(), bytes.data());
  const std::vector<iovec> two{{bytes.data(), 4}, {nullptr, 0}, {bytes.data() + 6, 4}};
  std::vector<iovec> slice;
  Pieces(two).slice(3, 3, slice);
  ASSERT_EQ(slice.size(), 2u);
  EXPECT_EQ(slice[0].iov_base, bytes.data() + 3);
  EXPECT_EQ(slice[1].iov_base, bytes.data() + 6);
  EXPECT_EQ(slice[1].iov_len, 2u);
}

/// A message is cut into segments, and the cost of one must not grow with its offset. Lists are searched.
TEST(Pieces, ThePlaceOfASegmentIsFoundInStepsThatGrowWithTheLogarithm) {
  const auto steps_of = [](std::size_t pieces, std::size_t number) {
    std::size_t steps = 0;
    const std::size_t found = internal::piece_at(pieces, 8 * number + 3,
                                                 [&steps](std::size_t i) { return ++steps, 8 * (i + 1); });
    EXPECT_EQ(found, number);
    return steps;
  };
  for (const std::size_t number : {0u, 1u, 500u, 999u}) EXPECT_LE(steps_of(1000, number), 10u);
  for (const std::size_t number : {0u, 1u, 500'000u, 999'999u}) EXPECT_LE(steps_of(1'000'000, number), 20u);
}

/// Strided blocks need neither a list nor a search: only the requested ones of 2^40 blocks are visited.
TEST(Pieces, StridedBlocksCostNothingUntilTheyAreAskedFor) {
  constexpr std::size_t count = std::size_t{1} << 40;
  auto* const first = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
  const Pieces pieces(MutableStrided{first, 8, 16, count});
  EXPECT_EQ(pieces.bytes(), 8 * count);
  std::vector<iovec> slice;
  pieces.slice(8 * (count - 2) + 3, 13, slice);
  ASSERT_EQ(slice.size(), 2u);
  EXPECT_EQ(slice[0].iov_base, first + 16 * (count - 2) + 3);
  EXPECT_EQ(slice[0].iov_len, 5u);
  EXPECT_EQ(slice[1].iov_base, first + 16 * (count - 1));
  EXPECT_EQ(slice[1].iov_len, 8u);
  const Pieces same = pieces.copy();
  slice.clear();
  same.slice(8, 8, slice);
  EXPECT_EQ(slice[0].iov_base, first + 16);
}

TEST(Pieces, MoreBytesThanAnAddressSpaceHasAreRefused) {
  std::byte byte{};
  constexpr std::size_t half = std::size_t{1} << 63;
  EXPECT_THROW(Pieces(MutableStrided{&byte, half, half, 2}), UsageError);
  EXPECT_THROW(Pieces(MutableStrided{&byte, 8, half, 3}), UsageError);
  const std::vector<iovec> list{{&byte, half}, {&byte, half}};
  EXPECT_THROW(Pieces{list}, UsageError);
  EXPECT_EQ(Pieces(MutableStrided{&byte, 0, half, 8}).bytes(), 0u);
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
      ASSERT_EQ(joined, std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(length)))
          << first << ' ' << length;
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
}  // namespace tandem::comm::buffer_test
