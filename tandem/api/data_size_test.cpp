// tandem/api/data_size_test.cpp: sizes that no memory has, or that would overflow, are refused with their numbers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::data_size_test {
namespace {

using test::loop_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kTwoTo32 = std::size_t{1} << 32;

struct DataSizes : testing::Test {
  std::unique_ptr<Runtime> owner = loop_runtime();
  Runtime& rt = *owner;
  volatile std::size_t none = 0;  ///< a zero that no compiler can infer

  /// Checks that the runtime is as usable as before.
  ~DataSizes() override {
    const auto data = rt.vector<int>("afterwards", 3);
    rt.submit("set", [](std::span<int> x) { x[2] = 5; }, write(data));
    auto view = rt.acquire(read(data));
    EXPECT_EQ((*view)[2], 5);
  }
};

TEST_F(DataSizes, NegativeNumbersThatBecameUnsigned) {
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.vector<double>("v", none - 2); }),
              AllOf(HasSubstr("data 'v'"), HasSubstr("data_size_test.cpp"),
                    HasSubstr("18446744073709551614 x 1 elements of 8 bytes"), HasSubstr("1125899906842624 bytes"),
                    HasSubstr("a negative number")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.vector<double>("v", none - 1); }),
              HasSubstr("18446744073709551615 x 1 elements"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.matrix<char>("m", none - 1, 1); }), HasSubstr("18446744073709551615 x 1"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.matrix<char>("m", 0, none - 1); }), HasSubstr("0 x 18446744073709551615"));
}

TEST_F(DataSizes, ProductsThatOverflow) {
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.matrix<double>("m", kTwoTo32, kTwoTo32); }),
              AllOf(HasSubstr("4294967296 x 4294967296 elements of 8 bytes"), Not(HasSubstr("negative"))));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.vector<double>("v", std::size_t{1} << 61); }),
              HasSubstr("2305843009213693952 x 1"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.array<int>("a", {kTwoTo32, kTwoTo32, 3}); }),
              HasSubstr("extents 4294967296 x 4294967296 x 3"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.matrix<char>("m", std::size_t{1} << 50, 2); }),
              HasSubstr("x 2 elements of 1 bytes"));
}

TEST_F(DataSizes, GapsThatOverflow) {
  std::vector<int> memory(16);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.data("m", MatrixView<int>{memory.data(), 4, 4, std::size_t{1} << 62}); }),
              HasSubstr("with leading dimension 4611686018427387904"));
  EXPECT_THAT(thrown_by<UsageError>([&] {
                rt.data("a", ArrayView<int, 2>{memory.data(), {4, 4}, {1, std::size_t{1} << 62}});
              }),
              HasSubstr("strides 1, 4611686018427387904"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.data("s", std::span<int>(memory.data(), std::size_t{1} << 60)); }),
              HasSubstr("1152921504606846976 x 1"));
}

TEST_F(DataSizes, SizesOfTiles) {
  EXPECT_THAT(thrown_by<UsageError>([&] {
                rt.tiles<double>(
                    "t", {.rows = std::size_t{1} << 62, .cols = 4, .tile_rows = std::size_t{1} << 62, .tile_cols = 4});
              }),
              AllOf(HasSubstr("tiles 't'"), HasSubstr("4611686018427387904 x 4 elements")));
  EXPECT_THAT(thrown_by<UsageError>(
                  [&] { rt.tiles<double>("t", {.rows = kTwoTo32, .cols = kTwoTo32, .tile_rows = 1, .tile_cols = 1}); }),
              AllOf(HasSubstr("4294967296 x 4294967296 of them"), HasSubstr("make them larger")));
  auto tiles = rt.tiles<int>("t", {.rows = 5, .cols = 5, .tile_rows = std::size_t{1} << 62, .tile_cols = none - 1});
  EXPECT_EQ(tiles(0, 0).rows(), 5U) << "tiles are never larger than the matrix";
}

TEST_F(DataSizes, EstimatesOfObjectsAndNumbersOfIterations) {
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.object<std::vector<int>>("o", {.bytes = none - 1}); }),
              HasSubstr("said to take 18446744073709551615 bytes"));
  EXPECT_THAT(thrown_by<UsageError>([&] { static_cast<void>(rt.iteration(std::int64_t{1} << 40)); }),
              HasSubstr("iteration 1099511627776"));
}

TEST_F(DataSizes, DataBeyondTheMemoryOfTheMachineFailWithTheirTasks) {
  const auto large = rt.vector<char>("large", std::size_t{1} << 49);
  rt.submit("fill", [](std::span<char>) {}, write(large));
  EXPECT_THAT(thrown_by<std::bad_alloc>([&] { rt.wait(); }), HasSubstr("it takes 562949953421312 bytes"));
}

}  // namespace
}  // namespace tandem::data_size_test
