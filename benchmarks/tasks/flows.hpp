// benchmarks/tasks/flows.hpp: the task flows that every runtime is measured with, written once.
//
// A flow is a sequence of tasks with empty kernels that access numbered data. It is a function object over a visitor,
// which turns each task into a submission to one runtime:
//
//   struct Visitor {
//     void task();                              // no access
//     void task(ReadWrite own);                 // one access
//     void task(Read a, ReadWrite own);         // two
//     void task(Read a, Read b, ReadWrite own); // three
//   };
//
//   // Submits Cholesky::task_count tasks on data 0 .. Cholesky::data_count - 1.
//   Cholesky{}(visitor);
//
// `laps` says how often a flow is submitted and waited for within one timed sample, so that a sample lasts milliseconds
// also for the small flows. All flows are deterministic and fit `std::uint32_t` indices.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>

namespace benchmarks::tasks {

/// The task reads this datum.
struct Read {
  std::size_t datum;
};

/// The task updates this datum.
struct ReadWrite {
  std::size_t datum;
};

/// Tasks without any access: nothing but the cost of a task.
struct IndependentBare {
  static constexpr std::string_view name = "independent_bare";
  static constexpr std::size_t data_count = 0;
  static constexpr std::size_t task_count = 100'000;
  static constexpr unsigned laps = 1;

  template <class Visitor>
  void operator()(Visitor& visitor) const {
    for (std::size_t i = 0; i < task_count; ++i) {
      visitor.task();
    }
  }
};

/// Tasks that each update a datum of their own.
struct Independent {
  static constexpr std::string_view name = "independent";
  static constexpr std::size_t data_count = 100'000;
  static constexpr std::size_t task_count = 100'000;
  static constexpr unsigned laps = 1;

  template <class Visitor>
  void operator()(Visitor& visitor) const {
    for (std::size_t i = 0; i < task_count; ++i) {
      visitor.task(ReadWrite{i});
    }
  }
};

/// Tasks that all update the same datum, one after the other.
struct Chain {
  static constexpr std::string_view name = "chain";
  static constexpr std::size_t data_count = 1;
  static constexpr std::size_t task_count = 200'000;
  static constexpr unsigned laps = 1;

  template <class Visitor>
  void operator()(Visitor& visitor) const {
    for (std::size_t i = 0; i < task_count; ++i) {
      visitor.task(ReadWrite{0});
    }
  }
};

/// A square grid: each task updates its cell after the cells above and to the left. Border cells lack a neighbour.
struct Wavefront {
  static constexpr std::size_t side = 320;
  static constexpr std::string_view name = "wavefront";
  static constexpr std::size_t data_count = side * side;
  static constexpr std::size_t task_count = side * side;
  static constexpr unsigned laps = 1;

  template <class Visitor>
  void operator()(Visitor& visitor) const {
    for (std::size_t row = 0; row < side; ++row) {
      for (std::size_t column = 0; column < side; ++column) {
        const std::size_t cell = row * side + column;
        if (row > 0 && column > 0) {
          visitor.task(Read{cell - side}, Read{cell - 1}, ReadWrite{cell});
        } else if (row > 0) {
          visitor.task(Read{cell - side}, ReadWrite{cell});
        } else if (column > 0) {
          visitor.task(Read{cell - 1}, ReadWrite{cell});
        } else {
          visitor.task(ReadWrite{cell});
        }
      }
    }
  }
};

/// The right-looking tiled Cholesky factorisation of the lower triangle of 40 x 40 tiles:
/// A(k,k) = L L^T; A(m,k) := A(m,k) L^-T; A(m,m) -= A(m,k) A(m,k)^T; A(m,n) -= A(m,k) A(n,k)^T.
struct Cholesky {
  static constexpr std::size_t side = 40;
  static constexpr std::string_view name = "cholesky";
  static constexpr std::string_view replay_name = "cholesky_replay";
  static constexpr std::size_t data_count = side * side;
  static constexpr std::size_t task_count = side * (side + 1) * (side + 2) / 6;
  static constexpr unsigned laps = 8;
  static constexpr unsigned replay_laps = 32;

  static constexpr std::size_t tile(std::size_t row, std::size_t column) { return row * side + column; }

  template <class Visitor>
  void operator()(Visitor& visitor) const {
    for (std::size_t k = 0; k < side; ++k) {
      visitor.task(ReadWrite{tile(k, k)});
      for (std::size_t m = k + 1; m < side; ++m) {
        visitor.task(Read{tile(k, k)}, ReadWrite{tile(m, k)});
      }
      for (std::size_t m = k + 1; m < side; ++m) {
        for (std::size_t n = k + 1; n < m; ++n) {
          visitor.task(Read{tile(m, k)}, Read{tile(n, k)}, ReadWrite{tile(m, n)});
        }
        visitor.task(Read{tile(m, k)}, ReadWrite{tile(m, m)});
      }
    }
  }
};

/// Tasks with three accesses that pile up behind whatever holds datum 0: for the memory of a submitted task.
struct ThreeAccesses {
  static constexpr std::string_view name = "bytes_per_task";
  static constexpr std::size_t data_count = 3;
  std::size_t task_count;

  template <class Visitor>
  void operator()(Visitor& visitor) const {
    for (std::size_t i = 0; i < task_count; ++i) {
      visitor.task(Read{0}, Read{1}, ReadWrite{2});
    }
  }
};

/// The flows whose time per task is measured.
using TimedFlows = std::tuple<IndependentBare, Independent, Chain, Wavefront, Cholesky>;

}  // namespace benchmarks::tasks
