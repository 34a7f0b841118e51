// tandem/runtime/sched/placing/kind_numbers.cpp: finds the kind of a task: its shape, its class, or all.
#include "tandem/runtime/sched/placing/kind_numbers.hpp"

#include <algorithm>
#include <functional>

#include "tandem/base/assert.hpp"
#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime {

std::uint64_t KindNumbers::key_of(const Task& task, Width width) noexcept {
  std::uint64_t key = std::hash<const void*>{}(task.workers) ^ (task.prefers_devices ? 1 : 0);
  if (width != Width::all) key ^= std::hash<std::string_view>{}(task.codelet);
  if (width == Width::shape) key ^= task.footprint.shape;
  if (width == Width::size) key ^= model::size_class_of(task.footprint).shape;
  return base::mix64(key);
}

KindNumbers::Kind KindNumbers::join(const Task& task) {
  ++joins_;
  const Width width = width_for(task);
  const std::uint64_t key = key_of(task, width);
  const auto known = numbers_.find(key);
  Kind kind{.number = 0, .is_new = known == numbers_.end(), .codelet = task.codelet, .footprint = task.footprint};
  kind.number = kind.is_new ? new_number(key, width) : known->second;
  Use& use = uses_[kind.number];
  use.came = joins_;
  ++use.tasks;
  if (use.width != Width::shape) kind.footprint = model::size_class_of(task.footprint);
  if (use.width == Width::all) kind.codelet = {}, kind.footprint = {};
  return kind;
}

KindNumbers::Width KindNumbers::width_for(const Task& task) noexcept {
  if (bound_ == Bound::none || has(task, Width::shape) || has_place(Width::shape)) return Width::shape;
  return has(task, Width::size) || has_place(Width::size) ? Width::size : Width::all;
}

/// Whether there is a number for a further kind of this width, perhaps that of the kind whose last task came longest
/// ago.
bool KindNumbers::has_place(Width width) noexcept {
  const auto of = static_cast<std::size_t>(width);
  if (count_[of] < (width == Width::shape ? kMostExact : kMostClasses)) return true;
  if (joins_ < look_at_[of]) return false;
  const Use* oldest = nullptr;
  for (const Use& use : uses_)
    if (use.width == width && use.tasks == 0 && (oldest == nullptr || use.came < oldest->came)) oldest = &use;
  if (oldest == nullptr || joins_ - oldest->came <= kForgetAfter) {
    look_at_[of] = joins_ + kMostExact;  // so that a look costs a constant time for each task
    return false;
  }
  give_up(static_cast<unsigned>(oldest - uses_.data()));
  return true;
}

void KindNumbers::give_up(unsigned number) noexcept {
  numbers_.erase(uses_[number].key);
  --count_[static_cast<std::size_t>(uses_[number].width)];
  uses_[number].width = Width::none;
  free_.push_back(number);
}

unsigned KindNumbers::new_number(std::uint64_t key, Width width) {
  if (free_.empty()) {
    uses_.emplace_back();
    free_.reserve(uses_.capacity());  // so that `leave` needs no memory
    free_.push_back(static_cast<unsigned>(uses_.size() - 1));
  }
  const unsigned number = free_.back();
  numbers_.emplace(key, number);
  free_.pop_back();
  uses_[number] = {.key = key, .width = width};
  ++count_[static_cast<std::size_t>(width)];
  return number;
}

void KindNumbers::leave(unsigned number) {
  Use& use = uses_[number];
  TANDEM_ASSERT(use.tasks > 0);
  if (--use.tasks != 0 || bound_ == Bound::few || uses_.size() <= kMostIdle) return;
  give_up(number);
}

bool KindNumbers::check_invariants() const noexcept {
  if (bound_ == Bound::few && (count_[0] > kMostExact || count_[1] > kMostClasses)) return false;
  return numbers_.size() + free_.size() == uses_.size();
}

}  // namespace tandem::runtime
