// examples/guide/tasks.cpp: docs/guide/tasks.md: codelets and lambdas, options, events, loops, recursion.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <tandem/cuda.hpp>
#include <tandem/tandem.hpp>

namespace {

using namespace std::chrono_literals;

/// The sum of `data[first, last)`. Each level of the recursion submits: the kernels do not.
void submit_sum(tandem::Runtime& rt, const std::vector<tandem::Data<double>>& data, std::size_t first,
                std::size_t last) {
  if (last - first == 1) return;
  const std::size_t middle = first + (last - first) / 2;
  submit_sum(rt, data, first, middle);
  submit_sum(rt, data, middle, last);
  rt.submit("add halves", [](const double& from, double& to) { to += from; }, read(data[middle]),
            read_write(data[first]));
}

}  // namespace

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  std::vector<double> x(1000, 1.0), y(1000, 2.0);
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);

  // A codelet: a kernel with a name, made once, submitted often.
  const tandem::Codelet axpy("axpy", [](double a, std::span<const double> from, std::span<double> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += a * from[i];
  });
  rt.submit(axpy, 3.0, read(hx), read_write(hy));

  // The same as a lambda, with a name for messages and traces, or without.
  rt.submit("scale", [](double a, std::span<double> to) { for (double& v : to) v *= a; }, 2.0, read_write(hy));
  rt.submit([](std::span<double> to) { to[0] = 0; }, read_write(hy));

  // Options of one task: first, in braces, or last, with the type's name.
  rt.submit({.priority = 5}, axpy, 1.0, read(hx), read_write(hy));
  rt.submit(axpy, 1.0, read(hx), read_write(hy), tandem::TaskOptions{.name = "last axpy"});

  // A kernel that asks where it runs.
  unsigned worker = 0;
  auto hworker = rt.data("worker", worker);
  rt.submit("where", [](const tandem::Context& context, unsigned& to) { to = context.worker; }, write(hworker));

  // A callback: called on the worker when the kernel has ended. It may not submit.
  std::atomic<int> ended = 0;
  for (int i = 0; i < 3; ++i) rt.submit({.callback = [&ended] { ++ended; }}, axpy, 0.0, read(hx), read_write(hy));
  rt.wait();
  std::printf("y[0] = %g, y[1] = %g, worker %s, %d callbacks\n", y[0], y[1],
              worker < rt.worker_count() ? "known" : "unknown", ended.load());

  // The same kernel for cores and for CUDA devices.
  const auto scale = tandem::Codelet("scale on a card",
                                     [](double a, std::span<double> to) { for (double& v : to) v *= a; })
                         .cuda("__global__ void scale(double a, double* to, size_t n) {"
                               "  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; if (i < n) to[i] *= a; }",
                               "scale", [](double, std::span<double> to) { return to.size(); })
                         .prefer_devices();
  rt.submit(scale, 0.5, read_write(hy));

  // Order without data.
  std::vector<int> order;
  const tandem::TaskRef open = rt.submit("open", [&order] { order.push_back(1); });
  const tandem::TaskRef close = rt.submit({.after = {open}}, "close", [&order] { order.push_back(2); });
  rt.wait(close);
  std::printf("order %d %d, open has %s\n", order[0], order[1], has_ended(open) ? "ended" : "not ended");

  // An event: something outside of Tandem writes the data. Here it is a thread; it may be a file, a device, another
  // library.
  std::thread reader;
  std::vector<double> file(4);
  auto hfile = rt.data("file", file);
  rt.event("read file", tandem::Release::with_readable, [&](tandem::Event event) {
    reader = std::thread([&file, event]() mutable {  // `start` itself must not block
      std::this_thread::sleep_for(5ms);
      std::iota(file.begin(), file.end(), 1.0);
      event.readable();                              // tasks that read `file` may start
    });
  }, write(hfile));
  double sum = 0;
  auto hsum = rt.data("sum", sum);
  rt.submit(
      "add up", [](std::span<const double> from, double& to) { to = std::accumulate(from.begin(), from.end(), 0.0); },
      read(hfile), write(hsum));
  rt.wait();
  reader.join();
  std::printf("sum of the file = %g\n", sum);

  // Loops. Both return when all indices are done.
  std::vector<double> squares(1000);
  rt.parallel_for(0, squares.size(), [&](std::size_t i) { squares[i] = static_cast<double>(i * i); });
  const double largest = rt.map_reduce(
      0, squares.size(), 0.0, [&](std::size_t i) { return squares[i]; },
      [](double a, double b) { return std::max(a, b); }, {.grain = 100, .name = "largest"});
  std::printf("largest = %g\n", largest);

  // Recursion: the submitting thread goes through the tree, and the tasks run in parallel behind it.
  std::vector<double> leaves(16, 1.0);
  std::vector<tandem::Data<double>> data;
  for (double& leaf : leaves) data.push_back(rt.data(leaf));
  submit_sum(rt, data, 0, data.size());
  rt.wait();
  std::printf("sum of the leaves = %g\n", leaves[0]);

  // A decision that needs a result: acquire it, then submit.
  double error = 1;
  auto herror = rt.data("error", error);
  int steps = 0;
  for (bool converged = false; !converged; ++steps) {
    rt.submit("halve", [](double& e) { e /= 2; }, read_write(herror));
    auto value = rt.acquire(read(herror));
    converged = *value < 0.01;
  }
  std::printf("%d steps\n", steps);

  // The same without waiting in each step: the kernel that sees the end cancels the rest.
  error = 1;
  while (!rt.cancelled())
    rt.submit("halve", [&rt](double& e) {
      e /= 2;
      if (e < 0.01) rt.cancel();
    }, read_write(herror));
  rt.wait();
  std::printf("ended below 0.01: %s\n", error < 0.01 ? "yes" : "no");
}
