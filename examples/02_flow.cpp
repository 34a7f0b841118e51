// examples/02_flow.cpp: a sequential flow from which Tandem infers what may run in parallel; priorities; results of
// single data.
#include <cstdio>
#include <string>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  constexpr int count = 4;

  // Each block is filled, smoothed beside its neighbour, and added to the total. Written as for one core.
  std::vector<std::vector<double>> blocks(count, std::vector<double>(1000));
  double total = 0;
  std::vector<tandem::Data<tandem::Vector<double>>> data;
  for (int i = 0; i < count; ++i) data.push_back(rt.data("block " + std::to_string(i), blocks[i]));
  auto sum = rt.data("sum", total);

  tandem::Codelet fill("fill", [](int value, std::span<double> block) {
    for (double& element : block) element = value;
  });
  tandem::Codelet mix("mix", [](std::span<const double> neighbour, std::span<double> block) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = (block[i] + neighbour[i]) / 2;
  });
  tandem::Codelet add("add", [](std::span<const double> block, double& result) {
    for (const double element : block) result += element;
  });

  for (int i = 0; i < count; ++i) rt.submit(fill, i, write(data[i]));
  for (int i = 1; i < count; ++i) rt.submit({.priority = count - i}, mix, read(data[i - 1]), read_write(data[i]));
  for (int i = 0; i < count; ++i) rt.submit(add, read(data[i]), commute(sum));  // in any order, one at a time

  {
    auto first = rt.acquire(read(data[0]));  // waits for what writes block 0, not for the rest
    std::printf("block 0 holds %g\n", (*first)[0]);
  }
  rt.wait();
  std::printf("total = %g\n", total);
}
