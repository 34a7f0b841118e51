// tests/interleave/explorer.hpp: runs a small concurrent program under every order of its steps.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace tandem::interleave {

inline constexpr unsigned kMostThreads = 5;

/// A vector clock (Mattern 1989): entry t is how far the owner knows thread t to have come.
struct VectorClock {
  std::array<std::uint32_t, kMostThreads> ticks{};
  void join(const VectorClock& other) noexcept {
    for (unsigned t = 0; t < kMostThreads; ++t)
      if (other.ticks[t] > ticks[t]) ticks[t] = other.ticks[t];
  }
};

/// One word of the modelled memory, and what a thread that acquires from it learns. See model_atomic.hpp.
struct Location {
  std::uint64_t bits = 0;
  VectorClock released;        ///< of the release sequence that the present value belongs to
  std::uint32_t sleepers = 0;  ///< bit per thread: sleeps in the modelled kernel on this word
};

enum class Access : std::uint8_t { none, read, write };

/// What a thread is about to do.
struct Operation {
  const char* name = "";
  const Location* location = nullptr;
  Access access = Access::none;
  bool may_fail = false;  ///< has a second outcome at any time: a weak exchange fails for no reason, a sleep ends early
  bool drains = false;    ///< waits until the thread's store buffer is empty
  /// Not before this holds. Only writes to `location` may change it.
  bool (*ready)(const Location&, unsigned thread) = nullptr;
};

struct Options {
  /// How often a thread that could go on is interrupted; -1: any number, then it is a proof.
  int most_preemptions = -1;
  unsigned most_failures = 1;         ///< second outcomes (see `Operation::may_fail`) per thread
  /// Stores weaker than seq_cst reach memory later, in order (total store order, as on x86).
  bool store_buffers = false;
  std::uint64_t most_schedules = 30'000'000;
  std::string replay{};               ///< only this schedule, with a trace
};

struct Outcome {
  bool failed = false;
  bool complete = false;        ///< all schedules within the bounds were run
  std::string what;             ///< why it failed
  std::string schedule;         ///< replays the failure exactly, given as `Options::replay` to the same program
  std::string trace;            ///< the failing schedule's steps, a line each
  std::uint64_t schedules = 0;  ///< run in all, those cut short as equivalent to an earlier one included
};

/// A program of a few threads. Made anew for each schedule, always at the same address. Bodies are deterministic,
/// allocate nothing (a schedule may be cut short in their middle), and share only model types and what these protect.
class Program {
 public:
  virtual ~Program() = default;
  virtual unsigned threads() const = 0;
  virtual void run(unsigned thread) = 0;
  /// When all threads have ended, or sleep for ever where that is right: `require` what must hold then.
  virtual void check() {}
  /// No thread can go on and some have not ended: is that right?
  virtual bool may_end_asleep() const { return false; }
};

/// Depth-first search over the schedules of a program. Threads are fibers of the calling thread; each `point` is a
/// place where another may be chosen to go on. One exploration at a time in a process.
///
/// What is explored. Each operation on an atomic acts on one memory, so values are sequentially consistent; with
/// `Options::store_buffers` they are those of total store order. The orders given to the operations decide what a
/// thread knows (vector clocks): a plain field whose accesses no acquire and release orders is a race, on every
/// machine, and fails. Values that only a weaker machine could return are not explored: they are the business of
/// ThreadSanitizer and of the comments.
///
/// Reduction. Without a bound on preemptions, of the schedules that differ only in the order of independent operations
/// one is run (sleep sets: Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, 1996, chapter
/// 5). With a bound this would lose schedules, so all within the bound are run (Musuvathi, Qadeer, PLDI 2007).
class Explorer {
 public:
  using Make = Program* (*)(void* memory);

  Explorer(const Options& options, Make make, void* memory) : options_(options), make_(make), memory_(memory) {}
  Outcome explore();

  /// The exploration under way whose program runs a thread at this moment, or null: then model operations act at once.
  static Explorer* active() noexcept {
    return current_ != nullptr && current_->running_ < kMostThreads ? current_ : nullptr;
  }

  // For model types, by the running thread.

  /// Lets any thread go on; returns when the caller does `operation`: true for its second outcome.
  bool point(const Operation& operation) noexcept;
  unsigned thread() const noexcept { return running_; }
  VectorClock& clock() noexcept { return clocks_[running_]; }
  bool buffers() const noexcept { return options_.store_buffers; }
  /// A store that will reach memory later; `released` is null unless it releases.
  void buffer(Location* location, std::uint64_t bits, const VectorClock* released) noexcept;
  /// The running thread's newest store to `location` that has not reached memory; false when there is none.
  bool buffered(const Location* location, std::uint64_t& bits) const noexcept;
  void note_value(std::uint64_t bits);
  /// Ends the schedule as failed. Within a thread it does not return.
  static void fail(const char* what) noexcept;

 private:
  struct Store {
    Location* location;
    std::uint64_t bits;
    VectorClock released;
  };
  struct Fiber {
    ucontext_t context{};
    std::unique_ptr<std::byte[]> stack;
    void* sanitizer = nullptr;  ///< ThreadSanitizer's fiber, or AddressSanitizer's saved stack
  };
  enum Kind : unsigned { kRun, kFail, kFlush, kKinds };
  /// A choice is thread * kKinds + kind; a set of choices, a bit mask.
  using Choice = unsigned;
  using Choices = std::uint32_t;
  struct Node {  ///< one step of the current schedule
    Choices open = 0;   ///< still to be tried, the chosen one not included
    Choices sleep = 0;  ///< whatever they begin was run already, in an equivalent order
    Choice chosen = 0;
    unsigned before = kMain;      ///< the thread that ran before
    bool before_can_go = false;   ///< so that another choice interrupts it
    int preemptions = 0;          ///< earlier ones
    std::array<Operation, kMostThreads> operations;  ///< what each thread was about to do
    std::array<const Location*, kMostThreads> flushes;
  };
  enum class End { running, ended, asleep, redundant, failed };

  static constexpr unsigned kMain = kMostThreads;
  static constexpr std::size_t kMostSteps = 20'000;
  static constexpr std::size_t kStackBytes = 256 * 1024;

  static void enter_fiber();
  void run_schedule();
  void make_fiber(unsigned thread);
  void switch_to(unsigned to);
  unsigned next_thread();
  bool decide(Choice& choice);
  bool can_run(unsigned thread) const;
  Choices enabled() const;
  bool replayed(Choices all, Choice& choice);
  static bool preempts(const Node& node, Choice choice);
  static Choice first_of(Choices choices, unsigned preferred);
  static bool independent(const Node& node, Choice a, Choice b);
  static Choices sleep_after(const Node& node);
  bool backtrack();
  void flush(unsigned thread);
  void trace_step(Choice choice);
  std::string schedule() const;
  bool parse(const std::string& text);

  static inline Explorer* current_ = nullptr;

  const Options options_;
  Make make_;
  void* memory_;
  Program* program_ = nullptr;
  unsigned threads_ = 0;
  std::vector<Choice> replay_;
  std::vector<Node> nodes_;
  std::size_t depth_ = 0;
  End end_ = End::running;
  std::string what_;
  bool tracing_ = false;
  std::string trace_;
  std::vector<const Location*> seen_;

  unsigned running_ = kMain;
  bool starting_ = false;
  bool second_outcome_ = false;
  std::array<Fiber, kMostThreads + 1> fibers_;
  std::array<bool, kMostThreads> ended_{};
  std::array<Operation, kMostThreads> operations_;
  std::array<unsigned, kMostThreads> failures_{};
  std::array<VectorClock, kMostThreads> clocks_;
  std::array<std::vector<Store>, kMostThreads> stores_;
};

/// Fails the schedule unless `condition`.
inline void require(bool condition, const char* what) noexcept {
  if (!condition) Explorer::fail(what);
}

/// Explores `P`, a `Program` that is default-constructed for each schedule.
template <class P>
Outcome explore(const Options& options = {}) {
  static_assert(std::is_base_of_v<Program, P>);
  alignas(P) static std::byte memory[sizeof(P)];
  return Explorer(options, [](void* at) -> Program* { return new (at) P; }, memory).explore();
}

}  // namespace tandem::interleave
