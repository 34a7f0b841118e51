// tandem/api/parts.hpp: pieces of registered data as data of their own.
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

/// How a vector or a matrix is divided. Blocks of a vector: `{.rows = 1000}`, or seven of them: `{.row_parts = 7}`; tiles:
/// `{.rows = 256, .cols = 256}`; vertical strips of a matrix: `{.cols = 64}`. Rows or columns must be divided; what is not named has all.
struct Partition {
  std::size_t rows = 0;  ///< rows of a part, elements of a vector's; the last parts may have fewer
  std::size_t cols = 0;  ///< columns of a part
  std::size_t row_parts = 0;  ///< instead of `rows`: so many parts, at most as many as there are rows, whose rows differ by one at most
  std::size_t col_parts = 0;  ///< instead of `cols`
  std::vector<std::size_t> row_list = {};  ///< instead of `rows`: those of each part, each > 0, which add up to all
  std::vector<std::size_t> col_list = {};  ///< instead of `cols`
  /// So many rows of the neighbours on each side belong to a part, too, but for the first and the last part, which have one neighbour
  /// (`Parts::core`). No part has fewer of its own. Such parts can only be read.
  std::size_t halo_rows = 0;
  std::size_t halo_cols = 0;  ///< the same for columns
  std::source_location where = std::source_location::current();  ///< for messages
};

/// What a part has of its own: all of it but the halo.
struct PartCore {
  std::size_t row = 0;        ///< where it begins in the part
  std::size_t col = 0;        ///< the same for columns
  std::size_t rows = 0;       ///< how many rows it has
  std::size_t cols = 0;       ///< how many columns it has
  std::size_t whole_row = 0;  ///< where it begins in the whole
  std::size_t whole_col = 0;  ///< the same for columns
};

namespace internal {

template <class Kind>
inline constexpr bool can_be_divided = false;
template <class T>
inline constexpr bool can_be_divided<Vector<T>> = true;
template <class T>
inline constexpr bool can_be_divided<Matrix<T>> = true;

/// What a partition must know of the kind of its data.
struct DividedKind {
  const std::type_info& type;
  bool has_columns = false;
  bool is_constant = false;  ///< tasks can only read it
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

/// Where a part begins in the whole.
struct PlaceInWhole {
  std::size_t row = 0;
  std::size_t col = 0;
};

/// A task of a split or a gather.
struct PartOrder {
  bool splits = false;
  std::span<dist::Use> uses;  ///< with a copy: from the first datum to the second one, which are the whole and one part
  SourceLine where = {};
  std::optional<PlaceInWhole> copied = {};  ///< the part has memory of its own, and its values are copied; nothing: it lies in the whole's
  bool may_wait = true;  ///< for room in the window: the first of several, so that a wait that throws leaves nothing behind
};

/// A partition of one piece of data, and whether its parts or the whole may be used now. Of the submitting thread.
///
/// The parts lie in the memory of the whole, on the rank that owns it. Tasks of no work order uses of parts and of the whole: one that
/// uses the whole and writes the parts makes the parts usable (`split`), one that uses the parts and the whole makes the whole usable
/// (`gather`). They are submitted when a use needs them: `FlowState::asks` of a handle says before which uses `prepare_parts` is to
/// be called.
///
/// While main memory has a budget, the whole may leave it, so that there is no place where its parts could lie (`copies_`). Then each part has
/// memory of its own, which leaves and comes back like that of other data; a split copies the whole to its parts, and a gather the
/// parts to the whole, with one task for each part: that needs memory for the whole and one part, and no task holds memory beyond its end.
///
/// States. idle: the whole alone may be used. reading: the whole and the parts may be read; several partitions may be in this
/// state at once. writing: the parts alone may be used; all other partitions of the whole are idle. A partition of a part that is
/// not idle implies that the part may be used. The state changes only with what is submitted, and what is submitted for it runs also behind the end of a
/// cancelled flow: the tasks that it serves have no effect there, and parts and whole have the values of the flow's end. On several ranks nothing enters
/// a flow behind its end, so partitions keep their states until the next wait.
class PartPlan {
 public:
  PartPlan(Runtime& rt, runtime::Handle& whole, Partition partition, const DividedKind& kind);
  /// Gathers, also while an exception leaves the scope.
  ~PartPlan();
  PartPlan(const PartPlan&) = delete;
  PartPlan& operator=(const PartPlan&) = delete;

  std::size_t row_parts() const noexcept { return rows_.size(); }
  std::size_t col_parts() const noexcept { return cols_.size(); }
  /// Of part (i, j), column by column. Throws UsageError when there is none.
  std::size_t index(std::size_t i, std::size_t j) const;
  const std::vector<runtime::Handle*>& parts() const noexcept { return parts_; }
  /// Of part `index`.
  PartCore core(std::size_t index) const noexcept;

  /// Parts can be read, or also written, from here on.
  void split(bool writes);
  /// The whole can be used from here on.
  void gather();
  /// Before a task uses `handle`, of which `asks` says that this is to be called.
  static void prepare(runtime::Handle& handle, bool writes);
  /// It is a part, or has a partition that lives.
  static bool is_bound(const runtime::Handle& handle) noexcept;

 private:
  friend class RecordedParts;
  enum class State : std::uint8_t { idle, reading, writing };
  /// Rows or columns of a part.
  struct Extent {
    std::size_t first = 0;  ///< in the whole
    std::size_t count = 0;  ///< with the halo
    std::size_t core_first = 0;  ///< in the whole
    std::size_t core_count = 0;
  };
  /// How one dimension is to be divided.
  struct Division {
    std::size_t size = 0;    ///< of the whole
    std::size_t of_each = 0;
    std::size_t parts = 0;
    const std::vector<std::size_t>& list;
    std::size_t halo = 0;
    const char* what = "";   ///< its elements, for messages
    bool is_named() const noexcept { return of_each != 0 || parts != 0 || !list.empty(); }
  };
  /// What a handle knows of partitions.
  struct Links {
    std::vector<PartPlan*> plans;  ///< of which it is the whole
    PartPlan* part_of = nullptr;   ///< null: it is no part, or its partition is gone
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
  const std::uint64_t number_;  ///< as many were made before it, on all ranks
  const std::shared_ptr<PartPlan*> itself_ = std::make_shared<PartPlan*>(this);  ///< for those who may outlive it
  bool copies_ = false;  ///< the parts have memory of their own
};

}  // namespace internal

/// The parts of a vector or a matrix, as data of their own: `Runtime::parts` makes them. Tasks may use the whole and the parts in any
/// order. A task that uses a part runs after the tasks before it that wrote the whole, and the other way round; tasks that read parts
/// and tasks that read the whole run at the same time. Data may have several partitions at once, and parts may be divided again.
///
/// One task cannot use data together with its own parts. With option `memory` parts of data that Tandem allocated are copies in memory of their
/// own: main memory must have room for the whole and one part, else the constructor throws OutOfMemory. On several ranks parts have the owner of
/// the whole, every rank makes them, and a rank that skips tasks calls `split` and `gather` where the other ranks first use parts, or the whole,
/// again. A recorded graph splits and gathers in each replay what it did when it was recorded; parts that it has split must all be written in it,
/// unless the whole had a value.
///
/// Of the submitting thread; the runtime outlives it. When it ends, the whole has the values of the parts.
template <class Kind>
class Parts {
 public:
  /// As `Runtime::parts`.
  Parts(Runtime& rt, const Data<Kind>& whole, Partition partition)
      : whole_(whole),
        plan_(std::make_unique<internal::PartPlan>(rt, *whole.handle(), std::move(partition),
                                                   internal::DividedKind{typeid(Kind), internal::has_columns<Kind>, internal::is_constant_kind<Kind>})) {
    parts_.reserve(plan_->parts().size());
    for (runtime::Handle* const part : plan_->parts()) parts_.emplace_back(part);
  }

  std::size_t rows() const noexcept { return plan_->row_parts(); }  ///< how many parts are below each other
  std::size_t cols() const noexcept { return plan_->col_parts(); }  ///< how many parts are beside each other; 1 for a vector
  /// Part (i, j). Throws UsageError when there is none.
  const Data<Kind>& operator()(std::size_t i, std::size_t j = 0) const { return parts_[plan_->index(i, j)]; }
  const Data<Kind>& whole() const noexcept { return whole_; }  ///< the data that is divided
  /// What part (i, j) has beside its halo, and where. Throws UsageError when there is none.
  PartCore core(std::size_t i, std::size_t j = 0) const { return plan_->core(plan_->index(i, j)); }

  /// From here on parts can be used without further ado; `writes`: also written, which those of constant data and those with halos cannot. A use of a
  /// part does it, too. Throws UsageError.
  void split(bool writes = !internal::is_constant_kind<Kind>) { plan_->split(writes); }
  /// From here on the whole can be used. A use of the whole does it, too.
  void gather() { plan_->gather(); }

 private:
  Data<Kind> whole_;
  std::vector<Data<Kind>> parts_;
  std::unique_ptr<internal::PartPlan> plan_;  // last: it ends before its parts
};

}  // namespace tandem
