// examples/guide/from_starpu.cpp: docs/guide/from-starpu.md: a codelet, two vectors, one task.
#include <cstdio>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<float> x(1024, 1.0F), y(1024, 2.0F);

  const tandem::Codelet axpy("axpy", [](float a, std::span<const float> from, std::span<float> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += a * from[i];
  });
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  rt.submit({.priority = 1}, axpy, 3.0F, read(hx), read_write(hy));
  rt.wait();
  hx.unregister();
  hy.unregister();

  std::printf("y[0] = %g\n", y[0]);
}
