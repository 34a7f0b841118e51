// benchmarks/tasks/tandem_flows.cpp: the task flows on Tandem.
#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/tasks/harness.hpp"
#include "tandem/tandem.hpp"

namespace benchmarks::tasks {
namespace {

/// The thread that made it is worker 0, and works in wait(). The options are the defaults.
class TandemAdapter {
 public:
  static constexpr const char* name = "tandem";
  // below the default window, so that submission is never held back
  static constexpr std::size_t memory_tasks = 30'000;

  explicit TandemAdapter(unsigned workers) : runtime_(tandem::Options{.workers = workers}) {}

  std::string version() const { return "0.1.0"; }

  template <class Flow>
  void open(const Flow& flow) {
    values_.assign(flow.data_count, 0);
    for (char& value : values_) data_.push_back(runtime_.data("datum", value));
  }

  void close() { data_.clear(); }

  void task() { runtime_.submit(none_); }
  void task(ReadWrite own) { runtime_.submit(one_, tandem::read_write(data_[own.datum])); }
  void task(Read a, ReadWrite own) {
    runtime_.submit(two_, tandem::read(data_[a.datum]), tandem::read_write(data_[own.datum]));
  }
  void task(Read a, Read b, ReadWrite own) {
    runtime_.submit(three_, tandem::read(data_[a.datum]), tandem::read(data_[b.datum]),
                    tandem::read_write(data_[own.datum]));
  }

  void wait() { runtime_.wait(); }

  template <class Flow>
  void record(const Flow& flow) {
    graph_ = runtime_.record([&] { flow(*this); });
  }
  void replay() { runtime_.replay(graph_); }

  static double memory_bytes() { return resident_bytes(); }
  bool can_block() const { return runtime_.worker_count() > 1; }
  void block() {
    held_.store(true);
    const tandem::Codelet hold("hold", [this](char&) {
      while (held_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    runtime_.submit(hold, tandem::read_write(data_[0]));
  }
  void release() { held_.store(false); }

 private:
  static void nothing() {}

  tandem::Runtime runtime_;
  std::vector<char> values_;
  std::vector<tandem::Data<char>> data_;
  tandem::Graph graph_;
  std::atomic<bool> held_{false};
  tandem::Codelet<void (*)()> none_{"none", &nothing};
  tandem::Codelet<void (*)(char&)> one_{"one", [](char&) {}};
  tandem::Codelet<void (*)(const char&, char&)> two_{"two", [](const char&, char&) {}};
  tandem::Codelet<void (*)(const char&, const char&, char&)> three_{"three", [](const char&, const char&, char&) {}};
};

}  // namespace
}  // namespace benchmarks::tasks

int main(int argc, char** argv) { return benchmarks::tasks::run_flows<benchmarks::tasks::TandemAdapter>(argc, argv); }
