// examples/guide/from_mpi.cpp: docs/guide/from-mpi.md: a stencil in one dimension, whose blocks exchange their borders.
#include <cstdio>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  constexpr std::size_t length = 100;
  constexpr int steps = 50;
  const std::uint32_t blocks = 8;

  // Block b has `length` points on rank owner(b), and its two border values, which its neighbours read.
  std::vector<std::vector<double>> memory(blocks);
  std::vector<tandem::VectorData<double>> block;
  std::vector<tandem::Data<double>> left, right;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const std::uint32_t owner = b * rt.size() / blocks;
    if (owner == rt.rank()) memory[b].assign(length, b == 0 ? 1.0 : 0.0);
    block.push_back(
        rt.data("block", std::span<double>(memory[b].empty() ? nullptr : memory[b].data(), length), {.owner = owner}));
    left.push_back(rt.scalar<double>("left border", {.owner = owner}));
    right.push_back(rt.scalar<double>("right border", {.owner = owner}));
  }

  const tandem::Codelet show("show borders", [](std::span<const double> values, double& first, double& last) {
    first = values.front();
    last = values.back();
  });
  const tandem::Codelet smooth("smooth", [](const double& before, const double& after, std::span<double> values) {
    double previous = before;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double next = i + 1 < values.size() ? values[i + 1] : after;
      const double here = values[i];
      values[i] = (previous + here + next) / 3;
      previous = here;
    }
  });

  for (int step = 0; step < steps; ++step) {
    for (std::uint32_t b = 0; b < blocks; ++b) rt.submit(show, read(block[b]), write(left[b]), write(right[b]));
    for (std::uint32_t b = 0; b < blocks; ++b)
      rt.submit(smooth, read(right[(b + blocks - 1) % blocks]), read(left[(b + 1) % blocks]), read_write(block[b]));
  }

  double total = 0;
  auto htotal = rt.data("total", total, {.owner = 0});
  htotal.reduction([](double& share) { share = 0; }, [](double& into, const double& from) { into += from; });
  for (std::uint32_t b = 0; b < blocks; ++b)  // on the rank of the block: it adds to a share, and the shares travel
    rt.submit("add", [](std::span<const double> values, double& to) { for (const double v : values) to += v; },
              read(block[b]), reduce(htotal));
  const double sum = *rt.acquire(read(htotal));  // on every rank
  if (rt.rank() == 0) std::printf("total = %.3f\n", sum);
}
