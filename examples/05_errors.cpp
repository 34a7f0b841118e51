// examples/05_errors.cpp: a kernel that throws, what is cancelled with it, and a mistake that is refused.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv, {.more = {{"log", "error"}}});
  double x = 4;
  double y = 0;
  double z = 1;
  auto hx = rt.data("x", x);
  auto hy = rt.data("y", y);
  auto hz = rt.data("z", z);

  tandem::Codelet root("root", [](const double& from, double& to) {
    if (from < 0) throw std::domain_error("the root of " + std::to_string(from));
    to = from / 2;
  });
  tandem::Codelet negate("negate", [](double& value) { value = -value; });

  rt.submit(negate, read_write(hx));
  rt.submit(root, read(hx), write(hy));       // throws
  rt.submit(negate, read_write(hy));          // needs y, which does not exist now: cancelled
  rt.submit(negate, read_write(hz));          // needs only z: runs
  try {
    rt.wait();
  } catch (const std::domain_error& error) {
    std::printf("wait: %s\n", error.what());
  }
  std::printf("z = %g\n", z);

  hz.unregister();
  try {
    rt.submit(negate, read_write(hz));
  } catch (const tandem::UsageError& error) {
    std::printf("submit: %s\n", error.what());
  }
}
