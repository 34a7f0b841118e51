// tandem/trace/clock_point_test.cpp: the line through clock points, and its robustness against any points.
#include "tandem/trace/clock_point.hpp"

#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::trace::clock_point_test {
namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

ClockPoint point(std::int64_t local_ns, std::int64_t reference_ns, std::int64_t error_ns = 0,
                 ClockPointKind kind = ClockPointKind::barrier) {
  return {.kind = kind, .local_ns = local_ns, .reference_ns = reference_ns, .error_ns = error_ns, .late_ns = 0};
}

TEST(ReferenceLine, OfNoPointsIsTheSameTime) {
  const ReferenceLine line = ReferenceLine::through({});
  EXPECT_EQ(line.to_reference(42), 42);
  EXPECT_EQ(line.rate(), 1);
  EXPECT_FALSE(line.error_ns().has_value());
}

TEST(ReferenceLine, OfOnePointIsItsOffset) {
  const std::vector<ClockPoint> points{point(100, 1'100, 7)};
  EXPECT_EQ(ReferenceLine::through(points).to_reference(500), 1'500);
  EXPECT_EQ(ReferenceLine::through(points).error_ns(), 7);
}

TEST(ReferenceLine, GoesThroughTheFirstAndTheLastPointInWhateverOrderTheyStand) {
  const std::vector<ClockPoint> points{point(2'000, 12'200, 3), point(1'500, 99'999, 9), point(1'000, 11'000, 5)};
  const ReferenceLine line = ReferenceLine::through(points);
  EXPECT_EQ(line.to_reference(1'000), 11'000);
  EXPECT_EQ(line.to_reference(1'500), 11'600);
  EXPECT_EQ(line.to_reference(2'000), 12'200);
  EXPECT_DOUBLE_EQ(line.rate(), 1.2);
  EXPECT_EQ(line.error_ns(), 5);
}

TEST(ReferenceLine, GoesOnOutsideOrHoldsTheOffset) {
  const ReferenceLine line(point(1'000, 11'000), point(2'000, 12'200));
  EXPECT_EQ(line.to_reference(3'000), 13'400);
  EXPECT_EQ(line.to_reference(3'000, ReferenceLine::Outside::held), 13'200);
  EXPECT_EQ(line.to_reference(0), 9'800);
  EXPECT_EQ(line.to_reference(0, ReferenceLine::Outside::held), 10'000);
}

TEST(ReferenceLine, PrefersBarriers) {
  const std::vector<ClockPoint> points{point(0, 500, 0, ClockPointKind::background), point(10, 10)};
  EXPECT_EQ(ReferenceLine::through(points).to_reference(0), 0);
  EXPECT_EQ(ReferenceLine::through(std::span(points).first(1)).to_reference(0), 500);
}

TEST(ReferenceLine, StaysInItsRangeWhateverAFileSays) {
  const ReferenceLine far(point(least, most), point(most, least));
  for (const std::int64_t time : {least, std::int64_t{0}, most}) (void)far.to_reference(time);
  EXPECT_EQ(ReferenceLine(point(least, most), point(least, most)).to_reference(most), most);
  EXPECT_EQ(ReferenceLine(point(most, least), point(most, least)).to_reference(least), least);
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto any = [&] { return static_cast<std::int64_t>(random() >> random() % 64); };
    const ReferenceLine line(point(any(), any()), point(any(), any()));
    (void)line.to_reference(any());
    (void)line.to_reference(-any(), ReferenceLine::Outside::held);
    EXPECT_GT(line.rate(), 0);
  }
}

}  // namespace
}  // namespace tandem::trace::clock_point_test
