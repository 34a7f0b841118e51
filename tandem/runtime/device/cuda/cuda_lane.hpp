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

/// A stream of a context. What is posted to it runs in order. Its thread waits for an event behind each piece of work, and reports its end; so
/// no worker polls. A function in the stream (`cuLaunchHostFunc`) would hold the stream up while it runs, must not call CUDA, and gets no error.
///
/// Copies from and to memory that is not page-locked block who posts them. So the lane's thread posts copies. It posts all that has been ordered
/// before it waits for the oldest, so that the stream has work meanwhile.
///
/// Threads: any. `begin` and `ended` are called by the lane's thread under no lock, in order.
class Lane {
 public:
  using Begin = std::function<Status()>;
  using Ended = std::function<void(Status, std::int64_t took_ns)>;  ///< 0: it was not measured

  /// A stream of `context`, which outlives it, and is current here and when it is destroyed. Throws DeviceError.
  Lane(const Driver& driver, Context context);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Stream stream() const noexcept { return stream_; }

  /// An event behind all that the caller has posted to the stream, for `when_ended`. An error: there is none.
  Status mark(Event& since);
  /// An event that `mark` has made is not needed.
  void forget(Event since);
  /// `ended` is called when all that the caller has posted to the stream has ended, with the time since `since`, which belongs to the lane from now on.
  /// An error: it is not called.
  Status when_ended(Event since, Ended ended);
  /// The same when `event` has passed, which is the caller's, as `since` is, and is in the stream.
  void when_passed(Event since, Event event, Ended ended);
  /// The lane's thread calls `begin`, which posts to the stream, and `ended` when that has ended, or has not begun.
  void post(Begin begin, Ended ended);
  /// Waits for all that was posted, and for all calls. Nothing is posted from then on, except by these calls.
  void finish() noexcept;

 private:
  struct Order {
    Begin begin = {};
    Event since = nullptr;    ///< null: it is not measured
    Event event = nullptr;    ///< null: to be begun
    bool has_events = true;  ///< they are the lane's
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
  std::deque<Order> orders_;   ///< that the thread has not seen; under the mutex
  std::vector<Event> events_;  ///< free ones; under the mutex
  std::size_t pending_ = 0;    ///< orders whose `ended` has not returned; under the mutex
  bool stopping_ = false;
  base::Thread thread_;
};

}  // namespace tandem::runtime::cuda
