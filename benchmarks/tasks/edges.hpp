// benchmarks/tasks/edges.hpp: the explicit edges of a flow, for the runtimes that are given a graph instead of
// accesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "benchmarks/tasks/flows.hpp"

namespace benchmarks::tasks {

/// The predecessors of each task of a flow, inferred from its accesses: read after write, write after read, write after
/// write. An edge that another one implies is left out (a write waits for the readers since the last write, and for
/// that write only when nobody read it). Made before the clock starts: such runtimes leave this knowledge to their
/// users.
class Edges {
 public:
  template <class Flow>
  explicit Edges(const Flow& flow) : data_(Flow::data_count) {
    first_.push_back(0);
    flow(*this);
    data_.clear();
  }

  std::size_t task_count() const { return first_.size() - 1; }
  std::size_t edge_count() const { return predecessors_.size(); }

  std::span<const std::uint32_t> predecessors(std::size_t task) const {
    return std::span(predecessors_).subspan(first_[task], first_[task + 1] - first_[task]);
  }

  /// The visitor: called by the flow, from the constructor.
  void task() { seal(); }
  void task(ReadWrite own) {
    update(own);
    seal();
  }
  void task(Read a, ReadWrite own) {
    read(a);
    update(own);
    seal();
  }
  void task(Read a, Read b, ReadWrite own) {
    read(a);
    read(b);
    update(own);
    seal();
  }

 private:
  struct Datum {
    bool written = false;
    std::uint32_t writer = 0;
    std::vector<std::uint32_t> readers;
  };

  std::uint32_t current() const { return static_cast<std::uint32_t>(first_.size() - 1); }

  void read(Read access) {
    Datum& datum = data_[access.datum];
    if (datum.written) {
      add(datum.writer);
    }
    datum.readers.push_back(current());
  }

  void update(ReadWrite access) {
    Datum& datum = data_[access.datum];
    if (datum.readers.empty() && datum.written) {
      add(datum.writer);
    }
    for (const std::uint32_t reader : datum.readers) {
      add(reader);
    }
    datum.readers.clear();
    datum.written = true;
    datum.writer = current();
  }

  void add(std::uint32_t predecessor) {
    for (std::size_t i = first_.back(); i < predecessors_.size(); ++i) {
      if (predecessors_[i] == predecessor) {
        return;
      }
    }
    predecessors_.push_back(predecessor);
  }

  void seal() { first_.push_back(predecessors_.size()); }

  std::vector<Datum> data_;
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> predecessors_;
};

}  // namespace benchmarks::tasks
