// tests/dist_flow/parts_test.cpp: parts of data that one rank owns, used by tasks on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ranks.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::dist_test::parts_test {
namespace {

using testing::HasSubstr;
using Word = std::uint64_t;

const Codelet change("change", [](Word by, std::span<Word> x) {
  for (Word& value : x) value = value * 3 + by;
});
const Codelet sum("sum", [](std::span<const Word> x, Word& into) {
  Word all = into * 7;
  for (std::size_t i = 0; i < x.size(); ++i) all += x[i] * (i + 1);
  into = all;
});

void expect_well(const std::vector<Ending>& endings, const std::string& what) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank)
    EXPECT_EQ(endings[rank].error, "") << what << ", rank " << rank;
}

/// Random uses of a vector of one rank and of its parts, on random ranks, against the sequential program.
void play(Runtime& rt, std::uint64_t seed, bool records = false) {
  std::mt19937_64 random(seed);
  const auto draw = [&](Word below) { return random() % below; };
  const std::size_t size = 1 + draw(30), block = 1 + draw(9);
  const auto owner = static_cast<std::uint32_t>(draw(rt.size()));
  std::vector<Word> memory(size), expected(size);
  for (std::size_t i = 0; i < size; ++i) memory[i] = expected[i] = i;
  const bool own_memory = draw(2) == 0;
  const auto whole = own_memory ? rt.data("x", memory, {.owner = owner}) : rt.vector<Word>("x", size, {.owner = owner});
  if (!own_memory)
    rt.submit("begin", [](std::span<Word> x) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = i;
    }, write(whole));
  std::vector<Word> seen(rt.size(), 1), expected_seen(rt.size(), 1);
  std::vector<Data<Word>> into;
  for (std::uint32_t rank = 0; rank < rt.size(); ++rank) into.push_back(rt.data("seen", seen[rank], {.owner = rank}));
  {
    const auto blocks = rt.parts(whole, {.rows = block});
    const auto halves = rt.parts(whole, {.rows = (size + 1) / 2});
    const auto inner = rt.parts(halves(0), {.rows = 3});
    struct Region {
      const Data<Vector<Word>>* data;
      std::size_t first;
    };
    std::vector<Region> regions{{&whole, 0}};
    for (std::size_t i = 0; i < blocks.rows(); ++i) regions.push_back({&blocks(i), i * block});
    for (std::size_t i = 0; i < halves.rows(); ++i) regions.push_back({&halves(i), i * ((size + 1) / 2)});
    for (std::size_t i = 0; i < inner.rows(); ++i) regions.push_back({&inner(i), 3 * i});
    struct Step {
      const Region* region;
      std::uint32_t rank;
      bool only_sees, is_placed;
      Word by;
    };
    const auto draw_step = [&](int number) {
      const Region& region = regions[draw(regions.size())];
      const auto rank = static_cast<std::uint32_t>(draw(rt.size()));
      const bool only_sees = draw(2) == 0;
      return Step{&region, rank, only_sees, only_sees || draw(2) == 0, Word(number)};
    };
    const auto submit = [&](const Step& step) {
      if (step.only_sees) rt.submit({.on = step.rank}, sum, read(*step.region->data), read_write(into[step.rank]));
      else if (step.is_placed) rt.submit({.on = step.rank}, change, step.by, read_write(*step.region->data));
      else rt.submit(change, step.by, read_write(*step.region->data));
    };
    const auto expect = [&](const Step& step) {
      Word all = expected_seen[step.rank] * 7;
      for (std::size_t i = 0; i < step.region->data->rows(); ++i) {
        Word& value = expected[step.region->first + i];
        if (step.only_sees) all += value * (i + 1);
        else value = value * 3 + step.by;
      }
      if (step.only_sees) expected_seen[step.rank] = all;
    };
    std::vector<std::pair<Graph, std::vector<Step>>> graphs;
    for (int number = 0; number < 40; ++number) {
      const Word what = records ? draw(8) : 7;
      if (what == 0 && graphs.size() < 3) {
        std::vector<Step> steps;
        for (Word count = 1 + draw(6); count > 0; --count) steps.push_back(draw_step(number));
        Graph graph = rt.record([&] { std::for_each(steps.begin(), steps.end(), submit); });
        graphs.emplace_back(std::move(graph), std::move(steps));
      } else if (what < 3 && !graphs.empty()) {
        auto& [graph, steps] = graphs[draw(graphs.size())];
        rt.replay(graph);
        std::for_each(steps.begin(), steps.end(), expect);
      } else {
        const Step step = draw_step(number);
        submit(step);
        expect(step);
      }
      if (draw(16) == 0) rt.wait();
    }
  }
  rt.wait();
  if (auto view = rt.acquire_at_owner(read(whole))) {
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ((**view)[i], expected[i]) << "seed " << seed << " at " << i;
  }
  rt.wait();
  ASSERT_EQ(seen[rt.rank()], expected_seen[rt.rank()]) << "seed " << seed;
}

TEST(DistParts, InRandomFlowsGiveWhatTheSequentialProgramGives) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    expect_well(run_job({.ranks = static_cast<std::uint32_t>(1 + seed % 4)}, [&](Runtime& rt) { play(rt, seed); }),
                "seed " + std::to_string(seed));
}

TEST(DistParts, WithMemoryForFewCopies) {
  for (std::uint64_t seed = 100; seed <= 130; ++seed)
    expect_well(run_job({.ranks = static_cast<std::uint32_t>(2 + seed % 3), .flow = {.copy_bytes = 1'000}},
                        [&](Runtime& rt) { play(rt, seed); }),
                "seed " + std::to_string(seed));
}

TEST(DistParts, InRandomFlowsWithRecordings) {
  for (std::uint64_t seed = 300; seed <= 360; ++seed)
    expect_well(run_job({.ranks = static_cast<std::uint32_t>(1 + seed % 4), .main_bytes = seed % 2 == 0 ? 600U : 0U},
                        [&](Runtime& rt) { play(rt, seed, true); }),
                "seed " + std::to_string(seed));
}

TEST(DistParts, WithABudgetOfMainMemory) {
  constexpr std::size_t kMost = 2 * 30 * sizeof(Word);  // of the whole and a part
  for (std::uint64_t seed = 200; seed <= 260; ++seed) {
    JobSetup setup{.ranks = static_cast<std::uint32_t>(1 + seed % 4), .main_bytes = kMost + seed % 3 * 100};
    if (seed % 5 == 0) setup.main_bytes_of = {0, kMost, 0, kMost};
    setup.main_bytes_of.resize(seed % 5 == 0 ? setup.ranks : 0);
    if (seed % 2 == 0) setup.flow.copy_bytes = 500;
    expect_well(run_job(setup, [&](Runtime& rt) { play(rt, seed); }), "seed " + std::to_string(seed));
  }
}

/// Random changes of a vector and of its parts in flows that ranks cancel. Parts end in cancelled flows, too, and when
/// an exception leaves their scope.
class CancelledParts {
 public:
  CancelledParts(Runtime& rt, std::uint64_t seed)
      : rt_(rt),
        random_(seed),
        size_(1 + draw(30)),
        owner_(static_cast<std::uint32_t>(draw(rt.size()))),
        expected_(size_) {
    for (std::size_t i = 0; i < size_; ++i) expected_[i] = i;
    const bool own_memory = draw(3) != 0;
    memory_ = expected_;
    whole_ = own_memory ? rt.data("x", memory_, {.owner = owner_}) : rt.vector<Word>("x", size_, {.owner = owner_});
    if (!own_memory)
      rt.submit("begin", [](std::span<Word> x) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = i;
      }, write(*whole_));
    rt.wait();
  }

  /// Some steps with a division of the whole, and of one part, that then ends.
  void divide() {
    struct Leaves {};
    try {
      const std::size_t block = 1 + draw(9), half = (size_ + 1) / 2;
      const auto blocks = rt_.parts(*whole_, {.rows = block}), halves = rt_.parts(*whole_, {.rows = half});
      const auto inner = rt_.parts(halves(0), {.rows = 3});
      for (int i = 0; i < 12; ++i) {
        const std::size_t b = draw(blocks.rows()), h = draw(halves.rows()), k = draw(inner.rows());
        switch (draw(4)) {
          case 0: step(*whole_, 0); break;
          case 1: step(blocks(b), b * block); break;
          case 2: step(halves(h), h * half); break;
          default: step(inner(k), 3 * k);
        }
        const bool cancels = draw(12) == 0, waits = draw(12) == 0;
        if (draw(rt_.size()) == rt_.rank() && cancels) rt_.cancel();
        if (waits) wait();
      }
      if (draw(3) == 0) throw Leaves();
    } catch (const Leaves&) {
    }
  }

  void wait() {
    rt_.wait();
    const auto end = rt_.cancelled_at();
    ends_ += end ? 1 : 0;
    for (const Step& step : steps_)
      for (std::size_t i = step.first; (!end || step.position <= *end) && i < step.first + step.count; ++i)
        expected_[i] = expected_[i] * 3 + step.by;
    steps_.clear();
  }

  void check(std::uint64_t seed) {
    wait();
    if (auto view = rt_.acquire_at_owner(read(*whole_))) {
      for (std::size_t i = 0; i < size_; ++i) ASSERT_EQ((**view)[i], expected_[i]) << "seed " << seed << " at " << i;
    }
    rt_.wait();
  }
  std::size_t ends() const noexcept { return ends_; }

 private:
  struct Step {
    std::size_t first = 0, count = 0;
    Word by = 0;
    std::uint64_t position = 0;
  };

  Word draw(Word below) { return random_() % below; }
  void step(const Data<Vector<Word>>& data, std::size_t first) {
    const Word by = draw(100);
    const auto rank = static_cast<std::uint32_t>(draw(rt_.size()));
    const bool is_placed = draw(2) == 0;
    static_cast<void>(read_write(data));  // splits and gathers first: the flow may end among them
    const bool is_ignored = rt_.cancelled();
    if (is_placed) rt_.submit({.on = rank}, change, by, read_write(data));
    else rt_.submit(change, by, read_write(data));
    if (!is_ignored) steps_.push_back({first, data.rows(), by, rt_.position()});
  }

  Runtime& rt_;
  std::mt19937_64 random_;
  const std::size_t size_;
  const std::uint32_t owner_;
  std::vector<Word> memory_, expected_;
  std::optional<Data<Vector<Word>>> whole_;
  std::vector<Step> steps_;
  std::size_t ends_ = 0;
};

TEST(DistParts, OfCancelledFlowsHaveTheValuesOfTheirEnd) {
  std::atomic<std::size_t> ends{0};
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    JobSetup setup{.ranks = static_cast<std::uint32_t>(1 + seed % 4),
                   .main_bytes = seed % 3 == 0 ? 2 * 30 * sizeof(Word) : 0};
    setup.core.begin_ahead_ns = 0;
    expect_well(run_job(setup, [&](Runtime& rt) {
      CancelledParts program(rt, seed);
      for (int i = 0; i < 4; ++i) program.divide();
      program.check(seed);
      ends += program.ends();
    }), "seed " + std::to_string(seed));
  }
  EXPECT_GT(ends.load(), 60U);
}

TEST(DistParts, OfDataThatEachRankHasForItself) {
  expect_well(run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<Word> x(10, rt.rank());
    const auto whole = rt.data("x", x);
    {
      const auto parts = rt.parts(whole, {.rows = 5});
      rt.submit(change, Word(1), read_write(parts(1)));
    }
    rt.wait();
    EXPECT_EQ(x[4], rt.rank());
    EXPECT_EQ(x[5], rt.rank() * 3 + 1);
  }), "own");
}

TEST(DistParts, DoNotMigrate) {
  expect_well(run_job({.ranks = 2}, [](Runtime& rt) {
    std::vector<Word> x(10, 1);
    const auto whole = rt.data("x", x, {.owner = 0});
    {
      const auto parts = rt.parts(whole, {.rows = 5});
      EXPECT_THAT(test::thrown_by<UsageError>([&] { rt.migrate(parts(0), 1); }), HasSubstr("is a part"));
      EXPECT_THAT(test::thrown_by<UsageError>([&] { rt.migrate(whole, 1); }), HasSubstr("has parts"));
    }
    rt.migrate(whole, 1);
    rt.submit(change, Word(2), read_write(whole));
    rt.wait();
    EXPECT_EQ(rt.owner_of(whole), 1U);
    if (auto view = rt.acquire_at_owner(read(whole))) { EXPECT_EQ((**view)[9], 5U); }
  }), "migrate");
}

}  // namespace
}  // namespace tandem::dist_test::parts_test
