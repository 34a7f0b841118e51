// tandem/api/device_test_support.hpp: common part of the tests of devices: counted copies, and flows of random tasks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/device.hpp"
#include "tandem/tandem.hpp"

namespace tandem::test {

using Word = std::uint64_t;
using ConstMatrix = MatrixView<const Word>;

/// Counts the bytes that another copier moves.
struct CountingCopier final : Copier {
  struct Bytes {
    std::atomic<std::size_t> to_device{0};
    std::atomic<std::size_t> from_device{0};
  };
  CountingCopier(std::unique_ptr<Copier> behind, Bytes& bytes) : behind_(std::move(behind)), bytes_(bytes) {}
  runtime::CopyState start(const CopyRequest& request, runtime::CopyEnded ended) override {
    (request.to_node == 0 ? bytes_.from_device : bytes_.to_device) += request.shape.bytes();
    return behind_->start(request, std::move(ended));
  }
  void finish() noexcept override { behind_->finish(); }

 private:
  const std::unique_ptr<Copier> behind_;
  Bytes& bytes_;
};

/// Computes c += a b.
inline void multiply(ConstMatrix a, ConstMatrix b, MatrixView<Word> c) {
  for (std::size_t j = 0; j < c.cols; ++j)
    for (std::size_t i = 0; i < c.rows; ++i)
      for (std::size_t l = 0; l < a.cols; ++l) c(i, j) += a(i, l) * b(l, j);
}

/// Tests y += a x once, on a device; `bytes` counts copies.
template <class Axpy>
void expect_a_kernel_runs(Runtime& rt, const CountingCopier::Bytes& bytes, const Axpy& on_device) {
  std::vector<Word> x(1'000, 2), y(1'000, 1);
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  rt.submit(on_device, Word{3}, read(hx), read_write(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(1'000, 7));
  EXPECT_EQ(bytes.to_device, 16'000U);
  EXPECT_EQ(bytes.from_device, 8'000U);
}

/// Tests c += a b on a device, for matrices with gaps between columns.
template <class Gemm>
void expect_any_leading_dimension(Runtime& rt, const Gemm& on_device) {
  std::vector<Word> a(7 * 3, 1), b(5 * 4, 2), c(9 * 4, 1);
  auto ha = rt.data("a", MatrixView<Word>{a.data(), 6, 3, 7}), hb = rt.data("b", MatrixView<Word>{b.data(), 3, 4, 5}),
       hc = rt.data("c", MatrixView<Word>{c.data(), 6, 4, 9});
  rt.submit(on_device, read(ha), read(hb), read_write(hc));
  rt.wait(hc);
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(c[i + j * 9], i < 6 ? 7U : 1U) << i << " " << j;
}

/// Tests scalars and values: the result is 0 + 1 + ... + 9 more.
template <class Bump>
void expect_scalars_and_values(Runtime& rt, const Bump& on_device) {
  int value = 5;
  auto x = rt.data("x", value);
  for (int i = 0; i < 10; ++i) rt.submit(on_device, i, read_write(x));
  rt.wait(x);
  EXPECT_EQ(value, 50);
}

/// Tests tasks of a device before and after one of a core.
template <class Axpy>
void expect_fewest_copies(Runtime& rt, const CountingCopier::Bytes& bytes, const Axpy& on_device) {
  std::vector<Word> x(500, 1), y(500, 0);
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  // Both are copied to the device once. y comes back when a core needs it, and goes there again because the core has
  // changed it.
  for (int i = 0; i < 5; ++i) rt.submit(on_device, Word{1}, read(hx), read_write(hy));
  rt.submit(Codelet("double", [](std::span<Word> v) { for (Word& one : v) one *= 2; }), read_write(hy));
  for (int i = 0; i < 5; ++i) rt.submit(on_device, Word{1}, read(hx), read_write(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(500, 15));
  EXPECT_EQ(bytes.to_device, 3 * 4'000U);
  EXPECT_EQ(bytes.from_device, 2 * 4'000U);
}

/// Tests workers 1 and 2, whose devices take turns.
template <class Axpy>
void expect_copies_between_two_devices(Runtime& rt, const CountingCopier::Bytes& bytes, const Axpy& axpy) {
  std::vector<Word> x(500, 1), y(500, 0);
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  for (unsigned i = 0; i < 10; ++i)
    rt.submit(axpy.can_run([i](const WorkerDescription& worker) { return worker.worker == 1 + i % 2; }), Word{1},
              read(hx), read_write(hy));
  rt.wait(hy);
  EXPECT_EQ(y, std::vector<Word>(500, 10));
  EXPECT_EQ(bytes.to_device, 12 * 4'000U) << "x and y to each, then y to and fro";
}

/// Words of each of the runtime's vectors, of which only a few fit into main memory and a device's; the others are in
/// the file.
constexpr std::size_t kWordsOfOne = 100;
template <class Axpy>
void expect_values_in_little_memory(Runtime& rt, const Axpy& axpy, DeviceKind kind) {
  ASSERT_TRUE(rt.memory_nodes().back().is_storage || rt.memory_nodes()[1].is_storage);
  constexpr std::size_t count = 12;
  std::mt19937_64 random(7);
  const auto on_device = axpy.can_run([kind](const WorkerDescription& worker) { return worker.device == kind; });
  const auto on_core = axpy.can_run([kind](const WorkerDescription& worker) { return worker.device != kind; });
  const Codelet fill("fill", [](Word value, std::span<Word> x) { std::fill(x.begin(), x.end(), value); });
  std::vector<Data<Vector<Word>>> vectors;
  std::vector<Word> expected;
  for (std::size_t i = 0; i < count; ++i) {
    vectors.push_back(rt.vector<Word>("v", kWordsOfOne));
    expected.push_back(i + 1);
    rt.submit(fill, expected.back(), write(vectors.back()));
  }
  for (int task = 0; task < 300; ++task) {
    const std::size_t to = random() % count, from = (to + 1 + random() % (count - 1)) % count;
    const Word a = random() % 100;
    rt.submit(random() % 2 == 0 ? on_device : on_core, a, read(vectors[from]), read_write(vectors[to]));
    expected[to] += a * expected[from];
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto view = rt.acquire(read(vectors[i]));
    EXPECT_EQ(std::vector<Word>((*view).begin(), (*view).end()), std::vector<Word>(kWordsOfOne, expected[i])) << i;
  }
}

/// Lets sums of words begin with 0.
inline void add_up(Data<Vector<Word>>& vector) {
  vector.reduction([](std::span<Word> copy) { std::fill(copy.begin(), copy.end(), 0); },
                   [](std::span<Word> into, std::span<const Word> from) {
                     for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                   });
}

/// Tests y += a x by concurrent tasks of cores and devices that add to copies of y.
template <class Axpy>
void expect_sums(Runtime& rt, const CountingCopier::Bytes& bytes, const Axpy& axpy, DeviceKind kind) {
  const auto on_device = axpy.can_run([kind](const WorkerDescription& worker) { return worker.device == kind; });
  std::vector<Word> x(1'000), y(1'000, 3), expected(1'000, 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i;
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  add_up(hy);
  for (int round = 0; round < 4; ++round) {
    for (Word a = 1; a <= 24; ++a) rt.submit(a % 2 == 0 ? on_device : axpy, a, read(hx), reduce(hy));
    rt.submit(Codelet("double", [](std::span<Word> v) { for (Word& one : v) one *= 2; }), read_write(hy));
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = (expected[i] + 300 * x[i]) * 2;
  }
  rt.wait();
  EXPECT_EQ(y, expected);
  EXPECT_GE(bytes.from_device, 4 * 8'000U) << "at least one copy each time";
}

/// A flow of random tasks: y += a x on three vectors, some of them concurrent, and products of three matrices; some
/// only on devices of one kind, some only on cores.
class RandomDeviceFlow {
 public:
  static constexpr std::size_t n = 12;                        ///< size of each matrix; a vector has n * n words
  static constexpr std::size_t bytes_of_one = n * n * sizeof(Word);

  RandomDeviceFlow(std::uint64_t seed, DeviceKind kind) : random_(seed), kind_(kind) {}

  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  /// Runs the flow. `before_each` is called before each task; `may_restrict` false: no task is for devices alone.
  /// Returns whether the values are those of sequential execution.
  template <class Axpy, class Gemm>
  testing::AssertionResult play(std::unique_ptr<Runtime> rt, const Axpy& axpy, const Gemm& gemm,
                                bool may_restrict = true, const std::function<void()>& before_each = {}) {
    std::vector<std::vector<Word>> memory(6, std::vector<Word>(n * n));
    for (auto& one : memory)
      for (Word& word : one) word = random_();
    std::vector<std::vector<Word>> expected = memory;
    std::vector<Data<Vector<Word>>> vectors;
    std::vector<Data<Matrix<Word>>> matrices;
    for (std::size_t i = 0; i < 3; ++i) add_up(vectors.emplace_back(rt->data(memory[i])));
    for (std::size_t i = 3; i < 6; ++i) matrices.push_back(rt->data(MatrixView<Word>{memory[i].data(), n, n, n}));
    for (int task = 0; task < 60; ++task) {
      const unsigned which = may_restrict ? draw(3) : 2 * draw(2), to = draw(3), from = (to + 1 + draw(2)) % 3,
                     other = 3 - to - from;
      if (before_each) before_each();
      if (draw(2) == 0) {
        const Word a = random_();
        if (draw(2) == 0) rt->submit(where(which, axpy), a, read(vectors[from]), reduce(vectors[to]));
        else rt->submit(where(which, axpy), a, read(vectors[from]), read_write(vectors[to]));
        for (std::size_t i = 0; i < n * n; ++i) expected[to][i] += a * expected[from][i];
      } else {
        rt->submit(where(which, gemm), read(matrices[from]), read(matrices[other]), read_write(matrices[to]));
        multiply({expected[3 + from].data(), n, n, n}, {expected[3 + other].data(), n, n, n},
                 {expected[3 + to].data(), n, n, n});
      }
    }
    rt->wait();
    rt.reset();
    return memory == expected ? testing::AssertionSuccess() : testing::AssertionFailure() << "other values";
  }

 private:
  /// Restricts a codelet; 0: anywhere; 1: on devices; 2: on cores.
  template <class Codelet>
  Codelet where(unsigned which, const Codelet& codelet) const {
    if (which == 0) return codelet;
    return codelet.can_run(
        [which, kind = kind_](const WorkerDescription& worker) { return (worker.device == kind) == (which == 1); });
  }

  std::mt19937_64 random_;
  DeviceKind kind_;
};

}  // namespace tandem::test
