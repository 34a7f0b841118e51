// tandem/dist/copy_budget.hpp: a budget of memory for received copies, reserved in the order of the flow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"

namespace tandem::dist {

/// Counts the bytes of the copies that a rank has received or is about to receive.
///
/// The submitting thread makes reservations in the order of the flow, and they are granted in that order, whatever
/// their sizes. So the earliest waiting receive is granted as soon as earlier tasks have returned their bytes, and a
/// budget cannot deadlock. Any thread returns bytes.
class CopyBudget {
 public:
  /// Makes a budget without a limit, until one is set.
  CopyBudget() = default;
  CopyBudget(const CopyBudget&) = delete;
  CopyBudget& operator=(const CopyBudget&) = delete;

  /// Reserves bytes now. False: other reservations wait, or there is no room. Submitting thread.
  bool try_reserve(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    if (!waiting_.empty() || !has_room(bytes)) return false;
    count(bytes);
    return true;
  }
  /// Calls `granted` once the bytes are reserved: at once, or on the thread that returns what was missing. Submitting
  /// thread.
  void reserve_later(std::size_t bytes, std::function<void()> granted) {
    {
      const std::lock_guard guard(mutex_);
      waiting_.push_back({bytes, std::move(granted)});
    }
    give_back(0);
  }
  /// Returns bytes, and grants all reservations that now fit. Any thread.
  void give_back(std::size_t bytes) {
    std::vector<std::function<void()>> granted;
    {
      const std::lock_guard guard(mutex_);
      TANDEM_ASSERT(bytes <= reserved_);
      reserved_ -= bytes;
      while (!waiting_.empty() && has_room(waiting_.front().bytes)) {
        count(waiting_.front().bytes);
        granted.push_back(std::move(waiting_.front().granted));
        waiting_.pop_front();
      }
    }
    for (const auto& go_on : granted) go_on();
  }
  /// Returns the bytes of a reservation once it is granted, which it may not be yet. Submitting thread.
  void give_back_in_turn(std::size_t bytes) {
    {
      const std::lock_guard guard(mutex_);
      if (!waiting_.empty()) return waiting_.push_back({0, [this, bytes] { give_back(bytes); }});
    }
    give_back(bytes);
  }
  /// Sets the limit, before anything is reserved.
  void set(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    if (!lifted_) budget_ = bytes;
  }
  /// Removes the limit: the job has failed, and nothing waits for memory. Any thread.
  void lift() {
    {
      const std::lock_guard guard(mutex_);
      lifted_ = true;
      budget_ = SIZE_MAX;
    }
    give_back(0);
  }

  std::size_t bytes() const {
    const std::lock_guard guard(mutex_);
    return budget_;
  }
  std::size_t reserved() const {
    const std::lock_guard guard(mutex_);
    return reserved_;
  }
  /// Number of reservations that are not granted yet.
  std::size_t waiting() const {
    const std::lock_guard guard(mutex_);
    return waiting_.size();
  }
  std::size_t most_reserved() const {  ///< largest value since the start
    const std::lock_guard guard(mutex_);
    return most_reserved_;
  }

 private:
  struct Waiting {
    std::size_t bytes;
    std::function<void()> granted;
  };

  bool has_room(std::size_t bytes) const noexcept { return bytes <= budget_ - std::min(budget_, reserved_); }
  void count(std::size_t bytes) noexcept {
    reserved_ += bytes;
    most_reserved_ = std::max(most_reserved_, reserved_);
  }

  mutable std::mutex mutex_;  ///< guards all members below
  std::size_t budget_ = SIZE_MAX;
  bool lifted_ = false;
  std::size_t reserved_ = 0;
  std::size_t most_reserved_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace tandem::dist
