// tools/simulate/own_costs.cpp: times of tasks that do nothing, and of messages beside kernels.
#include "tools/simulate/own_costs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/tandem.hpp"
#include "tools/json/json_report.hpp"

namespace tandem::tools {
namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

Options options(unsigned workers, bool caller_works) {
  return {.workers = workers,
          .more = {{"ranks", "alone"}, {"models", "off"}, {"caller", caller_works ? "true" : "false"}}};
}

/// Submission while nothing runs, and the execution of what was submitted, by one worker.
std::pair<double, double> submission_and_execution() {
  constexpr unsigned tasks = 8'000, cells = 256, repetitions = 15;
  Runtime rt(options(1, true));
  std::vector<double> values(cells);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt.data("cell", value));
  std::vector<double> submit_ns, task_ns;
  for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
    const auto begin = Clock::now();
    for (unsigned task = 0; task < tasks; ++task)
      rt.submit(
          "nothing", [](const double&, double&) {}, read(data[(task * 7 + 1) % cells]), read_write(data[task % cells]));
    submit_ns.push_back(ns_since(begin) / tasks);
    const auto middle = Clock::now();
    rt.wait();
    task_ns.push_back(ns_since(middle) / tasks);
  }
  return {median(submit_ns), median(task_ns)};
}

/// From a submission to the begin of the task on a worker that sleeps.
double wake_up() {
  constexpr unsigned repetitions = 101;
  Runtime rt(options(1, false));
  std::vector<double> wake_ns;
  for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
    std::atomic<double> taken_ns = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto begin = Clock::now();
    rt.submit("late", [&taken_ns, begin] { taken_ns = ns_since(begin); });
    rt.wait();
    wake_ns.push_back(taken_ns);
  }
  return median(wake_ns);
}

/// A kernel of some 40 us, whatever its core does meanwhile.
void compute(double& value) {
  for (int step = 0; step < 30'000; ++step) value = value * 0.999'999 + 1e-9;
}

/// Time in ns, for each end of a block, in which each rank computes beside blocks that come from the other rank, or
/// from its own.
double ns_beside(Runtime& rt, std::size_t bytes, bool from_others) {
  constexpr unsigned blocks = 48, kernels = 4;
  const std::uint32_t ranks = rt.size();
  std::vector<Data<Vector<std::byte>>> all;
  std::vector<Data<Vector<double>>> own;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    own.push_back(rt.vector<double>("own", 1, {.owner = rank}));
    for (unsigned block = 0; block < blocks; ++block)
      all.push_back(rt.vector<std::byte>("block", bytes, {.owner = rank}));
  }
  for (auto& block : all)
    rt.submit(
        "fill", [](std::span<std::byte> values) { std::ranges::fill(values, std::byte{1}); }, write(block));
  for (auto& value : own)
    rt.submit(
        "begin", [](std::span<double> values) { values[0] = 1; }, write(value));
  rt.wait();
  const auto begin = Clock::now();
  for (unsigned block = 0; block < blocks; ++block)
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t from = from_others ? (rank + 1) % ranks : rank;
      for (unsigned kernel = 0; kernel < kernels; ++kernel)
        rt.submit(
            "compute", [](std::span<double> values) { compute(values[0]); }, read_write(own[rank]));
      rt.submit(
          "take", [](std::span<const std::byte>, std::span<double>) {}, read(all[from * blocks + block]),
          read_write(own[rank]));
    }
  rt.wait();
  return ns_since(begin) / (2 * blocks);  // each rank sends and receives each of its blocks
}

/// What one end of a message of so many bytes takes, in ns.
double end_of_message(Runtime& rt, std::size_t bytes) {
  std::vector<double> more_ns;
  for (unsigned repetition = 0; repetition < 9; ++repetition) {
    const double without = ns_beside(rt, bytes, false);
    more_ns.push_back(ns_beside(rt, bytes, true) - without);
  }
  return std::max(median(more_ns), 0.0);
}

}  // namespace

runtime::RuntimeCosts measure_task_costs() {
  const auto [submit_ns, task_ns] = submission_and_execution();
  return {.submit_ns = std::llround(submit_ns), .task_ns = std::llround(task_ns), .wake_ns = std::llround(wake_up())};
}

std::optional<MessageCosts> measure_message_costs() {
  constexpr std::size_t small = 2 << 10, large = 256 << 10;
  Runtime rt({.workers = 1, .more = {{"models", "off"}}});
  const double small_ns = end_of_message(rt, small), large_ns = end_of_message(rt, large);
  if (rt.rank() != 0) return {};
  MessageCosts costs{.packet_ns = small_ns};
  if (large_ns > small_ns) costs.copy_bytes_per_ns = static_cast<double>(large - small) / (large_ns - small_ns);
  return costs;
}

}  // namespace tandem::tools
