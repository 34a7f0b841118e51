// tandem/trace/metadata_test.cpp: the clock in CTF's terms, against the rank's own; the text in parts (babeltrace2
// reads all of it).
#include "tandem/trace/metadata.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tandem/trace/event.hpp"

namespace tandem::trace::metadata_test {
namespace {

__extension__ using Wide = __int128;

/// The date as CTF's readers compute it, exactly.
std::int64_t date_ns(const CtfClock& clock, std::uint64_t ticks) {
  const Wide since_ns = (Wide{clock.offset_ticks} + ticks) * 1'000'000'000 / clock.frequency_hz;
  return static_cast<std::int64_t>(Wide{clock.offset_s} * 1'000'000'000 + since_ns);
}

TEST(CtfClock, SaysTheRanksDateWhereThereIsNoOtherRank) {
  const CtfClock clock = ctf_clock({.scale = {1'000, 500, std::int64_t{1} << 32},  // a tick is a nanosecond
                                    .realtime_ns = 1'700'000'000'123'456'789,
                                    .realtime_local_ns = 500,
                                    .exact_at_ticks = 1'000});
  EXPECT_EQ(clock.frequency_hz, 1'000'000'000u);
  EXPECT_LT(clock.offset_ticks, clock.frequency_hz);
  EXPECT_EQ(date_ns(clock, 1'000), 1'700'000'000'123'456'789);
  EXPECT_EQ(date_ns(clock, 2'000), 1'700'000'000'123'457'789);
}

TEST(CtfClock, SaysNegativeOffsetsAsWell) {
  const CtfClock clock = ctf_clock({.scale = {0, 0, std::int64_t{1} << 32}, .realtime_ns = 5'000'000'000,
                                    .realtime_local_ns = 7'500'000'000, .exact_at_ticks = 7'500'000'000});
  EXPECT_EQ(clock.offset_s, -3);
  EXPECT_EQ(clock.offset_ticks, 500'000'000u);
  EXPECT_EQ(date_ns(clock, 7'500'000'000), 5'000'000'000);
}

TEST(CtfClock, FollowsRankZerosTimeAndDate) {
  const ClockPoint first{.local_ns = 1'000, .reference_ns = 51'000},
      last{.local_ns = 1'000'001'000, .reference_ns = 1'000'052'000};
  const CtfClock clock = ctf_clock({.scale = {0, 0, std::int64_t{1} << 31},  // 2 GHz
                                    .realtime_ns = 1,
                                    .realtime_local_ns = 1,
                                    .line = {first, last},
                                    .reference_realtime_offset_ns = 1'700'000'000'000'000'000,
                                    .exact_at_ticks = 2'000});
  EXPECT_EQ(clock.frequency_hz, 1'999'998'000u) << "slower than it thinks, by a microsecond in a second";
  EXPECT_NEAR(static_cast<double>(date_ns(clock, 2'000) - 1'700'000'000'000'051'000), 0, 1);
  EXPECT_NEAR(static_cast<double>(date_ns(clock, 2'000'002'000) - 1'700'000'001'000'052'000), 0, 2);
}

TEST(CtfClock, IsRightNearWhereItIsExact) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1'000; ++i) {
    const double ghz = std::uniform_real_distribution<double>(0.5, 5)(random);
    const std::uint64_t uptime_ticks = random() % 10'000'000'000'000'000;
    const clock::TickScale scale{uptime_ticks, 5'000'000'000, std::llround(std::ldexp(1 / ghz, 32))};
    const CtfClock clock = ctf_clock({.scale = scale,
                                      .realtime_ns = 1'700'000'000'000'000'000,
                                      .realtime_local_ns = 5'000'000'000,
                                      .exact_at_ticks = uptime_ticks});
    const std::uint64_t second_later = uptime_ticks + static_cast<std::uint64_t>(1e9 * ghz);
    const std::int64_t expected = scale.to_ns(second_later) + 1'699'999'995'000'000'000;
    EXPECT_NEAR(static_cast<double>(date_ns(clock, second_later) - expected), 0, 3)
        << ghz << " GHz at " << uptime_ticks;
  }
}

TEST(CtfClock, SurvivesAScaleThatIsNone) {
  EXPECT_GT(ctf_clock({.scale = {0, 0, 0}}).frequency_hz, 0u);
  EXPECT_GT(ctf_clock({.scale = {0, 0, INT64_MAX}}).frequency_hz, 0u);
}

TEST(CtfMetadata, DescribesEveryEventWithEveryField) {
  const std::string text =
      ctf_metadata({.hostname = "node1", .program = "a \"b\" \\c\n", .rank = 3, .tandem_version = "0.1.0"});
  EXPECT_TRUE(text.starts_with("/* CTF 1.8 */"));
  for (std::size_t i = 0; i < kEventSpecs; ++i)
    EXPECT_NE(text.find("name = \"" + std::string(spec_at(i).name) + "\";\n  id = " +
                        std::to_string(static_cast<int>(spec_at(i).type)) + ";"),
              std::string::npos);
  EXPECT_NE(text.find("u32 _accesses[_accesses_count];"), std::string::npos);
  EXPECT_NE(text.find("program = \"a \\\"b\\\" \\\\c?\";"), std::string::npos);
  EXPECT_NE(text.find("rank = 3;"), std::string::npos);
}

}  // namespace
}  // namespace tandem::trace::metadata_test
