// tandem/base/event_loop.cpp: the seeded single-threaded driver.
#include "tandem/base/event_loop.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/splitmix64.hpp"

namespace tandem::base {

void EventLoop::Slot::wake() noexcept {
  const std::lock_guard guard(loop.woken_lock_);
  if (!std::exchange(listed, true)) loop.woken_.push_back(this);
}

Waker& EventLoop::add(Steppable& steppable, const Placement&) {
  auto& slot = *slots_.emplace_back(std::make_unique<Slot>(*this, slots_.size(), steppable));
  by_steppable_.emplace(&steppable, &slot);
  due_.resize((slots_.size() + 63) / 64);
  dates_.reserve(slots_.capacity());
  {
    const std::lock_guard guard(woken_lock_);
    woken_.reserve(slots_.capacity());  // wake-ups allocate nothing
  }
  note_due(slot);
  return slot;
}

Waker& EventLoop::add_caller(Steppable& steppable) {
  TANDEM_ASSERT(caller_ == nullptr);
  auto& waker = static_cast<Slot&>(add(steppable, {}));
  caller_ = &waker;
  return waker;
}

void EventLoop::remove(Steppable& steppable) {
  const auto [first, last] = by_steppable_.equal_range(&steppable);
  for (auto found = first; found != last; ++found) {
    Slot& slot = *found->second;
    set_next(slot, kNever);
    slot.steppable = nullptr;
    note_due(slot);
  }
  by_steppable_.erase(first, last);
}

/// Updates whether the slot is due.
void EventLoop::note_due(const Slot& slot) {
  const bool is_due = slot.steppable != nullptr && (slot.woken || slot.next_ns <= now_ns_);
  if (is_due == due(slot)) return;
  due_[slot.index / 64] ^= std::uint64_t{1} << slot.index % 64;
  due_count_ += is_due ? std::size_t{1} : ~std::size_t{0};
}

void EventLoop::set_next(Slot& slot, std::int64_t next_ns) {
  slot.next_ns = next_ns;
  if (next_ns > now_ns_ && next_ns != kNever)
    dates_.set(slot.index, next_ns);
  else
    dates_.remove(slot.index);
  note_due(slot);
}

void EventLoop::take_woken() {
  const std::lock_guard guard(woken_lock_);
  for (Slot* slot : woken_) {
    slot->listed = false;
    slot->woken = true;
    note_due(*slot);
  }
  woken_.clear();
}

void EventLoop::set_now(std::int64_t now_ns) {
  now_ns_ = now_ns;
  while (!dates_.empty() && dates_.front().date_ns <= now_ns_) {
    const Slot& slot = *slots_[dates_.front().number];
    dates_.remove(slot.index);
    note_due(slot);
  }
  const std::size_t before = due_actions_.size();
  while (!action_dates_.empty() && action_dates_.front().date_ns <= now_ns_) {
    due_actions_.push_back(action_dates_.front().number);
    action_dates_.remove(due_actions_.back());
  }
  if (due_actions_.size() == before || due_actions_.size() == 1) return;
  std::sort(due_actions_.begin(), due_actions_.end(),
            [this](std::size_t a, std::size_t b) { return actions_[a].order < actions_[b].order; });
}

std::size_t EventLoop::due_slots(bool with_caller) const noexcept {
  if (stopped_) return 0;
  return due_count_ - (!with_caller && caller_ != nullptr && due(*caller_) ? 1 : 0);
}

/// The slot with that number among those due, in the order of `add`.
EventLoop::Slot& EventLoop::due_slot(std::size_t number, bool with_caller) {
  for (std::size_t word = 0;; ++word) {
    std::uint64_t bits = due_[word];
    if (!with_caller && caller_ != nullptr && caller_->index / 64 == word)
      bits &= ~(std::uint64_t{1} << caller_->index % 64);
    if (bits == 0) continue;
    const auto here = static_cast<std::size_t>(std::popcount(bits));
    if (number >= here) {
      number -= here;
      continue;
    }
    for (; number > 0; --number) bits &= bits - 1;
    return *slots_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
  }
}

std::uint64_t EventLoop::random() noexcept { return splitmix64(state_); }

void EventLoop::at(std::int64_t when_ns, std::function<void()> action) {
  if (unused_.empty()) {
    unused_.push_back(actions_.size());
    actions_.emplace_back();
    action_dates_.reserve(actions_.capacity());
  }
  const std::size_t number = unused_.back();
  unused_.pop_back();
  actions_[number] = {actions_added_++, std::move(action)};
  if (when_ns <= now_ns_)
    due_actions_.push_back(number);
  else
    action_dates_.set(number, when_ns);
}

void EventLoop::step(Slot& slot) {
  slot.woken = false;
  note_due(slot);
  set_next(slot, slot.steppable->step(now_ns_));
}

bool EventLoop::step_one() { return step_one(false); }

bool EventLoop::step_one(bool with_caller) {
  take_woken();
  const std::size_t slots = due_slots(with_caller);
  const std::size_t total = slots + due_actions_.size();
  if (total == 0) return false;
  const std::size_t chosen = choose(total);
  if (chosen < slots) {
    step(due_slot(chosen, with_caller));
    return true;
  }
  run_action(chosen - slots);
  return true;
}

void EventLoop::run_action(std::size_t due) {
  const auto at = due_actions_.begin() + static_cast<std::ptrdiff_t>(due);
  const std::size_t number = *at;
  due_actions_.erase(at);
  const std::function<void()> run = std::exchange(actions_[number].run, nullptr);
  unused_.push_back(number);
  run();
}

/// When something is to be done; kNever: nothing is.
std::int64_t EventLoop::earliest_ns(bool with_caller) {
  take_woken();
  if (due_slots(with_caller) > 0 || !due_actions_.empty()) return now_ns_;
  const std::int64_t action_ns = action_dates_.empty() ? kNever : action_dates_.front().date_ns;
  if (stopped_ || dates_.empty()) return action_ns;
  const bool counts_all = with_caller || caller_ == nullptr;
  const std::int64_t slot_ns = counts_all ? dates_.front().date_ns : dates_.earliest_without(caller_->index, kNever);
  return std::min(action_ns, slot_ns);
}

bool EventLoop::advance(std::int64_t deadline_ns, bool with_caller) {
  std::int64_t earliest = earliest_ns(with_caller);
  while (others_ != nullptr && earliest > now_ns_ && std::min(earliest, deadline_ns) >= granted_ns_) {
    const SharedTime::Grant grant = others_->wait(std::min(earliest, deadline_ns));
    if (!grant.may_go_on) return false;
    granted_ns_ = grant.until_ns;
    earliest = earliest_ns(with_caller);
  }
  // With others a deadline is a date: until then one of them might have sent something.
  if (earliest == kNever && (others_ == nullptr || deadline_ns == kNever)) return false;
  set_now(std::max(now_ns_, std::min(earliest, deadline_ns)));
  return true;
}

void EventLoop::step_some(unsigned most) {
  for (std::size_t count = choose(most + std::size_t{1}); count > 0; --count)
    if (!step_one(false) && !advance(kNever, false)) return;
}

RunEnd EventLoop::run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) {
  while (!done(context)) {
    if (now_ns_ >= deadline_ns) return RunEnd::timed_out;
    if (!step_one(true) && !advance(deadline_ns, true)) return RunEnd::stuck;
  }
  return RunEnd::done;
}

}  // namespace tandem::base
