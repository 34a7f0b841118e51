// tandem/api/codelet.hpp: kernels with a name, and the typed call of a task.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tandem/api/data.hpp"
#include "tandem/api/misfit.hpp"
#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem {

using runtime::Shape;

/// The place where a kernel runs. A kernel gets it if its first parameter is a `const Context&` (or a `Context`).
struct Context {
  unsigned worker = 0;       ///< index of the worker, from 0
  unsigned memory_node = 0;  ///< memory node of the call's data; 0: main memory
  /// Queue to which a device's kernel posts its work, of the device's type; null: the kernel computes itself.
  void* queue = nullptr;
};

namespace internal {

template <class... Kernels>
class TypedCore final : public runtime::CodeletCore {
 public:
  TypedCore(std::string codelet_name, std::tuple<Kernels...> implementations)
      : CodeletCore(std::move(codelet_name)), kernels(std::move(implementations)) {}
  const std::tuple<Kernels...> kernels;
};

template <class Argument>
struct IsAccess : std::false_type {};
template <AccessMode mode, class Kind>
struct IsAccess<Access<mode, Kind>> : std::true_type {};
template <AccessMode mode, class Kind>
struct IsAccess<AccessList<mode, Kind>> : std::true_type {};
template <class Argument>
inline constexpr bool is_access = IsAccess<std::remove_cvref_t<Argument>>::value;

template <class Argument>
inline constexpr bool is_list_unqualified = false;
template <AccessMode mode, class Kind>
inline constexpr bool is_list_unqualified<AccessList<mode, Kind>> = true;
/// Whether the argument is a list of data.
template <class Argument>
inline constexpr bool is_list = is_list_unqualified<std::remove_cvref_t<Argument>>;

template <class Argument>
inline constexpr bool reduces_unqualified = false;
template <class Kind>
inline constexpr bool reduces_unqualified<Access<AccessMode::reduce, Kind>> = true;
template <class Kind>
inline constexpr bool reduces_unqualified<AccessList<AccessMode::reduce, Kind>> = true;
template <class Argument>
inline constexpr bool reduces = reduces_unqualified<std::remove_cvref_t<Argument>>;

template <class Argument>
inline constexpr bool is_event_access = false;
template <AccessMode mode, class Kind>
inline constexpr bool is_event_access<Access<mode, Kind>> =
    mode == AccessMode::read || mode == AccessMode::write || mode == AccessMode::read_write;

template <class Argument, bool access = is_access<Argument>>
struct KernelParameter {
  using type = const std::decay_t<Argument>&;
};
template <class Argument>
struct KernelParameter<Argument, true> {
  using type = typename std::remove_cvref_t<Argument>::View;
};

/// Maps argument i of a submit to its index among the accesses, or among the values.
template <class... Arguments>
constexpr std::array<unsigned, sizeof...(Arguments) + 1> positions() {
  std::array<unsigned, sizeof...(Arguments) + 1> result{};
  const std::array<bool, sizeof...(Arguments) + 1> access{is_access<Arguments>..., false};
  unsigned accesses = 0;
  unsigned values = 0;
  for (std::size_t i = 0; i < sizeof...(Arguments); ++i) result[i] = access[i] ? accesses++ : values++;
  return result;
}

/// Appends the arguments that are no accesses to a tuple type. Compiles faster than std::tuple_cat.
template <class Tuple, class... Arguments>
struct AppendValues {
  using type = Tuple;
};
template <class... Values, class First, class... Others>
struct AppendValues<std::tuple<Values...>, First, Others...>
    : std::conditional_t<is_access<First>, AppendValues<std::tuple<Values...>, Others...>,
                         AppendValues<std::tuple<Values..., std::decay_t<First>>, Others...>> {};
template <class... Arguments>
using ValuesOf = typename AppendValues<std::tuple<>, Arguments...>::type;

/// The indices of the arguments that are no accesses.
template <class Indices, std::size_t next, class... Arguments>
struct AppendIndices {
  using type = Indices;
};
template <std::size_t... i, std::size_t next, class First, class... Others>
struct AppendIndices<std::index_sequence<i...>, next, First, Others...>
    : std::conditional_t<is_access<First>, AppendIndices<std::index_sequence<i...>, next + 1, Others...>,
                         AppendIndices<std::index_sequence<i..., next>, next + 1, Others...>> {};
template <class... Arguments>
using ValueIndices = typename AppendIndices<std::index_sequence<>, 0, Arguments...>::type;

/// Returns argument i of a list.
template <std::size_t i, class First, class... Others>
[[gnu::always_inline]] constexpr decltype(auto) argument_at(First&& first, Others&&... others) noexcept {
  if constexpr (i == 0) return static_cast<First&&>(first);
  else return argument_at<i - 1>(static_cast<Others&&>(others)...);
}

/// Values of a task that was submitted with its own kernel, which is one more value.
template <class Values, class Kernel>
struct ValuesAndKernel {
  [[no_unique_address]] Values values;
  [[no_unique_address]] Kernel kernel;
};

/// Stored part of a task that names lists of data, behind all its accesses.
template <class Inner, std::size_t lists>
struct WithLengths {
  Inner inner;
  std::array<std::uint32_t, lists> lengths;
};

/// Throws UsageError when a task names more data than it may.
void check_access_count(const std::string& codelet, std::size_t count, const SourceLine& where);

/// Codelet core of a task with its own kernel.
template <class Kernel>
struct OwnKernel {};

template <class>
inline constexpr bool kNever = false;

/// An implementation in OpenCL C: opencl_kernel.hpp.
template <class GlobalSize>
class OpenClKernel;
/// A kernel that finds its arguments in the task and is not called with them.
template <class Kernel>
inline constexpr bool posts_itself = false;
template <class GlobalSize>
inline constexpr bool posts_itself<OpenClKernel<GlobalSize>> = true;

/// Implementations for CUDA devices: cuda_kernel.hpp.
template <class Range>
class CudaKernel;
template <class Function>
class CudaFunction;
template <class Range>
inline constexpr bool posts_itself<CudaKernel<Range>> = true;
template <class Function>
inline constexpr bool posts_itself<CudaFunction<Function>> = true;

/// Calls `kernel` for the run `call` with arguments that `Code` finds; a `Context` comes first if the kernel takes one.
/// Parameters: how each argument is passed.
template <class Code, class Kernel, class... Parameters, std::size_t... i>
void call_kernel(const Kernel& kernel, runtime::KernelCall& call, std::tuple<Parameters...>*,
                 std::index_sequence<i...>) {
  if constexpr (posts_itself<Kernel>) {
    kernel.template post<Code>(call, std::index_sequence<i...>());
  } else if constexpr (std::is_invocable_v<const Kernel&, Parameters...>) {
    static_cast<void>(kernel(Code::template argument<i>(call)...));
  } else if constexpr (std::is_invocable_v<const Kernel&, const Context&, Parameters...>) {
    static_cast<void>(kernel(Context{call.worker, call.node, call.queue}, Code::template argument<i>(call)...));
  } else if constexpr (std::is_invocable_v<Kernel&, Parameters...> ||
                       std::is_invocable_v<Kernel&, const Context&, Parameters...>) {
    static_assert(kNever<Kernel>,
                  "the kernel is a `mutable` lambda, or its operator() is not const: several workers may call it at a "
                  "time, so it "
                  "must be const; keep what changes in data, or make it a local variable of the kernel");
  } else {
    refuse_arguments<Kernel, Parameters...>();
  }
}

/// Properties of all tasks with one list of argument types. A task keeps a `Stored` besides its accesses: an `Inner`,
/// and the lengths of lists.
template <class Inner_, class... Arguments>
struct TaskLayout {
  using Inner = Inner_;
  /// Number of arguments that are lists of data.
  static constexpr std::size_t kLists = (std::size_t{0} + ... + static_cast<std::size_t>(is_list<Arguments>));
  using Stored = std::conditional_t<kLists == 0, Inner, WithLengths<Inner, std::max<std::size_t>(kLists, 1)>>;
  using Values = ValuesOf<Arguments...>;
  using Parameters = std::tuple<typename KernelParameter<Arguments>::type...>;
  static constexpr auto kPositions = positions<Arguments...>();
  /// Number of accesses besides those of lists.
  static constexpr unsigned kAccesses = (0U + ... + static_cast<unsigned>(is_access<Arguments> && !is_list<Arguments>));
  static constexpr std::size_t kStoredOffset = runtime::Task::value_offset(kAccesses, alignof(Stored));
  static_assert(kAccesses <= 255, "a task accesses at most 255 pieces of data");
  static_assert(alignof(Stored) <= 64, "values of a task are aligned to a cache line at most");
  static_assert(kStoredOffset + sizeof(Stored) <= runtime::kMaxTaskBytes,
                "the values of a task are too large to be copied into it: a task takes 4096 bytes at most, some 100 of "
                "its own and 24 for each access "
                "included; put them into data, or pass a pointer");
  static_assert(runtime::kMaxTaskBytes == 4096 && sizeof(runtime::Task) <= 100 && sizeof(runtime::AccessSlot) <= 24);

  static Stored& stored(runtime::Task& task) noexcept {
    std::size_t offset = kStoredOffset;
    if constexpr (kLists != 0) offset = runtime::Task::value_offset(task.access_count, alignof(Stored));
    return *reinterpret_cast<Stored*>(reinterpret_cast<char*>(&task) + offset);
  }
  static Inner& inner(runtime::Task& task) noexcept {
    if constexpr (kLists == 0) return stored(task);
    else return stored(task).inner;
  }
  static Values& values(runtime::Task& task) noexcept {
    if constexpr (std::is_same_v<Inner, Values>) return inner(task);
    else return inner(task).values;
  }

  template <std::size_t i>
  using ArgumentAt = std::tuple_element_t<i, std::tuple<std::remove_cvref_t<Arguments>...>>;
  template <std::size_t i>
  static constexpr bool is_access_at = is_access<ArgumentAt<i>>;
  /// Number of lists before argument i.
  template <std::size_t i>
  static constexpr std::size_t kListsBefore = []<std::size_t... j>(std::index_sequence<j...>) {
    return (std::size_t{0} + ... + static_cast<std::size_t>(is_list<ArgumentAt<j>>));
  }(std::make_index_sequence<i>());

  /// Index of the task's access that argument i is, or begins with.
  template <std::size_t i>
  static unsigned position([[maybe_unused]] runtime::Task& task) noexcept {
    unsigned at = kPositions[i] - static_cast<unsigned>(kListsBefore<i>);
    if constexpr (kListsBefore<i> != 0)
      for (std::size_t list = 0; list < kListsBefore<i>; ++list) at += stored(task).lengths[list];
    return at;
  }

  template <std::size_t i>
  static decltype(auto) argument(runtime::KernelCall& call) {
    using Argument = ArgumentAt<i>;
    if constexpr (is_list<Argument>) {
      using Element = typename Argument::Element;
      const unsigned first = position<i>(call.task);
      const std::size_t count = stored(call.task).lengths[kListsBefore<i>];
      for (std::size_t j = 0; j < count; ++j) empty_if_replaced<Argument>(call, first + static_cast<unsigned>(j));
      return typename Argument::View(call, first, count, [](const runtime::KernelCall& of, unsigned access) -> Element {
        return view_in<typename Argument::Kind>(of.memory(access), *of.task.accesses()[access].handle());
      });
    } else if constexpr (is_access<Argument>) {
      const unsigned access = position<i>(call.task);
      typename Argument::View view =
          view_in<typename Argument::Kind>(call.memory(access), *call.task.accesses()[access].handle());
      empty_if_replaced<Argument>(call, access);
      return static_cast<typename Argument::View>(view);
    } else {
      return std::as_const(std::get<kPositions[i]>(values(call.task)));
    }
  }

  /// Empties an object that the task replaces before its kernel begins.
  template <class Argument>
  static void empty_if_replaced([[maybe_unused]] runtime::KernelCall& call, [[maybe_unused]] unsigned access) {
    if constexpr (Argument::mode == AccessMode::write && is_object<typename Argument::Kind>) {
      // An object that the task names twice may be read as well.
      const runtime::AccessSlot& slot = call.task.accesses()[access];
      if (slot.mode() != AccessMode::write || slot.alias()) return;
      auto& object = DataTraits<typename Argument::Kind>::view(call.memory(access), call.shape(access));
      object = std::remove_cvref_t<decltype(object)>();
    }
  }

  static void destroy(runtime::Task& task) noexcept { stored(task).~Stored(); }

  static void copy(runtime::Task& from, runtime::Task& to, bool construct) {
    if constexpr (std::is_copy_constructible_v<Stored>) {
      if (!construct) destroy(to);
      new (static_cast<void*>(&stored(to))) Stored(stored(from));
    }
  }

  static constexpr runtime::TaskOps make_ops(void (*invoke)(runtime::KernelCall&)) {
    runtime::TaskOps ops;
    ops.invoke = invoke;
    if constexpr (!std::is_same_v<Stored, std::tuple<>>) {
      if constexpr (!std::is_trivially_destructible_v<Stored>) ops.destroy_values = &destroy;
      if constexpr (std::is_copy_constructible_v<Stored>) ops.copy_values = &copy;
      ops.value_types = &typeid(Values);
      ops.value_bytes = static_cast<std::uint32_t>(sizeof(Stored));
      ops.value_alignment = static_cast<std::uint32_t>(alignof(Stored));
    }
    return ops;
  }
};

/// The code that the runtime calls for tasks of one codelet type with one list of argument types.
template <class Core, class... Arguments>
struct TaskCode;

template <class... Kernels, class... Arguments>
struct TaskCode<TypedCore<Kernels...>, Arguments...> : TaskLayout<ValuesOf<Arguments...>, Arguments...> {
  using Layout = TaskLayout<ValuesOf<Arguments...>, Arguments...>;

  static void invoke(runtime::KernelCall& call) {
    const auto& core = static_cast<const TypedCore<Kernels...>&>(*call.task.codelet);
    constexpr auto arguments = std::index_sequence_for<Arguments...>();
    constexpr typename Layout::Parameters* parameters = nullptr;
    if constexpr (sizeof...(Kernels) == 1) {
      call_kernel<Layout>(std::get<0>(core.kernels), call, parameters, arguments);
    } else {
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        static_cast<void>(((k == call.implementation
                                ? (call_kernel<Layout>(std::get<k>(core.kernels), call, parameters, arguments), true)
                                : false) ||
                           ...));
      }(std::index_sequence_for<Kernels...>());
    }
  }
  static inline const runtime::TaskOps ops = Layout::make_ops(&invoke);
};

template <class Kernel, class... Arguments>
struct TaskCode<OwnKernel<Kernel>, Arguments...>
    : TaskLayout<ValuesAndKernel<ValuesOf<Arguments...>, Kernel>, Arguments...> {
  using Layout = TaskLayout<ValuesAndKernel<ValuesOf<Arguments...>, Kernel>, Arguments...>;

  static void invoke(runtime::KernelCall& call) {
    constexpr typename Layout::Parameters* parameters = nullptr;
    call_kernel<Layout>(std::as_const(Layout::inner(call.task).kernel), call, parameters,
                        std::index_sequence_for<Arguments...>());
  }
  static inline const runtime::TaskOps ops = Layout::make_ops(&invoke);
};

}  // namespace internal

/// A kernel with a name, or several for different devices. Tasks share it; it may be destroyed before they run. A
/// value: copies are the same codelet. Building it allocates; submitting it does not.
///
///   Codelet scale("scale", [](double a, std::span<double> x) { for (double& v : x) v *= a; });
template <class... Kernels>
class Codelet {
 public:
  /// Makes a codelet with one implementation, for CPU cores.
  template <class Kernel>
  Codelet(std::string name, Kernel kernel) : Codelet(new Core(std::move(name), std::tuple<Kernel>(std::move(kernel)))) {
    typed_->devices.push_back(DeviceKind::cpu);
  }

  /// Returns the codelet with a further implementation, for workers of kind `device`. The kernel gets the same
  /// parameters.
  ///
  /// With several implementations for one kind, the runtime tries each for tasks of each size, and then runs the
  /// fastest; it retries the others now and then, at a cost of about 1 %. With performance models (option `models`) it
  /// knows them from earlier runs.
  template <class Kernel>
  [[nodiscard]] Codelet<Kernels..., Kernel> also(DeviceKind device, Kernel kernel) const {
    static_assert(sizeof...(Kernels) < runtime::kMaxImplementations, "a codelet has at most 16 implementations");
    Codelet<Kernels..., Kernel> codelet(new internal::TypedCore<Kernels..., Kernel>(
        typed_->name, std::tuple_cat(typed_->kernels, std::tuple<Kernel>(std::move(kernel)))));
    codelet.typed_->take_properties(*typed_);
    codelet.typed_->add_implementation_for(device);
    codelet.typed_->plain = false;
    return codelet;
  }

  /// Returns the codelet with a further implementation for CPU cores, for instance one that is faster for some sizes.
  template <class Kernel>
  [[nodiscard]] Codelet<Kernels..., Kernel> also(Kernel kernel) const {
    return also(DeviceKind::cpu, std::move(kernel));
  }

  /// Returns the codelet with a further implementation, for OpenCL devices (option `opencl`): `kernel`, a `__kernel`
  /// function of `source`, which is in OpenCL C. Include tandem/opencl.hpp.
  ///
  /// Its parameters follow those of the other kernels: a value is a value; a scalar is `__global T*`; a vector is
  /// `__global T*` and `ulong` (its count); a matrix is `__global T*` and three `ulong` (rows, columns, leading
  /// dimension); an array, which is packed there, is `__global T*` and an `ulong` for each extent. `global_size` is
  /// called with the arguments of the other kernels, and gives the number of work items, or an `OpenClRange`; the views
  /// that it gets have sizes and no data. `options` are for the compiler.
  template <class GlobalSize>
  [[nodiscard]] Codelet<Kernels..., internal::OpenClKernel<GlobalSize>> opencl(std::string source, std::string kernel,
                                                                               GlobalSize global_size,
                                                                               std::string options = {}) const {
    return also(DeviceKind::opencl,
                internal::OpenClKernel<GlobalSize>({std::move(source), std::move(kernel), std::move(options)},
                                                   std::move(global_size)));
  }

  /// Returns the codelet with a further implementation, for CUDA devices (option `cuda`): `kernel`, a `__global__`
  /// function of `source`, which is in CUDA C++ and compiled at run time. Include tandem/cuda.hpp.
  ///
  /// Its parameters follow those of the other kernels: a value is a value; a scalar is `T*`; a vector is `T*` and
  /// `size_t` (its count); a matrix is `T*` and three `size_t` (rows, columns, leading dimension). `range` is called
  /// with the arguments of the other kernels, and gives the number of threads, or a `CudaRange`; the views that it gets
  /// have sizes and no data. `options` are for the compiler.
  template <class Range>
  [[nodiscard]] Codelet<Kernels..., internal::CudaKernel<Range>> cuda(std::string source, std::string kernel,
                                                                      Range range, std::string options = {}) const {
    return also(DeviceKind::cuda, internal::CudaKernel<Range>(
                                      {std::move(source), std::move(kernel), std::move(options)}, std::move(range)));
  }
  /// Returns the codelet with a further implementation for CUDA devices: a function that posts work to a stream, for
  /// instance by cuBLAS. It gets a `CudaQueue&`, and then the parameters of the other kernels, with data in the
  /// device's memory.
  template <class Function>
  [[nodiscard]] Codelet<Kernels..., internal::CudaFunction<Function>> cuda(Function function) const {
    return also(DeviceKind::cuda, internal::CudaFunction<Function>(std::move(function)));
  }

  /// Returns the codelet, restricted to workers for which `predicate` returns true. A runtime calls it once for each of
  /// its workers, at the first submit, which throws its exceptions.
  [[nodiscard]] Codelet can_run(std::function<bool(const WorkerDescription&)> predicate) const {
    Codelet codelet = copy();
    codelet.typed_->can_run = std::move(predicate);
    codelet.typed_->plain = false;
    return codelet;
  }

  /// Returns the codelet, whose tasks go to devices with an implementation, if there are any, instead of cores. Cores
  /// run tasks that devices could not (DeviceError), or that do not fit into their memory. Schedulers that know
  /// durations (`plan`, the `dm` family) give cores such tasks if that is known to pay, and try them there only beside
  /// enough others.
  [[nodiscard]] Codelet prefer_devices() const {
    Codelet codelet = copy();
    codelet.typed_->prefers_devices = true;
    return codelet;
  }

  /// Returns the codelet with a function that computes the floating-point operations of a task from the shapes of its
  /// data (in the order of its accesses): for traces and reports, which call it while a task is submitted.
  /// `TaskOptions::flops` comes first.
  [[nodiscard]] Codelet flops(std::function<double(std::span<const Shape>)> count) const {
    Codelet codelet = copy();
    codelet.typed_->flops = std::move(count);
    return codelet;
  }

  /// Returns the codelet, marked as memory-bound (or not): at most as many of its tasks run at once as saturate the
  /// memory bus, and fewer beside urgent messages, if option `contention` knows the machine. Without this mark the
  /// runtime judges by the bytes of a task's data and the durations of its kernels.
  [[nodiscard]] Codelet memory_bound(bool is_bound = true) const {
    Codelet codelet = copy();
    codelet.typed_->memory_bound = is_bound;
    return codelet;
  }

  /// Returns the codelet with a colour for reports: 0xRRGGBB. Codelets of one name share the one that was given first.
  [[nodiscard]] Codelet colour(std::uint32_t rgb) const {
    Codelet codelet = copy();
    codelet.typed_->colour = rgb & 0xff'ffff;
    return codelet;
  }

  const std::string& name() const noexcept { return typed_->name; }  ///< name in messages, statistics and traces
  const std::shared_ptr<runtime::CodeletCore>& core() const noexcept { return core_; }  ///< for the layers below

 private:
  template <class... Others>
  friend class Codelet;
  using Core = internal::TypedCore<Kernels...>;

  /// Owns `core`. The pointer is to the base, since a shared pointer to each type of core would be slow to compile.
  explicit Codelet(Core* core) : core_(static_cast<runtime::CodeletCore*>(core)), typed_(core) {}
  Codelet copy() const {
    Codelet codelet(new Core(typed_->name, typed_->kernels));
    codelet.typed_->take_properties(*typed_);
    return codelet;
  }

  std::shared_ptr<runtime::CodeletCore> core_;
  Core* typed_;
};

/// `Codelet name("name", kernel)` needs no template arguments.
template <class Kernel>
Codelet(std::string, Kernel) -> Codelet<Kernel>;
/// `Codelet name("name", kernel)` with a literal needs no template arguments.
template <class Kernel>
Codelet(const char*, Kernel) -> Codelet<Kernel>;

}  // namespace tandem
