// benchmarks/tasks/bench_remote_tasks_tandem.cpp: what a task of another rank costs a rank that takes no part in it.
//
// Run with `tandem run -n 2 bench_remote_tasks_tandem`: all tasks are rank 0's; rank 1 goes through the same flow and
// reports the cost of one submit, in ns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tandem/tandem.hpp"

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  if (rt.size() < 2) {
    std::fprintf(stderr, "bench_remote_tasks_tandem: needs two ranks; start it with tandem run -n 2\n");
    return 2;
  }
  // As many data as the tiles of a matrix, so that their lines do not all lie in the first cache.
  constexpr std::size_t tiles = 1600, tasks = 200'000;
  std::vector<tandem::Data<double>> data;
  std::vector<double> values(tiles);
  for (double& value : values) data.push_back(rt.data("tile", value, {.owner = 0}));
  const tandem::Codelet update("update", [](const double&, const double&, double&) {});
  std::vector<double> samples;
  for (int repetition = 0; repetition < 7; ++repetition) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < tasks; ++i)
      rt.submit(update, read(data[i * 7 % tiles]), read(data[(i * 13 + 1) % tiles]),
                read_write(data[(i * 29 + 2) % tiles]));
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    rt.wait();
    if (repetition > 0) samples.push_back(took.count() / static_cast<double>(tasks));
  }
  if (rt.rank() != 1) return 0;
  std::sort(samples.begin(), samples.end());
  std::printf(R"({"results": [{"name": "remote_task", "unit": "ns", "median": %.2f, "min": %.2f, "max": %.2f}]})" "\n",
              samples[samples.size() / 2], samples.front(), samples.back());
  return 0;
}
