// tandem/model/tasks/size_model.hpp: durations of one kind of task by the size of its data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tandem/model/tasks/footprint.hpp"
#include "tandem/model/tasks/history.hpp"
#include "tandem/model/tasks/power_law.hpp"

namespace tandem::model {

/// Durations of one codelet on one kind of worker: a `History` for each shape, and a `PowerLaw` of the bytes through
/// them for other shapes.
///
/// At most `kSizes` histories are kept, so its memory is bounded (23 KiB); a new shape takes the place of the one that
/// was used longest ago. The law is fitted when a shape without a history is asked for, at most once for `kFitAfter`
/// new durations.
///
/// A value; not thread-safe.
class SizeModel {
 public:
  static constexpr std::size_t kSizes = 64;
  static constexpr unsigned kFitAfter = 16;

  struct Entry {
    Footprint footprint;
    std::uint64_t used = 0;  ///< when a duration was last added, in durations of this model
    History history;
  };

  void add(Footprint footprint, double ns);
  /// By the history of this shape if it is known, else by the law if the bytes are known, else by the unfinished
  /// history. Tens of ns, or some 20 us with a fit.
  Estimate estimate(Footprint footprint);

  /// As `estimate`, but by all durations of this shape: see `History::overall`.
  Estimate overall(Footprint footprint);

  std::span<const Entry> entries() const noexcept { return entries_; }  ///< by shape
  /// The history of a shape; null: none.
  const History* find(Footprint footprint) const noexcept;
  /// Gives a shape this history, as read from a file.
  void set(Footprint footprint, const History& history) { make(footprint).history = history; }
  /// Adds what `other`, a model of the same tasks, has learnt since `forget_news`.
  void add_news_of(const SizeModel& other);
  void forget_news() noexcept;
  bool has_news() const noexcept;
  /// A new fit; empty: too few sizes are known.
  std::optional<PowerLaw> law() const;

 private:
  Entry& make(Footprint footprint);

  std::vector<Entry> entries_;
  std::uint64_t added_ = 0;
  std::uint64_t fit_at_ = 0;  ///< `added_` from which on the law is fitted anew
  std::optional<PowerLaw> law_;
};

}  // namespace tandem::model
