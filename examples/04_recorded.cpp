// examples/04_recorded.cpp: an iterative solver whose iteration is recorded once and replayed, at a fraction of the
// cost.
#include <cmath>
#include <cstdio>
#include <string>
#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);

  // Heat in a rod: each sweep replaces the inner points of `next` by the mean of their neighbours in `now`, block by
  // block.
  constexpr std::size_t blocks = 8;
  constexpr std::size_t size = 100;
  std::vector<std::vector<double>> now(blocks, std::vector<double>(size, 0.0)), next = now;
  now.front().front() = next.front().front() = 100.0;
  std::vector<tandem::Data<tandem::Vector<double>>> a, b;
  for (std::size_t i = 0; i < blocks; ++i) {
    a.push_back(rt.data("now " + std::to_string(i), now[i]));
    b.push_back(rt.data("next " + std::to_string(i), next[i]));
  }
  tandem::Codelet sweep("sweep", [](bool first, bool last, std::span<const double> left, std::span<const double> mid,
                                    std::span<const double> right, std::span<double> out) {
    for (std::size_t i = 0; i < mid.size(); ++i) {
      if ((first && i == 0) || (last && i + 1 == mid.size())) continue;  // the ends keep their temperature
      const double before = i == 0 ? left.back() : mid[i - 1];
      const double after = i + 1 == mid.size() ? right.front() : mid[i + 1];
      out[i] = (before + after) / 2;
    }
  });
  const auto submit_sweep = [&](auto& from, auto& to) {
    for (std::size_t i = 0; i < blocks; ++i)
      rt.submit(sweep, i == 0, i + 1 == blocks, read(from[i == 0 ? i : i - 1]), read(from[i]),
                read(from[i + 1 == blocks ? i : i + 1]), write(to[i]));
  };

  tandem::Graph iteration = rt.record([&] {
    submit_sweep(a, b);
    submit_sweep(b, a);
  });
  for (int i = 0; i < 500; ++i) rt.replay(iteration);  // replays overlap where the data allows it
  rt.wait();
  std::printf("%zu tasks a replay; point 10 has %.2f degrees after 1000 sweeps\n", iteration.task_count(), now[0][10]);
}
