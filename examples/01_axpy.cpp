// examples/01_axpy.cpp: the smallest program: two vectors, one kernel, one task.
#include <cstdio>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<double> x(1000, 1.0), y(1000, 2.0);
  auto hx = rt.data("x", x), hy = rt.data("y", y);
  rt.submit("axpy", [](double a, std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += a * from[i];
  }, 3.0, read(hx), read_write(hy));
  rt.wait();
  std::printf("y[0] = %g\n", y[0]);
}
