// examples/13_conjugate_gradients.cpp: a sparse matrix in blocks of rows, and sums over blocks with `reduce`, on any
// number of ranks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <tandem/tandem.hpp>

/// Rows of a matrix: row i has columns[begin[i]] ... columns[begin[i + 1] - 1]. Of the five-point stencil on a square
/// grid.
struct Rows {
  std::vector<std::size_t> begin{0}, columns;
  std::vector<double> values;

  void add_row(std::size_t row, std::size_t side) {
    const std::size_t x = row % side, y = row / side;
    const auto add = [&](bool exists, std::size_t column, double value) {
      if (exists) columns.push_back(column), values.push_back(value);
    };
    add(y > 0, row - side, -1);
    add(x > 0, row - 1, -1);
    add(true, row, 4);
    add(x + 1 < side, row + 1, -1);
    add(y + 1 < side, row + side, -1);
    begin.push_back(columns.size());
  }
};

using Blocks = std::vector<tandem::VectorData<double>>;
using In = std::span<const double>;
using Out = std::span<double>;

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  const std::size_t side = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64;  // a multiple of 16
  const std::size_t blocks = 16, length = side * side / blocks;

  // Block b of each vector is on one rank, and so are the rows of the matrix that give it. They need it and the two
  // beside it.
  std::vector<Rows> matrix(blocks);
  const auto owner = [&](std::size_t b) { return static_cast<std::uint32_t>(b * rt.size() / blocks); };
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t i = 0; owner(b) == rt.rank() && i < length; ++i) matrix[b].add_row(b * length + i, side);
  const auto vectors = [&](const char* name) {
    Blocks all;
    for (std::size_t b = 0; b < blocks; ++b) all.push_back(rt.vector<double>(name, length, {.owner = owner(b)}));
    return all;
  };
  const Blocks x = vectors("x"), r = vectors("r"), p = vectors("p"), q = vectors("q");

  // Sums belong to rank 0. Each rank adds what its blocks give to a value of its own; only these values travel.
  const auto sum = [&](const char* name) {
    auto data = rt.scalar<double>(name, {.owner = 0});
    data.reduction([](double& share) { share = 0; }, [](double& into, const double& from) { into += from; });
    return data;
  };
  const auto rho = sum("rho"), previous = sum("previous rho"), sigma = sum("sigma");
  const tandem::Codelet set("set", [](double value, double& to) { to = value; });
  const tandem::Codelet multiply_add("dot", [](In a, In b, double& to) {
    to = std::inner_product(a.begin(), a.end(), b.begin(), to);
  });
  const auto dot = [&](const Blocks& a, const Blocks& b, const tandem::Data<double>& to) {
    rt.submit(set, 0.0, write(to));
    for (std::size_t i = 0; i < blocks; ++i) rt.submit(multiply_add, read(a[i]), read(b[i]), reduce(to));
  };

  const tandem::Codelet start("start", [](Out solution, Out rest, Out direction) {
    for (std::size_t i = 0; i < rest.size(); ++i) solution[i] = 0, rest[i] = direction[i] = 1;
  });
  const tandem::Codelet multiply("multiply", [](const Rows* rows, std::size_t first, tandem::Each<In> near, Out to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = 0;
      for (std::size_t k = rows->begin[i]; k < rows->begin[i + 1]; ++k) {
        const std::size_t column = rows->columns[k];
        to[i] += rows->values[k] * near[column / to.size() - first][column % to.size()];
      }
    }
  });
  const tandem::Codelet step("step", [](const double& rho_now, const double& of_p, In direction, In image, Out solution,
                                        Out rest) {
    const double length_of_step = rho_now / of_p;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      solution[i] += length_of_step * direction[i];
      rest[i] -= length_of_step * image[i];
    }
  });
  const tandem::Codelet turn("turn", [](const double& now, const double& before, In rest, Out direction) {
    for (std::size_t i = 0; i < rest.size(); ++i) direction[i] = rest[i] + now / before * direction[i];
  });

  for (std::size_t b = 0; b < blocks; ++b) rt.submit(start, write(x[b]), write(r[b]), write(p[b]));
  dot(r, r, rho);
  const double first = *rt.acquire(read(rho));
  double now = first;
  int iterations = 0;
  for (; now > 1e-16 * first && iterations < 10'000; ++iterations) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t from = b == 0 ? 0 : b - 1, to = std::min(b + 2, blocks);
      const Blocks near(p.begin() + static_cast<std::ptrdiff_t>(from), p.begin() + static_cast<std::ptrdiff_t>(to));
      rt.submit(multiply, &matrix[b], from, read(near), write(q[b]));
    }
    dot(p, q, sigma);
    for (std::size_t b = 0; b < blocks; ++b)
      rt.submit(step, read(rho), read(sigma), read(p[b]), read(q[b]), read_write(x[b]), read_write(r[b]));
    rt.submit(set, now, write(previous));
    dot(r, r, rho);
    for (std::size_t b = 0; b < blocks; ++b) rt.submit(turn, read(rho), read(previous), read(r[b]), read_write(p[b]));
    now = *rt.acquire(read(rho));  // on every rank: all go on, or none
  }
  rt.wait();
  if (rt.rank() != 0) return 0;
  const double received = static_cast<double>(rt.flow_statistics().received_bytes) / (1 << 20);
  std::printf("solved in %d iterations; %.2f MiB came to rank 0\n", iterations, received);
}
