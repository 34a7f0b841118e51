// tandem/runtime/device/cuda/cuda_lane.cpp: the loop of a lane's thread.
#include "tandem/runtime/device/cuda/cuda_lane.hpp"

#include <utility>

namespace tandem::runtime::cuda {

Lane::Lane(const Driver& driver, Context context) : driver_(driver), context_(context) {
  driver_.check(driver_.create_stream(&stream_, kStreamNonBlocking), "no stream");
  thread_ = std::thread([this] { serve(); });
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

Status Lane::record(Event& event) {
  {
    const std::lock_guard guard(mutex_);
    if (!events_.empty()) {
      event = events_.back();
      events_.pop_back();
    }
  }
  if (event == nullptr)
    if (const Status status = driver_.create_event(&event, kEventBlockingSync | kEventDisableTiming); status != kSuccess) return status;
  return driver_.record_event(event, stream_);
}

void Lane::add(Order order) {
  const std::lock_guard guard(mutex_);
  orders_.push_back(std::move(order));
  ++pending_;
  changed_.notify_all();
}

Status Lane::when_ended(Ended ended) {
  Event event = nullptr;
  if (const Status status = record(event); status != kSuccess) {
    if (event != nullptr) driver_.destroy_event(event);
    return status;
  }
  add({.begin = {}, .event = event, .ended = std::move(ended)});
  return kSuccess;
}

void Lane::post(Begin begin, Ended ended) { add({.begin = std::move(begin), .ended = std::move(ended)}); }

void Lane::begin(Order& order) {
  if (order.event != nullptr) return;
  order.begun = std::exchange(order.begin, nullptr)();
  if (order.begun == kSuccess) order.begun = record(order.event);
  if (order.begun != kSuccess) driver_.synchronize_stream(stream_);  // a part of it may run: its memory must not be used any more
}

void Lane::end(Order& order) {
  const Status status = order.begun == kSuccess ? driver_.synchronize_event(order.event) : order.begun;
  if (order.event != nullptr) {
    const std::lock_guard guard(mutex_);
    events_.push_back(order.event);
  }
  order.ended(status);
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
