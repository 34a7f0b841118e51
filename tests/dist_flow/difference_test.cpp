// tests/dist_flow/difference_test.cpp: ranks that submit different flows learn where they differ, and do not hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ranks.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/dist/flat_bytes.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/dist/flow_sketch.hpp"

namespace tandem::dist_test::difference_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Codelet copy("copy", [](std::span<const double> from, std::span<double> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i];
});
const Codelet add("add", [](std::span<const double> from, std::span<double> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
});
const Codelet increase("increase", [](std::span<double> x) {
  for (double& value : x) value += 1;
});

void expect_all(const std::vector<Ending>& endings, const testing::Matcher<const std::string&>& matcher) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank)
    EXPECT_THAT(endings[rank].error, matcher) << "rank " << rank;
}

TEST(Difference, AReadThatDiffersIsNamed) {
  expect_all(run_job({.ranks = 2},
                     [](Runtime& rt) {
                       std::vector<double> x(10, 1.0), y(10, 2.0), z(10, 0.0);
                       auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 0}),
                            hz = rt.data("z", z, {.owner = 1});
                       rt.submit(increase, read_write(hx));
                       rt.submit(copy, rt.rank() == 1 ? read(hy) : read(hx), write(hz));
                       rt.wait();
                     }),
             AllOf(HasSubstr("different flows"),
                   HasSubstr("operation 2: rank 0 has submitted a task (at difference_test.cpp:"),
                   HasSubstr("with read of data 'x'"), HasSubstr("rank 1 has submitted a task"),
                   HasSubstr("with read of data 'y'"), HasSubstr("write of data 'z'")));
}

TEST(Difference, AReadThatDiffersBetweenRanksThatTakeNoPartIsNamed) {
  expect_all(run_job({.ranks = 4}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 2.0), z(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 0}), hz = rt.data("z", z, {.owner = 0});
    rt.submit(copy, rt.rank() == 3 ? read(hy) : read(hx), write(hz));
    rt.wait();
  }), AllOf(HasSubstr("different flows"), HasSubstr("operation 1: rank 2 has"), HasSubstr("rank 3 has")));
}

TEST(Difference, ATaskThatRunsOnAnotherRankIsNamed) {
  expect_all(run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0);
    auto hx = rt.data("x", x, {.owner = 0});
    rt.submit({.on = rt.rank() == 2 ? 2U : 1U}, increase, read_write(hx));
    rt.wait();
  }), AllOf(HasSubstr("different flows"), HasSubstr("for rank 1 "), HasSubstr("for rank 2 ")));
}

TEST(Difference, AnOperationThatIsNoTaskIsNamed) {
  expect_all(run_job({.ranks = 2},
                     [](Runtime& rt) {
                       std::vector<double> x(10, 1.0);
                       auto hx = rt.data("x", x, {.owner = 0});
                       if (rt.rank() == 0)
                         rt.flush(hx);
                       else
                         rt.migrate(hx, 1);
                       rt.wait();
                     }),
             AllOf(HasSubstr("different flows"), HasSubstr("a flush of data 'x'"), HasSubstr("a migration"),
                   HasSubstr("to rank 1")));
}

TEST(Difference, AWaitOfTheProgramForDataThatNobodySendsEndsTheJob) {
  JobSetup setup{.ranks = 2};
  setup.flow.compare_after_ns = 20'000'000;
  expect_all(run_job(setup, [](Runtime& rt) {
    std::vector<double> h(10, 1.0), k(10, 0.0);
    auto hh = rt.data("h", h, {.owner = 0}), hk = rt.data("k", k, {.owner = 1});
    if (rt.rank() == 0) rt.submit(increase, read_write(hk));
    else rt.submit(add, read(hh), read_write(hk));
    rt.wait(hk);  // of this rank alone
    rt.wait();
  }), AllOf(HasSubstr("different flows"), HasSubstr("operation 1:"), HasSubstr("with read of data 'h'"),
            HasSubstr("with read_write of data 'k'")));
}

TEST(Difference, RanksThatWaitForEachOtherEndTheJob) {
  JobSetup setup{.ranks = 2};
  setup.flow.compare_after_ns = 20'000'000;
  expect_all(run_job(setup, [](Runtime& rt) {
    std::vector<double> h(10, 1.0), k(10, 0.0);
    auto hh = rt.data("h", h, {.owner = 0}), hk = rt.data("k", k, {.owner = 1});
    // Each acquires what the other one has.
    if (rt.rank() == 0) EXPECT_EQ((*rt.acquire(read(hk)))[0], 0.0);
    else EXPECT_EQ((*rt.acquire(read(hh)))[0], 1.0);
  }), AllOf(HasSubstr("different flows"), HasSubstr("operation 1:"), HasSubstr("data 'h'"), HasSubstr("data 'k'")));
}

TEST(Difference, AFullWindowOfTasksThatWaitForDataEndsTheJob) {
  JobSetup setup{.ranks = 2};
  setup.flow.compare_after_ns = 20'000'000;
  setup.core.window = 16;
  expect_all(run_job(setup, [](Runtime& rt) {
    std::vector<double> h(10, 1.0), k(10, 0.0);
    auto hh = rt.data("h", h, {.owner = 0}), hk = rt.data("k", k, {.owner = 1});
    for (int i = 0; i < 100; ++i) {
      if (rt.rank() == 0 && i == 0) rt.submit(increase, read_write(hk));
      else rt.submit(add, read(hh), read_write(hk));
    }
    rt.wait();
  }), AllOf(HasSubstr("different flows"), HasSubstr("operation 1:")));
}

TEST(Difference, OfManyOperationsARangeIsNamed) {
  expect_all(run_job({.ranks = 2}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 2.0), z(10, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 0}), hz = rt.data("z", z, {.owner = 0});
    for (int i = 1; i <= 10'000; ++i) rt.submit(copy, rt.rank() == 1 && i == 3'000 ? read(hy) : read(hx), write(hz));
    rt.wait();
  }), AllOf(HasSubstr("different flows"), HasSubstr("one of operations 2049 to 3072")));
}

TEST(Difference, EqualFlowsHaveNone) {
  const auto endings = run_job({.ranks = 3}, [](Runtime& rt) {
    std::vector<double> x(10, 1.0), y(10, 2.0), sum(1, 0.0);
    auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 1}),
         hsum = rt.data("sum", sum, {.owner = 2});
    hsum.reduction([](std::span<double> none) { none[0] = 0; },
                   [](std::span<double> all, std::span<const double> more) { all[0] += more[0]; });
    const Codelet total("total", [](std::span<const double> in, std::span<double> out) { out[0] += in[0]; });
    for (int round = 0; round < 3; ++round) {
      rt.submit(add, read(hx), read_write(hy));
      rt.submit({.on = 2}, increase, read_write(hx));
      rt.submit(copy, read(hx), write(hx));  // one datum, twice
      rt.submit(total, read(hx), reduce(hsum));
      rt.fetch(hy, 0);
      rt.migrate(hx, (round + 1) % 3);
      rt.flush(hy);
      EXPECT_EQ((*rt.acquire(read(hsum)))[0] > 0, true);
      rt.wait();
    }
  });
  expect_all(endings, testing::Eq(""));
}

// --- sketches

dist::FlowSketch sketch_of(const std::vector<int>& operations, std::uint64_t rank) {
  std::vector<runtime::Handle*> none;
  dist::FlowHistory history;
  std::uint64_t position = 0;
  for (const int executor : operations)
    history.note(++position, dist::OperationKind::task, static_cast<std::uint32_t>(executor), {}, {});
  dist::FlowSketch sketch = history.sketch(position);
  sketch.rank = rank;
  return sketch;
}

TEST(FlowSketch, FindsTheFirstOperationThatDiffers) {
  const auto difference = dist::first_difference(sketch_of({1, 2, 3, 4}, 0), sketch_of({1, 2, 5}, 7));
  EXPECT_EQ(difference.first, 3U);
  EXPECT_EQ(difference.last, 3U);
  EXPECT_EQ(difference.operations[0].executor, 3U);
  EXPECT_EQ(difference.operations[1].executor, 5U);
  EXPECT_EQ(difference.ranks[1], 7U);
}

TEST(FlowSketch, AShorterFlowIsNoDifference) {
  EXPECT_FALSE(dist::first_difference(sketch_of({1, 2, 3, 4}, 0), sketch_of({1, 2, 3}, 1)).exists());
}

TEST(FlowSketch, AnOldDifferenceIsFoundAsARangeHoweverLongTheFlowIs) {
  std::vector<int> a(2'000'000, 1), b(1'500'000, 1);
  b[777'777] = 2;
  const auto difference = dist::first_difference(sketch_of(a, 0), sketch_of(b, 1));
  EXPECT_LE(difference.first, 777'778U);
  EXPECT_GE(difference.last, 777'778U);
  EXPECT_LT(difference.last - difference.first, 2'000'000U / 100);
}

/// A text says how long it is: more than there is must not be read.
TEST(FlowSketch, AMessageThatEndsEarlyReadsAsWhatIsThere) {
  dist::FlatWriter writer;
  sketch_of({1, 2, 3, 4}, 3).write(writer);
  dist::FlowDifference{}.write(writer.text("some text"));
  const std::vector<std::byte> whole = writer.take();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    dist::FlatReader reader(part);
    const dist::FlowSketch sketch = dist::FlowSketch::from(reader);
    EXPECT_LE(sketch.operations.size(), 4U);
    EXPECT_LE(reader.text().size(), 9U);
    EXPECT_FALSE(dist::FlowDifference::from(reader).exists());
  }
  const std::vector<std::byte> lie = dist::FlatWriter().number(100).number('x').take();
  EXPECT_EQ(dist::FlatReader(lie).text().size(), 8U);
}

}  // namespace
}  // namespace tandem::dist_test::difference_test
