// tandem/runtime/sched/placing/kind_numbers_test.cpp: few shapes have kinds of their own, many share kinds.
#include "tandem/runtime/sched/placing/kind_numbers.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::kind_numbers_test {
namespace {

constexpr int kAll = 0, kCores = 1;  // groups of workers

KindNumbers::Task of_bytes(std::uint64_t bytes, std::string_view codelet = "work", const int& workers = kAll) {
  return {.codelet = codelet, .footprint = {bytes * 7, bytes}, .workers = &workers};
}

TEST(KindNumbers, TellShapesCodeletsAndWorkersApart) {
  KindNumbers numbers(KindNumbers::Bound::few);
  std::set<unsigned> seen;
  for (const std::uint64_t bytes : {100U, 101U})
    for (const char* codelet : {"work", "other"})
      for (const int* workers : {&kAll, &kCores}) {
        const KindNumbers::Kind kind = numbers.join(of_bytes(bytes, codelet, *workers));
        EXPECT_TRUE(kind.is_new);
        EXPECT_EQ(kind.codelet, codelet);
        EXPECT_EQ(kind.footprint, model::Footprint(bytes * 7, bytes));
        seen.insert(kind.number);
      }
  EXPECT_EQ(seen.size(), 8U);
  KindNumbers::Task eager = of_bytes(100);
  eager.prefers_devices = true;
  EXPECT_TRUE(numbers.join(eager).is_new);
  const KindNumbers::Kind again = numbers.join(of_bytes(100));
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(numbers.tasks(again.number), 2U);
}

TEST(KindNumbers, AreFewHoweverManyShapesThereAre) {
  for (const unsigned shapes : {1'000U, 64'000U}) {
    KindNumbers numbers(KindNumbers::Bound::few);
    for (unsigned shape = 0; shape < shapes; ++shape)
      numbers.join(of_bytes(8 * (shape + 1), shape % 2 == 0 ? "work" : "other"));
    EXPECT_LE(numbers.size(), KindNumbers::kMostExact + KindNumbers::kMostClasses + 1);
    EXPECT_TRUE(numbers.check_invariants());
  }
  KindNumbers numbers(KindNumbers::Bound::few);
  for (unsigned name = 0; name < 10'000; ++name) numbers.join(of_bytes(8, std::to_string(name)));
  EXPECT_LE(numbers.size(), KindNumbers::kMostExact + KindNumbers::kMostClasses + 1) << "nor codelets";
}

TEST(KindNumbers, PutTasksOfAboutTheSameSizeTogetherWhereThereAreManyShapes) {
  KindNumbers numbers(KindNumbers::Bound::few);
  for (unsigned shape = 0; shape < KindNumbers::kMostExact; ++shape) numbers.join(of_bytes(1'000 + shape));
  const KindNumbers::Kind first = numbers.join(of_bytes(1'000'000));
  EXPECT_TRUE(numbers.is_class(first.number));
  EXPECT_EQ(first.codelet, "work");
  EXPECT_NEAR(static_cast<double>(first.footprint.bytes), 1e6, 0.15e6);
  EXPECT_EQ(numbers.join(of_bytes(1'000'001)).number, first.number);
  EXPECT_NE(numbers.join(of_bytes(2'000'000)).number, first.number);
  EXPECT_NE(numbers.join(of_bytes(1'000'000, "other")).number, first.number);
  EXPECT_FALSE(numbers.is_class(numbers.join(of_bytes(1'000)).number)) << "what has a kind keeps it";
}

TEST(KindNumbers, GiveShapesThatComeNowThePlacesOfOldOnes) {
  KindNumbers numbers(KindNumbers::Bound::few);
  std::vector<unsigned> old;
  for (unsigned shape = 0; shape < KindNumbers::kMostExact; ++shape)
    old.push_back(numbers.join(of_bytes(1'000 + shape)).number);
  for (std::size_t i = 1; i < old.size(); ++i) numbers.leave(old[i]);  // the first one keeps a task
  EXPECT_TRUE(numbers.is_class(numbers.join(of_bytes(5'000)).number)) << "the others came a moment ago";
  bool has_place = false;
  for (std::uint64_t i = 0; i < KindNumbers::kForgetAfter + 2 * KindNumbers::kMostExact; ++i) {
    const unsigned number = numbers.join(of_bytes(5'000)).number;
    numbers.leave(number);
    has_place = !numbers.is_class(number);
  }
  EXPECT_TRUE(has_place);
  EXPECT_EQ(numbers.join(of_bytes(1'000)).number, old[0]) << "it has a task";
  EXPECT_EQ(numbers.tasks(old[0]), 2U);
  EXPECT_TRUE(numbers.check_invariants());
}

TEST(KindNumbers, AreThoseOfShapesWhereEachTaskIsPlacedByItself) {
  KindNumbers numbers(KindNumbers::Bound::none);
  std::set<unsigned> seen;
  for (unsigned shape = 0; shape < 1'000; ++shape) seen.insert(numbers.join(of_bytes(8 * shape)).number);
  EXPECT_EQ(seen.size(), 1'000U);
  for (const unsigned number : seen) numbers.leave(number);
  for (unsigned round = 0; round < 100'000; ++round) numbers.leave(numbers.join(of_bytes(round)).number);
  EXPECT_LE(numbers.size(), 1'000U);
  EXPECT_TRUE(numbers.check_invariants());
}

TEST(SizeClass, IsAQuarterOfAnOctave) {
  for (std::uint64_t bytes = 1; bytes < (std::uint64_t{1} << 62); bytes += 1 + bytes / 50) {
    const model::Footprint of = model::size_class_of({12, bytes});
    ASSERT_LE(static_cast<double>(of.bytes), 1.13 * static_cast<double>(bytes)) << bytes;
    ASSERT_GE(static_cast<double>(of.bytes), 0.88 * static_cast<double>(bytes)) << bytes;
    ASSERT_EQ(model::size_class_of(of), of) << "of its middle, too";
  }
  EXPECT_EQ(model::size_class_of({1, 0}), model::size_class_of({2, 0}));
  std::set<std::uint64_t> classes;
  for (std::uint64_t bytes = 1; bytes <= 32'768; ++bytes) classes.insert(model::size_class_of(bytes).shape);
  EXPECT_LE(classes.size(), 64U);
  EXPECT_EQ(model::size_class_of(UINT64_MAX).bytes >> 61U, 7U);
}

}  // namespace
}  // namespace tandem::runtime::kind_numbers_test
