// tests/sim/program.cpp: a program as users write them, which knows nothing of simulation: blocks on a ring of ranks.
// Usage: simulated_program STEPS [print | compute | throw | exit | sleep | spin | wait | order]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tandem/tandem.hpp"

namespace {

unsigned steps_done = 0;  // of this rank

/// Computes for 2 ms.
void smooth(std::span<const double> left, std::span<double> block) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
  while (std::chrono::steady_clock::now() < end)
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = 0.5 * (block[i] + left[i]);
}

void mix(std::span<const double> left, std::span<double> block) {
  for (std::size_t i = 0; i < block.size(); ++i) block[i] += left[i] * 1e-3 * static_cast<double>(i % 7);
}

/// Tasks of each rank that commute, and become ready in another order in each real run.
void submit_in_any_order(tandem::Runtime& rt, std::vector<tandem::Data<tandem::Object<std::string>>>& logs) {
  std::mt19937 random(std::random_device{}());
  for (unsigned rank = 0; rank < rt.size(); ++rank) logs.push_back(rt.object<std::string>("log", {.owner = rank}));
  for (unsigned rank = 0; rank < rt.size(); ++rank) {
    rt.submit(
        "begin", [](std::string& log) { log.clear(); }, write(logs[rank]));
    for (int i = 0; i < 20; ++i) {
      auto part = rt.vector<double>("part", 1, {.owner = rank});
      const std::chrono::microseconds takes(random() % 3000);
      rt.submit(
          "part", [takes](std::span<double>) { std::this_thread::sleep_for(takes); }, write(part));
      rt.submit(
          "append", [i](std::span<const double>, std::string& log) { log += ' ' + std::to_string(i); }, read(part),
          commute(logs[rank]));
    }
  }
}

/// Processor time of this program.
double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  tandem::Runtime rt(argc, argv);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::string last = argc > 2 ? argv[2] : "";

  std::vector<tandem::Data<tandem::Vector<double>>> blocks;
  for (unsigned rank = 0; rank < rt.size(); ++rank) blocks.push_back(rt.vector<double>("block", 1000, {.owner = rank}));
  for (auto& block : blocks)
    rt.submit(
        "fill",
        [](std::span<double> values) {
          for (double& value : values) value = 1;
        },
        write(block));
  for (int step = 0; step < steps; ++step, ++steps_done)
    for (unsigned rank = 0; rank < rt.size(); ++rank)
      rt.submit("smooth", smooth, read(blocks[(rank + 1) % rt.size()]), read_write(blocks[rank]));
  if (last == "print")
    for (int step = 0; step < steps; ++step)
      for (unsigned rank = 0; rank < rt.size(); ++rank)
        rt.submit("mix", mix, read(blocks[(rank + 1) % rt.size()]), read_write(blocks[rank]));
  std::vector<tandem::Data<tandem::Object<std::string>>> logs;
  if (last == "order") submit_in_any_order(rt, logs);
  if (last == "compute")
    for (const auto end = processor_s() + 0.25; processor_s() < end;) continue;
  rt.wait();
  const double took_s = seconds_since(begin);
  if (rt.rank() == 0) std::printf("%u steps took %.4f s\n", steps_done, took_s);

  if (last == "print") {
    for (unsigned rank = 0; rank < rt.size(); ++rank)
      if (auto block = rt.acquire_at_owner(read(blocks[rank]))) std::printf("block %u: %.17g\n", rank, (**block)[13]);
  }
  for (unsigned rank = 0; rank < logs.size(); ++rank)
    if (auto log = rt.acquire_at_owner(read(logs[rank]))) std::printf("order %u: %s\n", rank, (**log).c_str());
  if (last == "throw" && rt.rank() == 1) throw std::runtime_error("the program's own mistake");
  if (last == "exit" && rt.rank() == 1) std::exit(5);
  if (last == "sleep") {
    const std::time_t date = std::time(nullptr);
    std::this_thread::sleep_for(std::chrono::hours(2));
    std::printf("slept %ld s\n", static_cast<long>(std::time(nullptr) - date));
  }
  if (last == "spin") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < end) continue;
    std::printf("spun until %.4f s\n", seconds_since(end));
  }
  if (last == "wait") {
    double value = 0;
    auto data = rt.data("x", value);
    rt.receive(data, (rt.rank() + 1) % rt.size(), 7);  // nobody sends it
    rt.wait();
  }
  return 0;
}
