// examples/09_pruned.cpp: each rank leaves out the tasks of others.

#include <cstdio>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  constexpr std::size_t count = 1000;
  std::vector<double> memory(count, 1.0);
  std::vector<tandem::Data<double>> x;
  for (std::size_t i = 0; i < count; ++i)
    x.push_back(rt.data("x", memory[i], {.owner = static_cast<std::uint32_t>(i % rt.size())}));
  const tandem::Codelet halve("halve", [](double& value) { value /= 2; });
  for_tasks_of(rt, 0, count, [&](std::size_t i) { return i % rt.size() == rt.rank(); },
               [&](std::size_t i) { rt.submit(halve, read_write(x[i])); });
  rt.wait();
  if (rt.rank() == 0) std::printf("x[0] = %.1f\n", memory[0]);
}
