// tests/interleave/bed_interleave_test.cpp: who leaves the bed and who rests until it is free, under every order of their steps.
#include "tandem/comm/bed.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave {
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

using ModelBed = comm::internal::BasicBed<ModelAtomic, ModelParker, ModelMutex>;

/// The progress thread has the bed and leaves it for good, as it does when callers wait; each of these takes it once, and wakes
/// the others when it has done. Nobody may rest for ever.
template <class Bed, unsigned Callers>
struct EachGetsTheBed : Program {
  Bed bed;
  int sleepers = 0;
  int slept = 0;

  EachGetsTheBed() { require(bed.take(), "a new bed is taken"); }
  unsigned threads() const override { return 1 + Callers; }
  void run(unsigned thread) override {
    if (thread > 0) {
      while (!bed.take()) bed.rest([] { return false; }, INT64_MAX);
      require(++sleepers == 1, "two in one bed");
      ++slept;
      --sleepers;
    }
    bed.leave();
    bed.wake_resting();
  }
  void check() override {
    require(slept == Callers, "somebody never got the bed");
    require(!bed.taken() && !bed.somebody_rests(), "somebody is left");
  }
};

TEST(BedUnderEveryOrder, WhoRestsGetsItWhenItIsLeft) {
  expect_holds<EachGetsTheBed<ModelBed, 1>>({.most_failures = 0, .store_buffers = true});
  expect_holds<EachGetsTheBed<ModelBed, 2>>({.most_preemptions = 2, .most_failures = 0});
}

/// As the real one, with one mistake.
enum class Mistake { wakes_nobody, release_only, looks_before_it_leaves };
template <Mistake What>
struct WrongBed : ModelBed {
  void leave() noexcept {
    if constexpr (What == Mistake::looks_before_it_leaves) ModelBed::wake_resting();
    taken_here.store(false, What == Mistake::release_only ? std::memory_order_release : std::memory_order_seq_cst);
  }
  void wake_resting() {
    if constexpr (What == Mistake::release_only) ModelBed::wake_resting();
  }
  bool take() noexcept { return !taken_here.exchange(true); }
  bool taken() const noexcept { return taken_here.load(); }
  template <class Done>
  void rest(Done, std::int64_t most_ns) {
    // The base looks at a bed of its own, which stays free: what it is to see is said by `done`.
    ModelBed::take();
    ModelBed::rest([this] { return !taken_here.load(); }, most_ns);
  }

  ModelAtomic<bool> taken_here{false};
};

TEST(BedUnderEveryOrder, MistakesAreFound) {
  expect_found<EachGetsTheBed<WrongBed<Mistake::wakes_nobody>, 1>>("deadlock", {.most_failures = 0});
  expect_found<EachGetsTheBed<WrongBed<Mistake::looks_before_it_leaves>, 1>>("deadlock", {.most_failures = 0});
  expect_found<EachGetsTheBed<WrongBed<Mistake::release_only>, 1>>("deadlock", {.most_failures = 0, .store_buffers = true});
}

}  // namespace
}  // namespace tandem::interleave
