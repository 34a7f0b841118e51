// tandem/sim/job.hpp: the programs of a simulated job, which take turns with its workers and its network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/sim/fiber.hpp"

namespace tandem::sim {

/// Programs of several ranks on one event loop, as if on one thread. A program is ordinary code that blocks in
/// `wait()`: it runs on a fiber, which returns the turn to `run` when it waits. `run` lets programs go on, and steps
/// the loop, which holds workers, progress engines and the network of all ranks. Equal seeds and programs give exactly
/// equal orders.
///
/// A program's own code takes no time of the loop.
///
/// Threads: one.
class Job {
 public:
  explicit Job(std::uint64_t seed);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  base::EventLoop& loop() noexcept { return loop_; }

  /// Adds the next rank. `program` throws nothing; it runs in `run`.
  void add(std::function<void()> program);
  /// A driver for the runtime of `rank`, which its program makes: its workers are on the loop, and its caller's on the
  /// program's fiber. The job outlives it.
  std::unique_ptr<base::Driver> make_driver(std::uint32_t rank);

  enum class Turns {
    prompt,  ///< a program goes on as soon as it can
    drawn,   ///< what goes on next, a program or a step of the loop, is drawn: for tests
  };
  /// Runs all programs to their ends. False: some wait, and nothing can go on; they stay as they are, and so must the
  /// job.
  bool run(Turns turns);
  /// Lets others go on for so long. Called by the program of `rank`.
  void sleep(std::uint32_t rank, std::int64_t ns);
  /// Lets others go on, one time in three. Called by a rank's program.
  void maybe_yield() {
    if (loop_.random() % 3 == 0) Fiber::yield();
  }

 private:
  struct Rank;
  class RankDriver;

  bool run_promptly();
  bool run_as_drawn();
  void wake(Rank& rank);
  void list(Rank& rank);

  base::EventLoop loop_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::deque<Rank*> ready_;  ///< programs that can go on, each once
};

}  // namespace tandem::sim
