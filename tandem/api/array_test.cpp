// tandem/api/array_test.cpp: arrays of several dimensions, with gaps in the program's memory.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/copies_seen.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::array_test {
namespace {

using test::CopiesSeen;
using test::loop_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

bool on_device(const WorkerDescription& worker) { return worker.device == DeviceKind::user; }

/// A field of nx by ny by nz numbers, the first index fastest.
struct Field {
  std::array<std::size_t, 3> n;
  std::vector<int> values;

  explicit Field(std::array<std::size_t, 3> sizes) : n(sizes), values(sizes[0] * sizes[1] * sizes[2]) {
    std::iota(values.begin(), values.end(), 0);
  }
  ArrayView<int, 3> all() { return {values.data(), n, {1, n[0], n[0] * n[1]}}; }
};

const auto kScale = [](int by, ArrayView<int, 3> block) {
  for (std::size_t k = 0; k < block.extents[2]; ++k)
    for (std::size_t j = 0; j < block.extents[1]; ++j)
      for (std::size_t i = 0; i < block.extents[0]; ++i)
        block(i, j, k) = block(i, j, k) * by + static_cast<int>(i + 10 * j + 100 * k);
};
const auto scale = Codelet("scale", kScale).also(DeviceKind::user, kScale);
const auto scale_there = scale.can_run(on_device);

TEST(Array, ABlockOfAFieldIsUsedWhereItLiesAndElsewhere) {
  for (const auto& [first, counts] :
       {std::pair(std::array<std::size_t, 3>{1, 2, 1}, std::array<std::size_t, 3>{3, 2, 2}),
        std::pair(std::array<std::size_t, 3>{0, 0, 1}, std::array<std::size_t, 3>{5, 4, 2}),
        std::pair(std::array<std::size_t, 3>{0, 1, 0}, std::array<std::size_t, 3>{5, 2, 3}),
        std::pair(std::array<std::size_t, 3>{4, 3, 2}, std::array<std::size_t, 3>{1, 1, 1}),
        std::pair(std::array<std::size_t, 3>{2, 1, 0}, std::array<std::size_t, 3>{0, 2, 2})})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Field field({5, 4, 3}), expected({5, 4, 3});
      {
        CopiesSeen seen({.seed = seed, .devices = 2});
        Runtime& rt = seen.runtime();
        auto block = rt.data("block", field.all().block(first, counts));
        for (int round = 1; round <= 4; ++round) {
          rt.submit(round % 2 == 1 ? scale_there : scale, round, read_write(block));
          kScale(round, expected.all().block(first, counts));
        }
        rt.submit(scale_there, 7, read_write(block));
        kScale(7, expected.all().block(first, counts));
        rt.wait();
      }
      EXPECT_EQ(field.values, expected.values) << "seed " << seed << ": the block is changed, and nothing else";
    }
}

TEST(Array, ARowMajorMatrixIsAnArray) {
  std::vector<double> memory{1, 2, 3, 4, 5, 6};
  {
    CopiesSeen seen({.devices = 1});
    Runtime& rt = seen.runtime();
    auto matrix = rt.data("rows", ArrayView<double, 2>{memory.data(), {2, 3}, {3, 1}});
    const auto kernel = [](ArrayView<double, 2> m, unsigned& node_strides) {
      for (std::size_t i = 0; i < m.extents[0]; ++i)
        for (std::size_t j = 0; j < m.extents[1]; ++j) m(i, j) += static_cast<double>(100 * i + 10 * j);
      node_strides = static_cast<unsigned>(m.strides[0] * 10 + m.strides[1]);
    };
    const auto add = Codelet("add", kernel).also(DeviceKind::user, kernel);
    const auto strides = rt.scalar<unsigned>("strides");
    rt.submit(Codelet("here", kernel), read_write(matrix), write(strides));
    EXPECT_EQ(*rt.acquire(read(strides)), 31U) << "in the program's memory";
    rt.submit(add.can_run(on_device), read_write(matrix), write(strides));
    EXPECT_EQ(*rt.acquire(read(strides)), 12U) << "packed on the device";
    rt.wait();
  }
  EXPECT_THAT(memory, ElementsAre(1, 22, 43, 204, 225, 246));
}

TEST(Array, TandemAllocatesArrays) {
  const auto rt = loop_runtime();
  const auto a = rt->array<int>("a", {2, 3, 4});
  const auto b = rt->array<int>("b", {7});
  rt->submit("fill", [](ArrayView<int, 3> to, ArrayView<int, 1> line) {
    if (to.size() != 24 || line.extents[0] != 7) throw std::logic_error("another size");
    for (int i = 0; i < 24; ++i) to.data[i] = i;
    line(6) = 5;
  }, write(a), write(b));
  auto view = rt->acquire(read(a));
  EXPECT_EQ((*view)(1, 2, 3), 23);
  EXPECT_EQ((*view)(0, 1, 0), 2);
  EXPECT_EQ((*rt->acquire(read(b)))(6), 5);
}

TEST(Array, TakesPartInListsReductionsAndRecordings) {
  Field field({4, 4, 4});
  const Field before = field;
  {
    const auto rt = loop_runtime();
    std::vector<ArrayData<int, 3>> blocks;
    for (std::size_t k = 0; k < 4; k += 2)
      for (std::size_t i = 0; i < 4; i += 2)
        blocks.push_back(rt->data("block", field.all().block({i, 0, k}, {2, 4, 2})));
    Graph graph = rt->record([&] {
      rt->submit("add", [](Each<ArrayView<int, 3>> each) {
        for (const ArrayView<int, 3> block : each)
          for (std::size_t k = 0; k < 2; ++k)
            for (std::size_t j = 0; j < 4; ++j)
              for (std::size_t i = 0; i < 2; ++i) block(i, j, k) += 1;
      }, read_write(blocks));
    });
    rt->replay(graph);
    rt->replay(graph);
    blocks[0].reduction(
        [](ArrayView<int, 3> block) {
          for (std::size_t at = 0; at < block.size(); ++at) block.data[at] = 0;  // the block is packed
        },
        [](ArrayView<int, 3> into, ArrayView<const int, 3> from) {
          for (std::size_t k = 0; k < 2; ++k)
            for (std::size_t j = 0; j < 4; ++j)
              for (std::size_t i = 0; i < 2; ++i) into(i, j, k) += from(i, j, k);
        });
    for (int task = 0; task < 5; ++task)
      rt->submit(
          "reduce", [](ArrayView<int, 3> block) { block(1, 3, 1) += 1'000; }, reduce(blocks[0]));
    rt->wait();
  }
  for (std::size_t at = 0; at < field.values.size(); ++at)
    EXPECT_EQ(field.values[at], before.values[at] + 2 + (at == 1 + 3 * 4 + 1 * 16 ? 5'000 : 0)) << at;
}

TEST(Array, ACopyTakesTheBytesOfTheBlockAndNoMore) {
  Field field({10, 10, 10});
  CopiesSeen seen({.devices = 1});
  Runtime& rt = seen.runtime();
  auto block = rt.data("block", field.all().block({1, 1, 1}, {2, 3, 4}));
  rt.submit(scale_there, 1, read_write(block));
  rt.wait();
  EXPECT_EQ(seen.bytes, 2 * 3 * 4 * sizeof(int));
  EXPECT_THAT(seen.copies, ElementsAre(Pair(0, 1)));
  block.unregister();
  EXPECT_EQ(seen.bytes, 2 * 2 * 3 * 4 * sizeof(int));
}

TEST(Array, ConstantMemoryIsRead) {
  const std::vector<int> memory{1, 2, 3, 4};
  const auto rt = loop_runtime();
  const auto column = rt->data("column", ArrayView<const int, 1>{memory.data(), {2}, {2}});
  const auto sum = rt->scalar<int>("sum");
  rt->submit("sum", [](ArrayView<const int, 1> from, int& to) { to = from(0) + from(1); }, read(column), write(sum));
  EXPECT_EQ(*rt->acquire(read(sum)), 4);
}

TEST(Array, MistakesAreTold) {
  Field field({4, 4, 4});
  const auto rt = loop_runtime();
  const ArrayView<int, 2> twice{field.values.data(), {4, 4}, {1, 3}};
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->data("twice", twice); }),
              AllOf(HasSubstr("'twice'"), HasSubstr("array_test.cpp"), HasSubstr("several elements in one place")));
  const ArrayView<int, 2> same{field.values.data(), {4, 4}, {0, 1}};
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->data("same", same); }), HasSubstr("several elements in one place"));
  const ArrayView<int, 1> none{nullptr, {3}, {2}};
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->data("none", none); }), HasSubstr("null pointer"));
  // Tiles that interleave share no memory; tiles that overlap do.
  const auto left = rt->data("left", ArrayView<int, 2>{field.values.data(), {2, 4}, {1, 4}});
  const auto right = rt->data("right", ArrayView<int, 2>{field.values.data() + 2, {2, 4}, {1, 4}});
  EXPECT_THAT(thrown_by<UsageError>([&] {
                rt->data("middle", ArrayView<int, 2>{field.values.data() + 5, {2, 2}, {1, 4}});
              }),
              AllOf(HasSubstr("'middle'"), HasSubstr("overlaps with that of data 'left'")));
}

/// Random tasks use random blocks of one field, in memories with room for some of them.
TEST(Array, RandomFlowsGiveWhatTheSequentialProgramGives) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
    Field field({6, 6, 4}), expected({6, 6, 4});
    {
      CopiesSeen seen({.seed = seed, .devices = 2, .device_bytes = (2 + draw(3)) * 3 * 3 * 2 * sizeof(int)});
      Runtime& rt = seen.runtime();
      std::vector<ArrayData<int, 3>> blocks;
      std::vector<std::array<std::size_t, 3>> places;
      const std::array<std::size_t, 3> size{3, 3, 2};
      for (std::size_t k = 0; k < 4; k += 2)
        for (std::size_t j = 0; j < 6; j += 3)
          for (std::size_t i = 0; i < 6; i += 3) {
            places.push_back({i, j, k});
            blocks.push_back(rt.data("block", field.all().block(places.back(), size)));
          }
      const auto add = [](ArrayView<const int, 3> from, ArrayView<int, 3> to) {
        for (std::size_t k = 0; k < 2; ++k)
          for (std::size_t j = 0; j < 3; ++j)
            for (std::size_t i = 0; i < 3; ++i)
              to(i, j, k) =
                  static_cast<int>(static_cast<unsigned>(to(i, j, k)) * 3 + static_cast<unsigned>(from(j, i, k)));
      };
      const auto anywhere = Codelet("add", add).also(DeviceKind::user, add);
      const auto there = anywhere.can_run(on_device);
      for (int task = 0; task < 50; ++task) {
        const std::size_t from = draw(8), to = draw(8);
        if (from == to) continue;
        if (draw(4) == 0) rt.prefetch(blocks[from], static_cast<unsigned>(draw(3)));
        rt.submit(draw(2) == 0 ? there : anywhere, read(blocks[from]), read_write(blocks[to]));
        add(expected.all().block(places[from], size), expected.all().block(places[to], size));
      }
      rt.wait();
    }
    ASSERT_EQ(field.values, expected.values) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::array_test
