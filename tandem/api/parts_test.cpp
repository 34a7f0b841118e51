// tandem/api/parts_test.cpp: parts of data, and the order of uses of parts and whole.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::parts_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Codelet add("add", [](int by, std::span<int> x) {
  for (int& value : x) value += by;
});
const Codelet twice("twice", [](std::span<int> x) {
  for (int& value : x) value *= 2;
});
const Codelet total("total", [](std::span<const int> x, int& sum) {
  for (const int value : x) sum += value;
});

TEST(Parts, ATaskOnAPartRunsBetweenTheTasksOnTheWhole) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto rt = loop_runtime({.seed = seed});
    std::vector<int> x(10, 1);
    const auto whole = rt->data("x", x);
    {
      const auto parts = rt->parts(whole, {.rows = 4});
      ASSERT_EQ(parts.rows(), 3U);
      rt->submit(twice, read_write(whole));           // 2
      rt->submit(add, 1, read_write(parts(0)));       // 3 2 2
      rt->submit(add, 5, read_write(parts(2)));       // 3 2 7
      rt->submit(twice, read_write(whole));           // 6 4 14
      rt->submit(add, 100, read_write(parts(1)));     // 6 104 14
    }
    rt->wait();
    EXPECT_THAT(x, ElementsAre(6, 6, 6, 6, 104, 104, 104, 104, 14, 14)) << seed;
  }
}

TEST(Parts, HaveTheShapesThatWereAskedFor) {
  const auto rt = loop_runtime();
  const auto a = rt->matrix<double>("A", 10, 7);
  const auto tiles = rt->parts(a, {.rows = 4, .cols = 3});
  EXPECT_EQ(tiles.rows(), 3U);
  EXPECT_EQ(tiles.cols(), 3U);
  EXPECT_EQ(tiles(2, 2).rows(), 2U);
  EXPECT_EQ(tiles(2, 2).cols(), 1U);
  EXPECT_EQ(tiles(1, 2).name(), "A[1,2]");
  const auto strips = rt->parts(a, {.cols = 5});
  EXPECT_EQ(strips.rows(), 1U);
  EXPECT_EQ(strips(0, 1).cols(), 2U);
  EXPECT_EQ(strips(0, 1).rows(), 10U);
  const auto list = rt->parts(a, {.row_list = {1, 9}});
  EXPECT_EQ(list(1).rows(), 9U);
  EXPECT_EQ(list(1).cols(), 7U);
  const auto halo = rt->parts(a, {.rows = 4, .halo_rows = 1});
  EXPECT_EQ(halo(0).rows(), 5U);
  EXPECT_EQ(halo(1).rows(), 6U);
  EXPECT_EQ(halo(2).rows(), 3U);
  const auto none = rt->vector<int>("none", 0);
  EXPECT_EQ(rt->parts(none, {.rows = 3}).rows(), 0U);
}

TEST(Parts, AreNotMadeByAPartitionThatSaysNothing) {
  const auto rt = loop_runtime();
  const auto x = rt->vector<int>("x", 10);
  const auto a = rt->matrix<int>("A", 10, 7);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {}); }),
              AllOf(HasSubstr("cannot divide data 'x'"), HasSubstr("parts_test.cpp"),
                    HasSubstr("give .rows, .row_parts or .row_list")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.rows = 0}); }),
              HasSubstr("does not say how; 0 stands for nothing"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(a, {.halo_rows = 1}); }), HasSubstr("does not say how"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.cols = 2}); }),
              HasSubstr("it is a vector, which has no columns"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.rows = 2, .halo_cols = 1}); }), HasSubstr("has no columns"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.rows = 2, .row_parts = 2}); }), HasSubstr("given twice"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.row_parts = 11}); }),
              HasSubstr("there are 10 rows, too few for 11 parts"));
}

TEST(Parts, AreAsManyAsWereAskedFor) {
  const auto rt = loop_runtime();
  const auto a = rt->matrix<double>("A", 10, 7);
  const auto parts = rt->parts(a, {.row_parts = 4, .col_parts = 7});
  ASSERT_EQ(parts.rows(), 4U);
  ASSERT_EQ(parts.cols(), 7U);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < 4; ++i) rows.push_back(parts(i, 6).rows());
  EXPECT_THAT(rows, ElementsAre(3, 3, 2, 2));
  EXPECT_EQ(parts(3, 6).cols(), 1U);
}

TEST(Parts, SayWhereTheirCoresBegin) {
  const auto rt = loop_runtime();
  const auto a = rt->matrix<double>("A", 10, 7);
  const auto halo = rt->parts(a, {.rows = 4, .cols = 3, .halo_rows = 2});
  const PartCore first = halo.core(0), last = halo.core(2, 1);
  EXPECT_EQ(first.row, 0U);
  EXPECT_EQ(first.rows, 4U);
  EXPECT_EQ(halo(0).rows(), 6U);
  EXPECT_EQ(last.row, 2U);
  EXPECT_EQ(last.rows, 2U);
  EXPECT_EQ(last.col, 0U);
  EXPECT_EQ(last.cols, 3U);
  EXPECT_EQ(last.whole_row, 8U);
  EXPECT_EQ(last.whole_col, 3U);
  EXPECT_THAT(thrown_by<UsageError>([&] { halo.core(3); }), HasSubstr("no part (3, 0)"));
}

TEST(Parts, AreNotNarrowerThanTheirHalos) {
  const auto rt = loop_runtime();
  const auto x = rt->vector<int>("x", 10);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.rows = 2, .halo_rows = 3}); }),
              HasSubstr("part 0 has 2 rows, fewer than the halo of 3"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(x, {.rows = 4, .halo_rows = 3}); }),
              HasSubstr("part 2 has 2 rows"));
  EXPECT_EQ(rt->parts(x, {.rows = 10, .halo_rows = 30})(0).rows(), 10U) << "it has no neighbours";
}

TEST(Parts, OfConstantDataAreRead) {
  for (const unsigned devices : {0U, 1U}) {
    const auto rt = loop_runtime({.devices = devices});
    const std::vector<int> x{1, 2, 3, 4, 5, 6};
    const auto whole = rt->data("x", x);
    auto parts = rt->parts(whole, {.rows = 2});
    const auto add_up = [](std::span<const int> part, int& sum) { for (const int value : part) sum += value; };
    const Codelet sum_up = Codelet("sum", add_up).also(DeviceKind::user, add_up);
    int sum = 0;
    const auto into = rt->data("sum", sum);
    for (std::size_t i = 0; i < parts.rows(); ++i) rt->submit(sum_up, read(parts(i)), read_write(into));
    rt->submit(sum_up, read(whole), read_write(into));
    parts.split();
    EXPECT_THAT(thrown_by<UsageError>([&] { parts.split(true); }), HasSubstr("it is constant"));
    rt->wait();
    EXPECT_EQ(sum, 42);
  }
}

TEST(Parts, MayBeFilledBeforeTheWholeHasAValue) {
  const auto rt = loop_runtime();
  const auto a = rt->matrix<int>("A", 6, 6);
  auto tiles = rt->parts(a, {.rows = 3, .cols = 2});
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit("see", [](MatrixView<const int>) {}, read(tiles(0, 0))); }),
              HasSubstr("nobody has written it before"));
  for (std::size_t j = 0; j < 3; ++j)
    for (std::size_t i = 0; i < 2; ++i)
      rt->submit("fill", [](int value, MatrixView<int> m) {
        for (std::size_t c = 0; c < m.cols; ++c)
          for (std::size_t r = 0; r < m.rows; ++r) m(r, c) = value;
      }, static_cast<int>(10 * i + j), write(tiles(i, j)));
  auto view = rt->acquire(read(a));
  for (std::size_t j = 0; j < 6; ++j)
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ((*view)(i, j), static_cast<int>(10 * (i / 3) + j / 2)) << i << "," << j;
}

TEST(Parts, SeveralPartitionsAndTheWholeAreReadAtOnce) {
  const auto rt = thread_runtime({.workers = 3});
  std::vector<int> x(12, 1);
  const auto whole = rt->data("x", x);
  const auto halves = rt->parts(whole, {.rows = 6});
  const auto thirds = rt->parts(whole, {.rows = 4});
  // Each task waits for the others, so they must run at the same time.
  std::atomic<int> here{0};
  const auto meet = [&here](std::span<const int>) {
    ++here;
    while (here.load() < 3) std::this_thread::yield();
  };
  rt->submit("meet", meet, read(halves(0)));
  rt->submit("meet", meet, read(thirds(0)));
  rt->submit("meet", meet, read(whole));
  rt->wait();
  EXPECT_EQ(here.load(), 3);
}

TEST(Parts, OfPartsAreDataToo) {
  const auto rt = loop_runtime();
  std::vector<int> x(16, 1);
  const auto whole = rt->data("x", x);
  {
    const auto halves = rt->parts(whole, {.rows = 8});
    const auto quarters = rt->parts(halves(1), {.rows = 4});
    rt->submit(add, 1, read_write(quarters(1)));
    rt->submit(twice, read_write(whole));
    rt->submit(add, 1, read_write(quarters(0)));
    rt->submit(twice, read_write(halves(1)));
    rt->submit(add, 1, read_write(halves(0)));
  }
  rt->wait();
  EXPECT_THAT(x, ElementsAre(3, 3, 3, 3, 3, 3, 3, 3, 6, 6, 6, 6, 8, 8, 8, 8));
}

TEST(Parts, MoreThanATaskCanName) {
  const auto rt = loop_runtime();
  std::vector<int> x(1'000, 1);
  const auto whole = rt->data("x", x);
  const auto parts = rt->parts(whole, {.rows = 1});
  for (std::size_t i = 0; i < 1'000; ++i) rt->submit(add, static_cast<int>(i), read_write(parts(i)));
  int sum = 0;
  rt->submit(total, read(whole), read_write(rt->data("sum", sum)));
  rt->wait();
  EXPECT_EQ(sum, 1'000 + 999 * 500);
}

TEST(Parts, AFailureInAPartReachesTheWhole) {
  const auto rt = loop_runtime();
  std::vector<int> x(4, 1);
  const auto whole = rt->data("x", x);
  const auto parts = rt->parts(whole, {.rows = 2});
  rt->submit("fail", [](std::span<int>) { throw std::runtime_error("of the part"); }, read_write(parts(1)));
  int sum = 0;
  rt->submit(total, read(whole), read_write(rt->data("sum", sum)));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }), HasSubstr("of the part"));
  EXPECT_EQ(sum, 0) << "it was cancelled";
}

TEST(Parts, MistakesAreNamed) {
  const auto rt = loop_runtime();
  std::vector<int> x(10, 1);
  const auto whole = rt->data("x", x);
  const auto parts = rt->parts(whole, {.rows = 5});
  EXPECT_THAT(thrown_by<UsageError>([&] { parts(2); }), AllOf(HasSubstr("no part (2, 0)"), HasSubstr("2 x 1")));
  const Codelet both("both", [](std::span<const int>, std::span<int>) {});
  EXPECT_THAT(thrown_by<UsageError>([&] {
                const auto of_whole = read(whole);
                const auto of_part = read_write(parts(0));
                rt->submit(both, of_whole, of_part);
              }),
              AllOf(HasSubstr("'both'"), HasSubstr("either the parts or the whole")));
  EXPECT_THAT(thrown_by<UsageError>([&] {
                rt->parts(whole, {.row_list = {5, 4}});
              }),
              AllOf(HasSubstr("cannot divide data 'x'"), HasSubstr("parts_test.cpp"),
                    HasSubstr("add up to 9, but there are 10")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(whole, {.row_list = {SIZE_MAX, 11}}); }),
              HasSubstr("add up to more than there are: 10"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(whole, {.rows = 1, .row_list = {10}}); }),
              HasSubstr("given twice"));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->parts(whole, {.row_list = {10, 0}}); }),
              HasSubstr("gives a part no rows"));
  const auto halo = rt->parts(whole, {.rows = 5, .halo_rows = 1});
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit(add, 1, read_write(halo(0))); }), HasSubstr("halo"));
  std::optional<Data<Vector<int>>> left;
  {
    const auto others = rt->parts(whole, {.rows = 2});
    left = others(0);
  }
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit(add, 1, read_write(*left)); }), HasSubstr("has ended"));
  rt->submit(add, 1, read_write(whole));
  rt->submit(add, 1, read_write(parts(0)));
  rt->wait(whole);
  EXPECT_EQ(x[0], 3);
  EXPECT_EQ(x[9], 2);
}

std::unique_ptr<Runtime> budget_runtime(const std::string& bytes, unsigned workers = 2) {
  return thread_runtime(
      {.workers = workers, .more = {{"memory", bytes}, {"spill", testing::TempDir()}, {"bind", "false"}}});
}

TEST(Parts, OfDataThatMayGoToAFileHaveMemoryOfTheirOwn) {
  // There are 16 vectors of 32 KiB, each in four parts; 64 KiB hold one of them with its parts, and nothing else.
  constexpr std::size_t kInts = 8'192;
  const auto rt = budget_runtime("64KiB");
  std::vector<Data<Vector<int>>> wholes;
  std::vector<Parts<Vector<int>>> parts;
  for (int i = 0; i < 16; ++i) {
    wholes.push_back(rt->vector<int>("x" + std::to_string(i), kInts));
    rt->submit("fill", [i](std::span<int> x) { std::fill(x.begin(), x.end(), i); }, write(wholes.back()));
    parts.push_back(rt->parts(wholes.back(), {.rows = kInts / 4}));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& of_one : parts)
      for (std::size_t k = 0; k < 4; ++k) rt->submit(add, static_cast<int>(k), read_write(of_one(k)));
    for (std::size_t i = 0; i < 16; ++i) {
      rt->submit("mix", [](std::span<const int> from, std::span<int> to) { to[0] += from[0]; },
                 read(parts[(i + 5) % 16](2)), read_write(parts[i](1)));
      rt->submit(twice, read_write(wholes[i]));
    }
  }
  std::vector<int> values(16), first(16);  // of each vector's parts 1: elements from the second on, and the first one
  for (int i = 0; i < 16; ++i) values[static_cast<std::size_t>(i)] = first[static_cast<std::size_t>(i)] = i;
  std::vector<std::array<int, 4>> all(16);
  for (std::size_t i = 0; i < 16; ++i) all[i].fill(static_cast<int>(i));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 16; ++i) {
      for (int k = 0; k < 4; ++k) all[i][static_cast<std::size_t>(k)] += k;
      first[i] += 1;
    }
    for (std::size_t i = 0; i < 16; ++i) {
      first[i] += all[(i + 5) % 16][2];
      first[i] *= 2;
      for (int& value : all[i]) value *= 2;
    }
  }
  for (std::size_t i = 0; i < 16; ++i) {
    auto view = rt->acquire(read(wholes[i]));
    EXPECT_EQ((*view)[kInts / 4], first[i]) << i;
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ((*view)[k * kInts / 4 + 1], all[i][k]) << i << ", part " << k;
  }
}

TEST(Parts, ThatDoNotFitBesideTheWholeAreRefused) {
  const auto rt = budget_runtime("64KiB");
  const auto data = rt->vector<int>("x", 12'000);
  EXPECT_THAT(thrown_by<OutOfMemory>([&] { rt->parts(data, {.rows = 6'000}); }),
              AllOf(HasSubstr("cannot divide"),
                    HasSubstr("takes 72000 bytes in main memory, whose budget is 65536 bytes"), HasSubstr("rt.tiles")));
  const auto parts = rt->parts(data, {.rows = 4'000});
  rt->submit("fill", [](std::span<int> x) { std::fill(x.begin(), x.end(), 3); }, write(parts(1)));
  EXPECT_EQ((*rt->acquire(read(data)))[4'000], 3);
}

TEST(Parts, OfMemoryOfTheProgramsLieThereAndDoNotCount) {
  const auto rt = budget_runtime("4KiB");
  std::vector<int> own(10'000, 1);
  const auto whole = rt->data("own", own);
  {
    const auto parts = rt->parts(whole, {.rows = 5'000});
    const auto inner = rt->parts(parts(1), {.rows = 2'500});
    rt->submit(add, 1, read_write(parts(1)));
    rt->submit(add, 1, read_write(inner(1)));
  }
  rt->wait();
  EXPECT_EQ(own[4'999], 1);
  EXPECT_EQ(own[7'499], 2);
  EXPECT_EQ(own[9'999], 3);
}

TEST(Parts, AFailureReachesTheWholeThroughCopies) {
  const auto rt = budget_runtime("64KiB");
  const auto whole = rt->vector<int>("x", 100);
  rt->submit("fill", [](std::span<int> x) { std::fill(x.begin(), x.end(), 1); }, write(whole));
  const auto parts = rt->parts(whole, {.rows = 50});
  rt->submit("fails", [](std::span<int>) { throw std::runtime_error("no"); }, read_write(parts(1)));
  bool ran = false;
  rt->submit("after", [&](std::span<const int>) { ran = true; }, read(whole));
  EXPECT_THROW(rt->wait(), std::runtime_error);
  EXPECT_FALSE(ran);
  rt->submit("fill", [](std::span<int> x) { std::fill(x.begin(), x.end(), 2); }, write(whole));
  rt->submit(add, 1, read_write(parts(0)));
  EXPECT_EQ((*rt->acquire(read(whole)))[99], 2);
}

TEST(Parts, AreUsedInRecordingsThatNeitherSplitNorGather) {
  const auto rt = loop_runtime();
  std::vector<int> x(4, 1);
  const auto whole = rt->data("x", x);
  auto parts = rt->parts(whole, {.rows = 2});
  parts.split();
  Graph graph = rt->record([&] { rt->submit(add, 1, read_write(parts(0))); });
  for (int i = 0; i < 3; ++i) rt->replay(graph);
  parts.gather();
  rt->wait();
  EXPECT_THAT(x, ElementsAre(4, 4, 1, 1));
}

TEST(Parts, AreSplitAndGatheredInEachReplay) {
  for (const bool has_budget : {false, true}) {
    const auto rt = has_budget ? budget_runtime("64KiB") : loop_runtime();
    const auto whole = rt->vector<int>("x", 4);
    rt->submit("fill", [](std::span<int> x) { std::fill(x.begin(), x.end(), 1); }, write(whole));
    const auto parts = rt->parts(whole, {.rows = 2});
    Graph graph = rt->record([&] {
      rt->submit(add, 1, read_write(parts(0)));
      rt->submit(twice, read_write(whole));
      rt->submit(add, 1, read_write(parts(1)));
    });
    rt->submit(add, 1, read_write(parts(1)));  // 1 1 2 2: the recording has changed nothing
    rt->replay(graph);                         // 4 4 5 5
    rt->replay(graph);                         // 10 10 11 11
    rt->submit(twice, read_write(whole));      // 20 20 22 22
    {
      const auto later = rt->parts(whole, {.rows = 1});
      rt->submit(add, 3, read_write(later(1)));  // 20 23 22 22
      rt->replay(graph);                         // 42 48 45 45
    }
    auto view = rt->acquire(read(whole));
    EXPECT_THAT(*view, ElementsAre(42, 48, 45, 45)) << has_budget;
  }
}

TEST(Parts, MadeInARecordingServeItsReplays) {
  for (const bool has_budget : {false, true}) {
    const auto rt = has_budget ? budget_runtime("64KiB") : loop_runtime();
    const auto whole = rt->vector<int>("x", 4);
    Graph graph = rt->record([&] {
      const auto parts = rt->parts(whole, {.rows = 2});
      for (const std::size_t i : {0U, 1U})
        rt->submit(
            "fill", [i](std::span<int> x) { std::fill(x.begin(), x.end(), int(i) + 1); }, write(parts(i)));
    });
    for (int turn = 0; turn < 3; ++turn) {
      rt->replay(graph);
      rt->submit(twice, read_write(whole));
    }
    auto view = rt->acquire(read(whole));
    EXPECT_THAT(*view, ElementsAre(2, 2, 4, 4)) << has_budget;
  }
}

TEST(Parts, OfRecordingsMistakesAreNamed) {
  const auto rt = loop_runtime();
  const auto whole = rt->vector<int>("x", 4), other = rt->vector<int>("y", 4);
  auto parts = std::make_unique<Parts<Vector<int>>>(rt->parts(whole, {.rows = 2}));
  const auto fill = [](std::span<int> x) { std::fill(x.begin(), x.end(), 1); };
  EXPECT_THAT(thrown_by<UsageError>([&] {
                rt->record([&] {
                  rt->submit("fill", fill, write((*parts)(0)));
                  rt->submit(twice, read_write(whole));
                });
              }),
              AllOf(HasSubstr("cannot gather"), HasSubstr("some of its parts have no value")));
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->record([&] { rt->submit("fill", fill, write((*parts)(0))); }); }),
              AllOf(HasSubstr("leaves"), HasSubstr("some have no value")));
  rt->submit("fill", fill, write(whole));
  rt->submit("fill", fill, write(other));
  Graph graph = rt->record([&] { rt->submit(twice, read_write((*parts)(0))); });
  EXPECT_THAT(thrown_by<UsageError>([&] { graph.rebind((*parts)(0), other); }), HasSubstr("is a part"));
  rt->replay(graph);
  parts.reset();
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->replay(graph); }),
              AllOf(HasSubstr("cannot replay"), HasSubstr("this partition has ended")));
  auto view = rt->acquire(read(whole));
  EXPECT_THAT(*view, ElementsAre(2, 2, 1, 1));
}

/// Tests random uses of a matrix, of tiles, strips, blocks with a halo, and tiles of a strip, against the sequential
/// program.
constexpr std::size_t kMostBytes = 2 * 9 * 9 * sizeof(std::uint64_t);  ///< bytes of the whole and a part
void play(Runtime& rt, std::uint64_t seed, bool own_memory, bool records = false) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  const std::size_t rows = 1 + draw(9), cols = 1 + draw(9), ld = rows + draw(3);
  std::vector<std::uint64_t> memory(ld * cols), expected(rows * cols);
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t i = 0; i < rows; ++i) memory[i + j * ld] = expected[i + j * rows] = i + 10 * j;
  const auto kernel = [](std::uint64_t by, MatrixView<std::uint64_t> m) {
    for (std::size_t j = 0; j < m.cols; ++j)
      for (std::size_t i = 0; i < m.rows; ++i) m(i, j) = m(i, j) * 3 + by;
  };
  const auto change = Codelet("change", kernel).also(DeviceKind::user, kernel);
  const Codelet sum("sum", [](MatrixView<const std::uint64_t> m, std::uint64_t& into) {
    std::uint64_t all = into * 7;
    for (std::size_t j = 0; j < m.cols; ++j)
      for (std::size_t i = 0; i < m.rows; ++i) all += m(i, j) * (i + 1);
    into = all;
  });
  const auto whole = own_memory ? rt.data("A", MatrixView<std::uint64_t>{memory.data(), rows, cols, ld})
                                : rt.matrix<std::uint64_t>("A", rows, cols);
  if (!own_memory)
    rt.submit("begin", [](MatrixView<std::uint64_t> m) {
      for (std::size_t j = 0; j < m.cols; ++j)
        for (std::size_t i = 0; i < m.rows; ++i) m(i, j) = i + 10 * j;
    }, write(whole));
  std::uint64_t seen = 1, expected_seen = 1;
  const auto into = rt.data("seen", seen);
  const std::size_t tile = 1 + draw(4), strip = 1 + draw(4), smallest = rows % tile == 0 ? tile : rows % tile;
  const std::size_t halo = tile < rows ? draw(smallest + 1) : draw(3);
  {
    const auto tiles = rt.parts(whole, {.rows = tile, .cols = tile});
    const auto strips = rt.parts(whole, {.cols = strip});
    const auto borders = rt.parts(whole, {.rows = tile, .halo_rows = halo});
    const auto inner = rt.parts(strips(0, 0), {.rows = 2});
    struct Region {
      const Data<Matrix<std::uint64_t>>* data;
      std::size_t row, col;
      bool only_read;
    };
    std::vector<Region> regions{{&whole, 0, 0, false}};
    for (std::size_t j = 0; j < tiles.cols(); ++j)
      for (std::size_t i = 0; i < tiles.rows(); ++i) regions.push_back({&tiles(i, j), i * tile, j * tile, false});
    for (std::size_t j = 0; j < strips.cols(); ++j) regions.push_back({&strips(0, j), 0, j * strip, false});
    for (std::size_t i = 0; i < borders.rows(); ++i)
      regions.push_back({&borders(i), i * tile - std::min(halo, i * tile), 0, true});
    for (std::size_t i = 0; i < inner.rows(); ++i) regions.push_back({&inner(i), 2 * i, 0, false});
    struct Step {
      const Region* region;
      bool only_sees;
      std::uint64_t by;
    };
    const auto draw_step = [&](int number) {
      const Region& region = regions[draw(regions.size())];
      return Step{&region, region.only_read || draw(2) == 0, std::uint64_t(number)};
    };
    const auto submit = [&](const Step& step) {
      if (step.only_sees) rt.submit(sum, read(*step.region->data), read_write(into));
      else rt.submit(change, step.by, read_write(*step.region->data));
    };
    const auto expect = [&](const Step& step) {
      const Region& region = *step.region;
      std::uint64_t all = expected_seen * 7;
      for (std::size_t j = 0; j < region.data->cols(); ++j)
        for (std::size_t i = 0; i < region.data->rows(); ++i) {
          std::uint64_t& value = expected[region.row + i + (region.col + j) * rows];
          if (step.only_sees) all += value * (i + 1);
          else value = value * 3 + step.by;
        }
      if (step.only_sees) expected_seen = all;
    };
    std::vector<std::pair<Graph, std::vector<Step>>> graphs;
    for (int number = 0; number < 60; ++number) {
      const std::uint64_t what = records ? draw(8) : 7;
      if (what == 0 && graphs.size() < 3) {
        std::vector<Step> steps;
        for (std::uint64_t count = 1 + draw(6); count > 0; --count) steps.push_back(draw_step(number));
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
      if (draw(20) == 0) rt.wait();
    }
  }
  {
    auto view = rt.acquire(read(whole));
    for (std::size_t j = 0; j < cols; ++j)
      for (std::size_t i = 0; i < rows; ++i)
        ASSERT_EQ((*view)(i, j), expected[i + j * rows]) << "seed " << seed << " at " << i << "," << j;
  }
  rt.wait();
  ASSERT_EQ(seen, expected_seen) << "seed " << seed;
}

TEST(Parts, InRandomFlowsGiveWhatTheSequentialProgramGives) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) play(*loop_runtime({.seed = seed}), seed, seed % 2 == 0);
}

TEST(Parts, InRandomFlowsWithDevices) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    play(*loop_runtime({.seed = seed, .devices = 2, .device_bytes = seed % 3 == 0 ? 1'500U : 0U}), seed, seed % 2 == 0);
}

TEST(Parts, InRandomFlowsWithRecordings) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    play(*loop_runtime({.seed = seed,
                        .devices = static_cast<unsigned>(seed % 3),
                        .main_bytes = seed % 2 == 0 ? kMostBytes + seed % 5 * 400 : 0U}),
         seed, seed % 4 < 2, true);
}

TEST(Parts, InRandomFlowsWithRecordingsOnThreads) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) play(*thread_runtime({.workers = 3}), seed, seed % 2 == 0, true);
  for (std::uint64_t seed = 31; seed <= 60; ++seed)
    play(*budget_runtime(std::to_string(kMostBytes + seed % 5 * 400), 3), seed, seed % 4 == 0, true);
}

TEST(Parts, InRandomFlowsWithABudgetOfMainMemory) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    play(*loop_runtime({.seed = seed,
                        .devices = static_cast<unsigned>(seed % 3),
                        .device_bytes = seed % 4 == 0 ? 1'500U : 0U,
                        .main_bytes = kMostBytes + seed % 5 * 400}),
         seed, seed % 4 == 0);
}

TEST(Parts, InRandomFlowsWithABudgetOnThreads) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    play(*budget_runtime(std::to_string(kMostBytes + seed % 5 * 400), 3), seed, seed % 4 == 0);
}

TEST(Parts, InRandomFlowsOnThreads) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) play(*thread_runtime({.workers = 3}), seed, seed % 2 == 0);
}

}  // namespace
}  // namespace tandem::parts_test
