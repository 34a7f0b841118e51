// benchmarks/tiles/bench_tiles_tandem.cpp: what a matrix of many tiles costs each rank: to make it, and to touch this
// rank's tiles.
//
// `tandem run -n 4` starts it. The matrix has --tiles x --tiles tiles (1000: a million), on a grid of ranks. Each rank
// makes it, then touches --touch tiles of its own (1000), and then, for comparison, registers all tiles one by one, as
// matrices without memory.
//
//   --tiles N (1000); --touch N (1000); --repetitions N (5)
//
// Results, of rank 0: `make`, ms; `make_memory`, MiB of resident memory more than before; `touch`, us per tile;
// `register`, ms, and `register_memory`, MiB, of all tiles one by one.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"
#include "benchmarks/common/trips.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Runs `action`; its time in ms, and the resident memory that it added in MiB.
template <class Action>
void measure(std::vector<double>& ms, std::vector<double>& mib, const Action& action) {
  const double before = resident_mib();
  const std::int64_t start_ns = benchmarks::now_ns();
  action();
  ms.push_back(static_cast<double>(benchmarks::now_ns() - start_ns) / 1e6);
  mib.push_back(std::max(0.0, resident_mib() - before));
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"tiles", "touch", "repetitions"});
  Runtime rt(tandem::Options{.workers = 1});
  const std::size_t tiles = options.count("tiles", 1000);
  const std::size_t touch = options.count("touch", 1000);
  const std::uint32_t ranks = rt.size();
  const auto owner = [ranks](std::size_t i, std::size_t j) { return static_cast<std::uint32_t>((i + 2 * j) % ranks); };
  std::vector<double> make_ms, make_mib, touch_us, touch_mib, register_ms, register_mib;
  for (unsigned repetition = options.count("repetitions", 5); repetition > 0; --repetition) {
    std::optional<Tiles<double>> a;
    measure(make_ms, make_mib, [&] {
      a = rt.tiles<double>(
          "A", {.rows = 256 * tiles, .cols = 256 * tiles, .tile_rows = 256, .tile_cols = 256, .owner = owner});
    });
    measure(touch_us, touch_mib, [&] {
      std::size_t touched = 0;
      for (std::size_t j = 0; j < tiles && touched < touch; ++j)
        for (std::size_t i = 0; i < tiles && touched < touch; ++i)
          if (owner(i, j) == rt.rank()) touched += (*a)(i, j).rows() > 0;
    });
    touch_us.back() *= 1e3 / static_cast<double>(std::min(touch, tiles * tiles / ranks));
  }
  std::vector<MatrixData<double>> all;  // last, since memory that is freed may be used again
  measure(register_ms, register_mib, [&] {
    all.reserve(tiles * tiles);
    for (std::size_t j = 0; j < tiles; ++j)
      for (std::size_t i = 0; i < tiles; ++i)
        all.push_back(rt.matrix<double>("A(" + std::to_string(i) + "," + std::to_string(j) + ")", 256, 256,
                                        {.owner = owner(i, j)}));
  });
  rt.wait();
  if (rt.rank() != 0) return 0;
  benchmarks::Report{"tandem", "0.1.0", 1,
                     {{"make", "ms", make_ms},
                      {"make_memory", "MiB", make_mib},
                      {"touch", "us", touch_us},
                      {"register", "ms", register_ms},
                      {"register_memory", "MiB", register_mib}}}
      .print();
}
