// tandem/api/data.hpp: typed pieces of data, and how tasks name their use of them.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/data/views.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem {

namespace runtime {
struct KernelCall;
}

/// Kind of data that is a vector: kernels get `std::span<const T>` or `std::span<T>`.
template <class T>
struct Vector {};
/// Kind of data that is a column-major matrix: kernels get `MatrixView<const T>` or `MatrixView<T>`.
template <class T>
struct Matrix {};
/// Kind of data that is an array of `n` dimensions, with any strides: kernels get `ArrayView<const T, n>` or
/// `ArrayView<T, n>`, with the strides of their copy.
template <class T, std::size_t n>
struct Array {};
/// Kind of data that is an object: a value of any type with a `Serialize`; its size may change. Kernels get `const T&`
/// or `T&`. With mode write, a kernel or the application finds an empty value, `T()`.
template <class T>
struct Object {};

/// How kernels see data of kind `Kind`. This one is for scalars and the user's own types: kernels get `const T&` or
/// `T&`.
template <class Kind>
struct DataTraits {
  static_assert(
      !std::is_pointer_v<Kind>,
      "a pointer says nothing of how much it points to, and is of no use on another rank: register std::span(pointer, "
      "count), a MatrixView, or *pointer");
  static_assert(
      std::is_trivially_copyable_v<Kind>,
      "data of a user's type is moved as bytes, so the type must be trivially copyable; register others as objects, "
      "with rt.object");
  using ReadView = const Kind&;  ///< view of a kernel that reads
  using WriteView = Kind&;       ///< view of a kernel that writes
  /// The view of a copy of the data.
  static WriteView view(const runtime::Replica& replica, const runtime::Shape&) noexcept {
    return *static_cast<Kind*>(replica.pointer);
  }
};

/// View of vectors: kernels get a span of the whole vector.
template <class T>
struct DataTraits<Vector<T>> {
  static_assert(std::is_trivially_copyable_v<T>,
                "elements of a vector are moved as bytes, so their type must be trivially copyable; register the whole "
                "std::vector as an object, with rt.object");
  using ReadView = std::span<const T>;  ///< view of a kernel that reads
  using WriteView = std::span<T>;       ///< view of a kernel that writes
  /// The view of a copy of the data.
  static WriteView view(const runtime::Replica& replica, const runtime::Shape& shape) noexcept {
    return {static_cast<T*>(replica.pointer), shape.rows};
  }
};

/// View of matrices: kernels get a view with the leading dimension of their copy, which may differ from the registered
/// one.
template <class T>
struct DataTraits<Matrix<T>> {
  static_assert(std::is_trivially_copyable_v<T>,
                "elements of a matrix are moved as bytes, so their type must be trivially copyable");
  using ReadView = MatrixView<const T>;  ///< view of a kernel that reads
  using WriteView = MatrixView<T>;       ///< view of a kernel that writes
  /// The view of a copy of the data.
  static WriteView view(const runtime::Replica& replica, const runtime::Shape& shape) noexcept {
    return {static_cast<T*>(replica.pointer), shape.rows, shape.cols, replica.ld};
  }
};

/// View of arrays: kernels get a view with the strides of their copy, which may differ from the registered ones.
template <class T, std::size_t n>
struct DataTraits<Array<T, n>> {
  static_assert(std::is_trivially_copyable_v<T>,
                "elements of an array are moved as bytes, so their type must be trivially copyable");
  static_assert(n >= 1 && n <= runtime::Layout::kMostDimensions, "an array has between 1 and 8 dimensions");
  using ReadView = ArrayView<const T, n>;  ///< view of a kernel that reads
  using WriteView = ArrayView<T, n>;       ///< view of a kernel that writes
  /// The view of a copy of the data with these dimensions.
  static WriteView view(const runtime::Replica& replica, const runtime::Layout& layout) noexcept {
    WriteView view{static_cast<T*>(replica.pointer), {}, {}};
    for (std::size_t d = 0; d < n; ++d) {
      view.extents[d] = layout.extents()[d];
      view.strides[d] = layout.strides()[d];
    }
    return view;
  }
};

/// View of objects: kernels get the value itself.
template <class T>
struct DataTraits<Object<T>> {
  using ReadView = const T&;  ///< view of a kernel that reads
  using WriteView = T&;       ///< view of a kernel that writes
  /// The view of a copy of the data.
  static WriteView view(const runtime::Replica& replica, const runtime::Shape&) noexcept {
    return *static_cast<T*>(replica.pointer);
  }
};

namespace internal {

template <class Kind>
inline constexpr bool can_be_data = sizeof(DataTraits<Kind>) != 0;  // assertions in it say what cannot be data

template <class Kind>
inline constexpr bool is_constant = std::is_const_v<Kind>;
template <class T>
inline constexpr bool is_constant<Vector<T>> = std::is_const_v<T>;
template <class T>
inline constexpr bool is_constant<Matrix<T>> = std::is_const_v<T>;

template <class T, std::size_t n>
inline constexpr bool is_constant<Array<T, n>> = std::is_const_v<T>;

template <class Kind>
inline constexpr bool is_array = false;
template <class T, std::size_t n>
inline constexpr bool is_array<Array<T, n>> = true;

/// The view of the copy of `handle` that is at `replica`.
template <class Kind>
[[gnu::always_inline]] inline typename DataTraits<Kind>::WriteView view_in(const runtime::Replica& replica,
                                                                           const runtime::Handle& handle) noexcept {
  if constexpr (is_array<Kind>) {
    const bool at_home = replica.pointer == handle.home.pointer;
    return DataTraits<Kind>::view(replica, at_home ? *handle.layout : handle.layout->packed());
  } else {
    return DataTraits<Kind>::view(replica, handle.shape);
  }
}

template <class Kind>
constexpr void check_writable() {
  static_assert(!is_constant<Kind>,
                "the data was registered over const memory, so tasks can only read it: register memory that is not "
                "const, or use read(data)");
}

/// Type that was given as memory; used for a message before overloads are compared.
template <class Memory>
constexpr void check_memory() {
  using Given = std::remove_cvref_t<Memory>;
  static_assert(
      !std::is_pointer_v<Given>,
      "a pointer says nothing of how much it points to, and is of no use on another rank: register std::span(pointer, "
      "count), a MatrixView, or *pointer");
}

template <class Kind>
inline constexpr bool is_object = false;
template <class T>
inline constexpr bool is_object<Object<T>> = true;

/// Drops one owner of a handle; the last `Data` unregisters it. Any thread.
void drop_owner(runtime::Handle* handle) noexcept;
/// Called when a task is about to see or to change data that has a partition.
void prepare_parts(runtime::Handle& handle, bool writes);
inline void about_to_use(runtime::Handle* handle, bool writes) {
  if (handle != nullptr && __builtin_expect((handle->flow.asks & (writes ? 2U : 1U)) != 0, 0))
    prepare_parts(*handle, writes);
}
/// Throws UsageError unless the data is registered with a runtime. `action` is the operation, for the message.
void check_registered(runtime::Handle* handle, const char* action);
/// Waits for the tasks that use the data, and forgets it. Submitting thread. Throws UsageError.
void unregister(runtime::Handle* handle);

}  // namespace internal

/// A piece of data, as kind `Kind` (a type, `Vector<T>`, `Matrix<T>` or `Object<T>`). Copies name the same data. When
/// the last copy is destroyed, data over the user's memory is unregistered: this waits for the tasks that use it and
/// brings the value home. Data that Tandem allocated is freed when its last task has ended. Any thread may destroy a
/// copy; all else belongs to the submitting thread.
template <class Kind>
class Data {
 public:
  Data() = default;  ///< empty: to be assigned
  /// Takes over the handle of new data.
  explicit Data(runtime::Handle* handle) noexcept : handle_(handle) {}
  /// Makes another name for the same data. Any thread.
  Data(const Data& other) noexcept : handle_(other.handle_) {
    if (handle_ != nullptr) handle_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  /// Moves from `other`, which is empty afterwards.
  Data(Data&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  /// Names other data, and drops the previous data.
  Data& operator=(Data other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Data() {
    if (handle_ != nullptr) internal::drop_owner(handle_);
  }

  const std::string& name() const noexcept { return handle_->name; }        ///< name in messages and traces
  const runtime::Shape& shape() const noexcept { return handle_->shape; }   ///< rows, columns, and bytes of an element
  /// Rows of a matrix; elements of a vector; 1 for one value.
  std::size_t rows() const noexcept { return handle_->shape.rows; }
  std::size_t cols() const noexcept { return handle_->shape.cols; }         ///< columns of a matrix; 1 for other data
  runtime::Handle* handle() const noexcept { return handle_; }              ///< for the layers below; null: empty

  /// Waits for the tasks that use the data, brings its value home to the user's memory, and forgets it: later uses
  /// throw `UsageError`. On several ranks every rank calls it.
  void unregister() { internal::unregister(handle_); }

  /// Sets how `reduce(*this)` accesses start and are added up: `init(view)` makes a neutral element, `combine(into,
  /// from)` adds.
  template <class Init, class Combine>
  Data& reduction(Init init, Combine combine) {
    using Traits = DataTraits<Kind>;
    internal::check_registered(handle_, "give a reduction to");
    handle_->reduction = std::make_unique<runtime::Reduction>();
    const auto view = [handle = handle_](void* memory, std::size_t ld, const runtime::Shape& shape) ->
        typename Traits::WriteView {
          const runtime::Replica replica{memory, ld, false};
          if constexpr (internal::is_array<Kind>)
            return static_cast<void>(shape), internal::view_in<Kind>(replica, *handle);
          else
            return static_cast<void>(handle), Traits::view(replica, shape);
        };
    handle_->reduction->init = [init, view](void* memory, std::size_t ld,
                                            const runtime::Shape& shape) { init(view(memory, ld, shape)); };
    handle_->reduction->combine = [combine, view](void* into, std::size_t into_ld, const void* from,
                                                  std::size_t from_ld, const runtime::Shape& shape) {
      const typename Traits::ReadView read = view(const_cast<void*>(from), from_ld, shape);
      combine(view(into, into_ld, shape), read);
    };
    return *this;
  }

 private:
  runtime::Handle* handle_ = nullptr;
};

/// A vector's handle, for signatures.
template <class T>
using VectorData = Data<Vector<T>>;
/// An array's handle, for signatures.
template <class T, std::size_t n>
using ArrayData = Data<Array<T, n>>;
/// A matrix's handle, for signatures.
template <class T>
using MatrixData = Data<Matrix<T>>;
/// An object's handle, for signatures.
template <class T>
using ObjectData = Data<Object<T>>;

/// A use of data by a task: made by `read`, `write`, ... in the call of `submit`, and living no longer than that call.
template <AccessMode mode_, class Kind_>
struct Access {
  static constexpr AccessMode mode = mode_;  ///< how the task uses the data
  using Kind = Kind_;                        ///< what the data holds
  /// Argument that the kernel gets.
  using View = std::conditional_t<mode_ == AccessMode::read, typename DataTraits<Kind_>::ReadView,
                                  typename DataTraits<Kind_>::WriteView>;
  runtime::Handle* handle;  ///< handle of the data
  SourceLine where;         ///< line of the call, for messages
};

/// The argument of a kernel for a list of data: a view of each, in the order of the list. `View` is what the kernel
/// would get for one of them: `Each<std::span<const double>>`, `Each<MatrixView<double>>`, `Each<const int&>`. Valid
/// during the call of the kernel; any thread may read it. Each element costs a function call.
///
///   Codelet sum("sum", [](Each<std::span<const double>> parts, std::span<double> out) {
///     for (std::span<const double> part : parts)
///       for (std::size_t i = 0; i < part.size(); ++i) out[i] += part[i];
///   });
template <class View>
class Each {
 public:
  /// Makes the view of one access of a task.
  using Look = View (*)(const runtime::KernelCall& call, unsigned access);
  /// Views of `count` accesses from `first` on. Made by the runtime.
  Each(const runtime::KernelCall& call, unsigned first, std::size_t count, Look look) noexcept
      : call_(&call), first_(first), count_(count), look_(look) {}

  std::size_t size() const noexcept { return count_; }   ///< number of data in the list
  bool empty() const noexcept { return count_ == 0; }    ///< whether the list names no data
  /// View of one datum of the list, counted from 0. Not checked.
  View operator[](std::size_t i) const { return look_(*call_, first_ + static_cast<unsigned>(i)); }

  /// Iterates over the list.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;   ///< views are made, not stored
    using value_type = std::remove_cvref_t<View>;        ///< as iterators have it
    using difference_type = std::ptrdiff_t;              ///< as iterators have it
    using pointer = void;                                ///< as iterators have it
    using reference = View;                              ///< as iterators have it

    Iterator(const Each& list, std::size_t at) noexcept : list_(&list), at_(at) {}  ///< at one place of a list
    View operator*() const { return (*list_)[at_]; }                                ///< view at this place
    Iterator& operator++() noexcept { return ++at_, *this; }                        ///< to the next place
    Iterator operator++(int) noexcept { return {*list_, at_++}; }  ///< goes to the next place, and returns this one
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }  ///< for iterators of one list

   private:
    const Each* list_;
    std::size_t at_;
  };
  Iterator begin() const noexcept { return {*this, 0}; }     ///< first element
  Iterator end() const noexcept { return {*this, count_}; }  ///< behind the last element

 private:
  const runtime::KernelCall* call_;
  unsigned first_;
  std::size_t count_;
  Look look_;
};

/// A use of several data by a task, as many as the program says at run time: made by `read(list)`, `write(list)`, ...
/// in the call of `submit`, and living no longer than that call.
template <AccessMode mode_, class Kind_>
struct AccessList {
  static constexpr AccessMode mode = mode_;                  ///< how the task uses each of them
  using Kind = Kind_;                                        ///< what each of them holds
  using Element = typename Access<mode_, Kind_>::View;       ///< argument of the kernel for one of them
  using View = Each<Element>;                                ///< argument of the kernel
  const Data<Kind_>* first;                                  ///< start of the list
  std::size_t count;                                         ///< number of data
  SourceLine where;                                          ///< line of the call, for messages
};

namespace internal {
template <class Kind>
std::type_identity<Kind> kind_of_elements(const Data<Kind>*);
/// The kind of the data in a list.
template <class List>
using KindIn = typename decltype(kind_of_elements(std::data(std::declval<const List&>())))::type;
template <AccessMode mode, class List>
AccessList<mode, KindIn<List>> access_list(const List& list, const SourceLine& where) {
  if constexpr (mode != AccessMode::read) check_writable<KindIn<List>>();
  AccessList<mode, KindIn<List>> accesses{std::data(list), std::size(list), where};
  if constexpr (mode != AccessMode::scratch)
    for (std::size_t i = 0; i < accesses.count; ++i) about_to_use(accesses.first[i].handle(), mode != AccessMode::read);
  return accesses;
}
}  // namespace internal

/// A sequence of data in memory: `std::vector<Data<Kind>>`, a span, an array.
template <class List>
concept DataList = requires(const List& list) {
  typename internal::KindIn<List>;
  std::size(list);
};

/// The task reads the value, at the same time as other readers.
template <class Kind>
Access<AccessMode::read, Kind> read(const Data<Kind>& data,
                                    std::source_location where = std::source_location::current()) {
  internal::about_to_use(data.handle(), false);
  return {data.handle(), where};
}
/// The task replaces the whole value and does not read the old one.
template <class Kind>
Access<AccessMode::write, Kind> write(const Data<Kind>& data,
                                      std::source_location where = std::source_location::current()) {
  internal::check_writable<Kind>();
  internal::about_to_use(data.handle(), true);
  return {data.handle(), where};
}
/// The task reads and changes the value.
template <class Kind>
Access<AccessMode::read_write, Kind> read_write(const Data<Kind>& data,
                                                std::source_location where = std::source_location::current()) {
  internal::check_writable<Kind>();
  internal::about_to_use(data.handle(), true);
  return {data.handle(), where};
}
/// The task reads and changes the value; neighbouring commuting tasks run one at a time, in any order.
template <class Kind>
Access<AccessMode::commute, Kind> commute(const Data<Kind>& data,
                                          std::source_location where = std::source_location::current()) {
  internal::check_writable<Kind>();
  internal::about_to_use(data.handle(), true);
  return {data.handle(), where};
}
/// The task adds to the data through a private copy: see `Data::reduction`.
template <class Kind>
Access<AccessMode::reduce, Kind> reduce(const Data<Kind>& data,
                                        std::source_location where = std::source_location::current()) {
  internal::check_writable<Kind>();
  internal::about_to_use(data.handle(), true);
  return {data.handle(), where};
}
/// The task gets memory of the data's shape for the time of its kernel; it orders nothing and leaves the data alone.
template <class Kind>
Access<AccessMode::scratch, Kind> scratch(const Data<Kind>& data,
                                          std::source_location where = std::source_location::current()) {
  static_assert(!internal::is_object<Kind>,
                "scratch is memory without a value: let the kernel make an object of its own");
  internal::check_writable<Kind>();
  return {data.handle(), where};
}

/// @name Lists of data, whose length the program knows at run time
/// The kernel gets an `Each` for the list. The list may be empty; a task names at most 4096 data. A datum that occurs
/// twice in the list, or also outside of it, counts as any datum that a task names twice.
/// @{

/// Access as by `read` for each datum.
template <DataList List>
auto read(const List& list, std::source_location where = std::source_location::current()) {
  return internal::access_list<AccessMode::read>(list, where);
}
/// Access as by `write` for each datum.
template <DataList List>
auto write(const List& list, std::source_location where = std::source_location::current()) {
  return internal::access_list<AccessMode::write>(list, where);
}
/// Access as by `read_write` for each datum.
template <DataList List>
auto read_write(const List& list, std::source_location where = std::source_location::current()) {
  return internal::access_list<AccessMode::read_write>(list, where);
}
/// Access as by `commute` for each datum.
template <DataList List>
auto commute(const List& list, std::source_location where = std::source_location::current()) {
  return internal::access_list<AccessMode::commute>(list, where);
}
/// Access as by `reduce` for each datum.
template <DataList List>
auto reduce(const List& list, std::source_location where = std::source_location::current()) {
  return internal::access_list<AccessMode::reduce>(list, where);
}
/// Access as by `scratch` for each datum.
template <DataList List>
auto scratch(const List& list, std::source_location where = std::source_location::current()) {
  static_assert(!internal::is_object<internal::KindIn<List>>,
                "scratch is memory without a value: let the kernel make an object of its own");
  return internal::access_list<AccessMode::scratch>(list, where);
}
/// @}

}  // namespace tandem
