// tests/interleave/poll_set_ownership_interleave_test.cpp: acquire, release, park and wake, under every order of their
// steps.
#include "tandem/comm/poll_set_ownership.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::poll_set_ownership_interleave_test {
namespace {

using ModelParker = base::BasicParker<ModelAtomic, ModelFutex>;

constexpr bool is_free(bool held) noexcept { return !held; }

class ModelMutex {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) held_.await<is_free>();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  ModelAtomic<bool> held_{false};
};

using ModelOwnership = comm::internal::BasicPollSetOwnership<ModelAtomic, ModelParker, ModelMutex>;

/// Thread 0, the progress thread, owns the poll set and releases it for good, as it does when callers wait. Each caller
/// acquires it once, releases it, and wakes the others. No thread may stay parked for ever.
template <class Ownership, unsigned Callers>
struct EachAcquiresIt : Program {
  Ownership poll_set;
  int sleepers = 0;
  int slept = 0;

  EachAcquiresIt() { require(poll_set.try_acquire(), "a new poll set is owned"); }
  unsigned threads() const override { return 1 + Callers; }
  void run(unsigned thread) override {
    if (thread > 0) {
      while (!poll_set.try_acquire()) poll_set.park([] { return false; }, INT64_MAX);
      require(++sleepers == 1, "two owners");
      ++slept;
      --sleepers;
    }
    poll_set.release();
    poll_set.wake_parked();
  }
  void check() override {
    require(slept == Callers, "a caller never owned the poll set");
    require(!poll_set.owned() && !poll_set.has_parked(), "a thread still owns it, or is parked");
  }
};

TEST(PollSetOwnershipUnderEveryOrder, AParkedThreadAcquiresItAfterARelease) {
  expect_holds<EachAcquiresIt<ModelOwnership, 1>>({.most_failures = 0, .store_buffers = true});
  expect_holds<EachAcquiresIt<ModelOwnership, 2>>({.most_preemptions = 2, .most_failures = 0});
}

/// As the real one, with one mistake.
enum class Mistake { wakes_no_thread, release_only, looks_before_it_releases };
template <Mistake What>
struct WrongOwnership : ModelOwnership {
  void release() noexcept {
    if constexpr (What == Mistake::looks_before_it_releases) ModelOwnership::wake_parked();
    owned_here.store(false, What == Mistake::release_only ? std::memory_order_release : std::memory_order_seq_cst);
  }
  void wake_parked() {
    if constexpr (What == Mistake::release_only) ModelOwnership::wake_parked();
  }
  bool try_acquire() noexcept { return !owned_here.exchange(true); }
  bool owned() const noexcept { return owned_here.load(); }
  template <class Done>
  void park(Done, std::int64_t most_ns) {
    // The base class looks at its own flag, which stays set; so `done` says what it is to see.
    ModelOwnership::try_acquire();
    ModelOwnership::park([this] { return !owned_here.load(); }, most_ns);
  }

  ModelAtomic<bool> owned_here{false};
};

TEST(PollSetOwnershipUnderEveryOrder, MistakesAreFound) {
  expect_found<EachAcquiresIt<WrongOwnership<Mistake::wakes_no_thread>, 1>>("deadlock", {.most_failures = 0});
  expect_found<EachAcquiresIt<WrongOwnership<Mistake::looks_before_it_releases>, 1>>("deadlock", {.most_failures = 0});
  expect_found<EachAcquiresIt<WrongOwnership<Mistake::release_only>, 1>>("deadlock",
                                                                         {.most_failures = 0, .store_buffers = true});
}

}  // namespace
}  // namespace tandem::interleave::poll_set_ownership_interleave_test
