// tandem/model/tasks/history.cpp: the window of accepted durations, and the suspects beside it.
#include "tandem/model/tasks/history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::model {
namespace {

constexpr unsigned kAgeOfSuspect = 4;   ///< consecutive accepted durations that remove one
constexpr unsigned kRestored = 13;      ///< 4 k + 1
constexpr double kOfQuartiles = 0.7413;
constexpr double kLeastSpread = 0.04;   ///< relative to the median
constexpr double kSpreads = 5;

static_assert(History::kWindow % 4 == 1 && kRestored % 4 == 1 && History::kSuspects > (History::kWindow - 1) / 4);

}  // namespace

double History::limit() const noexcept {
  const unsigned quarter = count_ / 4U;
  return kSpreads * std::max(kOfQuartiles * (at(count_ - 1 - quarter) - at(quarter)), kLeastSpread * median());
}

/// Adds to the window, instead of the oldest when it is full.
void History::accept(float ns) noexcept {
  unsigned gap = count_;
  if (count_ < kWindow) {
    ++count_;
  } else {
    gap = static_cast<unsigned>(std::lower_bound(sorted_.begin(), sorted_.end(), recent_[next_]) - sorted_.begin());
  }
  for (; gap > 0 && sorted_[gap - 1] > ns; --gap) sorted_[gap] = sorted_[gap - 1];
  for (; gap + 1 < count_ && sorted_[gap + 1] < ns; ++gap) sorted_[gap] = sorted_[gap + 1];
  sorted_[gap] = ns;
  recent_[next_] = ns;
  news_moments_.add({.count = 1, .mean = static_cast<double>(ns)});
  accepted_news_ = static_cast<std::uint8_t>(std::min(accepted_news_ + 1U, kWindow));
  next_ = static_cast<std::uint8_t>(next_ + 1U == kWindow ? 0 : next_ + 1U);
}

void History::suspect(float ns) noexcept {
  accepted_in_row_ = 0;
  suspects_[suspect_count_++] = ns;
  if (suspect_count_ < kSuspects) return;
  suspect_count_ = old_suspects_ = 0;
  for (const float each : suspects_) accept(each);
}

void History::add(double ns) noexcept {
  if (!(ns >= 0 && ns <= static_cast<double>(std::numeric_limits<float>::max()))) return;
  ++samples_;
  ++news_;
  const auto duration = static_cast<float>(std::max(ns, 1.0));
  if (count_ >= kSuspects && std::abs(static_cast<double>(duration) - median()) > limit()) return suspect(duration);
  accept(duration);
  if (suspect_count_ == 0 || ++accepted_in_row_ < kAgeOfSuspect) return;
  accepted_in_row_ = 0;
  std::copy(suspects_.begin() + 1, suspects_.begin() + suspect_count_, suspects_.begin());
  --suspect_count_;
  if (old_suspects_ > 0) --old_suspects_;
}

Estimate History::estimate() const noexcept {
  if (count_ == 0) return {};
  const double middle = median(), reach = limit();
  unsigned from = 0, to = count_;
  while (at(from) < middle - reach) ++from;
  while (at(to - 1) > middle + reach) --to;
  double sum = 0, squares = 0;  // of differences from the median, so that nothing is lost to rounding
  for (unsigned rank = from; rank < to; ++rank) {
    const double difference = at(rank) - middle;
    sum += difference;
    squares += difference * difference;
  }
  const double count = to - from, shift = sum / count, mean = middle + shift;
  const double variance = std::max(0.0, squares / count - shift * shift), guess = mean / (2 * count);
  return {.mean_ns = mean,
          .deviation_ns = std::sqrt(variance * (1 + 1 / count) + guess * guess),
          .samples = samples_,
          .known = samples_ >= kEnough};
}

Estimate History::overall() const noexcept {
  const Moments moments = all();
  if (moments.count <= count_)
    return estimate();  // the window has them all, and knows which of the first were accidents
  return {.mean_ns = moments.mean,
          .deviation_ns = std::sqrt(moments.squares / moments.count),
          .samples = static_cast<std::uint64_t>(moments.count),
          .known = true};
}

History::Summary History::summary() const noexcept {
  Summary summary{.samples = samples_};
  if (count_ == 0) return summary;
  if (all().count > count_) {
    const Estimate known = overall();
    // Suspects of a file may count twice: in the window that `restore` makes up, and when they are accepted, or when
    // two programs accept them.
    const std::uint64_t accepted = std::min(known.samples, samples_);
    summary.overall = {.count = accepted, .mean_ns = known.mean_ns, .deviation_ns = known.deviation_ns};
  }
  const unsigned quarter = count_ / 4U;
  summary.quantiles = {at(0), at(quarter), median(), at(count_ - 1 - quarter), at(count_ - 1U)};
  summary.suspect_count = suspect_count_;
  std::copy_n(suspects_.begin(), suspect_count_, summary.suspects.begin());
  return summary;
}

History History::restore(const Summary& summary) noexcept {
  History history;
  const auto count = static_cast<unsigned>(std::min<std::uint64_t>(summary.samples, kRestored));
  // Between two quantiles the durations lie evenly. They enter in an order that mixes small and large ones, since the
  // oldest leaves first.
  for (unsigned i = 0; i < count; ++i) {
    const unsigned rank = count == kRestored ? i * 5 % kRestored : i;
    const double place = count == 1 ? 2 : 4.0 * rank / (count - 1);
    const auto below = std::min(static_cast<unsigned>(place), 3U);
    const double part = place - below;
    history.accept(static_cast<float>(summary.quantiles[below] +
                                      part * (summary.quantiles[below + 1] - summary.quantiles[below])));
  }
  for (unsigned i = 0; i < summary.suspect_count; ++i) history.suspects_[i] = static_cast<float>(summary.suspects[i]);
  history.suspect_count_ = static_cast<std::uint8_t>(summary.suspect_count);
  history.samples_ = summary.samples;
  if (const auto& all = summary.overall) {
    const auto of_all = static_cast<double>(all->count);
    history.news_moments_ = {
        .count = of_all, .mean = all->mean_ns, .squares = of_all * all->deviation_ns * all->deviation_ns};
  }
  history.forget_news();
  return history;
}

void History::add_news_of(const History& other) noexcept {
  const std::uint64_t before = samples_;
  Moments moments = news_moments_;  // the window of `other` is a part of what it has accepted
  moments.add(other.news_moments_);
  const unsigned kept = other.accepted_news_;
  const unsigned oldest = other.count_ < kWindow ? 0 : other.next_;
  for (unsigned i = other.count_ - kept; i < other.count_; ++i)
    add(static_cast<double>(other.recent_[(oldest + i) % kWindow]));
  for (unsigned i = other.old_suspects_; i < other.suspect_count_; ++i) add(static_cast<double>(other.suspects_[i]));
  samples_ = before + other.news_;
  news_moments_ = moments;
}

}  // namespace tandem::model
