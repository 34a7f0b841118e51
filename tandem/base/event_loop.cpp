// tandem/base/event_loop.cpp: the seeded single-threaded driver.
#include "tandem/base/event_loop.hpp"

#include <algorithm>

#include "tandem/base/assert.hpp"

namespace tandem::base {

Waker& EventLoop::add(Steppable& steppable, const Placement&) {
  auto& seat = *seats_.emplace_back(std::make_unique<Seat>());
  seat.steppable = &steppable;
  return seat;
}

Waker& EventLoop::add_caller(Steppable& steppable) {
  TANDEM_ASSERT(caller_ == nullptr);
  auto& waker = static_cast<Seat&>(add(steppable, {}));
  caller_ = &waker;
  return waker;
}

void EventLoop::remove(Steppable& steppable) {
  for (auto& seat : seats_) {
    if (seat->steppable != &steppable) continue;
    seat->steppable = nullptr;
    seat->next_ns = kNever;
  }
}

std::uint64_t EventLoop::random() noexcept {
  // SplitMix64 (Steele, Lea, Flood 2014): each call advances a Weyl sequence and mixes it.
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void EventLoop::at(std::int64_t when_ns, std::function<void()> action) {
  actions_.push_back({std::max(when_ns, now_ns_), actions_added_++, std::move(action)});
}

void EventLoop::step(Seat& seat) {
  seat.woken.exchange(false, std::memory_order_acquire);  // the step sees what was done before any wake-up that this takes
  seat.next_ns = seat.steppable->step(now_ns_);
}

bool EventLoop::step_one() { return step_one(false); }

bool EventLoop::step_one(bool with_caller) {
  std::size_t candidates = 0;
  for (auto& seat : seats_)
    if ((with_caller || seat.get() != caller_) && due(*seat)) ++candidates;
  const auto first_due = std::count_if(actions_.begin(), actions_.end(), [&](const Action& a) { return a.when_ns <= now_ns_; });
  const std::size_t total = candidates + static_cast<std::size_t>(first_due);
  if (total == 0) return false;
  std::size_t chosen = random() % total;
  if (chosen >= candidates) {
    chosen -= candidates;
    auto at = std::find_if(actions_.begin(), actions_.end(),
                           [&](const Action& a) { return a.when_ns <= now_ns_ && chosen-- == 0; });
    Action action = std::move(*at);
    actions_.erase(at);
    action.run();
    return true;
  }
  for (auto& seat : seats_) {
    if ((!with_caller && seat.get() == caller_) || !due(*seat)) continue;
    if (chosen-- == 0) {
      step(*seat);
      return true;
    }
  }
  return false;
}

bool EventLoop::advance(std::int64_t deadline_ns, bool with_caller) {
  std::int64_t earliest = kNever;
  for (auto& seat : seats_)
    if (!stopped_ && (with_caller || seat.get() != caller_)) earliest = std::min(earliest, due(*seat) ? now_ns_ : seat->next_ns);
  for (auto& action : actions_) earliest = std::min(earliest, action.when_ns);
  if (earliest == kNever) return false;
  now_ns_ = std::max(now_ns_, std::min(earliest, deadline_ns));
  return true;
}

void EventLoop::step_some(unsigned most) {
  for (std::uint64_t count = random() % (most + 1ULL); count > 0; --count)
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
