// tandem/runtime/exec/recorded_order_test.cpp: files of schedules.
#include "tandem/runtime/exec/recorded_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::runtime::recorded_order_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text, std::uint32_t rank = 0, std::uint32_t ranks = 1) {
  const auto schedule = RecordedSchedule::parse(text, rank, ranks, "a");
  return schedule.ok() ? "no error" : schedule.error().message;
}

TEST(RecordedSchedule, IsThatOfItsRank) {
  const std::string text = "tandem schedule 1\nrank 0 workers 2\n17 1\n3 0\nrank 1 workers 3\n4 2\nrank 2 workers 1\n";
  const auto first = RecordedSchedule::parse(text, 0, 3, "a");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().workers, 2U);
  ASSERT_EQ(first.value().choices.size(), 2U);
  EXPECT_EQ(first.value().choices[0].task, 17U);
  EXPECT_EQ(first.value().choices[0].worker, 1U);
  EXPECT_EQ(first.value().choices[1].task, 3U);
  EXPECT_EQ(RecordedSchedule::parse(text, 1, 3, "a").value().choices.size(), 1U);
  EXPECT_TRUE(RecordedSchedule::parse(text, 2, 3, "a").value().choices.empty());
  EXPECT_EQ(error_of(text, 3, 3), "a: a run of 3 ranks, not of rank 3 of 3");
  EXPECT_EQ(error_of(text, 0, 2), "a: a run of 3 ranks, not of rank 0 of 2");
}

TEST(RecordedSchedule, SaysWhatIsWrong) {
  const std::string head = "tandem schedule 1\nrank 0 workers 2\n";
  EXPECT_EQ(error_of(head + "1 1\n"), "no error");
  EXPECT_THAT(error_of(""), HasSubstr("a run of 0 ranks"));
  EXPECT_THAT(error_of("1 1\n"), HasSubstr("a:1: not \"tandem schedule 1\""));
  EXPECT_THAT(error_of("tandem schedule 1\n1 1\n"), HasSubstr("a:2: not \"rank R workers N\""));
  EXPECT_THAT(error_of(head + "1 2\n"), HasSubstr("a:3: not \"TASK WORKER\""));
  EXPECT_THAT(error_of(head + "1\n"), HasSubstr("a:3"));
  EXPECT_THAT(error_of(head + "1  1\n"), HasSubstr("a:3"));
  EXPECT_THAT(error_of(head + "-1 1\n"), HasSubstr("a:3"));
  EXPECT_THAT(error_of(head + "99999999999999999999999 1\n"), HasSubstr("a:3"));
  EXPECT_THAT(error_of("tandem schedule 1\nrank 0 workers 0\n"), HasSubstr("a:2"));
  EXPECT_THAT(error_of(head + head.substr(head.find('\n') + 1)), HasSubstr("a:3: not once for each rank"));
  EXPECT_THAT(error_of(head + "1 1\n2 0\n1 0\n"), HasSubstr("has task 1 twice"));
}

}  // namespace
}  // namespace tandem::runtime::recorded_order_test
