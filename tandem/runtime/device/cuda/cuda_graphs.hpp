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

/// What the driver runs at one call: the kernels of a batch in their order, and events before them and behind each task.
///
/// The events are of the last launch, so a graph that is in flight is launched again only when the last end was heard of.
class Graph {
 public:
  /// `content` has `tasks` tasks. The context is current. Ask `has_failed` whether the driver has made it.
  Graph(const Driver& driver, const Batch::Content& content, std::size_t tasks);
  ~Graph();  ///< it is not in flight
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  bool has_failed() const noexcept { return exec_ == nullptr; }
  /// Puts all of it into `stream`. It is in flight from then on, unless there is an error.
  Status launch(Stream stream);
  /// Behind the tasks before task `task`, from 0, and behind all for as many as there are.
  Event event(std::size_t task) const noexcept { return events_[task]; }
  bool is_in_flight() const noexcept { return in_flight_.load(std::memory_order_acquire); }
  /// All its ends were heard of. Any thread.
  void land() noexcept { in_flight_.store(false, std::memory_order_release); }

 private:
  Status build(GraphHandle graph, const Batch::Content& content);

  const Driver& driver_;
  GraphExec exec_ = nullptr;
  std::vector<Event> events_;
  std::atomic<bool> in_flight_{false};
};

/// The graphs of one stream. A batch gets one when it comes the second time; one that comes again while its graph is in flight gets another. Those
/// that were asked for last are kept.
///
/// Threads: one, except for `Graph::land`.
class Graphs {
 public:
  explicit Graphs(const Driver& driver) : driver_(driver) {}

  /// One that does the work of `batch` and is not in flight; null: its kernels are to be posted one by one. The context is current.
  Graph* find(const Batch& batch);

 private:
  static constexpr std::size_t kMostBatches = 256;  ///< known at a time
  static constexpr std::size_t kMostGraphs = 3;     ///< of one batch

  struct Known {
    std::uint64_t last_use = 0;
    bool is_refused = false;  ///< by the driver
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
