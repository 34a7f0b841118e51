// tools/simulate/sweep_test.cpp: grids, and sweeps that go on where they stopped.
#include "tools/simulate/sweep.hpp"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/work_folder.hpp"

namespace tandem::tools::sweep_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto axes = parse_sweep(text);
  return axes.ok() ? "no error" : axes.error().message;
}

TEST(Sweep, GridsAreListsAndRanges) {
  const auto axes = parse_sweep("n=480:1000:240 sched=lws,prio  x=1.5");
  ASSERT_TRUE(axes.ok());
  ASSERT_EQ(axes.value().size(), 3U);
  EXPECT_THAT(axes.value()[0].values, ElementsAre("480", "720", "960"));
  EXPECT_THAT(axes.value()[1].values, ElementsAre("lws", "prio"));
  EXPECT_THAT(axes.value()[2].values, ElementsAre("1.5"));
  EXPECT_THAT(points_of(axes.value()), testing::SizeIs(6));
  EXPECT_THAT(points_of(axes.value())[1], ElementsAre("480", "prio", "1.5"));
}

TEST(Sweep, MistakesAreNamed) {
  for (const char* const text : {"", "n", "=3", "n=", "n=1,,2"})
    EXPECT_THAT(error_of(text), HasSubstr("write NAME=")) << text;
  EXPECT_THAT(error_of("n=1 n=2"), HasSubstr("n stands there twice"));
  EXPECT_THAT(error_of("n=1:100000000:1"), HasSubstr("more than 100000 points"));
  EXPECT_THAT(error_of("n=1:1000:1 m=1:1000:1"), HasSubstr("more than 100000 points"));
}

TEST(Sweep, PlaceholdersAreReplaced) {
  const std::vector<SweepAxis> axes{{"n", {"7"}}, {"sched", {"lws"}}};
  std::vector<std::size_t> unused;
  EXPECT_THAT(words_at({"7", "lws"}, axes, {"app", "-n", "{n}", "{n}x{n}", "{m}"}, unused),
              ElementsAre("app", "-n", "7", "7x7", "{m}"));
  EXPECT_THAT(unused, ElementsAre(1));
}

class SweepFile : public testing::Test {
 protected:
  WorkFolder folder_ = WorkFolder::create("/tmp", "sweep-").value();
  std::filesystem::path file_ = folder_.path() / "a.csv";
  std::vector<SweepAxis> axes_ = parse_sweep("n=1:4:1 sched=lws,prio").value();
  std::atomic<unsigned> calls_ = 0;

  base::Result<void> run(unsigned fails_at = 0) {
    auto table = SweepTable::open(file_, "a program", axes_);
    if (!table.ok()) return table.error();
    return sweep(
        axes_, table.value(), 3,
        [&](const SweepPoint& point) -> base::Result<Prediction> {
          const unsigned n = static_cast<unsigned>(std::atoi(point[0].c_str()));
          if (n == fails_at) return base::Error{base::ErrorCode::io, "broken"};
          ++calls_;
          return Prediction{.median = n * 1.0, .low = n * 0.9, .high = n * 1.1};
        },
        [](std::size_t, std::size_t) {});
  }
};

TEST_F(SweepFile, GoesOnWhereItStopped) {
  const auto failed = run(3);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("at n=3 sched="));
  const unsigned before = calls_;
  EXPECT_LT(before, 8U);
  { std::ofstream(file_, std::ios::app) << "4,lws,1,2,3"; }  // a line that was being written
  ASSERT_TRUE(run().ok());
  EXPECT_GE(calls_, 8U);
  const unsigned after = calls_;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(calls_, after);
  auto table = SweepTable::open(file_, "a program", axes_);
  ASSERT_TRUE(table.ok());
  ASSERT_NE(table.value().find({"2", "prio"}), nullptr);
  EXPECT_EQ(table.value().find({"2", "prio"})->high, 2.2);
  EXPECT_EQ(table.value().find({"4", "lws"})->median, 4);
  const std::string picture = sweep_picture(axes_, table.value().results());
  EXPECT_THAT(picture, HasSubstr("sched=prio"));
  EXPECT_LT(picture.find("sched=lws"), picture.find("sched=prio")) << "in the order of the sweep";
}

TEST_F(SweepFile, OfAnotherSweepIsLeftAlone) {
  ASSERT_TRUE(run().ok());
  EXPECT_FALSE(SweepTable::open(file_, "another program", axes_).ok());
  EXPECT_FALSE(SweepTable::open(file_, "a program", parse_sweep("n=1:4:1").value()).ok());
  EXPECT_FALSE(SweepTable::open(folder_.path() / "none" / "a.csv", "a program", axes_).ok());
}

}  // namespace
}  // namespace tandem::tools::sweep_test
