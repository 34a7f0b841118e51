// tandem/runtime/device/cuda/cuda_lane.hpp: a stream, and the thread that waits for the ends of what is posted to it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

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
  using Ended = std::function<void(Status)>;

  /// A stream of `context`, which outlives it, and is current here and when it is destroyed. Throws DeviceError.
  Lane(const Driver& driver, Context context);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Stream stream() const noexcept { return stream_; }

  /// `ended` is called when all that the caller has posted to the stream has ended. An error: it is not called.
  Status when_ended(Ended ended);
  /// The lane's thread calls `begin`, which posts to the stream, and `ended` when that has ended, or has not begun.
  void post(Begin begin, Ended ended);
  /// Waits for all that was posted, and for all calls. Nothing is posted from then on, except by these calls.
  void finish() noexcept;

 private:
  struct Order {
    Begin begin;
    Event event = nullptr;  ///< null: to be begun
    Status begun = kSuccess;
    Ended ended;
  };
  void serve();
  void begin(Order& order);
  void end(Order& order);
  Status record(Event& event);
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
  std::thread thread_;
};

}  // namespace tandem::runtime::cuda
