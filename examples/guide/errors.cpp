// examples/guide/errors.cpp: docs/guide/errors.md: what is thrown, where, and when.
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include <tandem/tandem.hpp>

int main() {
  // Options that do not exist, or have a wrong value. Without `catch`: one line on standard error, and exit status 2.
  try {
    tandem::Runtime wrong({.more = {{"workers", "many"}}});
  } catch (const tandem::StartError& error) {
    std::printf("start: %s\n", error.what());
  }

  tandem::Runtime rt({.more = {{"log", "error"}}});
  double x = -1, y = 0, z = 1;
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  auto hz = rt.data("z", z);
  const tandem::Codelet root("root", [](const double& from, double& to) {
    if (from < 0) throw std::domain_error("root of a negative number");
    to = std::sqrt(from);
  });
  const tandem::Codelet negate("negate", [](double& value) { value = -value; });

  // A kernel that throws.
  rt.submit(root, read(hx), write(hy));    // throws
  rt.submit(negate, read_write(hy));       // needs y, which does not exist now: cancelled
  rt.submit(negate, read_write(hz));       // does not: runs
  try {
    rt.wait();
  } catch (const std::domain_error& error) {
    std::printf("wait: %s; z = %g\n", error.what(), z);
  }

  // The data can be used again when a task has written it afresh.
  rt.submit([](double& value) { value = 4; }, write(hx));
  rt.submit(root, read(hx), write(hy));
  rt.wait();
  std::printf("y = %g\n", y);

  // A mistake in the program: refused before the task is entered.
  auto nothing = rt.scalar<double>("nothing");
  try {
    rt.submit(negate, read_write(nothing));
  } catch (const tandem::UsageError& error) {
    std::printf("submit: %s\n", error.what());
  }
}
