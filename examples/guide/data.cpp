// examples/guide/data.cpp: docs/guide/data.md: kinds of data and access modes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <tandem/tandem.hpp>

struct Particle {
  std::array<double, 3> position;
  double mass;
};

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);

  // One handle for each kind of data.
  std::vector<double> x(100, 1.0);
  std::vector<double> pair(200, 2.0);
  Particle particle{{0, 0, 0}, 1.5};
  std::map<std::string, int> words{{"task", 3}};
  auto hx = rt.data("x", x);                                             // a whole vector
  auto lower = rt.data("lower", std::span<double>(pair).first(100));     // two parts of one vector
  auto upper = rt.data("upper", std::span<double>(pair).last(100));
  auto hparticle = rt.data("particle", particle);                        // one value
  auto hwords = rt.object("words", words);                               // one value whose size may change
  auto work = rt.vector<double>("work", 100);                            // allocated by Tandem; it has no value yet

  rt.submit([](std::span<double> a, std::span<double> b) { std::swap_ranges(a.begin(), a.end(), b.begin()); },
            read_write(lower), read_write(upper));
  rt.submit([](Particle& p) { p.position[0] += p.mass; }, read_write(hparticle));
  rt.submit([](std::map<std::string, int>& w) { ++w["task"]; }, read_write(hwords));
  rt.submit([](std::span<const double> from, std::span<double> to) { std::copy(from.begin(), from.end(), to.begin()); },
            read(hx), write(work));

  // A matrix is column-major, as in LAPACK: element (i, j) stands at data[i + j * ld].
  constexpr std::size_t rows = 4, cols = 3, ld = 5;
  std::vector<double> memory(ld * cols, 0.0);
  auto a = rt.data("A", tandem::MatrixView<double>{memory.data(), rows, cols, ld});
  rt.submit("fill", [](tandem::MatrixView<double> m) {
    for (std::size_t j = 0; j < m.cols; ++j)      // columns outside: neighbours in memory are neighbours in a column
      for (std::size_t i = 0; i < m.rows; ++i) m(i, j) = double(10 * i + j);
  }, write(a));
  rt.wait();
  std::printf("A(2, 1) = %g\n", memory[2 + 1 * ld]);

  // A handle for each tile of a larger matrix. Tiles do not overlap, so tasks on different tiles run in parallel.
  constexpr std::size_t n = 8, tile = 4;
  std::vector<double> large(n * n, 1.0);
  const tandem::MatrixView<double> all{large.data(), n, n, n};
  std::vector<tandem::MatrixData<double>> tiles;
  for (std::size_t j = 0; j < n; j += tile)
    for (std::size_t i = 0; i < n; i += tile) tiles.push_back(rt.data("tile", all.block(i, j, tile, tile)));

  // Tiles that Tandem allocates, registered when they are first used: of a matrix of a million tiles, these are eight.
  auto big = rt.tiles<double>("B", {.rows = 1'000'000, .cols = 1'000'000, .tile_rows = 1'000, .tile_cols = 1'000});
  for (std::size_t i = 0; i < 8; ++i)
    rt.submit("fill", [](tandem::MatrixView<double> m) { std::fill_n(m.data, m.rows * m.cols, 1.0); },
              write(big(i, i)));

  // A block of 4 x 4 x 2 elements inside a field of 8 x 8 x 8, where it lies.
  std::vector<double> field(8 * 8 * 8, 1.0);
  const tandem::ArrayView<double, 3> whole_field{field.data(), {8, 8, 8}, {1, 8, 64}};
  auto block = rt.data("block", whole_field.block({2, 2, 0}, {4, 4, 2}));
  rt.submit("double", [](tandem::ArrayView<double, 3> b) {
    for (std::size_t k = 0; k < b.extents[2]; ++k)
      for (std::size_t j = 0; j < b.extents[1]; ++j)
        for (std::size_t i = 0; i < b.extents[0]; ++i) b(i, j, k) *= 2;
  }, read_write(block));

  // A partition of registered data. Tandem splits and gathers between the tasks on the parts and those on the whole.
  std::vector<double> signal(1000, 1.0);
  auto whole = rt.data("signal", signal);
  {
    auto parts = rt.parts(whole, {.rows = 250});
    for (std::size_t i = 0; i < parts.rows(); ++i)
      rt.submit("scale", [](double by, std::span<double> part) { for (double& v : part) v *= by; }, double(i),
                read_write(parts(i)));
    // after all parts
    rt.submit("shift", [](std::span<double> values) { for (double& v : values) v += 1; }, read_write(whole));
  }  // the whole has the values of the parts
  for (const auto& one : tiles)
    rt.submit("double", [](tandem::MatrixView<double> m) {
      for (std::size_t j = 0; j < m.cols; ++j)
        for (std::size_t i = 0; i < m.rows; ++i) m(i, j) *= 2;
    }, read_write(one));

  // commute: the tasks may add in any order, one at a time.
  double total = 0;
  auto htotal = rt.data("total", total);
  for (const auto& one : tiles)
    rt.submit("add tile", [](tandem::MatrixView<const double> m, double& to) {
      for (std::size_t j = 0; j < m.cols; ++j)
        for (std::size_t i = 0; i < m.rows; ++i) to += m(i, j);
    }, read(one), commute(htotal));

  // reduce: kernels add to private copies, at the same time; Tandem combines the copies before the next other access.
  std::vector<long> histogram(4, 0);
  auto bins = rt.data("histogram", histogram);
  bins.reduction([](std::span<long> copy) { std::fill(copy.begin(), copy.end(), 0); },
                 [](std::span<long> into, std::span<const long> from) {
                   for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
                 });
  for (int value = 0; value < 100; ++value)
    rt.submit("count", [](int v, std::span<long> counts) { ++counts[v % counts.size()]; }, value, reduce(bins));

  // scratch: memory of that shape for the time of the kernel. Its content is undefined at the start and forgotten at
  // the end.
  auto workspace = rt.vector<double>("workspace", 100);
  rt.submit("reverse", [](std::span<double> v, std::span<double> space) {
    std::copy(v.rbegin(), v.rend(), space.begin());
    std::copy(space.begin(), space.end(), v.begin());
  }, read_write(hx), scratch(workspace));

  // A list of data: as many as the vector has. The kernel gets an Each, over which it can loop.
  std::vector<tandem::VectorData<double>> pieces;
  auto all_pieces = rt.vector<double>("sum", 10);
  for (int i = 0; i < 5; ++i) {
    pieces.push_back(rt.vector<double>("piece", 10));
    rt.submit("fill", [](int value, std::span<double> to) { std::fill(to.begin(), to.end(), double(value)); }, i,
              write(pieces.back()));
  }
  rt.submit("sum", [](tandem::Each<std::span<const double>> each, std::span<double> to) {
    std::fill(to.begin(), to.end(), 0.0);
    for (std::span<const double> one : each)
      for (std::size_t i = 0; i < one.size(); ++i) to[i] += one[i];
  }, read(pieces), write(all_pieces));

  // The application looks at a value while other tasks go on.
  {
    auto view = rt.acquire(read(work));  // waits for the tasks that write `work`
    std::printf("work[0] = %g\n", (*view)[0]);
  }                                      // from here on tasks may write `work` again

  rt.wait();
  std::printf("total = %g, counts = %ld %ld %ld %ld\n", total, histogram[0], histogram[1], histogram[2], histogram[3]);
  std::printf("position = %g, words = %d\n", particle.position[0], words["task"]);

  // Constant input: tasks can read it; `write(htable)` does not compile.
  const std::vector<double> table{1, 4, 9, 16};
  auto htable = rt.data("table", table);
  rt.submit("look up", [](std::span<const double> from, double& to) { to = from[3]; }, read(htable), write(htotal));
  rt.wait();
  std::printf("table[3] = %g\n", total);
}
