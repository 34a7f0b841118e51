// tandem/comm/match/matcher_random_test.cpp: random operations against a matcher that walks two lists.
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <random>
#include <vector>

#include "tandem/comm/match/matcher.hpp"

namespace tandem::comm::matcher_random_test {
namespace {

/// MPI's rules, by a search from old to young.
class ListMatcher {
 public:
  PostedReceive* arrive(const MatchKey& key) {
    for (auto at = posted.begin(); at != posted.end(); ++at) {
      if (!(*at)->pattern.matches(key)) continue;
      PostedReceive* const found = *at;
      posted.erase(at);
      return found;
    }
    return nullptr;
  }
  ArrivedEnvelope* peek(const MatchPattern& pattern) {
    for (ArrivedEnvelope* envelope : kept) {
      if (pattern.matches(envelope->key)) return envelope;
    }
    return nullptr;
  }
  ArrivedEnvelope* take(const MatchPattern& pattern) {
    ArrivedEnvelope* const found = peek(pattern);
    if (found) kept.remove(found);
    return found;
  }
  std::vector<PostedReceive*> extract_posted_from(Rank source) {
    std::vector<PostedReceive*> found;
    for (PostedReceive* receive : posted) {
      if (!receive->pattern.any_source && receive->pattern.source == source) found.push_back(receive);
    }
    for (PostedReceive* receive : found) posted.remove(receive);
    return found;
  }
  std::vector<ArrivedEnvelope*> extract_kept_from(Rank source) {
    std::vector<ArrivedEnvelope*> found;
    for (ArrivedEnvelope* envelope : kept) {
      if (envelope->key.source == source) found.push_back(envelope);
    }
    for (ArrivedEnvelope* envelope : found) kept.remove(envelope);
    return found;
  }

  std::list<PostedReceive*> posted;
  std::list<ArrivedEnvelope*> kept;
};

/// One history, drawn from a seed: how many sources, channels and tags there are, how many wildcards, and which side
/// runs ahead.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    sources_ = 1 + below(6);
    channels_ = 1 + below(3);
    tags_ = std::uint64_t{1} << below(10);
    tag_shift_ = static_cast<unsigned>(below(3)) * 20;
    any_source_percent_ = below(3) == 0 ? below(60) : 0;
    any_tag_percent_ = below(3) == 0 ? below(60) : 0;
  }

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
      if (i % 200 == 0) receives_ahead_percent_ = 20 + below(61);
      const std::uint64_t dice = below(1000);
      if (dice < 850) {
        below(100) < receives_ahead_percent_ ? post() : arrive();
      } else if (dice < 900) {
        probe();
      } else if (dice < 950) {
        cancel();
      } else if (dice < 990) {
        remove();
      } else if (dice < 994) {
        fail_peer();
      } else {
        if (dice < 997) matcher_.trim();
        matcher_.check_invariants();
      }
    }
    finish();
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  MatchKey some_key() {
    const auto source = static_cast<std::uint32_t>(below(sources_)),
               channel = static_cast<std::uint32_t>(below(channels_));
    return {Rank{source}, channel, below(tags_) << tag_shift_};
  }
  MatchPattern some_pattern() {
    const MatchKey key = some_key();
    return {.source = key.source,
            .channel = key.channel,
            .tag = key.tag,
            .any_source = below(100) < any_source_percent_,
            .any_tag = below(100) < any_tag_percent_};
  }

  void post() {
    auto& receive = receives_.emplace_back(std::make_unique<PostedReceive>(some_pattern()));
    ArrivedEnvelope* const expected = model_.take(receive->pattern);
    if (!expected) model_.posted.push_back(receive.get());
    ASSERT_EQ(matcher_.post(*receive), expected);
    ASSERT_EQ(receive->linked(), expected == nullptr);
  }
  void arrive() {
    const MatchKey key = some_key();
    PostedReceive* const expected = model_.arrive(key);
    ASSERT_EQ(matcher_.arrive(key), expected);
    if (expected) return;
    auto& envelope = envelopes_.emplace_back(std::make_unique<ArrivedEnvelope>(key));
    matcher_.keep(*envelope);
    model_.kept.push_back(envelope.get());
  }
  void probe() {
    const MatchPattern pattern = some_pattern();
    ASSERT_EQ(matcher_.peek(pattern), model_.peek(pattern));
  }
  void cancel() {
    if (receives_.empty()) return;
    PostedReceive& receive = *receives_[below(receives_.size())];
    const bool expected = std::erase(model_.posted, &receive) > 0;
    ASSERT_EQ(matcher_.cancel(receive), expected);
  }
  void remove() {
    if (model_.kept.empty()) return;
    ArrivedEnvelope* const envelope = *std::next(model_.kept.begin(), static_cast<long>(below(model_.kept.size())));
    model_.kept.remove(envelope);
    matcher_.remove(*envelope);
  }
  void fail_peer() {
    const Rank peer{static_cast<std::uint32_t>(below(sources_))};
    ASSERT_EQ(matcher_.extract_posted_from(peer), model_.extract_posted_from(peer));
    ASSERT_EQ(matcher_.extract_kept_from(peer), model_.extract_kept_from(peer));
  }
  void finish() {
    ASSERT_EQ(matcher_.posted_count(), model_.posted.size());
    ASSERT_EQ(matcher_.kept_count(), model_.kept.size());
    matcher_.check_invariants();
    ASSERT_EQ(matcher_.extract_all_posted(), std::vector(model_.posted.begin(), model_.posted.end()));
    ASSERT_EQ(matcher_.extract_all_kept(), std::vector(model_.kept.begin(), model_.kept.end()));
    matcher_.check_invariants();
    matcher_.trim();
    ASSERT_LE(matcher_.memory_bytes(), std::size_t{16} << 10);
  }

  std::mt19937_64 random_;
  std::uint64_t sources_, channels_, tags_, any_source_percent_, any_tag_percent_, receives_ahead_percent_ = 50;
  unsigned tag_shift_;
  Matcher matcher_;
  ListMatcher model_;
  std::vector<std::unique_ptr<PostedReceive>> receives_;
  std::vector<std::unique_ptr<ArrivedEnvelope>> envelopes_;
};

TEST(Matcher, RandomHistoriesAgreeWithWalkingTheLists) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    History(seed).run(600);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Matcher, LongRandomHistoriesAgreeWithWalkingTheLists) {
  for (std::uint64_t seed = 10'000; seed < 10'030; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    History(seed).run(10'000);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tandem::comm::matcher_random_test
