// benchmarks/tasks/peer_tasks_taskflow.cpp: the task flows on Taskflow, with explicit edges.
//
// The edges come ready-made (edges.hpp); the clock counts making the graph and running it. Tasks of flows without any
// edge are asynchronous tasks of the executor, which start while the others are submitted.
#include <taskflow/taskflow.hpp>

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/tasks/edges.hpp"
#include "benchmarks/tasks/harness.hpp"

namespace benchmarks::tasks {
namespace {

/// The executor has `workers` threads of its own; the thread that submits sleeps in wait().
class TaskflowAdapter {
 public:
  static constexpr const char* name = "taskflow";
  static constexpr std::size_t memory_tasks = 100'000;

  explicit TaskflowAdapter(unsigned workers) : executor_(workers) {}

  std::string version() const { return tf::version(); }

  template <class Flow>
  void open(const Flow& flow) {
    edges_.emplace(flow);
    tasks_.clear();
    tasks_.reserve(edges_->task_count());
  }

  void close() { graph_.clear(); }

  void task() {
    executor_.silent_async([] {});
  }
  void task(ReadWrite) {
    if (edges_->edge_count() == 0) {
      task();
    } else {
      add_task();
    }
  }
  void task(Read, ReadWrite) { add_task(); }
  void task(Read, Read, ReadWrite) { add_task(); }

  void wait() {
    if (graph_.empty()) {
      executor_.wait_for_all();
    } else {
      executor_.run(graph_).wait();
    }
  }

  template <class Flow>
  void record(const Flow& flow) {
    flow(*this);
  }

  /// The graph stays as it is, and wait() runs it again.
  void replay() {}

  static double memory_bytes() { return resident_bytes(); }

  /// Nothing runs before wait(), so nothing has to hold it back.
  bool can_block() const { return true; }
  void block() {}
  void release() {}

 private:
  void add_task() {
    tf::Task added = graph_.emplace([] {});
    for (const std::uint32_t predecessor : edges_->predecessors(tasks_.size())) {
      tasks_[predecessor].precede(added);
    }
    tasks_.push_back(added);
  }

  tf::Executor executor_;
  tf::Taskflow graph_;
  std::optional<Edges> edges_;
  std::vector<tf::Task> tasks_;
};

}  // namespace
}  // namespace benchmarks::tasks

int main(int argc, char** argv) { return benchmarks::tasks::run_flows<benchmarks::tasks::TaskflowAdapter>(argc, argv); }
