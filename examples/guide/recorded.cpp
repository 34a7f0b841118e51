// examples/guide/recorded.cpp: docs/guide/recorded-flows.md: what may change between two replays.
#include <cstdio>
#include <utility>
#include <vector>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<double> x(100, 1.0), y(100, 0.0), other(100, 0.0);
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  auto hother = rt.data("other", other);

  tandem::TaskRef add;
  tandem::Graph step = rt.record([&] {
    add = rt.submit("add", [](double a, std::span<const double> from, std::span<double> to) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += a * from[i];
    }, 1.0, read(hx), read_write(hy));
    rt.submit("double", [](std::span<double> to) { for (double& v : to) v *= 2; }, read_write(hy));
  });  // nothing has run

  rt.replay(step);                 // y = 2
  step.set_values(add, 10.0);      // a double, as when it was recorded: an int would be a UsageError
  step.set_priority(add, 5);
  const tandem::TaskRef second = rt.replay(step);  // y = 24
  rt.wait(second);
  step.rebind(hy, hother);         // of the same type and shape
  rt.replay(step);                 // other = 20
  rt.wait();
  std::printf("%zu tasks; y[0] = %g, other[0] = %g\n", step.task_count(), y[0], other[0]);
}
