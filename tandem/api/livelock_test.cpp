// tandem/api/livelock_test.cpp: memories with room for the data of one or two tasks, as in reports of runtimes that
// came to a standstill.
//
// Each flow runs in the test world over many seeds, where a standstill is a step too many, and on threads, where the
// watchdog throws. The reports: StarPU issues 33 and 38, PaRSEC issues 88 and 742 (github.com/starpu-runtime/starpu,
// github.com/ICLDisco/parsec).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/copies_seen.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/device.hpp"
#include "tandem/runtime/device/plain_device.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::livelock_test {
namespace {

using test::CopiesSeen;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

using Tile = VectorData<double>;
using Flow = std::function<void(Runtime& rt, std::size_t words)>;

bool on_device(const WorkerDescription& worker) { return worker.device == DeviceKind::user; }
bool on_first_device(const WorkerDescription& worker) { return worker.worker == 2; }
bool on_second_device(const WorkerDescription& worker) { return worker.worker == 3; }

/// Number of tiles that fit into each memory; 0: all.
struct Rooms {
  unsigned devices = 1;
  std::size_t on_device = 0;
  std::size_t at_home = 0;
};

/// Runs the flow in the test world. `most_copies`: limit for one run; 0: any number.
void play_on_loop(const Rooms& rooms, const Flow& flow, std::size_t most_copies, std::uint64_t seeds = 40) {
  constexpr std::size_t words = 4;
  constexpr std::size_t bytes = words * sizeof(double);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CopiesSeen seen({.seed = seed,
                     .workers = 2,
                     .devices = rooms.devices,
                     .copy_ns = 2'000,
                     .device_bytes = rooms.on_device * bytes,
                     .main_bytes = rooms.at_home * bytes});
    std::size_t steps = 0;
    seen.loop().choose_with([&](std::size_t count) {
      if (++steps > 100'000) throw std::logic_error("it goes on for ever");
      return static_cast<std::size_t>(seen.loop().random() % count);
    });
    ASSERT_NO_THROW(flow(seen.runtime(), words)) << "seed " << seed;
    if (most_copies != 0) {
      ASSERT_LE(seen.copies.size(), most_copies) << "seed " << seed;
    }
    for (unsigned node = 0; node <= rooms.devices; ++node)
      ASSERT_TRUE(seen.runtime().core().memory().room().check_invariants(node)) << "seed " << seed;
  }
}

class OwnMemory final : public MemoryNode {
 public:
  std::string name() const override { return "memory of a plain device"; }
  void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
};

void play_on_threads(const Rooms& rooms, const Flow& flow, int rounds = 3) {
  constexpr std::size_t words = 8'192;
  constexpr std::size_t bytes = words * sizeof(double);
  for (int round = 0; round < rounds; ++round) {
    Options options{.workers = 2};
    for (unsigned device = 0; device < rooms.devices; ++device)
      options.devices.push_back([&] {
        return DeviceUnit{.device = std::make_unique<runtime::PlainDevice>(2),
                          .memory = std::make_unique<OwnMemory>(),
                          .copier = nullptr,
                          .budget = rooms.on_device * bytes};
      });
    options.more = {{"ranks", "alone"}, {"bind", "false"}, {"watchdog", "20s"}, {"watchdog_throws", "true"}};
    if (rooms.at_home != 0) {
      options.more.emplace_back("memory", std::to_string(rooms.at_home * bytes));
      options.more.emplace_back("spill", testing::TempDir());
    }
    Runtime rt(options);
    ASSERT_NO_THROW(flow(rt, words)) << "round " << round;
  }
}

Tile filled(Runtime& rt, const std::string& name, std::size_t words, double with) {
  auto tile = rt.vector<double>(name, words);
  rt.submit("fill", [](double value, std::span<double> to) {
    for (double& v : to) v = value;
  }, with, write(tile));
  return tile;
}

void expect_all(Runtime& rt, const Tile& tile, double value) {
  auto view = rt.acquire(read(tile));
  for (const double v : *view) ASSERT_EQ(v, value) << tile.name();
}

/// A codelet whose kernel runs on cores and devices.
template <class Kernel>
auto anywhere(const char* name, Kernel kernel) {
  return Codelet(name, kernel).also(DeviceKind::user, kernel);
}

// --- StarPU issue 38: each task needs two inputs; fetching one evicts the other, and no task ever begins

constexpr std::size_t kInputs = 8;
constexpr std::size_t kPairs = kInputs * (kInputs - 1) / 2;

void all_pairs(Runtime& rt, std::size_t words) {
  const auto product = anywhere("product", [](std::span<const double> a, std::span<const double> b,
                                              std::span<double> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = a[i] * b[i];
  });
  const auto there = product.can_run(on_device);
  std::vector<Tile> inputs, results;
  for (std::size_t i = 0; i < kInputs; ++i)
    inputs.push_back(filled(rt, "in" + std::to_string(i), words, static_cast<double>(i + 2)));
  for (std::size_t i = 0; i < kInputs; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      results.push_back(rt.vector<double>("out", words));
      rt.submit(there, read(inputs[i]), read(inputs[j]), write(results.back()));
    }
  std::size_t at = 0;
  for (std::size_t i = 0; i < kInputs; ++i)
    for (std::size_t j = 0; j < i; ++j) expect_all(rt, results[at++], static_cast<double>((i + 2) * (j + 2)));
  rt.wait();
}

TEST(Livelock, InputsThatDisplaceEachOther) {
  // At most two copies are made to a task, and one of its result.
  for (const std::size_t room : {3U, 4U}) {
    play_on_loop({.devices = 1, .on_device = room}, all_pairs, 3 * kPairs);
    play_on_loop({.devices = 2, .on_device = room}, all_pairs, 3 * kPairs);
  }
  play_on_threads({.devices = 2, .on_device = 3}, all_pairs);
}

// --- StarPU issue 33: prefetches for later tasks evict what the next ones need

void with_hints(Runtime& rt, std::size_t words) {
  constexpr std::size_t kTiles = 10;
  const auto add = anywhere("add", [](std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  });
  const std::size_t devices = rt.memory_nodes().size() - 1;
  const auto first = add.can_run(on_first_device), second = add.can_run(on_second_device);
  std::vector<Tile> tiles;
  std::vector<double> expected;
  for (std::size_t i = 0; i < kTiles; ++i) {
    expected.push_back(static_cast<double>(i));
    tiles.push_back(filled(rt, "t" + std::to_string(i), words, expected.back()));
  }
  for (std::size_t round = 1; round <= 4; ++round) {
    for (std::size_t i = 0; i < kTiles; ++i)
      for (unsigned node = 1; node <= devices; ++node) rt.prefetch(tiles[i], node);
    for (std::size_t i = 0; i < kTiles; ++i) {
      const std::size_t from = (i + round * 3) % kTiles;
      if (from == i) continue;
      rt.submit(i % devices == 0 ? first : second, read(tiles[from]), read_write(tiles[i]));
      expected[i] += expected[from];
      rt.prefetch(tiles[(i + 5) % kTiles], static_cast<unsigned>(1 + round % devices));
    }
  }
  for (std::size_t i = 0; i < kTiles; ++i) expect_all(rt, tiles[i], expected[i]);
  rt.wait();
}

TEST(Livelock, DataThatIsBroughtAhead) {
  for (const std::size_t room : {2U, 3U}) play_on_loop({.devices = 2, .on_device = room}, with_hints, 0);
  play_on_threads({.devices = 2, .on_device = 2}, with_hints);
}

// --- PaRSEC issue 742: one tile is larger than the device's memory

void too_large(Runtime& rt, std::size_t words) {
  const auto add = anywhere("add", [](double by, std::span<double> to) {
    for (double& value : to) value += by;
  });
  const auto large = filled(rt, "large", 2 * words, 1);
  const auto small = filled(rt, "small", words, 1);
  const std::string refused =
      thrown_by<OutOfMemory>([&] { rt.submit(add.can_run(on_device), 1.0, read_write(large)); });
  const std::size_t bytes = words * sizeof(double);
  EXPECT_THAT(refused, AllOf(HasSubstr("'add'"), HasSubstr("takes " + std::to_string(2 * bytes) + " bytes"),
                             HasSubstr("budget is " + std::to_string(bytes) + " bytes")));
  for (int i = 0; i < 10; ++i) {
    rt.submit(add, 1.0, read_write(large));  // a core can run it
    rt.submit(add.can_run(on_device), 1.0, read_write(small));
  }
  expect_all(rt, large, 11);
  expect_all(rt, small, 11);
  rt.wait();
}

TEST(Livelock, ATileThatFitsIntoNoDevice) {
  play_on_loop({.devices = 1, .on_device = 1}, too_large, 0);
  play_on_loop({.devices = 2, .on_device = 1}, too_large, 0);
  play_on_threads({.devices = 1, .on_device = 1}, too_large);
}

// --- PaRSEC issue 88: a factorisation whose tiles are written on the device; the values must come back, while main
// memory is full, too

/// Each element of the tiles is a matrix.
void cholesky(Runtime& rt, std::size_t words) {
  constexpr std::size_t n = 5;
  const auto potrf = anywhere("potrf", [](std::span<double> a) {
    for (double& v : a) v = std::sqrt(v);
  }).can_run(on_device);
  const auto trsm = anywhere("trsm", [](std::span<const double> l, std::span<double> a) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] /= l[i];
  }).can_run(on_device);
  const auto gemm = anywhere("gemm", [](std::span<const double> a, std::span<const double> b, std::span<double> c) {
    for (std::size_t i = 0; i < c.size(); ++i) c[i] -= a[i] * b[i];
  }).can_run(on_device);
  std::vector<std::vector<Tile>> a(n);
  std::vector<std::vector<double>> expected(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      expected[i].push_back(i == j ? 10.0 : 1.0 / static_cast<double>(i + j + 1));
      a[i].push_back(filled(rt, "a" + std::to_string(i) + std::to_string(j), words, expected[i][j]));
    }
  for (std::size_t k = 0; k < n; ++k) {
    rt.submit(potrf, read_write(a[k][k]));
    expected[k][k] = std::sqrt(expected[k][k]);
    for (std::size_t i = k + 1; i < n; ++i) {
      rt.submit(trsm, read(a[k][k]), read_write(a[i][k]));
      expected[i][k] /= expected[k][k];
    }
    for (std::size_t i = k + 1; i < n; ++i)
      for (std::size_t j = k + 1; j <= i; ++j) {
        rt.submit(gemm, read(a[i][k]), read(a[j][k]), read_write(a[i][j]));
        expected[i][j] -= expected[i][k] * expected[j][k];
      }
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      auto view = rt.acquire(read(a[i][j]));
      for (const double v : *view) ASSERT_NEAR(v, expected[i][j], 1e-12) << i << "," << j;
    }
  rt.wait();
}

TEST(Livelock, TilesThatAreNewOnTheDevice) {
  for (const std::size_t room : {3U, 4U}) {
    play_on_loop({.devices = 1, .on_device = room}, cholesky, 0);
    play_on_loop({.devices = 1, .on_device = room, .at_home = 1}, cholesky, 0);
    play_on_loop({.devices = 2, .on_device = room, .at_home = 2}, cholesky, 0);
  }
  play_on_threads({.devices = 1, .on_device = 3, .at_home = 3}, cholesky);
  play_on_threads({.devices = 2, .on_device = 3}, cholesky);
}

}  // namespace
}  // namespace tandem::livelock_test
