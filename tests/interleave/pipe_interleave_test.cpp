// tests/interleave/pipe_interleave_test.cpp: the producer and the consumers of a pipe, under every order of their
// steps.
#include "tandem/base/pipe.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::pipe_interleave_test {
namespace {

struct Entry {
  ModelPlain<int> payload{0};
  int taken = 0;
};

/// One puts three entries, the others take under a lock, as often as they get it at once. Chunks of two: one ends in
/// between, and is perhaps used again.
template <unsigned Takers>
struct PutAndTake : Program {
  base::Pipe<Entry, ModelAtomic, 2> pipe;
  ModelAtomic<bool> locked{false};
  std::array<Entry, 5> entries;
  int next = 0;

  PutAndTake() {
    for (int i = 0; i < 2; ++i) put(i);  // fills the first chunk
  }
  unsigned threads() const override { return 1 + Takers; }
  void run(unsigned thread) override {
    if (thread == 0) {
      for (int i = 2; i < 5; ++i) put(i);
    } else if (!locked.exchange(true, std::memory_order_acquire)) {
      take();
      locked.store(false, std::memory_order_release);
    }
  }
  void put(int number) {
    Entry& entry = entries[static_cast<std::size_t>(number)];
    entry.payload = number;
    pipe.put(&entry);
  }
  void take() {
    pipe.take_all([&](Entry* entry) {
      require(entry->payload == next++, "not in order, or an entry is not as it was put");
      ++entry->taken;
    });
  }
  void check() override {
    take();
    for (const Entry& entry : entries) require(entry.taken == 1, "an entry was lost, or taken twice");
    require(pipe.empty(), "it does not say that it is empty");
  }
};

TEST(PipeUnderEveryOrder, NothingIsLostOrTakenTwice) {
  expect_holds<PutAndTake<1>>();
  expect_holds<PutAndTake<1>>({.store_buffers = true});
  expect_holds<PutAndTake<2>>();
}

/// One puts and then looks for a sleeper; the other says that it sleeps and then looks into the pipe.
struct PutOrSleep : Program {
  base::Pipe<Entry, ModelAtomic, 2> pipe;
  ModelAtomic<bool> sleeps{false};
  Entry entry;
  bool wakes = false;
  bool stays_awake = false;

  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      pipe.put(&entry);
      wakes = sleeps.load(std::memory_order_seq_cst);
    } else {
      sleeps.store(true, std::memory_order_seq_cst);
      stays_awake = !pipe.empty();
    }
  }
  void check() override { require(wakes || stays_awake, "the producer and the sleeper missed each other"); }
};

TEST(PipeUnderEveryOrder, ProducerAndSleeperDoNotMissEachOther) {
  expect_holds<PutOrSleep>();
  expect_holds<PutOrSleep>({.store_buffers = true});
}

/// A worker (thread 1) that has tasks looks into the pipe only if it has none of the priority that it took from there
/// last, or if it was notified of another priority: runtime::ReadyQueues. This models the steps, not the code itself.
/// Priorities 1, 1, 2 are put. After a look that was not needed, an entry left in the pipe must not be more urgent than
/// the entry taken last, once the submitting thread (thread 0) has ended its put.
template <bool NotifiesAfterPut>
struct LooksWhenPrioritiesChange : Program {
  base::Pipe<Entry, ModelAtomic, 4> pipe;
  ModelAtomic<bool> changes{false};
  std::array<Entry, 3> entries;
  int taken_last = 0;

  LooksWhenPrioritiesChange() { put(0, 1, 0); }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      put(1, 1, 1);
      put(2, 2, 1);
    } else {
      for (int i = 0; i < 2; ++i) look();
    }
  }
  void put(std::size_t number, int priority, int before) {
    entries[number].payload = priority;
    if (!NotifiesAfterPut && priority != before) changes.store(true, std::memory_order_release);
    pipe.put(&entries[number]);
    if (NotifiesAfterPut && priority != before) changes.store(true, std::memory_order_release);
  }
  void look() {
    // it has another task of priority `taken_last`
    if (taken_last != 0 && !changes.load(std::memory_order_relaxed)) return;
    if (changes.load(std::memory_order_relaxed)) changes.exchange(false, std::memory_order_acquire);
    pipe.take_all([&](Entry* entry) { taken_last = entry->payload; });
  }
  void check() override {
    look();
    require(taken_last == 2, "what is more urgent waits unseen");
  }
};

TEST(PipeUnderEveryOrder, AReaderThatHearsOfChangesMissesNoUrgentEntry) {
  expect_holds<LooksWhenPrioritiesChange<true>>();
  expect_holds<LooksWhenPrioritiesChange<true>>({.store_buffers = true});
  expect_found<LooksWhenPrioritiesChange<false>>("waits unseen");
}

}  // namespace
}  // namespace tandem::interleave::pipe_interleave_test
