// tandem/runtime/sched/kind_numbers.hpp: which kind each ready task is of, for policies that look at all kinds.
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
/// A policy that keeps ready tasks together (`Bound::few`) looks at each kind whenever a worker asks, so what a task costs grows with their number. There
/// `kMostExact` kinds are of one shape each. Tasks of further shapes are of the kind of their *class*, with all of their codelet and about their size
/// (`model::size_class_of`); beyond `kMostClasses` of these, of one kind with all tasks for the same workers. A kind that has no tasks, and of which none
/// came among the last `kForgetAfter` tasks, leaves its number to another one.
///
/// Where each task is placed by itself (`Bound::none`), kinds are those of shapes. A kind without tasks keeps its number while there are few.
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

  /// What a task is like.
  struct Task {
    std::string_view codelet;  ///< its name
    model::Footprint footprint;
    const void* workers = nullptr;  ///< tells groups of workers apart
    bool prefers_devices = false;
  };
  /// What its kind is.
  struct Kind {
    unsigned number = 0;
    bool is_new = false;        ///< of this number nothing is known: other tasks had it before, or none
    std::string_view codelet;   ///< the task's; empty: of several
    model::Footprint footprint;  ///< the task's, or that of the class
  };
  /// A task becomes one of its kind, until `leave`.
  Kind join(const Task& task);
  /// A task of kind `number` has ended, or will not come.
  void leave(unsigned number);

  /// How many tasks kind `number` has.
  std::uint32_t tasks(unsigned number) const noexcept { return uses_[number].tasks; }
  /// Kind `number` is that of many shapes.
  bool is_class(unsigned number) const noexcept { return uses_[number].width != Width::shape; }
  /// Numbers that are in use, or were.
  std::size_t size() const noexcept { return uses_.size(); }
  bool check_invariants() const noexcept;

 private:
  enum class Width : std::uint8_t { shape, size, all, none };
  struct Use {
    std::uint64_t key = 0;
    std::uint64_t came = 0;   ///< of `joins_`, when a task came last
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
  std::vector<Use> uses_;       ///< by number
  std::vector<unsigned> free_;  ///< numbers of no kind
  std::unordered_map<std::uint64_t, unsigned> numbers_;  ///< by a hash of what such tasks have in common
  std::array<std::size_t, 3> count_{};      ///< by width, kinds that have a number
  std::array<std::uint64_t, 3> look_at_{};  ///< by width, of `joins_`: none is looked for that could leave its number before
  std::uint64_t joins_ = 0;
};

}  // namespace tandem::runtime
