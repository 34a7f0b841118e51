// benchmarks/tasks/peer_tasks_tbb.cpp: the task flows on oneTBB, as a flow graph with explicit edges.
//
// The edges come ready-made (edges.hpp); the clock counts making the nodes and the edges, starting and running the
// graph. Tasks without predecessors at all go to a task_group instead. Nodes keep their storage from lap to lap.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/tasks/edges.hpp"
#include "benchmarks/tasks/harness.hpp"

namespace benchmarks::tasks {
namespace {

using Message = tbb::flow::continue_msg;
using Node = tbb::flow::continue_node<Message>;

/// The thread that made it works, too, in wait().
class TbbAdapter {
 public:
  static constexpr const char* name = "tbb";
  static constexpr std::size_t memory_tasks = 100'000;

  explicit TbbAdapter(unsigned workers) : parallelism_(tbb::global_control::max_allowed_parallelism, workers) {}
  TbbAdapter(const TbbAdapter&) = delete;
  TbbAdapter& operator=(const TbbAdapter&) = delete;
  ~TbbAdapter() { deallocate(); }

  std::string version() const { return TBB_runtime_version(); }

  template <class Flow>
  void open(const Flow& flow) {
    edges_.emplace(flow);
    graph_ = std::make_unique<tbb::flow::graph>();
    if (capacity_ < edges_->task_count()) {
      deallocate();
      capacity_ = edges_->task_count();
      nodes_ = std::allocator<Node>().allocate(capacity_);
    }
  }

  void close() {
    for (std::size_t i = 0; i < node_count_; ++i) {
      std::destroy_at(nodes_ + i);
    }
    node_count_ = 0;
    sources_.clear();
    graph_.reset();
  }

  void task() {
    group_.run([] {});
  }
  void task(ReadWrite) { node_or_group(); }
  void task(Read, ReadWrite) { add_node(); }
  void task(Read, Read, ReadWrite) { add_node(); }

  void wait() {
    group_.wait();
    for (const std::size_t source : sources_) {
      nodes_[source].try_put(Message());
    }
    graph_->wait_for_all();
  }

  template <class Flow>
  void record(const Flow& flow) {
    flow(*this);
  }

  /// The graph stays as it is, and wait() sets it off again.
  void replay() {}

  static double memory_bytes() { return resident_bytes(); }

  /// Nothing runs before wait(), so nothing has to hold it back.
  bool can_block() const { return true; }
  void block() {}
  void release() {}

 private:
  /// A flow none of whose tasks depends on another needs no graph.
  void node_or_group() {
    if (edges_->edge_count() == 0) {
      task();
    } else {
      add_node();
    }
  }

  void add_node() {
    Node* node = std::construct_at(nodes_ + node_count_, *graph_, [](const Message&) {});
    const auto predecessors = edges_->predecessors(node_count_);
    for (const std::uint32_t predecessor : predecessors) {
      tbb::flow::make_edge(nodes_[predecessor], *node);
    }
    if (predecessors.empty()) {
      sources_.push_back(node_count_);
    }
    ++node_count_;
  }

  void deallocate() {
    if (nodes_ != nullptr) {
      std::allocator<Node>().deallocate(nodes_, capacity_);
      nodes_ = nullptr;
    }
  }

  tbb::global_control parallelism_;
  tbb::task_group group_;
  std::optional<Edges> edges_;
  std::unique_ptr<tbb::flow::graph> graph_;
  Node* nodes_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t node_count_ = 0;
  std::vector<std::size_t> sources_;
};

}  // namespace
}  // namespace benchmarks::tasks

int main(int argc, char** argv) { return benchmarks::tasks::run_flows<benchmarks::tasks::TbbAdapter>(argc, argv); }
