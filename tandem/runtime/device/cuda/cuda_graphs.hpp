// tandem/runtime/device/cuda/cuda_graphs.hpp: CUDA graphs for batches of kernels that come again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tandem/runtime/device/cuda/cuda_batch.hpp"
#include "tandem/runtime/device/cuda/cuda_driver.hpp"

namespace tandem::runtime::cuda {

/// A CUDA graph: the kernels of a batch in their order, with events before them and behind each task.
///
/// The events belong to the last launch, so a graph is launched again only after its last end was reported.
class Graph {
 public:
  /// Makes a graph of the `tasks` tasks of `content`. The context must be current. `has_failed` says whether the driver
  /// refused.
  Graph(const Driver& driver, const Batch::Content& content, std::size_t tasks);
  ~Graph();  ///< the graph must not be in flight
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  bool has_failed() const noexcept { return exec_ == nullptr; }
  /// Posts the graph to `stream`. Without an error it is in flight from then on.
  Status launch(Stream stream);
  /// The event behind the tasks before task `task`, counted from 0; the number of tasks gives the event behind all.
  Event event(std::size_t task) const noexcept { return events_[task]; }
  bool is_in_flight() const noexcept { return in_flight_.load(std::memory_order_acquire); }
  /// Marks the graph as ended: all its ends were reported. Any thread.
  void land() noexcept { in_flight_.store(false, std::memory_order_release); }

 private:
  Status build(GraphHandle graph, const Batch::Content& content);

  const Driver& driver_;
  GraphExec exec_ = nullptr;
  std::vector<Event> events_;
  std::atomic<bool> in_flight_{false};
};

/// The graphs of one stream. A batch gets a graph when it comes the second time, and another one when it comes again
/// while that is in flight. The graphs used last are kept.
///
/// Threads: one, except for `Graph::land`.
class Graphs {
 public:
  explicit Graphs(const Driver& driver) : driver_(driver) {}

  /// A graph that does the work of `batch` and is not in flight; null: the caller posts its kernels one by one. The
  /// context must be current.
  Graph* find(const Batch& batch);

 private:
  static constexpr std::size_t kMostBatches = 256;  ///< batches that are known at a time
  static constexpr std::size_t kMostGraphs = 3;     ///< graphs of one batch

  struct Known {
    std::uint64_t last_use = 0;
    bool is_refused = false;  ///< the driver refused the graph
    std::vector<std::unique_ptr<Graph>> graphs;
  };
  struct Hash {
    std::size_t operator()(const Batch::Content& content) const noexcept;
  };
  void make_room();

  const Driver& driver_;
  std::unordered_map<Batch::Content, Known, Hash> known_;
  std::uint64_t uses_ = 0;
};

}  // namespace tandem::runtime::cuda
