// tandem/clock/loop_clock.hpp: the time of an event loop, as a clock.
#pragma once

#include "tandem/base/event_loop.hpp"
#include "tandem/clock/clock.hpp"

namespace tandem::clock {

/// The manual time of an event loop, which outlives it. Threads: the loop's.
class LoopClock final : public Clock {
 public:
  explicit LoopClock(base::EventLoop& loop) noexcept : loop_(loop) {}
  std::int64_t now_ns() const noexcept override { return loop_.now_ns(); }

 private:
  base::EventLoop& loop_;
};

}  // namespace tandem::clock
