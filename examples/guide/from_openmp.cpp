// examples/guide/from_openmp.cpp: docs/guide/from-openmp.md: a loop, a reduction, and tasks with dependencies.
#include <cstdio>
#include <vector>

#include <tandem/tandem.hpp>

namespace {

void init(std::vector<double>& v) { v.assign(v.size(), 1.0); }
void update(const std::vector<double>& from, std::vector<double>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += 2 * from[i];
}

}  // namespace

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  constexpr std::size_t n = 1000;
  std::vector<double> x(n, 1.0), y(n, 2.0);

  rt.parallel_for(0, n, [&](std::size_t i) { y[i] += 3.0 * x[i]; });
  const double sum = rt.map_reduce(0, n, 0.0, [&](std::size_t i) { return y[i]; },
                                   [](double a, double b) { return a + b; });
  std::printf("sum = %g\n", sum);

  {
    auto a = rt.data(x);
    auto b = rt.data(y);
    rt.submit("init", [](std::span<double> v) { for (double& value : v) value = 1; }, write(a));
    rt.submit("update", [](std::span<const double> from, std::span<double> to) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += 2 * from[i];
    }, read(a), read_write(b));
    rt.wait();
  }
  std::printf("y[0] = %g\n", y[0]);

  // An object keeps the functions that you have: kernels get the vector itself.
  {
    auto a = rt.object("x", x);
    auto b = rt.object("y", y);
    rt.submit("init", init, read_write(a));
    rt.submit("update", update, read(a), read_write(b));
    rt.wait();
  }
  std::printf("y[0] = %g\n", y[0]);
}
