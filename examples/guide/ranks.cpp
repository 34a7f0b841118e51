// examples/guide/ranks.cpp: docs/guide/ranks.md: owners, memory of the owner alone, transfers. Start it with
// `tandem run -n 4`.
#include <cstdio>
#include <span>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  constexpr std::size_t n = 6, length = 100;
  constexpr std::size_t rows = 4, cols = 3;

  // Every rank registers every block. Only the owner has memory: the others give a null pointer and the same shape.
  std::vector<std::vector<double>> mine(n);
  std::vector<tandem::VectorData<double>> block;
  for (std::uint32_t b = 0; b < n; ++b) {
    const std::uint32_t owner = b % rt.size();
    if (owner == rt.rank()) mine[b].assign(length, b);
    const std::span<double> view(mine[b].empty() ? nullptr : mine[b].data(), length);
    block.push_back(rt.data("block", view, {.owner = owner}));
  }

  // A matrix likewise.
  const bool have_matrix = rt.rank() == 0;
  std::vector<double> memory(have_matrix ? rows * cols : 0, 1.0);
  auto a =
      rt.data("A", tandem::MatrixView<double>{have_matrix ? memory.data() : nullptr, rows, cols, rows}, {.owner = 0});

  // Or Tandem allocates: on the owner when a task writes the data, on another rank when a value arrives there.
  auto b = rt.matrix<double>("B", rows, cols, {.owner = rt.size() - 1});

  // Runs on the owner of B; A travels there.
  const tandem::Codelet copy("copy", [](tandem::MatrixView<const double> from, tandem::MatrixView<double> to) {
    for (std::size_t j = 0; j < to.cols; ++j)
      for (std::size_t i = 0; i < to.rows; ++i) to(i, j) = from(i, j);
  });
  rt.submit(copy, read(a), write(b));

  // Runs on the owner of block 0; then on the last rank, where the value travels. `wait` brings it back to its owner.
  const tandem::Codelet increase("increase", [](std::span<double> v) { for (double& value : v) value += 1; });
  rt.submit(increase, read_write(block[0]));
  rt.submit({.on = rt.size() - 1}, increase, read_write(block[0]));

  // Data without an owner: each rank has its own, and a task that writes it runs on every rank.
  double sum = 0;
  auto hsum = rt.data("sum", sum);
  for (const auto& one : block)
    rt.submit("add", [](std::span<const double> from, double& to) { to += from[0]; }, read(one), read_write(hsum));

  // A sum over all blocks: each task runs where its block is, and adds to the share of its rank. Only shares travel.
  double squares = 0;
  auto hsquares = rt.data("squares", squares, {.owner = 0});
  hsquares.reduction([](double& share) { share = 0; }, [](double& into, const double& from) { into += from; });
  for (const auto& one : block)
    rt.submit("square", [](std::span<const double> from, double& to) { to += from[0] * from[0]; }, read(one),
              reduce(hsquares));

  // One sum of all ranks' contributions (MPI_Allreduce): each rank adds to a share, a tree combines the shares.
  double global = 0;
  auto hglobal = rt.data("global", global, {.owner = 0});
  hglobal.reduction([](double& share) { share = 0; }, [](double& into, const double& from) { into += from; });
  for (std::uint32_t rank = 0; rank < rt.size(); ++rank)
    rt.submit({.on = rank}, "contribute", [](double& share) { share += 1; }, reduce(hglobal));
  const double contributions = *rt.acquire(read(hglobal));  // every rank calls it and sees the value

  // The owner's value, on the owner alone.
  if (auto first = rt.acquire_at_owner(read(block[0]))) std::printf("block 0 holds %g\n", (**first)[0]);

  // Data moves to another rank for good.
  rt.migrate(block[1], 0);
  rt.fetch(block[2], 0);        // rank 0 has the value before a task there asks for it
  rt.submit({.on = 0}, "use", [](std::span<const double> v) { static_cast<void>(v); }, read(block[2]));
  rt.flush(block[2]);           // copies of ranks that do not own it are freed
  rt.wait();

  if (rt.rank() == 0)
    std::printf("sum = %g, contributions of all ranks: %s\n", sum, contributions == rt.size() ? "yes" : "no");
}
