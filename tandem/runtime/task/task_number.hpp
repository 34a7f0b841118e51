// tandem/runtime/task/task_number.hpp: the number of a task for people: in errors, logs, traces and reports.
#pragma once

#include <cstdint>

#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/event.hpp"

namespace tandem::runtime {

/// Ids of tasks, and the number that people see.
///
/// On one rank the id of a task is its number: the number of tasks and nodes submitted up to it. On several ranks each
/// operation of the common flow has 2^`kBits` ids, the same on all ranks: one for the task of the program, and others
/// for a rank's work for the operation, such as sends and receives. The number of all of them is the position of the
/// operation (`Runtime::position`). `kOfRanks` marks such ids. They grow along the flow, and are larger than those
/// before the first operation.
struct TaskNumber {
  static constexpr unsigned kBits = trace::kIdBitsBelowPosition;
  static constexpr TaskId kOfRanks = TaskId{1} << 62;
  /// The first id of a position's nodes that the program may know; smaller ones belong to the flow itself.
  static constexpr TaskId kFirst = 2;

  static constexpr TaskId first_id(std::uint64_t position) noexcept {
    return kOfRanks | ((position << kBits) + kFirst);
  }
  /// The largest id of the position.
  static constexpr TaskId last_id(std::uint64_t position) noexcept {
    return kOfRanks | (((position + 1) << kBits) - 1);
  }
  /// Position of an id; 0: before the first operation.
  static constexpr std::uint64_t position(TaskId id) noexcept { return (id & ~kOfRanks) >> kBits; }
  static constexpr bool is_of_ranks(TaskId id) noexcept { return (id & kOfRanks) != 0; }
  /// Id without the mark, as in traces.
  static constexpr std::uint64_t unmarked(TaskId id) noexcept { return id & ~kOfRanks; }
  static constexpr std::uint64_t of(TaskId id) noexcept { return is_of_ranks(id) ? position(id) : id; }
};

}  // namespace tandem::runtime
