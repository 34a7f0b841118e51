// tools/bench/stability.cpp: runs the probe before and after each run.
#include "tools/bench/stability.hpp"

#include <vector>

#include "tools/json/json_report.hpp"

namespace tandem::tools {
namespace {

constexpr unsigned kFirstProbes = 25;
constexpr unsigned kMostProbes = 100;  ///< before one run
constexpr unsigned kMostRuns = 8;

}  // namespace

base::Result<StabilityMonitor> StabilityMonitor::begin(Probe probe, double tolerance) {
  std::vector<double> numbers;
  for (unsigned i = 0; i < kFirstProbes; ++i) {
    const auto number = probe();
    if (!number) return number.error();
    numbers.push_back(number.value());
  }
  return StabilityMonitor(std::move(probe), tolerance, median(std::move(numbers)));
}

/// Whether the machine is as usual. A probe that fails does not make it unusual.
bool StabilityMonitor::as_usual() {
  const auto number = probe_();
  if (!number) return true;
  return number.value() <= report_.usual * tolerance_ && number.value() * tolerance_ >= report_.usual;
}

bool StabilityMonitor::wait_until_usual() {
  for (unsigned i = 0; i < kMostProbes && (i == 0 || !is_late_()); ++i)
    if (as_usual()) return true;
  return false;
}

void StabilityMonitor::around(const std::function<bool()>& run) {
  ++report_.runs;
  for (unsigned i = 0; i < kMostRuns && (i == 0 || !is_late_()); ++i) {
    report_.repeated += i > 0;
    const bool before = wait_until_usual();
    if (!run() || (before && as_usual())) return;
  }
  ++report_.unusual;
}

}  // namespace tandem::tools
