// tools/launcher/output_test.cpp: lines of several ranks on one stream.
#include "tools/launcher/output.hpp"

#include <gtest/gtest.h>

namespace tandem::tools::launcher_output_test {
namespace {

TEST(LineMerger, LabelsWholeLinesHoweverTheyArrive) {
  LineMerger lines(true);
  lines.add(0, "one\ntw");
  lines.add(1, "other\n");
  lines.add(0, "o\n\n");
  EXPECT_EQ(lines.queue, "[0] one\n[1] other\n[0] two\n[0] \n");
}

TEST(LineMerger, EndsALineThatTheRankLeftOpen) {
  LineMerger lines(true);
  lines.add(2, "no newline");
  lines.finish(2);
  lines.finish(2);
  lines.finish(3);
  EXPECT_EQ(lines.queue, "[2] no newline\n");
}

TEST(LineMerger, PassesAnyByteUnchanged) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    if (byte != '\n') all += static_cast<char>(byte);
  LineMerger lines(true);
  lines.add(0, all + "\n");
  EXPECT_EQ(lines.queue, "[0] " + all + "\n");
}

TEST(LineMerger, KeepsALongLineWholeThoughOthersWriteInBetween) {
  LineMerger lines(true);
  const std::string piece(65'536, 'x');  // as it comes from a pipe
  for (int i = 0; i < 40; ++i) {
    lines.add(0, piece);
    lines.add(1, "me\n");
  }
  lines.add(0, "end\n");
  std::string others;
  for (int i = 0; i < 40; ++i) others += "[1] me\n";
  EXPECT_TRUE(lines.queue.starts_with(others + "[0] x"));
  EXPECT_EQ(lines.queue.size(), others.size() + 4 + 40 * piece.size() + 4);
}

constexpr LineMerger::Limits kSmall{.longest_line = 1'000, .most_held = 4'000};

TEST(LineMerger, PassesALineWithoutEndOnInPiecesOfBoundedSize) {
  LineMerger lines(true, false, kSmall);
  const std::string piece(kSmall.longest_line, 'x');
  for (int i = 0; i < 10; ++i) lines.add(0, piece);
  EXPECT_GE(lines.queue.size(), 9 * piece.size());
  lines.add(0, "end\n");
  EXPECT_EQ(lines.queue.find("[0] ", 4), std::string::npos);
  EXPECT_EQ(lines.queue.size(), 4 + 10 * piece.size() + 4);
}

TEST(LineMerger, EndsALongLineEarlyForAnotherRank) {
  LineMerger lines(true, false, kSmall);
  const std::string piece(kSmall.longest_line + 1, 'x');
  lines.add(0, piece);
  lines.add(1, "me\n");
  lines.add(0, "rest\n");
  EXPECT_EQ(lines.queue, "[0] " + piece + "\n[1] me\n[0] rest\n");
}

TEST(LineMerger, HoldsABoundedNumberOfBytesOfAllRanks) {
  LineMerger lines(true, false, kSmall);
  const std::string piece(kSmall.longest_line / 2, 'x');
  constexpr std::uint32_t kRanks = 100;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    lines.add(rank, piece);
    ASSERT_GE(lines.queue.size() + kSmall.most_held, (rank + 1) * piece.size());
  }
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) lines.finish(rank);
  EXPECT_GE(lines.queue.size(), kRanks * piece.size());
}

TEST(LineMerger, AnObjectOfOneRankPassesWhole) {
  for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
    LineMerger lines(true, true);
    const std::string text = "note\n{\n  \"a }\": \"\\\"{\",\n  \"b\": {\"c\": [1, {}]}\n}\nbehind\n{\"second\": 2}\n";
    for (std::size_t at = 0; at < text.size(); at += piece) {
      lines.add(0, text.substr(at, piece));
      if (at == piece * (20 / piece)) lines.add(1, "other\n");
    }
    std::string without_other = lines.queue;
    if (const auto other = without_other.find("[1] other\n"); other != std::string::npos)
      without_other.erase(other, 10);
    EXPECT_EQ(without_other,
              "[0] note\n{\n  \"a }\": \"\\\"{\",\n  \"b\": {\"c\": [1, {}]}\n}\n[0] behind\n{\"second\": 2}\n")
        << piece;
  }
}

TEST(LineMerger, ObjectsOfASecondRankAreLabelled) {
  LineMerger lines(true, true);
  lines.add(1, "{\"a\": 1}\n");
  lines.add(0, "{\"a\": 0}\n");
  EXPECT_EQ(lines.queue, "{\"a\": 1}\n[0] {\"a\": 0}\n");
}

TEST(LineMerger, WhatIsNoObjectIsLabelled) {
  LineMerger lines(true, true);
  lines.add(0, "{ a block of C }\nx {\"a\": 1}\n[1, 2]\n");
  EXPECT_EQ(lines.queue, "[0] { a block of C }\n[0] x {\"a\": 1}\n[0] [1, 2]\n");
  lines.add(0, "{\"not\": \nended");
  lines.finish(0);
  EXPECT_EQ(lines.queue, "[0] { a block of C }\n[0] x {\"a\": 1}\n[0] [1, 2]\n[0] {\"not\": \n[0] ended\n");
}

TEST(LineMerger, WithoutLabelsEverythingPassesAtOnce) {
  LineMerger lines(false);
  lines.add(0, "a");
  lines.add(1, "b\n");
  lines.finish(0);
  EXPECT_EQ(lines.queue, "ab\n");
}

}  // namespace
}  // namespace tandem::tools::launcher_output_test
