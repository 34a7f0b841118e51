// tandem/model/tasks/history.hpp: durations of one kind of task, without accidental outliers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/model/tasks/estimate.hpp"

namespace tandem::model {

/// The durations of one codelet with one size of data on one kind of worker.
///
/// The last `kWindow` = 29 accepted durations are kept, as they came and sorted. Of them
///
///   m = median,  s = max(0.7413 (q3 - q1), m / 25),  limit = 5 s
///
/// where 0.7413 (q3 - q1) is the standard deviation of a normal distribution with quartiles q1 and q3. The mean is that
/// of the durations within m +- limit, so it follows distributions with two peaks, which the median alone would not;
/// and it leaves out the first runs, with cold caches.
///
/// A duration outside m +- limit is a *suspect*. It changes nothing yet. When there are `kSuspects` = 8, they count as
/// true and enter the window; they are more than a quarter of it then, so the limit includes later ones. Four accepted
/// durations remove the oldest suspect. Hence:
///
/// 1. Once 8 durations have been accepted, up to 7 accidents of any size, one after the other, change no estimate at
///    all.
/// 2. When the speed changes by 2, 8 durations make the change known, and after 8 + 21 all older ones have left.
/// 3. What happens in less than a fifth of the runs always is an accident, what happens in more than a quarter is not.
///
/// The deviation is d^2 = v (1 + 1/n) + (mean / 2n)^2, where v is the variance of the n durations that the mean rests
/// on: a single duration is known to a half of it.
///
/// That is how long the next task takes. How long tasks of another run take, on a machine whose speed comes and goes,
/// is told by `overall`: of all durations that were ever accepted.
///
/// A value of constant size (336 bytes); not thread-safe.
class History {
 public:
  static constexpr unsigned kWindow = 29;    ///< 4 k + 1, so that quartiles are durations
  static constexpr unsigned kSuspects = 8;   ///< more than (kWindow - 1) / 4
  static constexpr unsigned kEnough = 4;     ///< durations that make an estimate known, with one accident

  /// What a file keeps, in ns: `quantiles` are the least, the quartiles and the greatest of the window. Suspects are
  /// kept, so that programs that run few tasks each time learn, too.
  struct Summary {
    std::uint64_t samples = 0;
    std::array<double, 5> quantiles{};
    std::array<double, kSuspects> suspects{};  ///< from the oldest on
    unsigned suspect_count = 0;                ///< less than `kSuspects`
    /// Of all durations that were ever accepted; none where the window has them all.
    struct Overall {
      std::uint64_t count = 0;
      double mean_ns = 0, deviation_ns = 0;
    };
    std::optional<Overall> overall = {};
  };

  /// Adds a duration. NaN, infinite and negative ones are ignored; less than 1 ns counts as 1. Some tens of ns.
  void add(double ns) noexcept;

  Estimate estimate() const noexcept;
  /// By all durations that were ever accepted, those of earlier programs included: for predictions of other runs.
  Estimate overall() const noexcept;

  std::uint64_t samples() const noexcept { return samples_; }  ///< all that were added, suspects included
  /// Durations added since `forget_news`.
  std::uint64_t news() const noexcept { return news_; }
  void forget_news() noexcept {
    news_ = accepted_news_ = 0;
    old_suspects_ = suspect_count_;
    old_moments_.add(std::exchange(news_moments_, {}));
  }

  Summary summary() const noexcept;
  /// A history with so many durations of these quantiles, but at most 13 of them in the window, so that a change of the
  /// machine is learnt sooner. None of them are news. The summary has samples, and its quantiles are positive and
  /// ascend.
  static History restore(const Summary& summary) noexcept;
  /// Adds the news of `other`, a history of the same tasks: those that are still in its window, then its suspects, each
  /// in their order.
  void add_news_of(const History& other) noexcept;

 private:
  /// Of accepted durations: number, mean, and sum of the squares of differences from it.
  struct Moments {
    double count = 0, mean = 0, squares = 0;
    void add(const Moments& other) noexcept {
      if (other.count == 0) return;
      const double difference = other.mean - mean, part = other.count / (count + other.count);
      squares += other.squares + difference * difference * count * part;
      mean += difference * part;
      count += other.count;
    }
  };
  Moments all() const noexcept {
    Moments both = old_moments_;
    both.add(news_moments_);
    return both;
  }

  double at(unsigned rank) const noexcept { return static_cast<double>(sorted_[rank]); }
  double median() const noexcept { return at(count_ / 2U); }
  double limit() const noexcept;
  void accept(float ns) noexcept;
  void suspect(float ns) noexcept;

  std::array<float, kWindow> recent_{};  ///< a ring, from the oldest at `next_` once it is full
  std::array<float, kWindow> sorted_{};
  std::array<float, kSuspects> suspects_{};  ///< from the oldest on
  std::uint8_t count_ = 0;
  std::uint8_t next_ = 0;
  std::uint8_t suspect_count_ = 0;
  std::uint8_t accepted_in_row_ = 0;  ///< since a suspect came or went
  std::uint8_t accepted_news_ = 0;    ///< number of the last entries of `recent_` that are news
  std::uint8_t old_suspects_ = 0;     ///< number of the first entries of `suspects_` that are not
  std::uint32_t news_ = 0;
  std::uint64_t samples_ = 0;
  Moments old_moments_, news_moments_;  ///< before `forget_news`, and since
};
static_assert(sizeof(History) == 336);

}  // namespace tandem::model
