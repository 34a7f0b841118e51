// tests/dist_flow/wire_test.cpp: messages between flows that are cut anywhere: what is missing does no harm.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "tandem/dist/flat_bytes.hpp"
#include "tandem/dist/flow_reports.hpp"
#include "tandem/dist/message_head.hpp"

namespace tandem::dist::wire_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes header(const MessageHead& head, std::string_view text) {
  Bytes bytes(sizeof head + text.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, text.data(), text.size());
  return bytes;
}

TEST(DistWire, AFailureWhoseHeaderIsCutIsNotRead) {
  const Bytes whole = header({.version = 3, .flags = MessageHead::kFailed, .failure = 5}, "task 'x' threw");
  for (std::size_t size = 0; size < sizeof(MessageHead); ++size) {
    EXPECT_FALSE(MessageHead::read(std::span(whole).first(size)).has_value()) << size;
  }
  for (std::size_t size = sizeof(MessageHead); size <= whole.size(); ++size) {
    const auto cut = std::span(whole).first(size);
    const auto head = MessageHead::read(cut);
    ASSERT_TRUE(head.has_value());
    EXPECT_TRUE(head->failed());
    EXPECT_EQ(head->failure, 5u);
    EXPECT_EQ(MessageHead::description(cut), std::string_view("task 'x' threw").substr(0, size - sizeof(MessageHead)));
  }
}

TEST(DistWire, AHeaderOfAValueHasVersionAndFlags) {
  const Bytes whole = header({.version = 3, .flags = MessageHead::kLowerBound, .failure = 0}, "");
  for (std::size_t size = 0; size < MessageHead::kShort; ++size) {
    EXPECT_FALSE(MessageHead::read(std::span(whole).first(size)).has_value());
  }
  const auto head = MessageHead::read(std::span(whole).first(MessageHead::kShort));
  ASSERT_TRUE(head.has_value());
  EXPECT_TRUE(head->may_be(7, true));
  EXPECT_FALSE(head->may_be(2, true));
}

/// A number that is cut reads as 0, and is the last one: loops over `more` end.
TEST(DistWire, AMessageThatEndsWithinANumberEnds) {
  const Bytes bytes = FlatWriter().number(1).number(2).take();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    FlatReader reader{std::span(bytes).first(size)};
    std::size_t numbers = 0;
    while (reader.more()) {
      (void)reader.number();
      ASSERT_LE(++numbers, 2u);
    }
    EXPECT_EQ(numbers, (size + 7) / 8);
    EXPECT_EQ(reader.number(), 0u);
    EXPECT_EQ(reader.text(), "");
  }
}

TEST(DistWire, ReportsThatAreCutAnywhereAreReadAndMerged) {
  DifferenceReport difference;
  difference.versions = {
      .rank = 1, .datum = 4, .versions = {1, 2}, .ranks = {0, 1}, .counts = {{1, 2}, {3, 4}, {5, 6}}};
  Outcome outcome{.failure = 7, .description = "a reason", .least = {3, 0, 9}};
  FlowReport flow{.rank = 1, .positions = 3, .difference = "they differ"};
  const auto check = [](const auto& report) {
    using Report = std::remove_cvref_t<decltype(report)>;
    const Bytes whole = report.bytes();
    EXPECT_EQ(Report::from(whole).bytes(), whole);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      Bytes into = whole;
      Report::merge(into, std::span(whole).first(size));
      into.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      Report::merge(into, whole);
    }
  };
  check(difference);
  check(outcome);
  check(flow);
}

TEST(DistWire, ReportsOfAnyBytesAreReadAndMerged) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    Bytes a(random() % 120), b(random() % 120);
    for (Bytes* bytes : {&a, &b})
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    Bytes into = a;
    DifferenceReport::merge(into, b);
    into = a;
    Outcome::merge(into, b);
    into = a;
    FlowReport::merge(into, b);
    into = a;
    StartReport::merge(into, b);
  }
}

}  // namespace
}  // namespace tandem::dist::wire_test
