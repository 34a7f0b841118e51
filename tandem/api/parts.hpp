// tandem/api/parts.hpp: pieces of registered data as separate data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tandem/api/data.hpp"
#include "tandem/dist/use.hpp"

namespace tandem {

class Runtime;

/// How a vector or a matrix is divided. Blocks of a vector: `{.rows = 1000}`, or seven of them: `{.row_parts = 7}`;
/// tiles: `{.rows = 256, .cols = 256}`; vertical strips of a matrix: `{.cols = 64}`. Rows or columns must be divided;
/// an unnamed dimension stays whole.
struct Partition {
  std::size_t rows = 0;  ///< rows of a part, or elements of a vector's; the last parts may have fewer
  std::size_t cols = 0;  ///< columns of a part
  /// Number of parts instead of `rows`, at most as many as there are rows; their rows differ by at most one.
  std::size_t row_parts = 0;
  std::size_t col_parts = 0;  ///< instead of `cols`
  /// Instead of `rows`: the rows of each part, each > 0, whose sum is the number of rows.
  std::vector<std::size_t> row_list = {};
  std::vector<std::size_t> col_list = {};  ///< instead of `cols`
  /// Rows of the neighbours on each side that belong to a part, too; the first and the last part have one neighbour
  /// (`Parts::core`). No part has fewer rows of its own. Such parts can only be read.
  std::size_t halo_rows = 0;
  std::size_t halo_cols = 0;  ///< columns of the neighbours, as `halo_rows`
  std::source_location where = std::source_location::current();  ///< for messages
};

/// The region of a part without its halo.
struct PartCore {
  std::size_t row = 0;        ///< first row in the part
  std::size_t col = 0;        ///< first column in the part
  std::size_t rows = 0;       ///< number of rows
  std::size_t cols = 0;       ///< number of columns
  std::size_t whole_row = 0;  ///< first row in the whole
  std::size_t whole_col = 0;  ///< first column in the whole
};

namespace internal {

template <class Kind>
inline constexpr bool can_be_divided = false;
template <class T>
inline constexpr bool can_be_divided<Vector<T>> = true;
template <class T>
inline constexpr bool can_be_divided<Matrix<T>> = true;

/// Properties of the kind of data that a partition needs.
struct DividedKind {
  const std::type_info& type;
  bool has_columns = false;
  bool is_constant = false;  ///< tasks can only read the data
};
template <class Kind>
inline constexpr bool is_constant_kind = false;
template <class T>
inline constexpr bool is_constant_kind<Vector<const T>> = true;
template <class T>
inline constexpr bool is_constant_kind<Matrix<const T>> = true;
template <class Kind>
inline constexpr bool has_columns = false;
template <class T>
inline constexpr bool has_columns<Matrix<T>> = true;

/// Position of a part in the whole.
struct PlaceInWhole {
  std::size_t row = 0;
  std::size_t col = 0;
};

/// A task of a split or a gather.
struct PartOrder {
  bool splits = false;
  std::span<dist::Use> uses;  ///< with a copy: from the first datum to the second one; they are the whole and one part
  SourceLine where = {};
  /// The part has its own memory, and its values are copied; no value: it lies in the whole's.
  std::optional<PlaceInWhole> copied = {};
  /// May wait for room in the window: the first of several, so that a wait that throws leaves nothing behind.
  bool may_wait = true;
};

/// A partition of one piece of data, and whether its parts or the whole may be used now. Used by the submitting thread.
///
/// The parts lie in the memory of the whole, on the rank that owns it. Tasks without work order uses of parts and of
/// the whole: one that uses the whole and writes the parts makes the parts usable (`split`); one that uses the parts
/// and the whole makes the whole usable (`gather`). They are submitted when a use needs them: `FlowState::asks` of a
/// handle says before which uses `prepare_parts` must be called.
///
/// While main memory has a budget, the whole may leave it, so that its parts cannot lie there (`copies_`). Then each
/// part has its own memory, which leaves and returns like that of other data; a split copies the whole to its parts,
/// and a gather the parts to the whole, with one task for each part. That needs memory for the whole and one part, and
/// no task has memory pinned beyond its end.
///
/// States. idle: only the whole may be used. reading: the whole and the parts may be read; several partitions may be in
/// this state at once. writing: only the parts may be used; all other partitions of the whole are idle. If a partition
/// of a part is not idle, the part may be used. The state changes only with submitted tasks, and these run also behind
/// the end of a cancelled flow: the tasks that they serve have no effect there, and parts and whole have the values of
/// the flow's end. On several ranks nothing enters a flow behind its end, so partitions keep their states until the
/// next wait.
class PartPlan {
 public:
  PartPlan(Runtime& rt, runtime::Handle& whole, Partition partition, const DividedKind& kind);
  /// Gathers the parts, also while an exception leaves the scope.
  ~PartPlan();
  PartPlan(const PartPlan&) = delete;
  PartPlan& operator=(const PartPlan&) = delete;

  std::size_t row_parts() const noexcept { return rows_.size(); }
  std::size_t col_parts() const noexcept { return cols_.size(); }
  /// Index of part (i, j), column by column. Throws UsageError when there is none.
  std::size_t index(std::size_t i, std::size_t j) const;
  const std::vector<runtime::Handle*>& parts() const noexcept { return parts_; }
  /// Region of part `index` without its halo.
  PartCore core(std::size_t index) const noexcept;

  /// Makes the parts readable, or also writable, from here on.
  void split(bool writes);
  /// Makes the whole usable from here on.
  void gather();
  /// Called before a task uses `handle`, if `asks` of it says so.
  static void prepare(runtime::Handle& handle, bool writes);
  /// Whether it is a part, or has a living partition.
  static bool is_bound(const runtime::Handle& handle) noexcept;

 private:
  friend class RecordedParts;
  enum class State : std::uint8_t { idle, reading, writing };
  /// Range of rows or columns of a part.
  struct Extent {
    std::size_t first = 0;  ///< first one in the whole
    std::size_t count = 0;  ///< number with the halo
    std::size_t core_first = 0;  ///< first one without the halo, in the whole
    std::size_t core_count = 0;
  };
  /// Division of one dimension.
  struct Division {
    std::size_t size = 0;    ///< size of the whole
    std::size_t of_each = 0;
    std::size_t parts = 0;
    const std::vector<std::size_t>& list;
    std::size_t halo = 0;
    const char* what = "";   ///< name of its elements, for messages
    bool is_named() const noexcept { return of_each != 0 || parts != 0 || !list.empty(); }
  };
  /// Partitions that a handle belongs to.
  struct Links {
    std::vector<PartPlan*> plans;  ///< partitions of which it is the whole
    PartPlan* part_of = nullptr;   ///< partition of which it is a part; null: none, or gone
    bool was_part = false;
  };

  static Links& links_of(runtime::Handle& handle);
  static void note_asks(runtime::Handle& handle);
  Division row_division() const noexcept;
  Division col_division() const noexcept;
  void check_named() const;
  std::vector<Extent> cut(const Division& division) const;
  std::vector<std::size_t> counts_of(const Division& division) const;
  void set(State state);
  bool lacks_value() const;
  void note_for_recording();
  void end() noexcept;
  void gather_now(bool at_end);
  void order_split(bool writes);
  void order_gather(bool at_end);
  void copy_to_parts(bool writes);
  void copy_to_whole(bool at_end);
  void note_out_of_date(runtime::Handle& handle);
  PlaceInWhole place_of(std::size_t part) const noexcept;
  void submit(const PartOrder& order);
  [[noreturn]] void refuse(const std::string& why) const;

  Runtime& runtime_;
  runtime::Handle& whole_;
  const Partition partition_;
  const DividedKind kind_;
  std::vector<Extent> rows_;
  std::vector<Extent> cols_;
  std::vector<runtime::Handle*> parts_;
  State state_ = State::idle;
  const std::uint64_t number_;  ///< number of partitions made before it, on all ranks
  const std::shared_ptr<PartPlan*> itself_ = std::make_shared<PartPlan*>(this);  ///< for users that may outlive it
  bool copies_ = false;  ///< the parts have their own memory
};

}  // namespace internal

/// The parts of a vector or a matrix, as separate data: `Runtime::parts` makes them. Tasks may use the whole and the
/// parts in any order. A task that uses a part runs after the tasks before it that wrote the whole, and vice versa;
/// tasks that read parts and tasks that read the whole run at the same time. Data may have several partitions at once,
/// and parts may be divided again.
///
/// One task cannot use data together with its own parts. With option `memory`, parts of data that Tandem allocated are
/// copies in memory of their own: main memory must have room for the whole and one part, else the constructor throws
/// OutOfMemory. On several ranks parts have the owner of the whole, and every rank makes them; a rank that skips tasks
/// calls `split` and `gather` where the other ranks next use the parts, or the whole, again. A recorded graph repeats
/// its splits and gathers in each replay; parts that it has split must all be written in it, unless the whole had a
/// value.
///
/// Used by the submitting thread; the runtime outlives it. When it ends, the whole has the values of the parts.
template <class Kind>
class Parts {
 public:
  /// Makes parts, as `Runtime::parts`.
  Parts(Runtime& rt, const Data<Kind>& whole, Partition partition)
      : whole_(whole),
        plan_(std::make_unique<internal::PartPlan>(
            rt, *whole.handle(), std::move(partition),
            internal::DividedKind{typeid(Kind), internal::has_columns<Kind>, internal::is_constant_kind<Kind>})) {
    parts_.reserve(plan_->parts().size());
    for (runtime::Handle* const part : plan_->parts()) parts_.emplace_back(part);
  }

  std::size_t rows() const noexcept { return plan_->row_parts(); }  ///< number of parts below each other
  /// Number of parts beside each other; 1 for a vector.
  std::size_t cols() const noexcept { return plan_->col_parts(); }
  /// Part (i, j). Throws UsageError when there is none.
  const Data<Kind>& operator()(std::size_t i, std::size_t j = 0) const { return parts_[plan_->index(i, j)]; }
  const Data<Kind>& whole() const noexcept { return whole_; }  ///< the divided data
  /// Region of part (i, j) without its halo. Throws UsageError when there is none.
  PartCore core(std::size_t i, std::size_t j = 0) const { return plan_->core(plan_->index(i, j)); }

  /// Makes the parts usable; `writes`: also writable, which parts of constant data and parts with halos cannot be. The
  /// first use of a part does this, too. Throws UsageError.
  void split(bool writes = !internal::is_constant_kind<Kind>) { plan_->split(writes); }
  /// Makes the whole usable. A use of the whole does this, too.
  void gather() { plan_->gather(); }

 private:
  Data<Kind> whole_;
  std::vector<Data<Kind>> parts_;
  std::unique_ptr<internal::PartPlan> plan_;  // last: it ends before its parts
};

}  // namespace tandem
