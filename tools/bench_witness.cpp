// tools/bench_witness.cpp: asks before and after each run.
#include "tools/bench_witness.hpp"

#include <vector>

#include "tools/json_report.hpp"

namespace tandem::tools {
namespace {

constexpr unsigned kFirstQuestions = 25;
constexpr unsigned kMostQuestions = 100;  ///< before one run
constexpr unsigned kMostRuns = 8;

}  // namespace

base::Result<Watch> Watch::begin(Ask ask, double tolerance) {
  std::vector<double> numbers;
  for (unsigned i = 0; i < kFirstQuestions; ++i) {
    const auto number = ask();
    if (!number) return number.error();
    numbers.push_back(number.value());
  }
  return Watch(std::move(ask), tolerance, median(std::move(numbers)));
}

/// A witness that falls silent says nothing against the machine.
bool Watch::as_usual() {
  const auto number = ask_();
  if (!number) return true;
  return number.value() <= account_.usual * tolerance_ && number.value() * tolerance_ >= account_.usual;
}

bool Watch::wait_until_usual() {
  for (unsigned i = 0; i < kMostQuestions; ++i)
    if (as_usual()) return true;
  return false;
}

void Watch::around(const std::function<bool()>& run) {
  ++account_.runs;
  for (unsigned i = 0; i < kMostRuns; ++i) {
    account_.repeated += i > 0;
    const bool before = wait_until_usual();
    if (!run() || (before && as_usual())) return;
  }
  ++account_.unusual;
}

}  // namespace tandem::tools
