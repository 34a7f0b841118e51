// tandem/runtime/device/cuda/cuda_lane.cpp: the loop of a lane's thread.
#include "tandem/runtime/device/cuda/cuda_lane.hpp"

#include <algorithm>
#include <utility>

namespace tandem::runtime::cuda {

Lane::Lane(const Driver& driver, Context context) : driver_(driver), context_(context) {
  driver_.check(driver_.create_stream(&stream_, kStreamNonBlocking), "no stream");
  thread_ = base::Thread({.name = "tandem-cuda"}, [this] { serve(); });
}

Lane::~Lane() {
  finish();
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const Event event : events_) driver_.destroy_event(event);
  driver_.destroy_stream(stream_);
}

Status Lane::mark(Event& event) {
  event = nullptr;
  {
    const std::lock_guard guard(mutex_);
    if (!events_.empty()) {
      event = events_.back();
      events_.pop_back();
    }
  }
  if (event == nullptr)
    if (const Status status = driver_.create_event(&event, kEventBlockingSync); status != kSuccess) return status;
  const Status status = driver_.record_event(event, stream_);
  if (status != kSuccess) forget(std::exchange(event, nullptr));
  return status;
}

void Lane::forget(Event since) {
  if (since == nullptr) return;
  const std::lock_guard guard(mutex_);
  events_.push_back(since);
}

void Lane::add(Order order) {
  const std::lock_guard guard(mutex_);
  orders_.push_back(std::move(order));
  ++pending_;
  changed_.notify_all();
}

Status Lane::when_ended(Event since, Ended ended) {
  Event event = nullptr;
  if (const Status status = mark(event); status != kSuccess) {
    forget(since);
    return status;
  }
  add({.since = since, .event = event, .ended = std::move(ended)});
  return kSuccess;
}

void Lane::when_passed(Event since, Event event, Ended ended) {
  add({.since = since, .event = event, .has_events = false, .ended = std::move(ended)});
}

void Lane::post(Begin begin, Ended ended) { add({.begin = std::move(begin), .ended = std::move(ended)}); }

void Lane::begin(Order& order) {
  if (order.event != nullptr) return;
  order.begun = std::exchange(order.begin, nullptr)();
  if (order.begun == kSuccess) order.begun = mark(order.event);
  // A part of the work may run: it must not use its memory any more.
  if (order.begun != kSuccess) driver_.synchronize_stream(stream_);
}

void Lane::end(Order& order) {
  const Status status = order.begun == kSuccess ? driver_.synchronize_event(order.event) : order.begun;
  const std::int64_t took_ns = status == kSuccess && order.since != nullptr ? ns_between(order.since, order.event) : 0;
  if (order.has_events) {
    forget(order.since);
    forget(order.event);
  }
  order.ended(status, took_ns);
}

/// Time between the events, at least 1 ns: the driver's clock has steps of half a microsecond.
std::int64_t Lane::ns_between(Event since, Event event) const {
  float ms = 0;
  if (driver_.elapsed_ms(&ms, since, event) != kSuccess) return 0;
  return std::max(static_cast<std::int64_t>(ms * 1e6), std::int64_t{1});
}

void Lane::serve() {
  driver_.set_current(context_);
  std::deque<Order> posted;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !orders_.empty() || !posted.empty(); });
    if (orders_.empty() && posted.empty()) return;
    std::deque<Order> orders = std::exchange(orders_, {});
    lock.unlock();
    for (Order& order : orders) {
      begin(order);
      posted.push_back(std::move(order));
    }
    end(posted.front());
    posted.pop_front();
    lock.lock();
    --pending_;
    changed_.notify_all();
  }
}

void Lane::finish() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_ == 0; });
}

}  // namespace tandem::runtime::cuda
