// tandem/runtime/device/cuda/cuda_lane.hpp: a stream, and the thread that waits for the ends of what is posted to it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "tandem/base/thread.hpp"
#include "tandem/runtime/device/cuda/cuda_driver.hpp"

namespace tandem::runtime::cuda {

/// A stream of a context. Its work runs in order. Its thread waits for an event behind each piece of work and reports
/// its end, so no worker polls. A function in the stream (`cuLaunchHostFunc`) would block the stream while it runs,
/// must not call CUDA, and gets no error.
///
/// Copies from and to memory that is not page-locked block their caller, so the lane's thread posts copies. It posts
/// all copies that were ordered before it waits for the oldest, so the stream has work meanwhile.
///
/// Threads: any. `begin` and `ended` are called by the lane's thread under no lock, in order.
class Lane {
 public:
  using Begin = std::function<Status()>;
  using Ended = std::function<void(Status, std::int64_t took_ns)>;  ///< 0: it was not measured

  /// Creates a stream of `context`, which outlives it, and is current here and when it is destroyed. Throws
  /// DeviceError.
  Lane(const Driver& driver, Context context);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Stream stream() const noexcept { return stream_; }

  /// Makes an event behind all that the caller has posted to the stream, for `when_ended`. On an error there is no
  /// event.
  Status mark(Event& since);
  /// Takes back an event of `mark` that is not needed.
  void forget(Event since);
  /// Calls `ended` when all that the caller has posted to the stream has ended, with the time since `since`, which
  /// belongs to the lane from now on. On an error `ended` is not called.
  Status when_ended(Event since, Ended ended);
  /// Calls `ended` when `event`, which is in the stream, has passed. The caller keeps `event` and `since`.
  void when_passed(Event since, Event event, Ended ended);
  /// The lane's thread calls `begin`, which posts to the stream, and `ended` when that has ended, or has not begun.
  void post(Begin begin, Ended ended);
  /// Waits for all posted work and for all calls. Nothing is posted from then on, except by these calls.
  void finish() noexcept;

 private:
  struct Order {
    Begin begin = {};
    Event since = nullptr;    ///< null: the time is not measured
    Event event = nullptr;    ///< null: the work has not begun
    bool has_events = true;  ///< the lane owns the events
    Status begun = kSuccess;
    Ended ended;
  };
  void serve();
  void begin(Order& order);
  void end(Order& order);
  std::int64_t ns_between(Event since, Event event) const;
  void add(Order order);

  const Driver& driver_;
  const Context context_;
  Stream stream_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;   ///< orders that the thread has not seen; under the mutex
  std::vector<Event> events_;  ///< free ones; under the mutex
  std::size_t pending_ = 0;    ///< orders whose `ended` has not returned; under the mutex
  bool stopping_ = false;
  base::Thread thread_;
};

}  // namespace tandem::runtime::cuda
