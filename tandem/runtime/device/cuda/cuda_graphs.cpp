// tandem/runtime/device/cuda/cuda_graphs.cpp: makes graphs, and finds existing ones.
#include "tandem/runtime/device/cuda/cuda_graphs.hpp"

#include <algorithm>
#include <utility>

namespace tandem::runtime::cuda {

Graph::Graph(const Driver& driver, const Batch::Content& content, std::size_t tasks) : driver_(driver) {
  Status status = kSuccess;
  for (std::size_t i = 0; i <= tasks && status == kSuccess; ++i) {
    Event event = nullptr;
    status = driver_.create_event(&event, kEventBlockingSync);
    if (status == kSuccess) events_.push_back(event);
  }
  GraphHandle graph = nullptr;
  if (status == kSuccess) status = driver_.create_graph(&graph, 0);
  if (status == kSuccess) status = build(graph, content);
  if (status == kSuccess && driver_.instantiate(&exec_, graph, 0) != kSuccess) exec_ = nullptr;
  if (graph != nullptr) driver_.destroy_graph(graph);
}

/// Builds a chain: each node waits for the one before it.
Status Graph::build(GraphHandle graph, const Batch::Content& content) {
  GraphNode node = nullptr;
  std::size_t events = 0;
  Status status = driver_.add_event(&node, graph, nullptr, 0, events_[events++]);
  Batch::visit(
      content,
      [&](const KernelNode& kernel) {
        const GraphNode before = node;
        if (status == kSuccess) status = driver_.add_kernel(&node, graph, &before, 1, &kernel);
      },
      [&] {
        const GraphNode before = node;
        if (status == kSuccess) status = driver_.add_event(&node, graph, &before, 1, events_[events++]);
      });
  return status;
}

Graph::~Graph() {
  if (exec_ != nullptr) driver_.destroy_exec(exec_);
  for (const Event event : events_) driver_.destroy_event(event);
}

Status Graph::launch(Stream stream) {
  const Status status = driver_.launch_graph(exec_, stream);
  if (status == kSuccess) in_flight_.store(true, std::memory_order_relaxed);
  return status;
}

Graph* Graphs::find(const Batch& batch) {
  const auto [at, is_new] = known_.try_emplace(batch.content());
  Known& known = at->second;
  known.last_use = ++uses_;
  if (is_new) {
    if (known_.size() > kMostBatches) make_room();
    return nullptr;
  }
  for (const auto& graph : known.graphs)
    if (!graph->is_in_flight()) return graph.get();
  if (known.is_refused || known.graphs.size() == kMostGraphs) return nullptr;
  auto graph = std::make_unique<Graph>(driver_, batch.content(), batch.places().size());
  known.is_refused = graph->has_failed();
  if (known.is_refused) return nullptr;
  return known.graphs.emplace_back(std::move(graph)).get();
}

/// Forgets the batch that was unused for longest, unless its graphs are in flight.
void Graphs::make_room() {
  const auto is_older = [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; };
  const auto oldest = std::min_element(known_.begin(), known_.end(), is_older);
  const auto& graphs = oldest->second.graphs;
  if (std::none_of(graphs.begin(), graphs.end(), [](const auto& graph) { return graph->is_in_flight(); }))
    known_.erase(oldest);
}

std::size_t Graphs::Hash::operator()(const Batch::Content& content) const noexcept {
  std::uint64_t hash = content.size();
  for (const std::uint64_t word : content) hash = (hash ^ word) * 0x9E3779B97F4A7C15U + (hash >> 29);
  return static_cast<std::size_t>(hash);
}

}  // namespace tandem::runtime::cuda
