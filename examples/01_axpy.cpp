// examples/01_axpy.cpp: the smallest program: two vectors, one kernel, one task.
#include <cstdio>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);  // workers and scheduler: from flags, environment, defaults

  std::vector<double> x(1000, 1.0);
  std::vector<double> y(1000, 2.0);
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);

  tandem::Codelet axpy("axpy", [](double a, std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] += a * from[i];
  });
  rt.submit(axpy, 3.0, read(hx), read_write(hy));  // types are checked by the compiler against the kernel
  rt.wait();

  std::printf("y[0] = %g\n", y[0]);
}
