// benchmarks/simulation/what_if_tandem.cpp: two kernels, each of which can be made to take twice as long, for
// `scripts/what_if_truth`.
//
// A wavefront over square tiles: `relax` makes a tile from those above and left of it, then `square` works on a copy of
// it, which nothing waits for. Prints the seconds from the first submission to the end.
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "tandem/tandem.hpp"

namespace {

constexpr std::size_t numbers = 2048;  ///< of a tile: it stays in the first cache

/// Goes over the numbers so often, and then waits for as long as that took, if it is slowed.
void work(std::span<double> tile, unsigned passes, bool is_slowed) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (unsigned pass = 0; pass < passes; ++pass)
    for (double& x : tile) x = x * 0.999 + 0.001;
  const Clock::time_point end = Clock::now();
  while (is_slowed && Clock::now() - end < end - begin) continue;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  const benchmarks::Options options(argc, argv, {"tiles", "passes", "slow"});
  const unsigned tiles = options.count("tiles", 40), passes = options.count("passes", 100);
  const bool slow_relax = options.text("slow", "") == "relax", slow_square = options.text("slow", "") == "square";
  std::vector<std::vector<double>> memory(2 * std::size_t{tiles} * tiles, std::vector<double>(numbers, 1));
  std::vector<tandem::Data<tandem::Vector<double>>> grid, squares;
  for (std::size_t i = 0; i < memory.size(); ++i) (i % 2 == 0 ? grid : squares).push_back(rt.data(memory[i]));
  using In = std::span<const double>;
  const tandem::Codelet relax("relax", [&](In above, In left, std::span<double> tile) {
    tile[0] = (above[0] + left[0]) / 2;
    work(tile, passes, slow_relax);
  });
  const tandem::Codelet square("square", [&](In tile, std::span<double> own) {
    own[0] = tile[0] * tile[0];
    work(own, passes, slow_square);
  });
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned row = 1; row < tiles; ++row)
    for (unsigned column = 1; column < tiles; ++column) {
      const std::size_t at = std::size_t{row} * tiles + column;
      rt.submit(relax, read(grid[at - tiles]), read(grid[at - 1]), read_write(grid[at]));
      rt.submit(square, read(grid[at]), read_write(squares[at]));
    }
  rt.wait();
  std::printf("%.6f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}
