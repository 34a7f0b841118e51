// tests/interleave/queue_look_interleave_test.cpp: a last look into a queue whose owner is just moving its tasks.
#include <gtest/gtest.h>

#include "tandem/base/inbox.hpp"
#include "tandem/runtime/sched/queues/idle_set.hpp"
#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::queue_look_interleave_test {
namespace {

struct Node {
  ModelPlain<Node*> next{nullptr};
};

struct Counting final : base::Waker {
  ModelAtomic<int> wakes{0};
  void wake() noexcept override { wakes.fetch_add(1); }
};

/// How the sleeper-to-be looks into a queue.
enum class Look {
  after_the_holder,  ///< as runtime::ReadyQueues: when the inbox is empty, the size once the lock has been let go
  at_once,           ///< without regard to the lock
};

/// The steps of a queue of runtime::ReadyQueues with two tasks in its inbox: its owner (thread 0) takes one of them,
/// another worker (thread 1) announces that it will sleep and looks. The model is of the steps, not the code itself. If
/// the sleeper sleeps, it must be because its look came after a moment when no task waited, or somebody wakes it: here
/// nobody pushes again, so a task that waits beside the sleeper waits until the owner has ended the first one.
template <Look How>
struct OwnerPopsWhileAnotherLooks : Program {
  base::Inbox<Node, ModelAtomic> inbox;
  ModelAtomic<bool> locked{false};
  ModelAtomic<unsigned> size{0};
  std::array<Node, 2> nodes;
  runtime::IdleSet<ModelAtomic> idle{2, 0};
  std::array<Counting, 2> wakers;
  bool sleeps = false;

  OwnerPopsWhileAnotherLooks() {
    for (unsigned w = 0; w < 2; ++w) idle.set_waker(w, &wakers[w]);
    for (Node& node : nodes) inbox.put(&node);
  }
  static constexpr bool open(bool is_locked) noexcept { return !is_locked; }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 1) {
      idle.announce(1);
      sleeps = !filled();
      return;
    }
    require(!locked.exchange(true, std::memory_order_acquire), "nobody else takes the lock here");
    unsigned count = 0;
    for (const Node* node = inbox.take_all_in_order(); node != nullptr; node = node->next) ++count;
    size.store(count - 1, std::memory_order_release);  // one of them is the owner's now
    locked.store(false, std::memory_order_release);
  }
  bool filled() {
    if (!inbox.empty()) return true;
    if (How == Look::after_the_holder) locked.await<open>();
    return size.load(std::memory_order_seq_cst) != 0;
  }
  void check() override { require(!sleeps, "a worker sleeps beside a task that waits"); }
};

TEST(QueueLookUnderEveryOrder, TasksOnTheirWayFromTheInboxAreSeen) {
  expect_holds<OwnerPopsWhileAnotherLooks<Look::after_the_holder>>();
  expect_holds<OwnerPopsWhileAnotherLooks<Look::after_the_holder>>({.store_buffers = true});
  expect_found<OwnerPopsWhileAnotherLooks<Look::at_once>>("sleeps beside a task");
}

/// A thief has taken two tasks from a victim's queue, runs one and puts the other into its own; meanwhile another
/// worker looks.
template <bool WakesOne>
struct ThiefMovesWhileAnotherLooks : Program {
  ModelAtomic<unsigned> victim{2};
  ModelAtomic<unsigned> home{0};
  runtime::IdleSet<ModelAtomic> idle{2, 0};
  std::array<Counting, 2> wakers;
  bool sleeps = false;

  ThiefMovesWhileAnotherLooks() {
    for (unsigned w = 0; w < 2; ++w) idle.set_waker(w, &wakers[w]);
  }
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 1) {
      idle.announce(1);
      sleeps = home.load() == 0 && victim.load() == 0;
    } else {
      victim.store(0);
      home.store(1);
      if (WakesOne) idle.wake_one();
    }
  }
  void check() override { require(!sleeps || wakers[1].wakes.peek() == 1, "a worker sleeps beside a task that waits"); }
};

TEST(QueueLookUnderEveryOrder, TasksOnTheirWayToAThiefWakeASleeper) {
  expect_holds<ThiefMovesWhileAnotherLooks<true>>();
  expect_found<ThiefMovesWhileAnotherLooks<false>>("sleeps beside a task");
}

}  // namespace
}  // namespace tandem::interleave::queue_look_interleave_test
