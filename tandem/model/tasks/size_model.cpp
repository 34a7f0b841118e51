// tandem/model/tasks/size_model.cpp: finds the history of a size, or fits the law.
#include "tandem/model/tasks/size_model.hpp"

#include <algorithm>

namespace tandem::model {
namespace {

struct BySize {
  bool operator()(const SizeModel::Entry& entry, std::uint64_t bytes) const noexcept { return entry.bytes < bytes; }
};

}  // namespace

const History* SizeModel::find(std::uint64_t bytes) const noexcept {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), bytes, BySize());
  return at != entries_.end() && at->bytes == bytes ? &at->history : nullptr;
}

SizeModel::Entry& SizeModel::make(std::uint64_t bytes) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), bytes, BySize());
  if (at != entries_.end() && at->bytes == bytes) return *at;
  if (entries_.size() == kSizes) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; }));
    at = std::lower_bound(entries_.begin(), entries_.end(), bytes, BySize());
  }
  return *entries_.insert(at, {.bytes = bytes, .used = added_, .history = {}});
}

void SizeModel::add(std::uint64_t bytes, double ns) {
  Entry& entry = make(bytes);
  entry.used = ++added_;
  entry.history.add(ns);
}

Estimate SizeModel::estimate(std::uint64_t bytes) {
  const History* const history = find(bytes);
  const Estimate measured = history != nullptr ? history->estimate() : Estimate{};
  if (measured.known) return measured;
  if (added_ >= fit_at_) {
    law_ = law();
    fit_at_ = added_ + kFitAfter;
  }
  return law_ ? law_->estimate(static_cast<double>(bytes)) : measured;
}

void SizeModel::add_news_of(const SizeModel& other) {
  for (const Entry& entry : other.entries_) {
    if (entry.history.news() == 0) continue;
    Entry& own = make(entry.bytes);
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
  for (const Entry& entry : entries_) points.push_back({static_cast<double>(entry.bytes), entry.history.estimate()});
  return PowerLaw::fit(points);
}

}  // namespace tandem::model
