// examples/co2_forecast/measurements_test.cpp: what the reader accepts, and what it says of each mistake.
#include "measurements.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace co2_forecast::measurements_test {
namespace {

using tandem::base::ErrorCode;
using namespace std::chrono_literals;

auto parse(const std::string& text) {
  std::istringstream stream(text);
  return parse_measurements(stream, "weeks.csv");
}

/// The message for a file whose third line is `line`, between two good ones.
std::string complaint_about(const std::string& line) {
  const auto result = parse("date,co2_ppm\n1958-03-29,316.1\n" + line + "\n1959-01-03,315\n");
  if (result) return "no complaint";
  EXPECT_EQ(result.error().code, ErrorCode::malformed);
  return result.error().message;
}

TEST(Measurements, CommentsEmptyLinesAndWindowsLineEndsAreSkipped) {
  const auto result =
      parse("# a comment\r\n\r\ndate,co2_ppm\r\n# another\r\n1958-03-29,316.1\r\n\r\n 1958-04-05 , 317.3 \r\n");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result.value().rows.size(), 2u);
  EXPECT_EQ(to_string(result.value().rows[1].date), "1958-04-05");
  EXPECT_DOUBLE_EQ(result.value().rows[1].co2_ppm, 317.3);
}

TEST(Measurements, WeeksWithoutAValueAreSkippedAndCounted) {
  const auto result = parse("date,co2_ppm\n1958-03-29,316.1\n1958-04-05,\n1958-04-12,  \n1958-04-19,317.5\n");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result.value().rows.size(), 2u);
  EXPECT_EQ(result.value().missing_count, 2u);
}

TEST(Measurements, IrregularDatesAreMeasurementsLikeOthers) {
  const auto result = parse("date,co2_ppm\n1958-03-29,316.1\n1958-03-30,316.2\n1961-11-02,317\n");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result.value().rows.size(), 3u);
}

TEST(Measurements, TimeIsTheYearAndTheDaysSinceNewYearIn365Point25ths) {
  EXPECT_DOUBLE_EQ(years_of(1997y / 1 / 1), 1997.0);
  EXPECT_DOUBLE_EQ(years_of(1958y / 3 / 29), 1958.0 + 87 / 365.25);
  EXPECT_DOUBLE_EQ(years_of(1960y / 12 / 31), 1960.0 + 365 / 365.25);
}

TEST(Measurements, AFileWithOnlyAHeaderHoldsNothing) {
  const auto result = parse("date,co2_ppm\n");
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.value().rows.empty());
}

TEST(Measurements, ARowWithoutTwoFieldsIsNamedByItsLine) {
  EXPECT_EQ(complaint_about("1958-04-05 317.3"),
            "weeks.csv:3: found \"1958-04-05 317.3\", expected two fields, YYYY-MM-DD,value");
  EXPECT_EQ(complaint_about("1958-04-05,317.3,0"),
            "weeks.csv:3: found \"1958-04-05,317.3,0\", expected two fields, YYYY-MM-DD,value");
}

TEST(Measurements, ADateThatIsNoneIsNamedByItsLine) {
  for (const std::string date :
       {"1958-02-30", "1958-13-01", "58-04-05", "1958/04/05", "1958-4-5", "", "tomorrow", "1958-+1-05"}) {
    EXPECT_EQ(complaint_about(date + ",317.3"),
              "weeks.csv:3: found \"" + date + "\", expected a day of the calendar as YYYY-MM-DD");
  }
}

TEST(Measurements, DatesThatDoNotIncreaseAreNamedByTheirLine) {
  EXPECT_EQ(complaint_about("1958-03-29,317.3"),
            "weeks.csv:3: found 1958-03-29 after 1958-03-29, expected dates that increase");
  EXPECT_EQ(complaint_about("1957-03-29,"),
            "weeks.csv:3: found 1957-03-29 after 1958-03-29, expected dates that increase");
}

TEST(Measurements, AValueThatIsNoConcentrationIsNamedByItsLine) {
  for (const std::string value : {"nan", "NaN", "-317.3", "0", "inf", "1e999", "317.3x", "n/a"}) {
    EXPECT_EQ(complaint_about("1958-04-05," + value),
              "weeks.csv:3: found \"" + value +
                  "\", expected a positive CO2 value in ppm, or nothing when none was measured");
  }
}

TEST(Measurements, AMissingHeaderIsNamedByItsLine) {
  const auto wrong = parse("# comment\nday,ppm\n");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "weeks.csv:2: found \"day,ppm\", expected the header \"date,co2_ppm\"");
  const auto empty = parse("# comment\n");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "weeks.csv:1: the file ends here, expected the header \"date,co2_ppm\"");
}

TEST(Measurements, AFileThatIsNotThereIsNotFound) {
  const auto result = read_measurements("/no/such/weeks.csv");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
  EXPECT_EQ(result.error().message,
            "/no/such/weeks.csv: cannot be read (No such file or directory); name the CSV file with --data");
  EXPECT_FALSE(read_measurements("/"));
}

TEST(Measurements, TheShippedFileHoldsItsWeeks) {
  const auto result = read_measurements(CO2_DATA);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result.value().rows.size(), 2225u);
  EXPECT_EQ(result.value().missing_count, 59u);
}

}  // namespace
}  // namespace co2_forecast::measurements_test
