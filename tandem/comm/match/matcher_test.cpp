// tandem/comm/match/matcher_test.cpp: each rule of matching by example.
#include "tandem/comm/match/matcher.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tandem::comm::matcher_test {
namespace {

MatchKey key(std::uint32_t source, std::uint64_t tag, std::uint32_t channel = 0) {
  return {Rank{source}, channel, tag};
}
MatchPattern exactly(std::uint32_t source, std::uint64_t tag) { return {.source = Rank{source}, .tag = tag}; }
MatchPattern from_any(std::uint64_t tag) { return {.source = Rank{99}, .tag = tag, .any_source = true}; }
MatchPattern any_tag_of(std::uint32_t source) { return {.source = Rank{source}, .tag = 99, .any_tag = true}; }
MatchPattern anything() { return {.source = Rank{99}, .tag = 99, .any_source = true, .any_tag = true}; }

TEST(Matcher, ReceivesOfOneKeyMatchInTheOrderOfPosting) {
  Matcher matcher;
  PostedReceive first(exactly(1, 5)), second(exactly(1, 5)), other(exactly(1, 6));
  for (PostedReceive* receive : {&first, &second, &other}) EXPECT_EQ(matcher.post(*receive), nullptr);
  EXPECT_EQ(matcher.arrive(key(1, 5)), &first);
  EXPECT_EQ(matcher.arrive(key(1, 5)), &second);
  EXPECT_EQ(matcher.arrive(key(1, 5)), nullptr);
  EXPECT_EQ(matcher.arrive(key(2, 6)), nullptr);
  EXPECT_EQ(matcher.arrive(key(1, 6, 1)), nullptr);
  EXPECT_EQ(matcher.arrive(key(1, 6)), &other);
}

TEST(Matcher, UnexpectedMessagesOfOneKeyMatchInTheOrderOfArrival) {
  Matcher matcher;
  ArrivedEnvelope first(key(1, 5)), second(key(1, 5));
  matcher.keep(first);
  matcher.keep(second);
  PostedReceive a(exactly(1, 5)), b(any_tag_of(1)), c(exactly(1, 5));
  EXPECT_EQ(matcher.post(a), &first);
  EXPECT_FALSE(a.linked());
  EXPECT_EQ(matcher.post(b), &second);
  EXPECT_EQ(matcher.post(c), nullptr);
  EXPECT_TRUE(c.linked());
}

TEST(Matcher, TheOldestReceiveWinsWhateverItsWildcards) {
  const MatchPattern patterns[] = {exactly(1, 5), from_any(5), any_tag_of(1), anything()};
  for (unsigned rotation = 0; rotation < 4; ++rotation) {
    Matcher matcher;
    std::vector<std::unique_ptr<PostedReceive>> receives;
    for (unsigned i = 0; i < 4; ++i) {
      receives.push_back(std::make_unique<PostedReceive>(patterns[(i + rotation) % 4]));
      matcher.post(*receives.back());
    }
    for (const auto& receive : receives) EXPECT_EQ(matcher.arrive(key(1, 5)), receive.get());
  }
}

TEST(Matcher, AWildcardTakesTheOldestMessageOfAllThatItMatches) {
  Matcher matcher;
  ArrivedEnvelope a(key(3, 9)), b(key(1, 5)), c(key(2, 5)), d(key(1, 7));
  for (ArrivedEnvelope* envelope : {&a, &b, &c, &d}) matcher.keep(*envelope);
  EXPECT_EQ(matcher.peek(from_any(5)), &b);
  EXPECT_EQ(matcher.take(from_any(5)), &b);
  EXPECT_EQ(matcher.take(any_tag_of(1)), &d);
  EXPECT_EQ(matcher.take(anything()), &a);
  EXPECT_EQ(matcher.take(any_tag_of(3)), nullptr);
  EXPECT_EQ(matcher.take(exactly(2, 5)), &c);
  EXPECT_EQ(matcher.kept_count(), 0u);
}

TEST(Matcher, AnIndexBuiltLateHoldsTheOrderOfArrival) {
  Matcher matcher;
  std::vector<std::unique_ptr<ArrivedEnvelope>> envelopes;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    envelopes.push_back(std::make_unique<ArrivedEnvelope>(key(i % 7, i * 64)));
    matcher.keep(*envelopes.back());
  }
  for (const auto& envelope : envelopes) EXPECT_EQ(matcher.take(anything()), envelope.get());
}

TEST(Matcher, FromAnySourceComesTheOldestWhetherTheSourcesAreFewOrMany) {
  for (const std::uint32_t sources : {1u, 2u, 4u, 5u, 9u}) {
    Matcher matcher;
    for (unsigned round = 0; round < 2; ++round) {  // the second one begins without messages, but not without an index
      std::vector<std::unique_ptr<ArrivedEnvelope>> envelopes;
      for (std::uint32_t i = 0; i < 60; ++i) {
        envelopes.push_back(std::make_unique<ArrivedEnvelope>(key((i + round) % sources + 7, i / 30)));
        matcher.keep(*envelopes.back());
        ASSERT_EQ(matcher.peek(from_any(0)), envelopes[0].get());  // also while new sources join
      }
      for (std::uint32_t i = 0; i < 30; ++i) ASSERT_EQ(matcher.take(from_any(0)), envelopes[i].get()) << sources;
      ASSERT_EQ(matcher.take(from_any(0)), nullptr);
      for (std::uint32_t i = 30; i < 60; ++i) ASSERT_EQ(matcher.take(from_any(1)), envelopes[i].get()) << sources;
      matcher.check_invariants();
    }
  }
}

TEST(Matcher, ProbingLeavesTheMessage) {
  Matcher matcher;
  ArrivedEnvelope only(key(4, 4));
  EXPECT_EQ(matcher.peek(anything()), nullptr);
  matcher.keep(only);
  EXPECT_EQ(matcher.peek(anything()), &only);
  EXPECT_EQ(matcher.peek(exactly(4, 4)), &only);
  EXPECT_EQ(matcher.peek(exactly(4, 5)), nullptr);
  EXPECT_EQ(matcher.kept_count(), 1u);
}

TEST(Matcher, AReceiveIsCancelledOnce) {
  Matcher matcher;
  PostedReceive first(anything()), second(exactly(1, 1));
  EXPECT_FALSE(matcher.cancel(first));
  matcher.post(first);
  matcher.post(second);
  EXPECT_TRUE(matcher.cancel(first));
  EXPECT_FALSE(matcher.cancel(first));
  EXPECT_EQ(matcher.arrive(key(1, 1)), &second);
  EXPECT_FALSE(matcher.cancel(second));
}

TEST(Matcher, AFailedPeerTakesItsReceivesAndMessagesInOrder) {
  Matcher matcher;
  PostedReceive a(exactly(1, 9)), b(exactly(2, 9)), c(any_tag_of(1)), d(from_any(9)), e(exactly(1, 3));
  ArrivedEnvelope x(key(1, 100)), y(key(2, 100)), z(key(1, 50, 4));
  for (PostedReceive* receive : {&a, &b, &c, &d, &e}) matcher.post(*receive);
  for (ArrivedEnvelope* envelope : {&x, &y, &z}) matcher.keep(*envelope);
  EXPECT_EQ(matcher.extract_posted_from(Rank{1}), (std::vector{&a, &c, &e}));
  EXPECT_EQ(matcher.extract_kept_from(Rank{1}), (std::vector{&x, &z}));
  matcher.check_invariants();
  EXPECT_EQ(matcher.extract_all_posted(), (std::vector{&b, &d}));
  EXPECT_EQ(matcher.extract_all_kept(), (std::vector{&y}));
  EXPECT_EQ(matcher.posted_count() + matcher.kept_count(), 0u);
}

TEST(Matcher, AFloodLeavesNoMemoryBehind) {
  Matcher matcher;
  std::vector<std::unique_ptr<ArrivedEnvelope>> envelopes;
  ArrivedEnvelope early(key(0, 0)), other(key(0, 1));
  matcher.keep(early);
  matcher.keep(other);
  EXPECT_EQ(matcher.peek(any_tag_of(0)), &early);  // from now on the channel has an index
  for (std::uint64_t tag = 2; tag < 50'000; ++tag) {
    envelopes.push_back(std::make_unique<ArrivedEnvelope>(key(0, tag)));
    matcher.keep(*envelopes.back());
  }
  EXPECT_GT(matcher.memory_bytes(), std::size_t{1} << 20);
  EXPECT_EQ(matcher.spare_bytes(), 0u);
  EXPECT_EQ(matcher.extract_all_kept().size(), 50'000u);
  EXPECT_GT(matcher.spare_bytes(), std::size_t{1} << 20);
  matcher.trim();
  EXPECT_EQ(matcher.spare_bytes(), 0u);
  EXPECT_LE(matcher.memory_bytes(), std::size_t{16} << 10);
}

}  // namespace
}  // namespace tandem::comm::matcher_test
