// tandem/base/thread_driver.cpp: the driver with threads.
#include "tandem/base/thread_driver.hpp"

#include <algorithm>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::base {

ThreadDriver::ThreadDriver(std::function<std::int64_t()> now_ns, Binder bind, std::size_t stack_bytes)
    : now_ns_(std::move(now_ns)), bind_(std::move(bind)), stack_bytes_(stack_bytes) {}

ThreadDriver::~ThreadDriver() { stop(); }

Waker& ThreadDriver::add(Steppable& steppable, const Placement& placement) {
  auto made = std::make_unique<Slot>();
  Slot& slot = *made;
  slot.steppable = &steppable;
  slots_.reserve(slots_.size() + 1);
  slot.thread = Thread({.name = placement.name.empty() ? "tandem" : placement.name,
                        .stack_bytes = stack_bytes_}, [this, &slot, placement] {
    if (bind_ && placement.core >= 0) bind_(placement.core);
    while (!slot.parker.park()) {
      // The first wake-up says that the owner has finished building; a sleep that ended early does not.
    }
    while (!stopping_.load(std::memory_order_acquire)) {
      const std::int64_t now = now_ns_();
      const std::int64_t next = slot.steppable->step(now);
      if (next > now) rest(slot, next);
    }
  });
  slots_.push_back(std::move(made));
  return slot;
}

Waker& ThreadDriver::add_caller(Steppable& steppable) {
  TANDEM_ASSERT(caller_ == nullptr);
  caller_ = std::make_unique<Slot>();
  caller_->steppable = &steppable;
  return *caller_;
}

void ThreadDriver::stop() {
  stopping_.store(true, std::memory_order_release);
  for (auto& slot : slots_) slot->wake();
  for (auto& slot : slots_)
    if (slot->thread.joinable()) slot->thread.join();
}

RunEnd ThreadDriver::run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) {
  TANDEM_ASSERT(caller_ != nullptr);
  while (!done(context)) {
    const std::int64_t now = now_ns_();
    if (now >= deadline_ns) return RunEnd::timed_out;
    const std::int64_t next = caller_->steppable->step(now);
    if (next > now && !done(context)) rest(*caller_, std::min(next, deadline_ns));
  }
  return RunEnd::done;
}

void ThreadDriver::rest(Slot& slot, std::int64_t until_ns) {
  if (Attendance* const place = slot.steppable->attends(); place != nullptr)
    return rest_attending(slot, *place, until_ns);
  Parker& parker = slot.parker;
  if (until_ns == kNever) {
    parker.park();
    return;
  }
  // The wait counts from now, not from the beginning of the step, which may have worked for long before it found
  // nothing to do.
  const std::int64_t left_ns = until_ns - now_ns_();
  if (left_ns >= spin_below_ns && !slot.steppable->waits_awake()) {
    parker.park(left_ns);
  } else {
    while (now_ns_() < until_ns && !parker.try_take()) pause_cpu();
  }
}

void ThreadDriver::rest_attending(Slot& slot, Attendance& place, std::int64_t until_ns) {
  slot.sleeps_in.store(&place);
  place.sleep([](void* parker) { return static_cast<Parker*>(parker)->has_permit(); }, &slot.parker, until_ns);
  slot.sleeps_in.store(nullptr);
  slot.parker.try_take();
}

}  // namespace tandem::base
