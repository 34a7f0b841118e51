// tests/dist_flow/rank_without_wait.cpp: a program that does not wait at its end. Usage: rank_without_wait
// equal|differing
#include <cstdio>
#include <string_view>
#include <vector>

#include "tandem/tandem.hpp"

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  const bool differing = argc > 1 && std::string_view(argv[1]) == "differing";
  std::vector<double> x(10, 1.0), y(10, 2.0), z(10, 0.0);
  auto hx = rt.data("x", x, {.owner = 0}), hy = rt.data("y", y, {.owner = 0}), hz = rt.data("z", z, {.owner = 1});
  rt.submit("copy", [](std::span<const double> from, std::span<double> to) { to[0] = from[0]; },
            read(differing && rt.rank() == 1 ? hy : hx), write(hz));
  std::printf("submitted\n");
  return 0;
}
