// examples/06_scheduler.cpp: a scheduling policy of the program: tasks of one codelet go to worker 0, the others to the
// other workers.
#include <atomic>
#include <cstdio>
#include <tandem/scheduling.hpp>
#include <tandem/tandem.hpp>

namespace {

/// Pure functions of their arguments: no clock, no threads, no state. The queues of the runtime handle the concurrency.
class ShortFirst final : public tandem::Policy {
 public:
  std::string_view name() const noexcept override { return "short_first"; }
  std::string_view help() const noexcept override {
    return "short tasks to worker 0, others in turn to the other workers";
  }
  bool queue_per_worker() const noexcept override { return true; }
  bool by_priority() const noexcept override { return true; }
  bool keeps_released() const noexcept override { return false; }
  unsigned place(const tandem::ReadyTask& task, const tandem::Situation& now) const noexcept override {
    if (*task.codelet == "short" || now.worker_count == 1) return 0;
    return 1 + static_cast<unsigned>(now.sequence % (now.worker_count - 1));
  }
  std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const override {
    return tandem::runtime::nearest_first(thief, distance);  // an idle worker takes tasks from the nearest
  }
};

}  // namespace

int main(int argc, char** argv) {
  tandem::Runtime rt(
      argc, argv,
      {.sched = "short_first", .policies = {{"short_first", [] { return std::make_unique<ShortFirst>(); }}}});
  std::atomic<int> short_ones{0};
  std::atomic<int> long_ones{0};
  tandem::Codelet short_codelet("short", [&] { ++short_ones; });
  tandem::Codelet long_codelet("long", [&] { ++long_ones; });
  for (int i = 0; i < 50; ++i) {
    rt.submit(short_codelet);
    rt.submit(long_codelet);
  }
  rt.wait();
  std::printf("ran %d tasks: %d short, %d long; policy %s\n", short_ones + long_ones, short_ones.load(),
              long_ones.load(), rt.option("sched").c_str());
}
