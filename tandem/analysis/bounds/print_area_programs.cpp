// tandem/analysis/bounds/print_area_programs.cpp: prints random linear programs of the area bound and our solutions of
// them, a JSON object per line, for a comparison with scipy. Usage: print_area_programs COUNT. Each COUNT determines
// its programs.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tandem/analysis/bounds/area_program.hpp"

namespace {

using tandem::analysis::AreaProgram;
using tandem::analysis::AreaSolution;

AreaProgram random_program(unsigned seed) {
  std::mt19937 random(seed);
  AreaProgram program;
  const std::size_t kinds = 1 + random() % 5, kernels = 1 + random() % 12;
  for (std::size_t kind = 0; kind < kinds; ++kind) program.workers.push_back(static_cast<double>(1 + random() % 200));
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    program.tasks.push_back(static_cast<double>(1 + random() % 1'000'000));
    std::vector<std::optional<double>> times(kinds);
    times[random() % kinds] = 1;  // somewhere it can run
    for (auto& time : times)
      if (time || random() % 4 != 0) time = std::lognormal_distribution(10.0, 3.0)(random);
    program.times.push_back(std::move(times));
  }
  return program;
}

std::string list_of(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return "[" + text + "]";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: print_area_programs COUNT\n"), 2;
  const auto count = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  if (!tandem::analysis::has_area_solver()) return std::puts("skipped: built without lp_solve (liblpsolve55-dev)"), 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    const AreaProgram program = random_program(seed);
    const AreaSolution solution = solve(program);
    std::string times, placed;
    for (const auto& of_kernel : program.times) {
      std::string row;
      for (const auto& time : of_kernel) row += (row.empty() ? "" : ", ") + (time ? fmt::format("{}", *time) : "null");
      times += (times.empty() ? "[" : ", [") + row + "]";
    }
    for (const auto& of_kernel : solution.placed) placed += (placed.empty() ? "" : ", ") + list_of(of_kernel);
    fmt::print(
        "{{\"seed\": {}, \"workers\": {}, \"tasks\": {}, \"times\": [{}], \"bound\": {}, \"exact\": {}, \"placed\": "
        "[{}]}}\n",
        seed, list_of(program.workers), list_of(program.tasks), times, solution.bound, solution.is_exact, placed);
  }
}
