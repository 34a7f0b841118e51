// tandem/model/tasks/codelet_models_test.cpp: files are read as they were written, and damaged ones refused.
#include "tandem/model/tasks/codelet_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::model::codelet_models_test {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

constexpr std::string_view kMachine = "Some CPU \"2\" (100%)";

CodeletModels some_models(const std::string& codelet = "gemm") {
  CodeletModels models{.codelet = codelet, .kinds = {}};
  RandomDurations random(1);
  for (const WorkKind& kind : {WorkKind{}, WorkKind{.worker = "cpu", .distance = 1},
                               WorkKind{.worker = "opencl (A/B 3.0)", .implementation = 1}})
    for (const Footprint& footprint :
         {Footprint(4096), Footprint(0xdeadbeefcafe, 1 << 20), Footprint(3, 1 << 20), Footprint(0)})
      for (int i = 0; i < 50; ++i) models.kinds[kind].add(footprint, random.around(1e5, 0.1));
  return models;
}

std::string error_of(std::string_view text, ErrorCode code) {
  const auto read = parse_models(text, "gemm.toml", kMachine);
  EXPECT_FALSE(read.ok()) << text;
  if (read.ok()) return "";
  EXPECT_EQ(read.error().code, code) << read.error().message;
  return read.error().message;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CodeletModels, AFileKeepsKindsShapesAndQuantiles) {
  for (const std::string& name : {std::string("gemm"), std::string("a \"b\"\\\n%41 \xff/\xc3\xa9")}) {
    const CodeletModels models = some_models(name);
    const std::string text = to_text(models, kMachine);
    const auto read = parse_models(text, "file", kMachine);
    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << text;
    EXPECT_EQ(read.value().codelet, name);
    ASSERT_EQ(read.value().kinds.size(), 3U);
    for (const auto& [kind, sizes] : models.kinds) {
      const SizeModel& again = read.value().kinds.at(kind);
      EXPECT_FALSE(again.has_news());
      ASSERT_EQ(again.entries().size(), sizes.entries().size());
      for (std::size_t i = 0; i < sizes.entries().size(); ++i) {
        EXPECT_EQ(again.entries()[i].footprint, sizes.entries()[i].footprint);
        EXPECT_EQ(again.entries()[i].history.samples(), 50U);
        EXPECT_NEAR(again.entries()[i].history.estimate().mean_ns / sizes.entries()[i].history.estimate().mean_ns, 1,
                    0.05);
      }
    }
    EXPECT_EQ(to_text(read.value(), kMachine), text) << "what is not used does not wander";
  }
}

TEST(CodeletModels, ATruncatedFileIsRefusedWhereverItEnds) {
  const std::string text = to_text(some_models(), kMachine);
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {  // without the last line end all is there
    const auto read = parse_models(std::string_view(text).substr(0, bytes), "gemm.toml", kMachine);
    ASSERT_FALSE(read.ok()) << bytes;
    ASSERT_THAT(read.error().message, HasSubstr("gemm.toml"));
  }
  EXPECT_THAT(error_of(text.substr(0, text.rfind("\n\"")), ErrorCode::malformed),
              HasSubstr("is truncated: it has 11 of 12 rows"));
}

TEST(CodeletModels, ADamagedFileIsRefusedOrStaysPlausible) {
  const std::string text = to_text(some_models(), kMachine);
  unsigned refused = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    RandomDurations random(seed);
    std::string damaged = text;
    for (int i = static_cast<int>(random.between(1, 4)); i > 0; --i)
      damaged[static_cast<std::size_t>(random.between(0, static_cast<double>(damaged.size())))] =
          static_cast<char>(random.between(0, 256));
    const auto read = parse_models(damaged, "gemm.toml", kMachine);
    if (!read.ok()) ++refused;
    else
      for (const auto& [kind, sizes] : read.value().kinds)
        for (const SizeModel::Entry& entry : sizes.entries()) {
          const Estimate estimate = entry.history.estimate();
          ASSERT_TRUE(estimate.mean_ns >= 1 && std::isfinite(estimate.mean_ns) && std::isfinite(estimate.deviation_ns))
              << "seed " << seed;
        }
  }
  EXPECT_GT(refused, 1500U);
}

TEST(CodeletModels, WhatCannotBeIsRefused) {
  CodeletModels one{.codelet = "gemm", .kinds = {}};
  for (int i = 0; i < 5; ++i) one.kinds[{}].add(4096, 1e4 + i * 100.0);
  const std::string text = to_text(one, kMachine);
  EXPECT_THAT(text, HasSubstr("\"cpu/0/0/4096\" = \"5 durations: 10 10.1 10.2 10.3 10.4\"\n"));
  for (const std::string_view wrong :
       {"5 durations: 10 10.1 10.2 10.3 nan", "5 durations: 10 10.1 10.2 10.3 inf", "5 durations: 10 9 10.2 10.3 10.4",
        "5 durations: -1 10.1 10.2 10.3 10.4", "0 durations: 10 10.1 10.2 10.3 10.4", "5 durations: 10 10.1 10.2 10.3",
        "5 durations: 10 10.1 10.2 10.3 1e300", "5 durations: 0 0 0 0 0", ""})
    EXPECT_THAT(error_of(replaced(text, "5 durations: 10 10.1 10.2 10.3 10.4", wrong), ErrorCode::malformed),
                HasSubstr("line 9 holds no durations"));
  EXPECT_THAT(error_of(replaced(text, "cpu/0/0/4096", "cpu/0/4096"), ErrorCode::malformed),
              HasSubstr("holds no durations"));
  EXPECT_THAT(error_of(replaced(text, "cpu/0/0/4096", "cpu/0/0/-4"), ErrorCode::malformed),
              HasSubstr("holds no durations"));
  EXPECT_THAT(error_of(replaced(text, "Some CPU", "Other CPU"), ErrorCode::unsupported),
              HasSubstr("is of another machine ('Other CPU"));
  EXPECT_THAT(error_of(replaced(text, "format = 1", "format = 2"), ErrorCode::unsupported), HasSubstr("has format 2"));
  EXPECT_THAT(error_of("", ErrorCode::malformed), HasSubstr("prune"));
  EXPECT_TRUE(parse_models(replaced(text, "Some CPU", "Other CPU"), "file", "").ok())
      << "asked for models of any machine";
}

TEST(CodeletModels, SuspectsAreKept) {
  CodeletModels one{.codelet = "gemm", .kinds = {}};
  for (int i = 0; i < 20; ++i) one.kinds[{}].add(4096, 1e4);
  for (int i = 0; i < 3; ++i) one.kinds[{}].add(4096, 1e6 + i * 1e3);
  const std::string text = to_text(one, kMachine);
  EXPECT_THAT(text, HasSubstr("= \"23 durations: 10 10 10 10 10 suspects: 1000 1001 1002\"\n"));
  const auto read = parse_models(text, "file", kMachine);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_text(read.value(), kMachine), text);
  EXPECT_THAT(error_of(replaced(text, "1000 1001 1002", "1 2 3 4 5 6 7 8"), ErrorCode::malformed),
              HasSubstr("holds no durations"));
  EXPECT_THAT(error_of(replaced(text, "1001", "-1"), ErrorCode::malformed), HasSubstr("holds no durations"));
  EXPECT_THAT(error_of(replaced(text, "suspects:", "others:"), ErrorCode::malformed), HasSubstr("holds no durations"));
}

TEST(CodeletModels, TheMomentsOfAllDurationsAreKept) {
  CodeletModels one{.codelet = "gemm", .kinds = {}};
  for (int i = 0; i < 60; ++i) one.kinds[{}].add(4096, 1e4);
  for (int i = 0; i < 40; ++i) one.kinds[{}].add(4096, 2e4);
  for (int i = 0; i < 3; ++i) one.kinds[{}].add(4096, 1e6);
  const std::string text = to_text(one, kMachine);
  EXPECT_THAT(text, HasSubstr("= \"103 durations: 20 20 20 20 20 overall: 100 14 4.899 suspects: 1000 1000 1000\"\n"));
  auto read = parse_models(text, "file", kMachine);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_text(read.value(), kMachine), text);
  EXPECT_NEAR(read.value().kinds[{}].overall(4096).mean_ns, 14'000, 1);
  EXPECT_NEAR(read.value().kinds[{}].estimate(4096).mean_ns, 20'000, 1);
  for (const std::string_view wrong :
       {"0 14 4.899", "104 14 4.899", "100 0 4.899", "100 14 -1", "100 14 nan", "100 14", "100 1e300 1", "x 14 1"})
    EXPECT_THAT(error_of(replaced(text, "100 14 4.899", wrong), ErrorCode::malformed), HasSubstr("holds no durations"))
        << wrong;
}

TEST(CodeletModels, EqualDurationsAreReadAsTheyWereWritten) {
  for (int i = 0; i < 4'000; ++i) {
    CodeletModels one{.codelet = "gemm", .kinds = {}};
    for (int k = 0; k < 5; ++k) one.kinds[{}].add(4096, 20'000 + 0.1 * i);  // restored ones are no whole ns
    const auto read = parse_models(to_text(one, kMachine), "file", kMachine);
    ASSERT_TRUE(read.ok()) << to_text(one, kMachine);
  }
}

// Programs learn one after the other, or two at the same time, as the library does with its files: read, run, read again, add.
TEST(CodeletModels, WhatProgramsWriteTheNextOneReads) {
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    RandomDurations random(seed);
    std::string file = to_text({.codelet = "gemm", .kinds = {}}, kMachine);
    for (int run = 0; run < 6; ++run) {
      std::vector<CodeletModels> programs;
      for (int two = 0; two < (random.uniform() < 0.3 ? 2 : 1); ++two) {
        auto read = parse_models(file, "file", kMachine);
        ASSERT_TRUE(read.ok()) << "seed " << seed << ", run " << run << ": " << read.error().message << "\n" << file;
        CodeletModels& program = programs.emplace_back(std::move(read).value());
        const double noise = random.between(0.01, 1.5);
        for (auto i = static_cast<int>(random.between(1, 40)); i > 0; --i)
          program.kinds[{}].add(4096, std::floor(random.around(2e4, noise)));
      }
      for (const CodeletModels& program : programs) {
        CodeletModels all = parse_models(file, "file", kMachine).value();
        all.add_news_of(program);
        file = to_text(all, kMachine);
        ASSERT_TRUE(parse_models(file, "file", kMachine).ok()) << "seed " << seed << ", run " << run << "\n" << file;
      }
    }
  }
}

TEST(CodeletModels, APoisonedFileIsLearntAway) {
  CodeletModels models = some_models();
  const std::string text = to_text(models, kMachine);
  CodeletModels read = parse_models(text, "file", kMachine).value();
  SizeModel& sizes = read.kinds[{}];
  for (int i = 0; i < 30; ++i) sizes.add(4096, 1e7);  // the file says 1e5
  EXPECT_NEAR(sizes.estimate(4096).mean_ns, 1e7, 1e5);
}

TEST(CodeletModels, NewsOfProgramsAreAdded) {
  CodeletModels file = some_models(), program = parse_models(to_text(file, kMachine), "file", kMachine).value();
  program.kinds[{}].add(4096, 1e5);
  program.kinds[{.worker = "new"}].add(1, 10);
  file.add_news_of(program);
  EXPECT_EQ(file.kinds[{}].find(4096)->samples(), 51U);
  EXPECT_EQ(file.kinds.size(), 4U);
  EXPECT_EQ(file.kinds.at({.worker = "cpu", .distance = 1}).find(4096)->samples(), 50U);
}

}  // namespace
}  // namespace tandem::model::codelet_models_test
