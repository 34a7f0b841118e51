// tandem/base/event_loop.hpp: the driver of the test and virtual worlds: one thread steps all, in an order drawn from a seed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "tandem/base/driver.hpp"

namespace tandem::base {

/// Steps all steppables on the calling thread, the next one drawn from a seed, in manual time: when everybody rests, time jumps
/// to the earliest date that anyone asked for. The same seed and the same program give the same order, exactly.
///
/// Not thread-safe, but for wakers: a wake-up from a foreign thread is allowed and ends the determinism, not the correctness.
class EventLoop final : public Driver {
 public:
  explicit EventLoop(std::uint64_t seed) : state_(seed * 2 + 1) {}

  Waker& add(Steppable& steppable, const Placement& placement) override;
  Waker& add_caller(Steppable& steppable) override;
  void stop() override { stopped_ = true; }
  /// Steps it no more, so that it may be destroyed. Its waker stays, and does nothing. Not from inside its own step.
  void remove(Steppable& steppable);
  RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) override;
  std::int64_t now_ns() override { return now_ns_; }

  /// Runs `action` on the loop at `when_ns` (not before now). For fakes of networks and devices.
  void at(std::int64_t when_ns, std::function<void()> action);

  /// One step of one steppable other than the caller's, or one due action; false when there is nothing to do at this date.
  bool step_one();

  /// Steps up to a number of times drawn from [0, `most`]: what may happen between two submissions.
  void step_some(unsigned most);

  std::uint64_t random() noexcept;

 private:
  struct Seat final : Waker {
    Steppable* steppable = nullptr;
    std::atomic<bool> woken{true};
    std::int64_t next_ns = 0;
    void wake() noexcept override { woken.store(true, std::memory_order_release); }
  };
  struct Action {
    std::int64_t when_ns;
    std::uint64_t order;
    std::function<void()> run;
  };

  bool due(const Seat& seat) const noexcept {
    return !stopped_ && seat.steppable != nullptr && (seat.woken.load(std::memory_order_acquire) || seat.next_ns <= now_ns_);
  }
  bool step_one(bool with_caller);
  bool advance(std::int64_t deadline_ns, bool with_caller);
  void step(Seat& seat);

  std::uint64_t state_;
  std::int64_t now_ns_ = 0;
  std::uint64_t actions_added_ = 0;
  std::vector<std::unique_ptr<Seat>> seats_;
  Seat* caller_ = nullptr;
  std::vector<Action> actions_;
  bool stopped_ = false;  ///< seats stay, so that wakers may still be called
};

}  // namespace tandem::base
