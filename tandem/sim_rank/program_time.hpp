// tandem/sim_rank/program_time.hpp: the virtual time that the program of a simulated process sees and spends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <utility>

#include "tandem/base/event_loop.hpp"
#include "tandem/sim_rank/virtual_clock.hpp"

namespace tandem::sim {

/// The loop of the process as its program uses it: the program computes, and then lets the loop go on, in which
/// workers, messages and timers step. What it computes takes no time, or what it takes here divided by a speed.
///
/// Threads: the program's main thread.
class ProgramTime {
 public:
  /// `host_speed`: how many times as fast as here the program's own code computes; 0: it takes no time.
  ProgramTime(base::EventLoop& loop, double host_speed) noexcept : loop_(loop), host_speed_(host_speed) {}

  /// Whether the program's own code takes time.
  bool counts_own() const noexcept { return host_speed_ > 0; }
  /// When the program, which has computed until now, would go on.
  std::int64_t own_end_ns() const noexcept {
    if (!counts_own() || runs_) return loop_.now_ns();
    return loop_.now_ns() + std::llround(static_cast<double>(used_ns() - since_ns_) / host_speed_);
  }

  /// Lets the time pass that the program's own code has taken.
  void spend_own() {
    if (counts_own() && !runs_) sleep_until(own_end_ns());
  }

  /// The program waits, as in `EventLoop::run_until`. A kernel may wait, too.
  base::RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) {
    const Running running(*this);
    return loop_.run_until(done, context, deadline_ns);
  }

  /// The program waits for a date. A kernel's sleep takes no time, since its duration is modelled, but its clock goes
  /// on, so that one that waits for a date ends.
  void sleep_until(std::int64_t when_ns) {
    if (!runs_) {
      (void)run_until([](void*) { return false; }, nullptr, std::max(when_ns, own_end_ns()));
      return;
    }
    kernels_from_ns_ = loop_.now_ns();
    ahead_ns_ = std::max<std::int64_t>(when_ns - kernels_from_ns_, 0);
  }

  /// The program has submitted tasks, which takes so long, unless its own code takes time: that contains it.
  void submit(std::int64_t ns) { sleep_until(counts_own() ? own_end_ns() : loop_.now_ns() + ns); }

  /// The program reads its clock, which takes time.
  std::int64_t read() {
    sleep_until((runs_ ? seen_ns() : own_end_ns()) + clock_reading_ns);
    return seen_ns();
  }

 private:
  /// While kernels run, the loop's time stands, and theirs goes on.
  std::int64_t seen_ns() const noexcept {
    const std::int64_t now_ns = loop_.now_ns();
    return runs_ && kernels_from_ns_ == now_ns ? now_ns + ahead_ns_ : now_ns;
  }

  struct Running {
    explicit Running(ProgramTime& of) noexcept : time(of), before(std::exchange(of.runs_, true)) {}
    ~Running() {
      time.runs_ = before;
      if (!before) time.since_ns_ = used_ns();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ProgramTime& time;
    const bool before;
  };

  /// Processor time, which stays real in a simulation.
  static std::int64_t used_ns() noexcept {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
  }

  base::EventLoop& loop_;
  const double host_speed_;
  bool runs_ = false;                  ///< the loop does
  std::int64_t since_ns_ = used_ns();  ///< processor time at which the program went on
  // Of the clock that kernels read: where the loop's time stands, and how far they are ahead of it.
  std::int64_t kernels_from_ns_ = 0;
  std::int64_t ahead_ns_ = 0;
};

}  // namespace tandem::sim
