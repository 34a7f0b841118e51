// tandem/base/thread_driver.hpp: the driver with one thread for each steppable.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tandem/base/attendance.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/base/parking.hpp"
#include "tandem/base/thread.hpp"

namespace tandem::base {

/// Each steppable has a thread that steps it and sleeps in its own `Parker` when the step says so. Waits shorter than
/// `spin_below_ns`, and those of a steppable that `waits_awake`, are spent polling the parker's own cache line, others
/// in the kernel.
///
/// A thread that polls the network (`Attendance`) sleeps there instead, until its parker has a permit: it writes
/// `sleeps_in`, then checks for a permit. A thread that wakes it leaves the permit, then reads `sleeps_in`. All four
/// are sequentially consistent.
class ThreadDriver final : public Driver {
 public:
  using Binder = std::function<void(int core)>;  ///< binds the calling thread to a core

  /// `now_ns` reads the clock; `bind` may be empty. `stack_bytes`: of each thread, see `Thread::Options`.
  ThreadDriver(std::function<std::int64_t()> now_ns, Binder bind, std::size_t stack_bytes = 0);
  ~ThreadDriver() override;

  /// Adds a steppable. Throws StartError when there is no thread for it; then it was not added.
  Waker& add(Steppable& steppable, const Placement& placement) override;
  Waker& add_caller(Steppable& steppable) override;
  void stop() override;
  RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) override;
  std::int64_t now_ns() override { return now_ns_(); }

  static constexpr std::int64_t spin_below_ns = 5'000;

 private:
  struct Slot final : Waker {
    Steppable* steppable = nullptr;
    Parker parker;
    Thread thread;
    std::atomic<Attendance*> sleeps_in{nullptr};
    void wake() noexcept override {
      parker.unpark();
      if (Attendance* const place = sleeps_in.load(); place != nullptr) [[unlikely]] place->wake();
    }
  };

  void rest(Slot& slot, std::int64_t until_ns);
  void rest_attending(Slot& slot, Attendance& place, std::int64_t until_ns);

  std::function<std::int64_t()> now_ns_;
  Binder bind_;
  const std::size_t stack_bytes_;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<Slot> caller_;
};

}  // namespace tandem::base
