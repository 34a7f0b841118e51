// examples/guide/first.cpp: docs/guide/first-program.md: one vector, two tasks.
#include <cstdio>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<double> x(1000, 1.0);
  auto hx = rt.data("x", x);

  rt.submit("scale", [](double a, std::span<double> v) { for (double& value : v) value *= a; }, 2.0, read_write(hx));
  double sum = 0;
  auto hsum = rt.data("sum", sum);
  rt.submit("add up", [](std::span<const double> v, double& to) { for (const double value : v) to += value; }, read(hx), read_write(hsum));
  rt.wait();
  std::printf("sum = %g\n", sum);
}
