// tandem/runtime/task/flow_chart.hpp: the graph of a flow as a picture for graphviz.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/runtime/task/flow.hpp"

namespace tandem::runtime {

/// Collects the graph while it is submitted, and writes it in the DOT language: a node per task, coloured by codelet,
/// and an edge per dependency, labelled with its data. Used by the submitting thread. For graphs of some thousand
/// tasks.
class FlowChart final : public GraphObserver {
 public:
  void node(Task& task) override;
  void edge(TaskId from, const Task& to, const Handle* data) override;

  std::string dot() const;
  base::Result<void> write(const std::string& path) const;

 private:
  struct Node {
    TaskId id;
    std::string name;
    std::int32_t priority;
  };
  struct Edge {
    TaskId from;
    TaskId to;
    std::string data;
  };
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

}  // namespace tandem::runtime
