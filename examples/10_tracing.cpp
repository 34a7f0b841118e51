// examples/10_tracing.cpp: what a program records in its trace: parts of kernels, numbers, marks.
#include <cmath>
#include <cstdio>
#include <tandem/tandem.hpp>
#include <tandem/trace.hpp>
#include <vector>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<double> x(4096, 2.0);
  auto hx = rt.data("x", x);

  auto& trace = rt.trace();
  // once: then a span costs two events, and no look-up
  const auto scaling = trace.name("scaling"), norm = trace.name("norm");
  tandem::Codelet halve("halve", [&](std::span<double> values) {
    const auto span = trace.span(scaling);  // a part of the kernel, within its task, until the object goes
    double sum = 0;
    for (double& value : values) {
      value /= 2;
      sum += value * value;
    }
    trace.counter(norm, std::sqrt(sum));  // a number that has this value from now on
  });

  {
    const auto span = trace.span("sweeps");  // by its text: a look-up under a lock
    for (int sweep = 0; sweep < 10; ++sweep) rt.submit(halve, read_write(hx));
    rt.wait();
  }
  trace.mark("done", x[0]);  // one instant, with a number

  const auto residual = trace.event<std::uint32_t, double>("solver.residual", {"iteration", "norm"});  // once
  tandem::Codelet solve("solve", [&](std::uint32_t iteration, std::span<double> values) {
    values[0] /= 2;
    residual(iteration, values[0]);  // an event, in any thread
  });
  for (std::uint32_t iteration = 0; iteration < 4; ++iteration) rt.submit(solve, iteration, read_write(hx));
  rt.wait();

  const auto turn = tandem::Codelet("turn", [](std::span<double> values) {
    for (double& value : values) value = -value;
  }).flops([](std::span<const tandem::Shape> data) { return static_cast<double>(data[0].rows); });
  for (int step = 0; step < 2; ++step) {
    const auto iteration = rt.iteration(step);  // of the tasks that are submitted while it lives
    rt.submit(turn, read_write(hx), tandem::TaskOptions{.tag = 17, .parameters = "all signs"});
  }
  rt.wait();

  std::printf("x[0] = %g\n", x[0]);
}
