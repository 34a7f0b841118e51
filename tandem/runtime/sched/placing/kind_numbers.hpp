// tandem/runtime/sched/placing/kind_numbers.hpp: numbers the kinds of ready tasks, for policies that look at all kinds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/model/tasks/footprint.hpp"

namespace tandem::runtime {

/// Numbers of kinds of tasks, from 0 on. Tasks of one codelet and shape, for the same workers, are of one kind.
///
/// A policy that keeps ready tasks together (`Bound::few`) looks at each kind whenever a worker asks, so the cost of a
/// task grows with their number. With `Bound::few`, `kMostExact` kinds have one shape each. Tasks of further shapes are
/// of the kind of their *class*, which has the codelet's tasks of about their size (`model::size_class_of`); beyond
/// `kMostClasses` classes, of one kind with all tasks for the same workers. A kind without tasks, and without one among
/// the last `kForgetAfter` tasks, gives its number to another one.
///
/// Where each task is placed by itself (`Bound::none`), each shape has its kind. A kind without tasks keeps its number
/// while there are few.
///
/// Not thread-safe: `Placer` calls it under its lock.
class KindNumbers {
 public:
  static constexpr std::size_t kMostExact = 64;
  static constexpr std::size_t kMostClasses = 64;
  static constexpr std::size_t kMostIdle = 256;          ///< with `Bound::none`
  static constexpr std::uint64_t kForgetAfter = 1U << 14;  ///< tasks

  enum class Bound { none, few };
  explicit KindNumbers(Bound bound) noexcept : bound_(bound) {}

  /// Properties of a task that decide its kind.
  struct Task {
    std::string_view codelet;  ///< name of the codelet
    model::Footprint footprint;
    const void* workers = nullptr;  ///< tells groups of workers apart
    bool prefers_devices = false;
  };
  /// The kind of a task.
  struct Kind {
    unsigned number = 0;
    bool is_new = false;        ///< nothing is known of this number: other tasks had it before, or none
    std::string_view codelet;   ///< codelet of the task; empty: the kind has several
    model::Footprint footprint;  ///< footprint of the task, or of its class
  };
  /// Adds a task to its kind, until `leave`.
  Kind join(const Task& task);
  /// Removes a task of kind `number`, which has ended, or will not come.
  void leave(unsigned number);

  /// Number of tasks of kind `number`.
  std::uint32_t tasks(unsigned number) const noexcept { return uses_[number].tasks; }
  /// Whether kind `number` has many shapes.
  bool is_class(unsigned number) const noexcept { return uses_[number].width != Width::shape; }
  /// Number of the numbers that are or were in use.
  std::size_t size() const noexcept { return uses_.size(); }
  bool check_invariants() const noexcept;

 private:
  enum class Width : std::uint8_t { shape, size, all, none };
  struct Use {
    std::uint64_t key = 0;
    std::uint64_t came = 0;   ///< value of `joins_` when a task came last
    std::uint32_t tasks = 0;
    Width width = Width::shape;
  };

  static std::uint64_t key_of(const Task& task, Width width) noexcept;
  Width width_for(const Task& task) noexcept;
  bool has(const Task& task, Width width) const { return numbers_.contains(key_of(task, width)); }
  bool has_place(Width width) noexcept;
  void give_up(unsigned number) noexcept;
  unsigned new_number(std::uint64_t key, Width width);

  const Bound bound_;
  std::vector<Use> uses_;       ///< kinds by number
  std::vector<unsigned> free_;  ///< unused numbers
  std::unordered_map<std::uint64_t, unsigned> numbers_;  ///< numbers by a hash of the common properties of their tasks
  std::array<std::size_t, 3> count_{};      ///< by width, kinds with a number
  /// By width, the value of `joins_` before which no kind can leave its number.
  std::array<std::uint64_t, 3> look_at_{};
  std::uint64_t joins_ = 0;
};

}  // namespace tandem::runtime
