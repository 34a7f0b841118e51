// tandem/model/tasks/size_model.cpp: finds the history of a size, or fits the law.
#include "tandem/model/tasks/size_model.hpp"

#include <algorithm>

namespace tandem::model {
namespace {

struct ByShape {
  bool operator()(const SizeModel::Entry& entry, std::uint64_t shape) const noexcept {
    return entry.footprint.shape < shape;
  }
};

}  // namespace

const History* SizeModel::find(Footprint footprint) const noexcept {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), footprint.shape, ByShape());
  return at != entries_.end() && at->footprint.shape == footprint.shape ? &at->history : nullptr;
}

SizeModel::Entry& SizeModel::make(Footprint footprint) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), footprint.shape, ByShape());
  if (at != entries_.end() && at->footprint.shape == footprint.shape) return *at;
  if (entries_.size() == kSizes) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const Entry& a, const Entry& b) { return a.used < b.used; }));
    at = std::lower_bound(entries_.begin(), entries_.end(), footprint.shape, ByShape());
  }
  return *entries_.insert(at, {.footprint = footprint, .used = added_, .history = {}});
}

void SizeModel::add(Footprint footprint, double ns) {
  Entry& entry = make(footprint);
  entry.used = ++added_;
  entry.history.add(ns);
}

Estimate SizeModel::estimate(Footprint footprint) {
  const History* const history = find(footprint);
  const Estimate measured = history != nullptr ? history->estimate() : Estimate{};
  if (measured.known || footprint.bytes == 0) return measured;
  if (added_ >= fit_at_) {
    law_ = law();
    fit_at_ = added_ + kFitAfter;
  }
  return law_ ? law_->estimate(static_cast<double>(footprint.bytes)) : measured;
}

Estimate SizeModel::overall(Footprint footprint) {
  const History* const history = find(footprint);
  return history != nullptr && history->estimate().known ? history->overall() : estimate(footprint);
}

void SizeModel::add_news_of(const SizeModel& other) {
  for (const Entry& entry : other.entries_) {
    if (entry.history.news() == 0) continue;
    Entry& own = make(entry.footprint);
    own.used = ++added_;
    own.history.add_news_of(entry.history);
  }
}

void SizeModel::forget_news() noexcept {
  for (Entry& entry : entries_) entry.history.forget_news();
}

bool SizeModel::has_news() const noexcept {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.history.news() != 0; });
}

std::optional<PowerLaw> SizeModel::law() const {
  std::vector<SizePoint> points;
  points.reserve(entries_.size());
  for (const Entry& entry : entries_)
    points.push_back({static_cast<double>(entry.footprint.bytes), entry.history.estimate()});
  return PowerLaw::fit(points);
}

}  // namespace tandem::model
