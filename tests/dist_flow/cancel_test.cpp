// tests/dist_flow/cancel_test.cpp: a flow that is cancelled ends at one position on all ranks, with the values of that
// position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "deterministic_job.hpp"
#include "ranks.hpp"

namespace tandem::dist_test::cancel_test {
namespace {

using testing::HasSubstr;
using Word = std::uint64_t;
using Block = Data<Vector<Word>>;

JobSetup setup_of(std::uint64_t seed, std::uint32_t ranks) {
  JobSetup setup;
  setup.ranks = ranks;
  setup.workers = 1 + static_cast<unsigned>(seed % 3);
  setup.sched = seed % 2 == 0 ? "random" : "lws";
  setup.core.seed = seed;
  setup.core.watchdog_ns = 0;
  setup.core.tasks_per_step = 2;
  setup.core.window = 100 + seed % 7 * 50;  // the calling thread works only while it waits
  if (seed % 4 != 0) setup.core.begin_ahead_ns = 0;
  setup.network.latency_max_ns = 1 + static_cast<std::int64_t>(seed * 977 % 20'000);
  setup.network.eager_bytes = 256;
  setup.network.segment_bytes = 1024;
  return setup;
}

/// All ranks on one event loop; each is to end well.
void run_ranks(std::uint64_t seed, const JobSetup& setup,
               const std::function<void(Runtime&, DeterministicJob&)>& program) {
  DeterministicJob the_job(seed);
  const DeterministicJob::Outcome outcome = the_job.run(setup, program);
  if (outcome.stuck) {
    std::fprintf(stderr, "seed %llu: nothing goes on\n%s", static_cast<unsigned long long>(seed), outcome.why.c_str());
    std::abort();
  }
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank)
    EXPECT_EQ(outcome.endings[rank].error, "") << "seed " << seed << ", rank " << rank;
}

Word mixed(Word step, Word seen, Word old) { return old * 7 + seen * 3 + step; }

/// A ring of blocks, one or more per rank, through which steps go: step s changes block s by what it sees of the next
/// one.
class Ring {
 public:
  Ring(Runtime& rt, std::size_t blocks, std::size_t words)
      : rt_(rt), memory_(blocks, std::vector<Word>(words, 1)), model_(blocks, 1) {
    for (std::size_t b = 0; b < blocks; ++b)
      blocks_.push_back(rt.data("block", memory_[b], {.owner = static_cast<std::uint32_t>(b % rt.size())}));
  }

  /// `cancels`: whose kernel it is ends the flow.
  void step(bool cancels = false, int priority = 0) {
    static const Codelet change("change", [](Word step, Runtime* to_cancel, std::span<const Word> seen,
                                             std::span<Word> block) {
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = mixed(step, seen[i], block[i]);
      if (to_cancel != nullptr) to_cancel->cancel();
    });
    const Word step = steps_;
    const bool ignored = rt_.cancelled();
    rt_.submit({.priority = priority}, change, step, cancels ? &rt_ : nullptr,
               read(blocks_[(step + 1) % blocks_.size()]), read_write(blocks_[step % blocks_.size()]));
    if (!ignored) entered_.push_back({steps_++, rt_.position()});
  }
  /// After a wait: what is at home has the values of the tasks before the end, whichever that was.
  void check(std::uint64_t seed) {
    const std::optional<std::uint64_t> end = rt_.cancelled_at();
    for (const auto& [step, position] : entered_) {
      if (end && position > *end) continue;
      ++ran_;
      model_[step % model_.size()] = mixed(step, model_[(step + 1) % model_.size()], model_[step % model_.size()]);
    }
    entered_.clear();
    for (std::size_t b = rt_.rank(); b < model_.size(); b += rt_.size()) {
      EXPECT_EQ(memory_[b].front(), model_[b]) << "seed " << seed << ", block " << b;
      EXPECT_EQ(memory_[b].back(), model_[b]) << "seed " << seed << ", block " << b;
    }
  }
  std::size_t ran() const noexcept { return ran_; }
  Block& block(std::size_t b) { return blocks_[b]; }

 private:
  Runtime& rt_;
  std::vector<std::vector<Word>> memory_;
  std::vector<Word> model_;
  std::vector<Block> blocks_;
  struct Entered {
    Word step;
    std::uint64_t position;
  };
  std::vector<Entered> entered_;
  Word steps_ = 0;
  std::size_t ran_ = 0;
};

/// What the ranks say, which is to be the same.
class Alike {
 public:
  void say(const Runtime& rt, std::optional<std::uint64_t> what) { said_.push_back({rt.rank(), what}); }
  void expect(std::uint64_t seed, std::uint32_t ranks) const {
    EXPECT_EQ(said_.size() % ranks, 0U);
    std::vector<std::vector<std::optional<std::uint64_t>>> of_ranks(ranks);
    for (const auto& [rank, what] : said_) of_ranks[rank].push_back(what);
    for (const auto& of_rank : of_ranks) EXPECT_EQ(of_rank, of_ranks[0]) << "seed " << seed;
  }

 private:
  std::vector<std::pair<std::uint32_t, std::optional<std::uint64_t>>> said_;
};

TEST(DistCancel, AKernelOfOneRankEndsTheFlowOfAll) {
  std::size_t skipped = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Alike ends;
    const auto ranks = static_cast<std::uint32_t>(1 + seed % 6);
    run_ranks(seed, setup_of(seed, ranks), [&](Runtime& rt, DeterministicJob& job) {
      Ring ring(rt, 2 * ranks + 1, 1 + seed % 300);
      for (int i = 0; i < 80; ++i) {
        ring.step(i == 20);
        job.maybe_yield();
      }
      rt.wait();
      ring.check(seed);
      EXPECT_GT(ring.ran(), 20U) << seed;
      skipped += 80 - ring.ran();
      ends.say(rt, rt.cancelled_at());
      EXPECT_TRUE(rt.cancelled_at().has_value());
      // Another flow follows.
      for (int i = 0; i < 30; ++i) ring.step();
      rt.wait();
      ring.check(seed);
      EXPECT_FALSE(rt.cancelled_at().has_value());
    });
    ends.expect(seed, ranks);
  }
  EXPECT_GT(skipped, 500U);
}

TEST(DistCancel, SeveralRanksAtOnceAndAgainAfterEachWait) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Alike ends;
    const auto ranks = static_cast<std::uint32_t>(2 + seed % 5);
    run_ranks(seed, setup_of(seed, ranks), [&](Runtime& rt, DeterministicJob& job) {
      Ring ring(rt, ranks, 20);
      for (int flow = 0; flow < 6; ++flow) {
        for (int i = 0; i < 30; ++i) {
          ring.step(i >= 5 + flow && i < 10 + flow && flow != 3, i % 3);
          if (flow == 4 && i == 7) rt.cancel();  // from the submitting threads, too
          job.maybe_yield();
        }
        rt.wait();
        ring.check(seed);
        ends.say(rt, rt.cancelled_at());
        EXPECT_EQ(rt.cancelled_at().has_value(), flow != 3) << seed;
      }
    });
    ends.expect(seed, ranks);
  }
}

TEST(DistCancel, LoopsEndOnAllRanksAndWhatTheySubmitBehindTheEndIsNothing) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Alike lengths;
    const auto ranks = static_cast<std::uint32_t>(2 + seed % 4);
    run_ranks(seed, setup_of(seed, ranks), [&](Runtime& rt, DeterministicJob& job) {
      Ring ring(rt, ranks + 1, 50);
      for (int flow = 0; flow < 3; ++flow) {
        std::uint64_t length = 0;
        for (; !rt.cancelled(); ++length) {
          ring.step(flow == 1 && length == 100);
          if (flow != 1 && length == 40 && rt.rank() == seed % ranks) rt.cancel();
          job.maybe_yield();
        }
        lengths.say(rt, length);
        const std::uint64_t position = rt.position();
        // Each rank does something else.
        for (std::uint32_t i = 0; i < rt.rank() * 3; ++i) {
          ring.step(i == 1);
          rt.fetch(ring.block(0), i % ranks);
          rt.migrate(ring.block(0), i % ranks);
          rt.flush(ring.block(i % ranks));
        }
        EXPECT_EQ(rt.position(), position);
        rt.wait();
        ring.check(seed);
        EXPECT_TRUE(rt.cancelled_at().has_value());
        lengths.say(rt, rt.position());
      }
    });
    lengths.expect(seed, ranks);
  }
}

TEST(DistCancel, WithBroadcastsAndABudgetOfCopies) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    constexpr std::size_t words = 600;
    const auto ranks = static_cast<std::uint32_t>(3 + seed % 5);
    JobSetup setup = setup_of(seed, ranks);
    setup.flow.copy_bytes = words * sizeof(Word) * (2 + seed % 3);
    if (seed % 3 == 0) setup.core.window = 20;
    Alike ends;
    run_ranks(seed, setup, [&](Runtime& rt, DeterministicJob& job) {
      std::vector<std::vector<Word>> memory(ranks, std::vector<Word>(words, 1));
      std::vector<Block> blocks;
      for (std::uint32_t b = 0; b < ranks; ++b) blocks.push_back(rt.data("block", memory[b], {.owner = b}));
      const Codelet change("change", [](Word step, Runtime* to_cancel, std::span<const Word> seen,
                                        std::span<Word> block) {
        for (std::size_t i = 0; i < block.size(); ++i) block[i] = mixed(step, seen[i], block[i]);
        if (to_cancel != nullptr) to_cancel->cancel();
      });
      const Codelet next("next", [](Word step, std::span<Word> block) {
        for (Word& word : block) word += step;
      });
      std::vector<Word> model(ranks, 1);
      struct Step {
        std::uint32_t root, reader;  ///< the same: it changes the root
        Word number;
        std::uint64_t position;
      };
      std::vector<Step> steps;
      for (Word round = 0; round < 12; ++round) {
        const auto root = static_cast<std::uint32_t>(round % ranks);
        rt.submit(next, round, read_write(blocks[root]));
        steps.push_back({root, root, round, rt.position()});
        for (std::uint32_t b = 0; b < ranks; ++b) {
          if (b == root) continue;
          const bool cancels = round == 3 && b == (root + 1) % ranks;
          rt.submit(change, round, cancels ? &rt : nullptr, read(blocks[root]), read_write(blocks[b]));
          steps.push_back({root, b, round, rt.position()});
          job.maybe_yield();
        }
      }
      rt.wait();
      for (const Step& step : steps) {
        if (step.position > rt.cancelled_at().value()) continue;
        if (step.root == step.reader) model[step.root] += step.number;
        else model[step.reader] = mixed(step.number, model[step.root], model[step.reader]);
      }
      EXPECT_EQ(memory[rt.rank()].back(), model[rt.rank()]) << seed;
      ends.say(rt, rt.cancelled_at());
    });
    ends.expect(seed, ranks);
  }
}

const Codelet set_to("set to", [](Word value, Word& datum) { datum = value; });
const Codelet copy("copy", [](const Word& from, Word& to) { to = from; });
const Codelet stop("stop", [](Runtime* rt, Word& datum) {
  ++datum;
  rt->cancel();
});

std::string error_of_wait(Runtime& rt) {
  try {
    rt.wait();
  } catch (const FlowCancelled& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(DistCancel, DataThatAnotherRankWasToOverwriteHasNoValue) {
  unsigned lost = 0, kept_back = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    JobSetup setup = setup_of(seed, 3);
    setup.core.begin_ahead_ns = 0;
    run_ranks(seed, setup, [&](Runtime& rt, DeterministicJob&) {
      Word first = 1, moved = 10, kept = 20, seen = 0;
      auto hfirst = rt.data("first", first, {.owner = seed % 3}), hmoved = rt.data("moved", moved, {.owner = 0});
      auto hkept = rt.data("kept", kept, {.owner = 0}), hseen = rt.data("seen", seen, {.owner = 1});
      // The others depend on what the first one does; the news that it cancels may come later than that.
      rt.submit(stop, &rt, read_write(hfirst));
      rt.submit(copy, read(hfirst), write(hkept));
      const std::uint64_t kept_at = rt.position();
      rt.submit({.on = 1}, copy, read(hfirst), write(hmoved));
      const std::uint64_t moved_at = rt.position();
      rt.wait();
      const std::uint64_t end = rt.cancelled_at().value();
      if (rt.rank() == 0) { EXPECT_EQ(kept, kept_at <= end ? 2U : 20U) << seed; }
      if (rt.rank() == seed % 3) { EXPECT_EQ(first, 2U) << seed; }
      kept_back += kept_at > end ? 1 : 0;
      rt.submit(copy, read(hkept), write(hseen));
      EXPECT_EQ(error_of_wait(rt), "nothing was thrown") << seed;
      rt.submit(copy, read(hmoved), write(hseen));
      const std::string error = error_of_wait(rt);
      if (moved_at > end) { EXPECT_THAT(error, HasSubstr("has no value")) << seed; }
      else { EXPECT_EQ(error, "nothing was thrown") << seed; }
      lost += moved_at > end ? 1 : 0;
      rt.submit(set_to, Word{5}, write(hmoved));
      rt.submit(copy, read(hmoved), write(hseen));
      EXPECT_EQ(error_of_wait(rt), "nothing was thrown") << seed;
      if (rt.rank() == 1) { EXPECT_EQ(seen, 5U) << seed; }
    });
  }
  EXPECT_GT(lost, 0U);
  EXPECT_GT(kept_back, 0U);
}

TEST(DistCancel, SharesKeepWhatTheTasksThatRanHaveAdded) {
  std::size_t added = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto ranks = static_cast<std::uint32_t>(2 + seed % 4);
    run_ranks(seed, setup_of(seed, ranks), [&](Runtime& rt, DeterministicJob& job) {
      Word total = 5, order = 0;
      auto htotal = rt.data("total", total, {.owner = 1}), horder = rt.data("order", order, {.owner = 0});
      htotal.reduction([](Word& share) { share = 0; }, [](Word& into, const Word& more) { into += more; });
      const Codelet add("add", [](Word value, Runtime* to_cancel, Word& sum) {
        sum += value;
        if (to_cancel != nullptr) to_cancel->cancel();
      });
      std::vector<std::pair<Word, std::uint64_t>> entered;
      for (Word i = 0; i < 40; ++i) {
        rt.submit({.on = static_cast<std::uint32_t>(i % ranks)}, add, i, i == 12 ? &rt : nullptr, reduce(htotal));
        entered.emplace_back(i, rt.position());
        if (i == 25) rt.submit(copy, read(htotal), write(horder));
        job.maybe_yield();
      }
      rt.wait();
      Word expected = 5;
      for (const auto& [value, position] : entered)
        if (position <= rt.cancelled_at().value()) {
          expected += value;
          ++added;
        }
      if (rt.rank() == 1) { EXPECT_EQ(total, expected) << seed; }
    });
  }
  EXPECT_GT(added, 0U);
}

TEST(DistCancel, WhatIsAcquiredIsAlikeUntilTheEndAndThenWhatIsHere) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Alike looks;
    run_ranks(seed, setup_of(seed, 3), [&](Runtime& rt, DeterministicJob& job) {
      Ring ring(rt, 3, 10);
      for (int i = 0; !rt.cancelled(); ++i) {
        ring.step(i == 30);
        job.maybe_yield();
        if (i % 10 != 9 || rt.cancelled()) continue;
        auto view = rt.acquire(read(ring.block(0)));
        looks.say(rt, (*view)[3]);
      }
      if (rt.rank() == 0) {
        EXPECT_EQ((*rt.acquire(read(ring.block(0)))).size(), 10U);
        EXPECT_THROW(rt.acquire_at_owner(write(ring.block(0))), FlowCancelled);
      } else {
        EXPECT_THROW(rt.acquire(read(ring.block(0))), FlowCancelled);
        EXPECT_FALSE(rt.acquire_at_owner(write(ring.block(0))).has_value());
      }
      rt.wait();
      ring.check(seed);
    });
    looks.expect(seed, 3);
  }
}

TEST(DistCancel, ExplicitMessagesTakePlace) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    run_ranks(seed, setup_of(seed, 2), [&](Runtime& rt, DeterministicJob& job) {
      Ring ring(rt, 2, 10);
      Word own = rt.rank() + 1;
      auto hown = rt.data("own", own);
      Word expected = own;
      for (int i = 0; i < 200; ++i) {
        ring.step(i == 15);
        const bool ignored = rt.cancelled();
        if (rt.rank() == 0) rt.send(hown, 1);
        else rt.receive(hown, 0);
        if (rt.rank() == 1 && !ignored) expected = 1;
        job.maybe_yield();
      }
      rt.wait();
      ring.check(seed);
      EXPECT_EQ(own, expected) << seed;
      if (rt.rank() == 0) rt.submit(set_to, Word{7}, write(hown)), rt.send(hown, 1);
      else rt.submit(set_to, Word{8}, write(hown)), rt.receive(hown, 0);
      rt.wait();
      EXPECT_EQ(own, 7U) << seed;
    });
  }
}

TEST(DistCancel, ReplaysEndWithTheFlow) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Alike ends;
    run_ranks(seed, setup_of(seed, 3), [&](Runtime& rt, DeterministicJob& job) {
      std::vector<Word> memory(3, 0);
      std::vector<Data<Word>> data;
      for (std::uint32_t b = 0; b < 3; ++b) data.push_back(rt.data("datum", memory[b], {.owner = b}));
      const Codelet follow("follow", [](const Word& from, Word& to) { to = from + 1; });
      const Codelet lead("lead", [](Runtime* runtime, const Word& from, Word& to) {
        to = from + 1;
        if (to >= 30) runtime->cancel();
      });
      Graph graph = rt.record([&] {
        rt.submit(follow, read(data[0]), write(data[1]));
        rt.submit(follow, read(data[1]), write(data[2]));
        rt.submit(lead, &rt, read(data[2]), read_write(data[0]));
      });
      Word replays = 0;
      for (; !rt.cancelled(); ++replays) {
        rt.replay(graph);
        job.maybe_yield();
      }
      EXPECT_EQ(rt.replay(graph).task, nullptr);
      rt.wait();
      const Word end = rt.cancelled_at().value();
      EXPECT_GE(end, 30U);
      EXPECT_LE(end, 3 * replays);
      // The task at position p leaves p, on rank p modulo 3.
      Word expected = 0;
      for (Word position = 1; position <= end; ++position)
        if (position % 3 == rt.rank()) expected = position;
      EXPECT_EQ(memory[rt.rank()], expected) << seed;
      ends.say(rt, end);
    });
    ends.expect(seed, 3);
  }
}

TEST(DistCancel, WithNothingLeftAndWithoutAWait) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Alike ends;
    run_ranks(seed, setup_of(seed, 4), [&](Runtime& rt, DeterministicJob& job) {
      Ring ring(rt, 4, 5);
      for (int i = 0; i < 10; ++i) ring.step();
      rt.wait();
      job.maybe_yield();
      if (rt.rank() == seed % 4) rt.cancel();
      rt.wait();
      ends.say(rt, rt.cancelled_at());
      EXPECT_TRUE(rt.cancelled_at().has_value());
      for (int i = 0; i < 10; ++i) ring.step();
      rt.wait();
      ring.check(seed);
      EXPECT_EQ(ring.ran(), 20U) << seed;
      for (int i = 0; seed % 2 == 0 && i < 10; ++i) ring.step(i == 4);
      if (rt.rank() == 1) rt.cancel();
    });
    ends.expect(seed, 4);
  }
}

/// Three ranks, of which rank 1 dies.
void run_with_a_death(std::uint64_t seed, const std::function<void(Runtime&, DeterministicJob&)>& program) {
  JobSetup setup = setup_of(seed, 3);
  setup.network.copies = true;  // nobody reads a dead rank's memory
  setup.network.remote_copy = false;
  setup.network.deaths_are_seen_by_all = true;
  DeterministicJob the_job(seed);
  const DeterministicJob::Outcome outcome = the_job.run(setup, program);
  EXPECT_FALSE(outcome.stuck) << "seed " << seed << "\n" << outcome.why;
  for (const std::uint32_t rank : {0U, 2U})
    EXPECT_THAT(outcome.endings[rank].error, HasSubstr("rank 1")) << "seed " << seed << ", rank " << rank;
}

TEST(DistCancel, BehindTheEndADeathChangesNothingBeforeTheWaitThatReportsIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    unsigned at_end = 0, waiting = 0;
    run_with_a_death(seed, [&](Runtime& rt, DeterministicJob& job) {
      std::optional<Killer> killer;
      const Codelet look("look", [](std::span<const Word>) {});
      const Codelet count("count", [](std::span<Word> words) { words[0] = 1; });
      const Block counted = rt.vector<Word>("counted", 1, {.owner = 1}),
                  fresh = rt.vector<Word>("fresh", 8, {.owner = 0});
      if (rt.rank() == 0) rt.cancel();
      while (!rt.cancelled()) {
        rt.submit(count, write(counted));
        job.maybe_yield();
      }
      for (++at_end; at_end < 3;) job.maybe_yield();
      if (rt.rank() == 1) killer.emplace(rt, job, 1);
      for (int turn = 0; turn < 500; ++turn) {
        job.maybe_yield();
        if (!rt.cancelled()) throw std::logic_error("the flow goes on");
        rt.submit(look, read(fresh));  // which nobody has written
      }
      if (rt.rank() != 1) ++waiting;
      rt.wait();
    });
    EXPECT_EQ(waiting, 2U) << "seed " << seed;
  }
}

TEST(DistCancel, LoopsUntilTheEndThrowAfterADeath) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    run_with_a_death(seed, [&](Runtime& rt, DeterministicJob& job) {
      std::optional<Killer> killer;
      const Codelet count("count", [](std::span<Word> words) { words[0] = 1; });
      const Block counted = rt.vector<Word>("counted", 1, {.owner = 1});
      for (std::uint64_t step = 0; !rt.cancelled(); ++step) {
        if (rt.rank() == 1 && step == seed) killer.emplace(rt, job, 1);
        if (rt.rank() == 2 && seed % 2 == 0 && step == 2 * seed) rt.cancel();  // about when the other dies
        rt.submit(count, write(counted));
        job.maybe_yield();
      }
      rt.wait();
    });
  }
}

TEST(DistCancel, OnThreads) {
  for (int round = 0; round < 10; ++round) {
    JobSetup setup{.ranks = 4, .workers = 2};
    setup.core.window = 100;
    const auto endings = run_job(setup, [&](Runtime& rt) {
      Ring ring(rt, 9, 100);
      for (int flow = 0; flow < 3; ++flow) {
        for (int i = 0; !rt.cancelled(); ++i) ring.step(i % 500 == 400);
        rt.wait();
        EXPECT_TRUE(rt.cancelled_at().has_value());
        ring.check(static_cast<std::uint64_t>(round));
      }
    });
    for (const Ending& ending : endings) EXPECT_EQ(ending.error, "");
  }
}

}  // namespace
}  // namespace tandem::dist_test::cancel_test
