// tests/interleave/request_life_interleave_test.cpp: an operation ends while its users drop it, under every order of
// steps.
#include <gtest/gtest.h>

#include "tandem/comm/engine/request_life.hpp"
#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::request_life_interleave_test {
namespace {

using Life = comm::internal::RequestLife<ModelAtomic>;

/// The engine ends an operation, two users drop their references, and one thread frees what was left to the engine.
struct EndAndDrop : Program {
  Life life;
  ModelPlain<int> status{0};  ///< written by the engine; an access after the freeing write is a race, or reads the 2
  ModelAtomic<int> left_behind{0};
  ModelAtomic<int> freed{0};

  EndAndDrop() { life.retain(); }

  unsigned threads() const override { return 4; }
  void run(unsigned thread) override {
    if (thread == 0) end();
    else if (thread == 3) look_after();
    else use();
  }
  virtual void end() {
    status = 1;
    life.end();
  }
  void use() {
    if (life.ended()) require(status == 1, "it has ended, and its status is not seen");
    switch (life.drop()) {
      case Life::Left::others: break;
      case Life::Left::nobody: free(); break;
      case Life::Left::engine: left_behind.store(1, std::memory_order_release); break;
    }
  }
  void look_after() {
    if (left_behind.load(std::memory_order_acquire) == 1 && life.ended()) free();
  }
  void free() {
    require(status == 1, "freed before it has ended");
    status = 2;
    require(freed.fetch_add(1, std::memory_order_relaxed) == 0, "freed twice");
  }
  void check() override {
    const int times = freed.load();
    require(times == 1 || (times == 0 && left_behind.load() == 1), "nobody frees it");
  }
};

struct Uncounted : EndAndDrop {
  Uncounted() { life.leave_to_users(); }
};

struct Counted : EndAndDrop {
  Counted() { life.retain(); }  // the engine's
  void end() override {
    EndAndDrop::end();
    const Life::Left left = life.drop();
    require(left != Life::Left::engine, "a counted one is left behind");
    if (left == Life::Left::nobody) free();
  }
  void check() override {
    EndAndDrop::check();
    require(left_behind.load() == 0, "a counted one is left behind");
  }
};

/// What nobody may do.
struct EngineThatTouchesItAfterTheEnd : Uncounted {
  void end() override {
    EndAndDrop::end();
    require(status == 1, "the engine finds it freed");
  }
};

TEST(RequestLifeUnderEveryOrder, ItIsFreedOnceAndNeverBeforeItsEnd) {
  expect_holds<Uncounted>({.most_preemptions = 3});
  expect_holds<Uncounted>({.most_preemptions = 2, .store_buffers = true});
  expect_holds<Counted>({.most_preemptions = 3});
}

TEST(RequestLifeUnderEveryOrder, ATouchAfterTheEndIsFound) {
  EXPECT_TRUE(explore<EngineThatTouchesItAfterTheEnd>({.most_preemptions = 2}).failed);
}

}  // namespace
}  // namespace tandem::interleave::request_life_interleave_test
