// examples/07_ranks.cpp: one flow on several ranks: start it with `tandem run -n 4 07_ranks`, with mpirun, or alone.
#include <cstdio>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  constexpr unsigned blocks = 8, length = 1000;

  // Every rank registers all blocks, with their length. Only the owner of a block has memory for it.
  std::vector<std::vector<double>> mine(blocks);
  std::vector<tandem::VectorData<double>> block;
  for (unsigned b = 0; b < blocks; ++b) {
    const unsigned owner = b % rt.size();
    if (owner == rt.rank()) mine[b].assign(length, b);
    double* const memory = owner == rt.rank() ? mine[b].data() : nullptr;
    block.push_back(rt.data("block", std::span(memory, length), {.owner = owner}));
  }

  // Each task runs where the block is that it writes; what it reads travels there.
  tandem::Codelet add("add", [](std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  });
  for (unsigned stride = 1; stride < blocks; stride *= 2)
    for (unsigned b = 0; b + stride < blocks; b += 2 * stride)
      rt.submit(add, read(block[b + stride]), read_write(block[b]));

  // What each rank has for itself is written by each; so every rank gets the sum.
  double sum = 0;
  auto hsum = rt.data("sum", sum);
  tandem::Codelet total("total", [](std::span<const double> from, double& to) {
    for (const double value : from) to += value;
  });
  rt.submit(total, read(block[0]), read_write(hsum));
  rt.wait();

  if (rt.rank() == 0) std::printf("sum = %g\n", sum);
}
