// tandem/model/energy/power_table_test.cpp: tables of powers that come back from their text, and texts that are
// refused.
#include "tandem/model/energy/power_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tandem/base/splitmix64.hpp"

namespace tandem::model::power_table_test {
namespace {

using testing::HasSubstr;

PowerTable table() {
  PowerTable powers;
  powers.idle["cpu"] = {85.25, 1.1, 320};
  powers.idle["cuda (A/B \"x\")"] = {40, 0.5, 10};
  powers.kernels[{"cpu", "gemm"}] = {11.75, 0.25, 1830};
  powers.kernels[{"cpu", "a/b.c \xC3\xA9"}] = {3.5, 0.5, 20};
  powers.kernels[{"cuda (A/B \"x\")", "gemm"}] = {212, 3, 55.5};
  return powers;
}

TEST(PowerTable, ComesBackFromItsText) {
  const std::string text = to_text(table(), "Processor \"7\"");
  const auto read = parse_powers(text, "p", "Processor \"7\"");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_text(read.value(), "Processor \"7\""), text);
  EXPECT_EQ(read.value().kernels.at({"cpu", "a/b.c \xC3\xA9"}).watts, 3.5);
  EXPECT_EQ(read.value().idle.at("cpu").error, 1.1);
}

TEST(PowerTable, OtherMachinesFormatsAndTruncatedFilesAreRefused) {
  const std::string text = to_text(table(), "here");
  EXPECT_EQ(parse_powers(text, "p", "there").error().code, base::ErrorCode::unsupported);
  EXPECT_THAT(parse_powers(text, "p", "there").error().message,
              HasSubstr("is of another machine ('here', and this one is 'there')"));
  EXPECT_THAT(parse_powers("format = 2", "p", "").error().message, HasSubstr("p: has format 2"));
  EXPECT_THAT(parse_powers("", "p", "").error().message, HasSubstr("p: is no file of powers"));
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes)
    EXPECT_FALSE(parse_powers(std::string_view(text).substr(0, bytes), "p", "").ok()) << bytes;
  std::string wrong = text;
  wrong.replace(wrong.find("11.75 W"), 7, "-1 W");
  EXPECT_THAT(parse_powers(wrong, "p", "").error().message, HasSubstr("holds no power"));
}

TEST(PowerTable, DamagedTextsAreRefusedOrPlausible) {
  const std::string text = to_text(table(), "here");
  std::uint64_t state = 4;
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = text;
    damaged[base::splitmix64(state) % damaged.size()] = "0123456789-.\"\n=e x"[base::splitmix64(state) % 18];
    const auto read = parse_powers(damaged, "p", "");
    if (!read.ok()) continue;
    for (const auto& [key, power] : read.value().kernels)
      ASSERT_TRUE(power.watts >= 0 && power.watts <= 1e7 && power.seconds > 0) << damaged;
  }
}

TEST(PowerTable, NewsCountMoreThanWhatIsStored) {
  PowerTable powers = table(), news;
  news.kernels[{"cpu", "gemm"}] = {13.75, 0.25, 100};
  news.kernels[{"cpu", "new"}] = {5, 1, 10};
  powers.add(news);
  EXPECT_NEAR(powers.kernels.at({"cpu", "gemm"}).watts, 13.35, 1e-9);  // 4 parts of the new one, 1 of the old one
  EXPECT_EQ(powers.kernels.at({"cpu", "new"}).watts, 5);
  EXPECT_EQ(powers.idle.at("cpu").watts, 85.25);
}

TEST(PowerTable, AKindHasTheMeanOfItsKernels) {
  PowerTable powers;
  powers.kernels[{"cpu", "a"}] = {10, 1, 30};
  powers.kernels[{"cpu", "b"}] = {20, 1, 10};
  powers.kernels[{"cpu", "unknown"}] = {90, 80, 1000};
  EXPECT_EQ(powers.mean_of("cpu").watts, 12.5);
  EXPECT_FALSE(powers.mean_of("cuda").is_known());
}

}  // namespace
}  // namespace tandem::model::power_table_test
