// tandem/runtime/submit/user_memory_test.cpp: shared memory of two pieces of data is found, and interleaved tiles are
// allowed.
#include "tandem/runtime/submit/user_memory.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::user_memory_test {
namespace {

struct Fixture {
  std::vector<double> memory = std::vector<double>(4'000);
  UserMemory known;
  std::deque<Handle> handles;

  /// A column-major matrix, `ld` elements from column to column, `first` elements from the start of the memory.
  Handle& matrix(std::size_t first, std::size_t rows, std::size_t cols, std::size_t ld) {
    Handle& handle = handles.emplace_back();
    handle.shape = {rows, cols, sizeof(double)};
    handle.home = {memory.data() + first, ld, false};
    return handle;
  }
  Handle& vector(std::size_t first, std::size_t count) { return matrix(first, count, 1, count); }
  /// The known data that shares bytes with `data`, or null; `data` does not become known.
  Handle* overlapping(Handle& data) {
    Handle* const found = known.add(data);
    if (found == nullptr) known.remove(data);
    return found;
  }
};

TEST(UserMemory, VectorsThatOverlapAreFound) {
  Fixture f;
  Handle& a = f.vector(100, 50);
  ASSERT_EQ(f.known.add(a), nullptr);
  EXPECT_EQ(f.overlapping(f.vector(100, 50)), &a);
  EXPECT_EQ(f.overlapping(f.vector(120, 1)), &a);
  EXPECT_EQ(f.overlapping(f.vector(0, 101)), &a);
  EXPECT_EQ(f.overlapping(f.vector(149, 100)), &a);
  EXPECT_EQ(f.overlapping(f.vector(0, 1'000)), &a);
  EXPECT_EQ(f.overlapping(f.vector(0, 100)), nullptr);
  EXPECT_EQ(f.overlapping(f.vector(150, 100)), nullptr);
  EXPECT_EQ(f.overlapping(f.vector(120, 0)), nullptr) << "nothing overlaps with nothing";
  f.known.remove(a);
  EXPECT_EQ(f.overlapping(f.vector(100, 50)), nullptr);
}

TEST(UserMemory, TilesOfOneMatrixInterleave) {
  Fixture f;
  for (const std::size_t start : {0, 3, 17}) {
    Fixture tiles;
    constexpr std::size_t ld = 50;
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t j = 0; j < 5; ++j) {
        Handle& tile = tiles.matrix(start + 10 * i + 10 * j * ld, 10, 10, ld);
        ASSERT_EQ(tiles.known.add(tile), nullptr) << i << "," << j;
      }
    EXPECT_NE(tiles.overlapping(tiles.matrix(start + 5 + 5 * ld, 10, 10, ld)), nullptr);
    EXPECT_NE(tiles.overlapping(tiles.vector(start, 2'000)), nullptr) << "the whole matrix";
    EXPECT_NE(tiles.overlapping(tiles.vector(start + 12, 2)), nullptr);
  }
}

TEST(UserMemory, VectorsAreKnownInEveryOrder) {
  constexpr std::size_t count = 200;
  std::mt19937 random(3);
  std::vector<std::size_t> adding(count);
  for (std::size_t i = 0; i < count; ++i) adding[i] = i;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::size_t> removing = adding;
    if (round % 3 == 1) std::reverse(adding.begin(), adding.end());
    if (round % 3 == 2) std::shuffle(adding.begin(), adding.end(), random);
    if (round % 2 == 1) std::shuffle(removing.begin(), removing.end(), random);
    Fixture f;
    std::vector<Handle*> data(count);
    for (const std::size_t i : adding) ASSERT_EQ(f.known.add(*(data[i] = &f.vector(10 * i, 10))), nullptr);
    for (const std::size_t i : removing) {
      ASSERT_EQ(f.overlapping(f.vector(10 * i + 9, 1)), data[i]) << "round " << round;
      f.known.remove(*data[i]);
      ASSERT_EQ(f.overlapping(f.vector(10 * i, 10)), nullptr) << "round " << round;
    }
  }
}

TEST(UserMemory, AgreesWithAMapOfAllElementsForMatricesOfOneStride) {
  std::mt19937 random(7);
  const auto draw = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    Fixture f;
    const std::size_t ld = 8 + draw(20);
    std::vector<const Handle*> owner(f.memory.size(), nullptr);
    std::vector<Handle*> added;
    for (int step = 0; step < 60; ++step) {
      const std::size_t rows = 1 + draw(std::min<std::size_t>(ld - 2, 8));
      const std::size_t cols = 2 + draw(6);
      Handle& next = f.matrix(draw(600), rows, cols, ld);
      bool overlaps = false;
      const auto each = [&](const Handle& handle, const auto& visit) {
        const auto first = static_cast<std::size_t>(static_cast<double*>(handle.home.pointer) - f.memory.data());
        for (std::size_t j = 0; j < handle.shape.cols; ++j)
          for (std::size_t i = 0; i < handle.shape.rows; ++i) visit(owner[first + j * handle.home.ld + i]);
      };
      each(next, [&](const Handle* who) { overlaps = overlaps || who != nullptr; });
      ASSERT_EQ(f.known.add(next) != nullptr, overlaps) << "round " << round << ", step " << step;
      if (!overlaps) {
        each(next, [&](const Handle*& who) { who = &next; });
        added.push_back(&next);
      } else if (!added.empty() && draw(3) == 0) {
        const std::size_t at = draw(added.size() - 1);
        f.known.remove(*added[at]);
        each(*added[at], [](const Handle*& who) { who = nullptr; });
        added.erase(added.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
}

}  // namespace
}  // namespace tandem::runtime::user_memory_test
