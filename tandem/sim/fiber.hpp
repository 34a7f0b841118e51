// tandem/sim/fiber.hpp: programs that take turns on one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tandem::sim {

/// Code with a stack of its own, which runs on the thread that calls `resume`, until it calls `yield` or ends. The
/// program of a simulated rank runs so: it is ordinary code, blocks in `wait()`, and there may be thousands of them.
///
/// Each fiber has its own exceptions in flight, errno, floating-point modes, and variables of `base::FiberLocal`.
///
///   Fiber program([&] { run(); Fiber::yield(); run_on(); });
///   program.resume();            // until the yield
///   program.resume();            // until the end
///
/// A sanitizer does not know of other stacks, so under one each fiber is a thread, which has the turn while the caller
/// of `resume` waits. Programs see no difference, but for variables that are `thread_local` and no `FiberLocal`.
///
/// Threads: one at a time, the same for all calls of a fiber. A fiber may resume others.
class Fiber {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{1} << 20;

  /// Does not run yet. `body` throws nothing. `stack_bytes`: its stack, which has a guard page at its end; memory is
  /// used as far as it is touched. Throws std::bad_alloc when there is no memory for it.
  explicit Fiber(std::function<void()> body, std::size_t stack_bytes = kStackBytes);
  /// The fiber has ended, or has never run.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs until the fiber yields or ends. It has not ended, and does not run.
  void resume();
  /// Returns to the caller of `resume`. From inside a fiber.
  static void yield();
  bool has_ended() const noexcept;

 private:
  class Context;
  std::unique_ptr<Context> context_;
};

}  // namespace tandem::sim
