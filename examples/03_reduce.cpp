// examples/03_reduce.cpp: many tasks add to one value without waiting for each other; loops over ranges.
#include <cmath>
#include <cstdio>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);

  // Count points of a grid inside the unit circle: each task counts a strip into a private copy; copies are added up.
  constexpr int side = 2000;
  long inside = 0;
  auto count = rt.data("inside", inside);
  count.reduction([](long& copy) { copy = 0; }, [](long& into, const long& from) { into += from; });
  tandem::Codelet strip("strip", [](int first, int last, long& hits) {
    for (int i = first; i < last; ++i)
      for (int j = 0; j < side; ++j) {
        const double x = (i + 0.5) / side;
        const double y = (j + 0.5) / side;
        if (x * x + y * y < 1) ++hits;
      }
  });
  for (int i = 0; i < side; i += 100) rt.submit(strip, i, i + 100, reduce(count));
  rt.wait();
  std::printf("pi is about %.3f\n", 4.0 * static_cast<double>(inside) / side / side);

  // The same kind of loop without naming data.
  std::vector<double> squares(1000);
  rt.parallel_for(0, squares.size(),
                  [&](std::size_t i) { squares[i] = static_cast<double>(i) * static_cast<double>(i); });
  const double sum = rt.map_reduce(0, squares.size(), 0.0, [&](std::size_t i) { return squares[i]; },
                                   [](double a, double b) { return a + b; });
  std::printf("sum of squares = %.0f\n", sum);
}
