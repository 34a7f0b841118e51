// tandem/analysis/tables/task_table.hpp: the tasks of a history, column by column.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/analysis/tables/row_iterator.hpp"
#include "tandem/analysis/tables/spill_vector.hpp"
#include "tandem/analysis/tables/texts.hpp"
#include "tandem/analysis/tables/unknown.hpp"

namespace tandem::analysis {

/// The stage of a task, as far as recorded.
enum class TaskStatus : std::uint8_t { unknown, submitted, ready, running, done, failed, cancelled };
std::string_view name_of(TaskStatus status) noexcept;

struct TaskRow {
  std::uint64_t id = 0;  ///< whole
  std::int64_t submit_ns = no_time, ready_ns = no_time, pushed_ns = no_time, popped_ns = no_time;
  std::int64_t start_ns = no_time;
  std::int64_t end_ns = no_time;  ///< for a cancelled task, which has no start, the time of the cancellation
  std::uint32_t rank = 0;
  Texts::Id name = 0;     ///< its own, else its codelet's
  Texts::Id codelet = 0;
  Texts::Id file = 0;     ///< where it was submitted
  std::uint32_t line = 0;
  std::uint32_t submit_order = no_number;  ///< index among the tasks of its rank, from 0
  std::uint32_t graph = 0;                 ///< the recorded graph that it is a part of; 0: none
  std::int32_t priority = 0;
  std::int32_t iteration = no_iteration;  ///< that the program told
  double flops = 0;                       ///< floating-point operations, as the program told; 0: not known
  std::uint64_t tag = 0;                  ///< of the program's own; 0: none
  Texts::Id parameters = 0;               ///< of the program's own
  std::uint16_t worker = no_worker;     ///< that ran it
  std::uint16_t pushed_to = no_worker;  ///< into whose queue; no_worker: one for all, or none
  TaskStatus status = TaskStatus::unknown;
  bool stolen = false;
  std::uint16_t stolen_from = no_worker;  ///< from whose queue
  std::uint16_t ready_by = no_worker;     ///< the worker that made it ready, by the end of a task

  bool has_run() const noexcept { return start_ns != no_time && end_ns != no_time; }
};

/// One value of each row. It takes memory from the first row on that has another value than `none`.
template <class T, T none>
class TaskColumn {
 public:
  explicit TaskColumn(const std::shared_ptr<SpillMemory>& memory) : bits_(memory, SpillUse::table) {}

  T operator[](std::size_t row) const noexcept {
    return row < bits_.size() ? static_cast<T>(bits_[row] ^ bits_of_none) : none;
  }
  void set(std::size_t row, T value) {
    const auto bits = static_cast<Bits>(static_cast<Bits>(value) ^ bits_of_none);
    if (row >= bits_.size()) {
      if (bits == 0) return;
      bits_.resize(row + 1);
    }
    bits_[row] = bits;
  }

 private:
  using Bits = std::make_unsigned_t<T>;
  static constexpr Bits bits_of_none = static_cast<Bits>(none);

  SpillVector<Bits> bits_;  ///< rows without a value are 0, as new memory is
};

/// What the tasks that are submitted at one place of the program have in common.
struct TaskPlace {
  Texts::Id codelet = 0, file = 0;
  std::uint32_t line = 0;

  auto operator<=>(const TaskPlace&) const = default;
};

/// The tasks by row, a number from 0 in the order of their first events. A loop that needs a few columns reads these;
/// `operator[]` assembles a whole row. One thread at a time, also for reading.
class TaskTable {
 public:
  explicit TaskTable(const std::shared_ptr<SpillMemory>& memory)
      : id(memory), rank(memory), submit_ns(memory), ready_ns(memory), pushed_ns(memory), popped_ns(memory), start_ns(memory), end_ns(memory),
        submit_order(memory), graph(memory), priority(memory), iteration(memory), tag(memory), parameters(memory), worker(memory),
        pushed_to(memory), stolen_from(memory), ready_by(memory), memory_(memory), place_(memory), name_(memory), flops_(memory),
        status_(memory), stolen_(memory),
        started_(memory, SpillUse::table), ended_(memory, SpillUse::table), readied_(memory, SpillUse::table) {}

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Returns the number of the new row.
  std::uint32_t add() { return static_cast<std::uint32_t>(size_++); }

  TaskColumn<std::uint64_t, 0> id;
  TaskColumn<std::uint32_t, 0> rank;
  TaskColumn<std::int64_t, no_time> submit_ns, ready_ns, pushed_ns, popped_ns, start_ns, end_ns;
  TaskColumn<std::uint32_t, no_number> submit_order;
  TaskColumn<std::uint32_t, 0> graph;
  TaskColumn<std::int32_t, 0> priority;
  TaskColumn<std::int32_t, no_iteration> iteration;
  TaskColumn<std::uint64_t, 0> tag;
  TaskColumn<Texts::Id, 0> parameters;
  TaskColumn<std::uint16_t, no_worker> worker, pushed_to, stolen_from, ready_by;

  const TaskPlace& place(std::size_t row) const noexcept { return places_[place_[row]]; }
  Texts::Id codelet(std::size_t row) const noexcept { return place(row).codelet; }
  Texts::Id name(std::size_t row) const noexcept {
    const std::uint32_t own = name_[row];
    return own == 0 ? codelet(row) : own - 1;
  }
  double flops(std::size_t row) const noexcept { return std::bit_cast<double>(flops_[row]); }
  TaskStatus status(std::size_t row) const noexcept { return static_cast<TaskStatus>(status_[row]); }
  bool stolen(std::size_t row) const noexcept { return stolen_[row] != 0; }
  bool has_run(std::size_t row) const noexcept { return start_ns[row] != no_time && end_ns[row] != no_time; }

  /// The number of a place, for `set_place`; equal places have one number.
  std::uint32_t add_place(const TaskPlace& place);
  void set_place(std::size_t row, std::uint32_t number) { place_.set(row, number); }
  std::uint32_t place_number(std::size_t row) const noexcept { return place_[row]; }
  void set_name(std::size_t row, Texts::Id name) { name_.set(row, name + 1); }
  void set_flops(std::size_t row, double flops) { flops_.set(row, std::bit_cast<std::uint64_t>(flops)); }
  void set_stolen(std::size_t row, bool stolen) { stolen_.set(row, stolen); }
  /// Sets the later of the present status and this one.
  void advance(std::size_t row, TaskStatus status) {
    if (status > this->status(row)) status_.set(row, static_cast<std::uint8_t>(status));
  }

  // Like `set` of the column; the row also joins a list.
  void start(std::uint32_t row, std::int64_t ns) { note(started_, start_ns, row, ns); }
  void end(std::uint32_t row, std::int64_t ns) { note(ended_, end_ns, row, ns); }
  void ready(std::uint32_t row, std::int64_t ns) { note(readied_, ready_ns, row, ns); }
  /// Rows with this time, each once, in the order in which they were added, which for one rank is nearly the order of
  /// time. So sorting by time, which checks for sorted rows, has little to do.
  const SpillVector<std::uint32_t>& started() const noexcept { return started_; }
  const SpillVector<std::uint32_t>& ended() const noexcept { return ended_; }
  const SpillVector<std::uint32_t>& readied() const noexcept { return readied_; }

  TaskRow operator[](std::size_t row) const noexcept {
    const TaskPlace& at = place(row);
    return {.id = id[row], .submit_ns = submit_ns[row], .ready_ns = ready_ns[row], .pushed_ns = pushed_ns[row], .popped_ns = popped_ns[row],
            .start_ns = start_ns[row], .end_ns = end_ns[row], .rank = rank[row], .name = name(row), .codelet = at.codelet, .file = at.file,
            .line = at.line, .submit_order = submit_order[row], .graph = graph[row], .priority = priority[row], .iteration = iteration[row],
            .flops = flops(row), .tag = tag[row], .parameters = parameters[row], .worker = worker[row], .pushed_to = pushed_to[row],
            .status = status(row), .stolen = stolen(row), .stolen_from = stolen_from[row], .ready_by = ready_by[row]};
  }
  TaskRow at(std::size_t row) const {
    if (row >= size_) throw std::out_of_range("TaskTable::at");
    return (*this)[row];
  }

  /// The numbers of all rows, for a loop over many columns: each step touches the memory (`SpillMemory::touch`).
  auto rows() const {
    const auto touched = [memory = memory_.get()](std::uint32_t row) {
      memory->touch();
      return row;
    };
    return std::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(size_)) | std::views::transform(touched);
  }
  /// The rows, in order.
  using Iterator = RowIterator<TaskTable, TaskRow>;
  Iterator begin() const noexcept { return {*this, 0}; }
  Iterator end() const noexcept { return {*this, size()}; }
  /// Called at each step of a loop over rows.
  void touch() const noexcept { memory_->touch(); }

 private:
  static void note(SpillVector<std::uint32_t>& list, TaskColumn<std::int64_t, no_time>& column, std::uint32_t row,
                   std::int64_t ns) {
    if (column[row] == no_time) list.push_back(row);
    column.set(row, ns);
  }

  std::shared_ptr<SpillMemory> memory_;
  std::size_t size_ = 0;
  TaskColumn<std::uint32_t, 0> place_;
  TaskColumn<std::uint32_t, 0> name_;   ///< one more than its text; 0: that of the codelet
  TaskColumn<std::uint64_t, 0> flops_;  ///< the bits of a double
  TaskColumn<std::uint8_t, 0> status_, stolen_;
  SpillVector<std::uint32_t> started_, ended_, readied_;
  std::vector<TaskPlace> places_{TaskPlace{}};  ///< the first one is none
  std::map<TaskPlace, std::uint32_t> number_of_place_{{TaskPlace{}, 0}};
};

}  // namespace tandem::analysis
